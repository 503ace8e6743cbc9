//! Compares the number of instructions the verifier processes per program with the committed
//! counts.
//!
//! A verifier walks every path, so a harmless change can increase a program's count from ten
//! thousand to more than a million, where it is rejected, on older kernels first. The counts vary
//! slightly between kernels and clang versions; growth beyond that must be noticed when it happens.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use xtask::run::{as_root, built, output, root, target_dir};

/// Factor of the committed count beyond which growth must be reviewed.
const TOLERANCE: f64 = 1.25;

/// Absolute limit on any kernel: older verifiers need several times as many instructions.
const LIMIT: u64 = 100_000;

/// Recordings that together load every program this kernel supports.
const RECORDINGS: &[&[&str]] = &[
    &["--lookup-hook", "tracepoint"],
    &["--lookup-hook", "sys-exit"],
    &["--on-full", "block"],
    &["--own-cgroup"],
    &["--opens"],
];

fn committed() -> PathBuf {
    root().join("bpf/verifier.txt")
}

/// Prints the counts; fails if one has grown or, with `update`, saves them for commit.
pub(crate) fn run(update: bool) -> Result<()> {
    let now = count(&built(&["proctrace"])?)?;
    let text = fs::read_to_string(committed()).unwrap_or_default();
    let before = parse(&text);
    let here = place()?;
    for (program, count) in &now {
        let was = before.get(program).map_or("new".to_owned(), u64::to_string);
        println!("{program:<28}{count:>8}  (committed: {was})");
    }
    if update {
        let path = committed();
        return fs::write(&path, render(&here, &now))
            .with_context(|| format!("cannot write {path:?}"));
    }
    let same_place = text.lines().next() == Some(&*format!("# {here}"));
    if !same_place {
        println!("not committed on {here}: checking only the limit of {LIMIT} instructions");
    }
    let complaints = compare(same_place.then_some(&before), &now);
    ensure!(
        complaints.is_empty(),
        "{}; if this is intended: cargo xtask bpf verifier --update",
        complaints.join("; ")
    );
    Ok(())
}

/// The maximum count of each program over the recordings.
fn count(release: &Path) -> Result<BTreeMap<String, u64>> {
    let scratch = target_dir()?.join("bpf");
    fs::create_dir_all(&scratch).context("cannot create a directory")?;
    let trace = scratch.join("verifier.ptrace");
    let mut counts = BTreeMap::new();
    for options in RECORDINGS {
        let mut record = as_root(release.join("proctrace"));
        record.args(["record", "--quiet", "--output"]).arg(&trace).args(*options);
        output(record.args(["--", "true"]))?;
        let mut dump = Command::new(release.join("proctrace"));
        let header: Value =
            serde_json::from_slice(&output(dump.args(["dump", "--header"]).arg(&trace))?)?;
        for program in
            header["trailer"]["programs"].as_array().context("the trailer lists no programs")?
        {
            let name = program["name"].as_str().context("a program has no name")?;
            let number = program["verified_instructions"].as_u64().unwrap_or(0);
            let count = counts.entry(name.to_owned()).or_insert(0);
            *count = number.max(*count);
        }
    }
    ensure!(!counts.is_empty() && counts.values().all(|count| *count > 0), "{counts:?}");
    Ok(counts)
}

/// Kernel and compiler, on which the counts depend besides the programs: "Linux 6.18, clang 14".
fn place() -> Result<String> {
    let two = |text: &str| text.split('.').take(2).collect::<Vec<_>>().join(".");
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease")
        .context("cannot read the kernel release")?;
    let clang = std::env::var_os("CLANG").unwrap_or_else(|| "clang".into());
    let clang = output(Command::new(clang).arg("-dumpversion"))?;
    let clang = String::from_utf8_lossy(&clang).trim().to_owned();
    let major = clang.split('.').next().unwrap_or_default();
    Ok(format!("Linux {}, clang {major}", two(&kernel)))
}

/// Compares with the previous counts; without any, only the limit applies.
fn compare(before: Option<&BTreeMap<String, u64>>, now: &BTreeMap<String, u64>) -> Vec<String> {
    let mut complaints = Vec::new();
    for (program, count) in now {
        if *count > LIMIT {
            complaints.push(format!("{program} takes {count} instructions, more than the limit"));
            continue;
        }
        let Some(before) = before else { continue };
        match before.get(program) {
            None => complaints.push(format!("{program} is not in bpf/verifier.txt")),
            Some(was) if *count as f64 > *was as f64 * TOLERANCE => {
                complaints.push(format!("{program} has grown from {was} to {count}"));
            }
            Some(_) => {}
        }
    }
    complaints
}

fn parse(text: &str) -> BTreeMap<String, u64> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .filter_map(|line| {
            let (program, count) = line.split_once(' ')?;
            Some((program.to_owned(), count.trim().parse().ok()?))
        })
        .collect()
}

fn render(place: &str, counts: &BTreeMap<String, u64>) -> String {
    let mut text = format!(
        "# {place}\n\
         # Instructions the verifier processes for each program, maximum of several recordings.\n\
         # Written by `cargo xtask bpf verifier --update`, compared by `cargo xtask test`.\n",
    );
    for (program, count) in counts {
        // writing to a string cannot fail
        let _ = writeln!(text, "{program:<20} {count:>6}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(pairs: &[(&str, u64)]) -> BTreeMap<String, u64> {
        pairs.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
    }

    #[test]
    fn what_is_written_is_read() {
        let some = counts(&[("on_exec", 19_874), ("on_a_program_with_a_name_that_is_long", 1)]);
        assert_eq!(parse(&render("Linux 6.18, clang 14", &some)), some);
    }

    #[test]
    fn growth_and_strangers_are_told() {
        let before = counts(&[("a", 100), ("b", 100), ("gone", 1), ("huge", 200_000)]);
        let now = counts(&[("a", 125), ("b", 126), ("new", 1), ("huge", 200_000)]);
        let complaints = compare(Some(&before), &now);
        assert_eq!(complaints.len(), 3, "{complaints:?}");
        assert!(complaints[0].contains("b has grown from 100 to 126"));
        assert_eq!(compare(None, &now).len(), 1);
    }
}
