//! All processes of a program as text: how many, who starts them, what they cost, which were slow.

use std::fmt::Write as _;

use proctrace_findings::{
    ProgramDetails, Spread, Table, Unit, Values, bytes, count, counted, time,
};

use crate::data::table_text;
use crate::process::{groups, push_usage};
use crate::style::Style;
use crate::words::{broken, push_words};

/// Most names in a line.
const NAMED: usize = 6;

/// Everything that is known of a program's processes.
pub fn program_text(program: &ProgramDetails, style: Style) -> String {
    let mut out = String::new();
    let title = format!(
        "{} ({}), {}",
        program.program,
        program.categories.join(", "),
        counted(program.processes, "process", "processes")
    );
    for line in broken(&title, style.width) {
        let _ = writeln!(out, "{}", style.bold(&line));
    }
    push_words(&mut out, "Runs", &runs(program), style);
    if let Some((first_ns, last_ns)) = program.first_ns.zip(program.last_ns) {
        let words = format!("first born at {}, last ended at {}", time(first_ns), time(last_ns));
        push_words(&mut out, "Life", &words, style);
    }
    if !program.started_by.is_empty() {
        push_words(&mut out, "From", &names(&program.started_by), style);
    }
    if !program.outcomes.is_empty() {
        push_words(&mut out, "Ends", &names(&program.outcomes), style);
    }
    push_usage(&mut out, &program.usage, style);
    if let Some(why) = &program.not_known {
        push_words(&mut out, "Unknown", why, style);
    }
    let all = [
        spreads(&program.spreads),
        groups("By command", &program.commands).detail_of("descendants"),
        slowest(program),
    ];
    for table in all.iter().filter(|table| table.height() > 0) {
        out.push('\n');
        out.push_str(&table_text(table, style));
    }
    out
}

fn runs(program: &ProgramDetails) -> String {
    let mut parts = Vec::new();
    if let Some(execs) = program.execs {
        parts.push(counted(execs, "exec", "execs"));
    }
    if program.forked > 0 {
        parts.push(format!("{} forked without exec", count(program.forked)));
    }
    if program.went_on > 0 {
        parts.push(counted(
            program.went_on,
            "other process ran it and went on to another program",
            "other processes ran it and went on to another program",
        ));
    }
    parts.push(format!("up to {} alive at once", count(program.most_alive)));
    if program.threads > 0 {
        parts.push(counted(program.threads, "thread", "threads"));
    }
    parts.join(" · ")
}

/// "make 12, sh 3, …".
fn names(counts: &[(String, u64)]) -> String {
    let name = |(name, n): &(String, u64)| format!("{name} {}", count(*n));
    let mut names: Vec<String> = counts.iter().take(NAMED).map(name).collect();
    if counts.len() > NAMED {
        names.push(format!("and {} more", counts.len() - NAMED));
    }
    names.join(" · ")
}

fn spreads(spreads: &[Spread]) -> Table {
    let title = |spread: &Spread| match spread.name {
        "life_ns" => "life",
        "cpu_ns" => "CPU",
        "peak_rss_bytes" => "peak RSS",
        name => name,
    };
    let figure = |spread: &Spread, value: u64| match spread.name.ends_with("_bytes") {
        true => bytes(value),
        false => time(value),
    };
    let of = || spreads.iter();
    Table::new("spreads", "For each process")
        .text("quantity", "", of().map(title))
        .figures("least", "least", of().map(|spread| figure(spread, spread.least)))
        .figures("median", "median", of().map(|spread| figure(spread, spread.median)))
        .figures("most_of_ten", "9 of 10", of().map(|s| figure(s, s.ninety_percent)))
        .figures("most", "most", of().map(|spread| figure(spread, spread.most)))
        .whole("n", "processes", Unit::Count, of().map(|spread| spread.n))
        .in_whole()
}

fn slowest(program: &ProgramDetails) -> Table {
    let of = || program.slowest.iter();
    let serials = of().map(|slow| Some(u64::from(slow.process.process.serial))).collect();
    let pids = of().map(|slow| u64::try_from(slow.process.process.pid).ok()).collect();
    let outcome =
        |slow: &proctrace_findings::Slow| slow.outcome.clone().unwrap_or_else(|| "-".to_owned());
    Table::new("slowest", "The slowest; `proctrace show --serial N` has the details of one")
        .column("serial", "serial", Unit::Text, Values::Whole(serials))
        .column("pid", "pid", Unit::Text, Values::Whole(pids))
        .whole("born_ns", "born at", Unit::Nanoseconds, of().map(|slow| slow.process.born_ns))
        .whole("life_ns", "life", Unit::Nanoseconds, of().map(|slow| slow.life_ns))
        .whole("cpu_ns", "CPU", Unit::Nanoseconds, of().map(|slow| slow.cpu_ns))
        .text("outcome", "end", of().map(outcome))
        .text("command", "command", of().map(|slow| &*slow.process.command))
}
