//! `list` and `declare`: the scenarios, and what a recording must show.

use std::fmt::Write as _;
use std::io::Write as _;

use anyhow::Result;
use proctrace_payload::{Declaration, catalog};
use textwrap::{Options, WordSplitter};

use crate::args::{DeclareArgs, load};

/// Start of the second column of the list, and the line width.
const INDENT: usize = 22;
const WIDTH: usize = 80;

/// Prints all scenarios.
pub(crate) fn list() -> Result<()> {
    let options = Options::new(WIDTH - INDENT).word_splitter(WordSplitter::NoHyphenation);
    let mut text = String::new();
    for name in catalog::names() {
        let about = load(name)?.about;
        let mut first = format!("{name:INDENT$}");
        for (label, line) in
            [("", about.title()), ("Look for: ", about.look_for()), ("From: ", about.paper())]
        {
            for line in textwrap::wrap(&format!("{label}{line}"), &options) {
                writeln!(text, "{first}{line}")?;
                first = " ".repeat(INDENT);
            }
        }
    }
    print(&text)
}

/// Prints what a recording must show.
pub(crate) fn declare(args: &DeclareArgs) -> Result<()> {
    let (scenario, request) = args.size.read()?;
    let declaration = scenario.plan(request)?.declare()?;
    if args.json {
        return print(&(serde_json::to_string_pretty(&declaration)? + "\n"));
    }
    print(&table(&declaration))
}

fn table(declared: &Declaration) -> String {
    let mut text = format!(
        "{} at scale {}, {} workers, seed {}\n\n{:>9}  {:>9}  {:>9}\n",
        declared.scenario,
        declared.scale,
        declared.workers,
        declared.seed,
        "processes",
        "threads",
        "execs"
    );
    let mut row = |processes: u64, threads: u64, execs: u64, name: &str| {
        text += &format!("{processes:9}  {threads:9}  {execs:9}  {name}\n");
    };
    row(declared.processes, declared.threads, declared.execs, "total");
    let mut programs: Vec<_> = declared.programs.iter().collect();
    programs.sort_by_key(|(_, counts)| std::cmp::Reverse(counts.processes + counts.threads));
    for (name, counts) in programs {
        row(counts.processes, counts.threads, counts.execs, name);
    }
    text += &format!("\n{:9}  detached processes\n", declared.detached);
    let misses: u64 = declared.failed_lookups.iter().map(|misses| misses.count).sum();
    let places = declared.failed_lookups.len();
    text += &format!("{misses:9}  failed opens in {places} of its own directories\n");
    if let Some(events) = &declared.events {
        text += &format!("{:9}  events", events.total);
        if let Some(each) = &events.per_worker {
            let each: Vec<String> = each.iter().map(u64::to_string).collect();
            text += &format!(", by worker: {}", each.join(" "));
        }
        text.push('\n');
    }
    text.push('\n');
    for phase in &declared.phases {
        text += &format!("{}: from {} to {}\n", phase.name, phase.from, phase.to);
    }
    text
}

/// Prints to stdout.
pub(crate) fn print(text: &str) -> Result<()> {
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    Ok(stdout.flush()?)
}
