//! `proctrace report --gantt` on a fixed trace: the effects of its options, and rejected ones.

use std::path::Path;
use std::process::Output;

use crate::common::proctrace;

fn draw(svg: &Path, options: &[&str]) -> Output {
    let trace = Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").unwrap())
        .join("../../fixtures/traces/tour-2.ptrace");
    let mut report = proctrace();
    report.arg("report").arg(trace).args(options);
    if !svg.as_os_str().is_empty() {
        report.arg("--gantt").arg(svg);
    }
    report.output().unwrap()
}

#[test]
fn what_is_left_out_stands_in_the_picture() {
    let directory = tempfile::tempdir().unwrap();
    let svg = directory.path().join("out.svg");
    let drawn = |options: &[&str]| {
        let output = draw(&svg, options);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        std::fs::read_to_string(&svg).unwrap()
    };
    let whole = drawn(&[]);
    assert!(whole.contains("by start time") && !whole.contains("Excluded"));
    assert!(drawn(&["--gantt-order", "tree"]).contains("children below their parent"));
    assert!(drawn(&["--gantt-threads"]).contains("thread"));
    let filtered = drawn(&["--gantt-min-life", "10ms", "--gantt-from", "1ms"]);
    assert!(filtered.contains("only lifetimes of at least 10.0 ms"), "{filtered}");
    assert!(filtered.contains("Excluded: "), "{filtered}");
}

#[test]
fn a_name_that_ends_in_png_makes_a_bitmap() {
    let directory = tempfile::tempdir().unwrap();
    let size = |name: &str| {
        let file = directory.path().join(name);
        let output = draw(&file, &["--gantt-order", "tree"]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        std::fs::read(&file).unwrap()
    };
    let png = size("out.PNG");
    assert_eq!(png[..8], *b"\x89PNG\r\n\x1a\n");
    // Width and height are at the begin of the first chunk.
    let number = |at: usize| u32::from_be_bytes(png[at..at + 4].try_into().unwrap());
    let svg = String::from_utf8(size("out.svg")).unwrap();
    let expected = format!("width=\"{}\" height=\"{}\"", number(16) / 2, number(20) / 2);
    assert!(svg.contains(&expected), "{expected}: {}", &svg[..200]);
}

#[test]
fn what_cannot_be_shown_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let svg = directory.path().join("out.svg");
    for (options, why) in [
        (["--gantt-only", "nobody"], "no category or program has this name"),
        (["--gantt-subtree", "nobody"], "no process has this pid"),
        (["--gantt-from", "9h"], "the recording covers 0 s to"),
    ] {
        let output = draw(&svg, &options);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains(why), "{said}");
        assert!(!svg.exists());
    }
    // Without --gantt such an option would silently have no effect.
    let output = draw(Path::new(""), &["--gantt-threads"]);
    assert_eq!(output.status.code(), Some(2));
}
