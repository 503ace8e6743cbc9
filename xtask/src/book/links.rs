//! Links of the finished book: each leads to a file, and to a place in it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// What a page has: its places, and what it links to.
struct Page {
    places: BTreeSet<String>,
    links: Vec<String>,
}

/// A line for each link that leads nowhere. Links to other sites are not followed.
pub(super) fn faults(book: &Path) -> Result<Vec<String>> {
    let mut pages = BTreeMap::new();
    read(book, &mut pages)?;
    let mut faults = Vec::new();
    for (path, page) in &pages {
        let name = path.strip_prefix(book).unwrap_or(path).display();
        for link in page.links.iter().filter(|link| !link.contains(':')) {
            let (file, place) = link.split_once('#').unwrap_or((link, ""));
            let parent = path.parent().unwrap_or(book);
            let target = if file.is_empty() { path.clone() } else { parent.join(file) };
            // Without its `..`, as the pages are named.
            let Ok(target) = target.canonicalize() else {
                faults.push(format!("{name}: {link}: no such file"));
                continue;
            };
            let places = pages.get(&target).map(|page| &page.places);
            if target.is_dir() {
                faults.push(format!("{name}: {link}: a directory"));
            } else if !place.is_empty() && places.is_none_or(|it| !it.contains(place)) {
                faults.push(format!("{name}: {link}: no such place"));
            }
        }
    }
    Ok(faults)
}

/// Reads the pages of a directory and of those in it. 404.html stands for every path, so that its links are from the root
/// of a site.
fn read(directory: &Path, pages: &mut BTreeMap<PathBuf, Page>) -> Result<()> {
    for entry in fs::read_dir(directory).context("cannot list the book")? {
        let path = entry.context("cannot list the book")?.path();
        if path.is_dir() {
            read(&path, pages)?;
        } else if path.extension().is_some_and(|it| it == "html") && !path.ends_with("404.html") {
            let text = fs::read_to_string(&path).context("cannot read a page")?;
            let path = path.canonicalize().context("cannot find a page")?;
            pages.insert(path, page(&text));
        }
    }
    Ok(())
}

fn page(text: &str) -> Page {
    let values = |key: &str| -> Vec<String> {
        let key = format!(" {key}=\"");
        let parts = text.split(&key).skip(1);
        parts.filter_map(|it| it.split_once('"')).map(|(it, _)| it.replace("&amp;", "&")).collect()
    };
    let mut links = values("href");
    links.extend(values("src"));
    Page { places: values("id").into_iter().collect(), links }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_that_lead_nowhere_are_found() {
        let book = tempfile::tempdir().unwrap();
        fs::create_dir(book.path().join("docs")).unwrap();
        let first = "<a href=\"docs/b.html#c\"> <a href=\"docs/b.html#d\"> <img src=\"e.png\"> <a href=\"docs\">";
        fs::write(book.path().join("a.html"), first).unwrap();
        let second = "<h2 id=\"c\"> <a class=\"x\" href=\"../a.html\"> <a href=\"#c\"> <a href=\"https://f.org\">";
        fs::write(book.path().join("docs/b.html"), second).unwrap();
        let expected = [
            "a.html: docs/b.html#d: no such place",
            "a.html: docs: a directory",
            "a.html: e.png: no such file",
        ];
        assert_eq!(faults(book.path()).unwrap(), expected);
    }
}
