//! docs/privacy.md has a statement on every column, and lists every name that redaction keeps.

use std::path::Path;

use proctrace_fleet::{kept_names_markdown, privacy_markdown};

/// A page with a generated part: the rest of a section, from its last paragraph on that is not.
fn with(page: &str, heading: &str, first: &str, generated: &str) -> String {
    let begin = page.find(&format!("\n## {heading}\n")).unwrap() + 1;
    let end = page[begin..].find("\n## ").map_or(page.len(), |at| begin + at + 1);
    let section = page[begin..end].split(first).next().unwrap().trim_end();
    format!("{}{section}\n\n{}\n\n{}", &page[..begin], generated.trim_end(), &page[end..])
}

/// UPDATE_DOCS=1 writes the page.
#[test]
fn the_page_is_that_of_the_code() {
    let path =
        Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").unwrap()).join("../../docs/privacy.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let expected = with(&page, "Columns", "### ", &privacy_markdown());
    let expected =
        with(&expected, "Names that are kept", "Directories of the root:", &kept_names_markdown());
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &expected).unwrap();
    }
    let page = std::fs::read_to_string(&path).unwrap();
    assert!(page == expected, "docs/privacy.md is not current: run this test with UPDATE_DOCS=1");
}
