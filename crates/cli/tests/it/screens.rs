//! The report on a terminal: one screen that uses the width and the lines it has, and a pager for what is longer.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use crate::common::proctrace;
use crate::pty::Terminal;

fn trace() -> String {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let trace = crates.parent().unwrap().join("fixtures/traces/alice-o2-before.ptrace");
    trace.to_str().unwrap().to_owned()
}

fn report(options: &[&str], environment: &[(&str, &str)]) -> Command {
    let mut command = proctrace();
    command.arg("report").args(options).arg(trace());
    command.env_remove("PAGER").env_remove("PROCTRACE_PAGER").env_remove("LESS");
    command.envs(environment.iter().copied());
    command
}

#[test]
fn the_report_fits_the_screen_and_uses_it() {
    let small = Terminal::run(&report(&[], &[]), (80, 24)).wait_for("status=0.");
    // What the test prints behind it takes the place of the first line only.
    assert!(small.starts_with("exit 0 · 6.29 s wall"), "{small}");
    assert!(small.contains("\n  More     proctrace libs "), "{small}");
    assert!(!small.contains("which search paths waste look-ups"), "{small}");
    let large = Terminal::run(&report(&[], &[]), (200, 50)).wait_for("status=0.");
    assert!(large.contains("exit 0 · 6.29 s wall"), "{large}");
    assert!(large.contains("which search paths waste look-ups\n"), "{large}");
    let (rows, of_small) = (large.lines().count(), small.lines().count());
    assert!(rows > of_small + 15, "{rows} {of_small}\n{large}");
    assert!(large.lines().any(|line| line.chars().count() > 80), "{large}");
}

/// A pager that says that it reads, and how many lines.
fn pager() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("less");
    let script = "#!/bin/sh\nwc -l >\"$0.lines\"\necho \"pager LESS=$LESS\"\n";
    fs::write(&path, script).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    directory
}

#[test]
fn what_is_longer_than_a_screen_goes_through_a_pager() {
    let directory = pager();
    let less = directory.path().join("less");
    let path = format!("{}:/usr/bin:/bin", directory.path().display());
    let lines = || {
        let lines = fs::read_to_string(directory.path().join("less.lines")).unwrap();
        fs::remove_file(directory.path().join("less.lines")).unwrap();
        lines.trim().parse::<usize>().unwrap()
    };
    let command = report(&["--all"], &[("PATH", &path)]);
    let screen = Terminal::run(&command, (100, 30)).wait_for("status=0.");
    assert!(screen.starts_with("pager LESS=FRX"), "{screen}");
    let plain = report(&["--all"], &[]).output().unwrap();
    let plain_lines = String::from_utf8(plain.stdout).unwrap().lines().count();
    // Wider tables have no more lines.
    assert!((plain_lines / 2..=plain_lines).contains(&lines()));
    // Sections, too, and the one that the user prefers.
    let preferred = [("PROCTRACE_PAGER", less.to_str().unwrap()), ("PAGER", "false")];
    let command = report(&["--section", "lookups"], &preferred);
    Terminal::run(&command, (100, 30)).wait_for("pager LESS=FRX");
    assert!(lines() > 10);
    // None for one screen, for JSON, or if the user wants none.
    for (options, pager) in
        [(&[][..], preferred[0].1), (&["--json"], preferred[0].1), (&["--top", "3"], "cat")]
    {
        let command = report(options, &[("PAGER", pager)]);
        let screen = Terminal::run(&command, (100, 30)).wait_for("status=0.");
        assert!(!screen.contains("pager LESS"), "{options:?}: {screen}");
    }
    assert!(!directory.path().join("less.lines").exists());
}

#[test]
fn an_error_below_a_pager_is_the_commands_own() {
    let directory = pager();
    let mut command = proctrace();
    command.args(["tree", "/no/such.ptrace"]).env("PAGER", directory.path().join("less"));
    let screen = Terminal::run(&command, (100, 30)).wait_for("status=1.");
    assert!(screen.contains("cannot read /no/such.ptrace"), "{screen}");
    // A pager that is not there is no reason to print nothing.
    let command = report(&["--top", "3"], &[("PAGER", "no-such-pager")]);
    let screen = Terminal::run(&command, (100, 60)).wait_for("status=0.");
    assert!(screen.contains("Failed look-ups by directory"), "{screen}");
    // A pager that is closed at once, as by `q`.
    let command = report(&["--all"], &[("PAGER", "true")]);
    Terminal::run(&command, (100, 30)).wait_for("status=0.");
}

#[test]
fn files_are_all_that_is_written_if_only_they_are_asked_for() {
    let directory = tempfile::tempdir().unwrap();
    let place = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let (svg, html) = (place("a.svg"), place("a.html"));
    for options in [&["--gantt", &svg][..], &["--html", &html], &["--gantt", &svg, "--html", &html]]
    {
        let output = report(options, &[]).output().unwrap();
        assert!(output.status.success() && output.stdout.is_empty(), "{options:?}: {output:?}");
    }
    assert!(fs::metadata(svg).unwrap().len() > 1000 && fs::metadata(html).unwrap().len() > 1000);
}
