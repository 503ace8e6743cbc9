//! The source of the book: the pages of docs/SUMMARY.md and the files that they link to, at their places in the
//! repository, so that a link means the same in the repository and in the book.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result};

use super::options::Chapter;

/// The page below which those of the commands are put.
const OPTIONS: &str = "docs/options.md";
/// The page whose neighbours are put below it.
const DECISIONS: &str = "docs/decisions/README.md";

/// Copies the pages and what they link to, and writes the summary.
pub(super) fn write(root: &Path, pages: &Path, commands: &[Chapter]) -> Result<()> {
    let summary = read(&root.join("docs/SUMMARY.md"))?;
    let mut waiting: Vec<PathBuf> = links(&summary)
        .iter()
        .filter_map(|link| target("docs/SUMMARY.md".as_ref(), link))
        .collect();
    let mut copied = BTreeSet::new();
    while let Some(path) = waiting.pop() {
        let from = root.join(&path);
        if !from.is_file() || !copied.insert(path.clone()) {
            continue;
        }
        let to = pages.join(&path);
        fs::create_dir_all(to.parent().unwrap_or(pages)).context("cannot create a directory")?;
        fs::copy(&from, &to).with_context(|| format!("cannot copy {}", from.display()))?;
        if path.extension().is_some_and(|it| it == "md") {
            let text = read(&from)?;
            waiting.extend(links(&text).iter().filter_map(|link| target(&path, link)));
        }
    }
    let mut chapters = String::new();
    for line in summary.lines() {
        let Some((title, link)) = line.split_once("](") else {
            chapters.push_str(&format!("{line}\n"));
            continue;
        };
        let link = link.trim_end_matches(')');
        let path = target("docs/SUMMARY.md".as_ref(), link).unwrap_or_default();
        let path = path.display().to_string();
        chapters.push_str(&format!("{title}]({path})\n"));
        let below: Vec<Chapter> = match path.as_str() {
            OPTIONS => commands.to_vec(),
            DECISIONS => decisions(root)?,
            _ => continue,
        };
        let indent = title.len() - title.trim_start().len() + 2;
        for Chapter { title, path } in below {
            chapters.push_str(&format!("{:indent$}- [{title}]({path})\n", ""));
        }
    }
    fs::write(pages.join("SUMMARY.md"), chapters).context("cannot write the summary")
}

/// A chapter for each decision, in order of their numbers.
fn decisions(root: &Path) -> Result<Vec<Chapter>> {
    let mut chapters = Vec::new();
    for entry in fs::read_dir(root.join("docs/decisions")).context("no docs/decisions")? {
        let path = entry.context("cannot list docs/decisions")?.path();
        let text = read(&path)?;
        let title = text.lines().next().unwrap_or_default().trim_start_matches("# ").to_owned();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name != "README.md" {
            chapters.push(Chapter { title, path: format!("docs/decisions/{name}") });
        }
    }
    chapters.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(chapters)
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

/// Targets of links and images. What only looks like one leads to no file.
fn links(text: &str) -> Vec<&str> {
    text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(link, _)| link).collect()
}

/// The file that a link of a page leads to, from the root of the repository; None if it is outside of it.
fn target(page: &Path, link: &str) -> Option<PathBuf> {
    let link = link.split('#').next().filter(|it| !it.is_empty() && !it.contains(':'))?;
    let mut path = page.parent()?.to_owned();
    for part in Path::new(link).components() {
        match part {
            Component::ParentDir => {
                if !path.pop() {
                    return None;
                }
            }
            Component::Normal(name) => path.push(name),
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_followed_from_their_page() {
        let page = Path::new("docs/a.md");
        let text = "[b](b.md#c) ![d](../d.svg) [e](https://e.org) [f](#f) [g](../../g.md)";
        let found: Vec<_> = links(text).iter().map(|link| target(page, link)).collect();
        let expected = [Some("docs/b.md"), Some("d.svg"), None, None, None];
        assert_eq!(found, expected.map(|it| it.map(PathBuf::from)));
    }
}
