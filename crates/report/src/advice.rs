//! Advice as text: what to do, what it gains, and why, in 80 columns.

use std::fmt::Write as _;
use std::path::Path;

use proctrace_findings::{
    Advice, Advised, AdvisedStep, Explained, ExplainedProcess, Gain, Observed, ObservedAdvice,
    Outturn, Taken, bytes, counted,
};

use crate::escape::terminal;
use crate::number::{count, time};
use crate::path::items;
use crate::style::Style;
use crate::table::{Align, Table};
use crate::words::{broken as wrapped, command_line};

/// Column at which the words begin.
const INDENT: usize = 11;

/// Text for figures that are not known, as those of a log without CPU time.
const NOT_KNOWN: &str = "not known";

/// Parts of the critical path that are named where there is no advice.
const PATH_PARTS: usize = 3;

/// Maximum number of other pieces of advice about the same processes that are named.
const PARTS_MAX: usize = 3;

/// All advice, best first.
pub fn advice_text(advised: &Advised, style: Style) -> String {
    let mut out = String::new();
    if !advised.has_path {
        out.push_str(
            "The critical path is not known (no waits, or not the whole command, recorded):\n\
             gains of wall time are bounded by lifetimes only.\n\n",
        );
    }
    let separate: Vec<(&Advice, u64)> =
        advised.advice.iter().zip(1..).filter(|(it, _)| it.part_of.is_none()).collect();
    // In this order in the list, too.
    let (certain, possible): (Vec<_>, Vec<_>) =
        separate.into_iter().partition(|(advice, _)| advice.is_certain());
    if certain.is_empty() {
        let pays = if possible.is_empty() { "pays" } else { "is sure to pay" };
        let mut words =
            format!("No change that proctrace knows {pays} more than {} %", advised.min_percent);
        if let Some(path) = &advised.path {
            let parts = items(path);
            let first = parts[..parts.len().min(PATH_PARTS)].join(", ");
            let _ = write!(words, "; the wall time of {} went to: {first}", time(path.wall_ns));
        }
        for line in wrapped(&format!("{words}."), style.width) {
            let _ = writeln!(out, "{line}");
        }
        push_possible(&mut out, advised, &possible, 1, style);
        push_requests(&mut out, advised, style);
        return out;
    }
    // With three figures the line would be too long.
    let peak = advised.peak_bytes.map(|peak| format!(", peak of memory {}.\n", bytes(peak)));
    let _ = writeln!(
        out,
        "Wall time {}, CPU time {}{}Predicted gains, with their range:",
        time(advised.wall_ns),
        if advised.cpu_ns > 0 { time(advised.cpu_ns) } else { NOT_KNOWN.to_owned() },
        peak.as_deref().unwrap_or(". ")
    );
    for ((advice, place), number) in certain.iter().zip(1..) {
        out.push('\n');
        // In the place of what surely gains something, nothing is offered that may not.
        let is_part = |one: &&Advice| one.part_of == Some(*place) && one.is_certain();
        let parts = advised.advice.iter().filter(is_part).collect();
        push(&mut out, advised, advice, (number, parts), style);
    }
    if let Some(together) = advised.together.filter(|_| certain.len() > 1) {
        let _ = writeln!(
            out,
            "\nAll of them together, each process counted once:\n   wall    {}\n   CPU     {}",
            advice_gain(together.wall_ns, advised.wall_ns, time),
            advice_gain(together.cpu_ns, advised.cpu_ns, time)
        );
    }
    push_possible(&mut out, advised, &possible, certain.len() + 1, style);
    push_requests(&mut out, advised, style);
    out
}

/// Appends what was requested of the batch system and does not fit.
fn push_requests(out: &mut String, advised: &Advised, style: Style) {
    if advised.requests.is_empty() {
        return;
    }
    out.push_str("\nRequested of the batch system, if this command is all of the job:\n");
    for mismatch in &advised.requests {
        for (at, line) in
            wrapped(&mismatch.says(), style.width.saturating_sub(5)).iter().enumerate()
        {
            let _ = writeln!(out, "{}{line}", if at == 0 { "   " } else { "     " });
        }
    }
}

/// Appends what may gain something or nothing, which the recording does not tell: a line or two of
/// each.
fn push_possible(
    out: &mut String,
    advised: &Advised,
    possible: &[(&Advice, u64)],
    from: usize,
    style: Style,
) {
    if possible.is_empty() {
        return;
    }
    out.push_str("\nPossible, but it may gain nothing (--explain NUMBER shows the processes):\n");
    for ((advice, _), number) in possible.iter().zip(from..) {
        let words = format!("{number}. {}", advice_head(advice));
        let gain = at_most(advice, advised);
        for (at, line) in
            wrapped(&format!("{words}; {gain}"), style.width.saturating_sub(3)).iter().enumerate()
        {
            let _ = writeln!(out, "{}{line}", if at == 0 { "" } else { "   " });
        }
    }
}

/// Appends one piece of advice with its number in the list, and other advice about the same
/// processes.
fn push(
    out: &mut String,
    advised: &Advised,
    advice: &Advice,
    (number, parts): (usize, Vec<&Advice>),
    style: Style,
) {
    let head = format!("{number}. {}", advice_head(advice));
    for (at, line) in wrapped(&head, style.width.saturating_sub(3)).iter().enumerate() {
        let line = if at == 0 { style.bold(line) } else { format!("   {}", style.bold(line)) };
        let _ = writeln!(out, "{line}");
    }
    let mut row = |label: &str, words: &str| {
        let lines = wrapped(words, style.width.saturating_sub(INDENT));
        for (at, line) in lines.iter().enumerate() {
            let label = if at == 0 { label } else { "" };
            let _ = writeln!(out, "   {label:<8}{line}");
        }
    };
    row("wall", &advice_gain(advice.wall_ns, advised.wall_ns, time));
    match advised.cpu_ns {
        0 => row("CPU", NOT_KNOWN),
        all_ns => row("CPU", &advice_gain(advice.cpu_ns, all_ns, time)),
    }
    if let (Some(memory), Some(peak)) = (advice.memory_bytes, advised.peak_bytes) {
        row("memory", &advice_gain(memory, peak, bytes));
    }
    row("seen", &advice.evidence);
    if !advice.steps.is_empty() {
        let one = |of: &AdvisedStep| format!("{} ({})", of.group, count(of.processes));
        let all: Vec<String> = advice.steps.iter().map(one).collect();
        row("steps", &format!("processes of {}", all.join(", ")));
    }
    if let Some(place) = &advice.place {
        row("where", &format!("{}:{}: `{}`", place.file, place.line, place.text));
    }
    let becomes = advice.place.as_ref().and_then(|place| place.becomes.as_ref());
    if let Some(change) = becomes.or(advice.change.as_ref()) {
        row("change", &format!("`{change}`"));
    }
    row("method", &advice.method);
    row("risk", &advice.risk);
    row("check", &advice.check);
    for (part, at) in parts.iter().zip(0..) {
        if at == PARTS_MAX {
            row("", &format!("and {} more: --json has them", parts.len() - PARTS_MAX));
            break;
        }
        let label = if at == 0 { "or else" } else { "" };
        row(label, &format!("{}: {}", gains(part, advised), part.what));
    }
}

/// Explanation of one piece of advice about a recording: the advice, and what its processes did.
pub fn explained_text(explained: &Explained, number: usize, trace: &Path, style: Style) -> String {
    let mut out = String::new();
    let head = format!("{number}. {}", advice_head(&explained.advice));
    for (at, line) in wrapped(&head, style.width.saturating_sub(3)).iter().enumerate() {
        let line = if at == 0 { style.bold(line) } else { format!("   {}", style.bold(line)) };
        let _ = writeln!(out, "{line}");
    }
    let rows = &explained.rows;
    let shown = rows.len() as u64;
    let all = counted(shown.saturating_add(explained.others), "process", "processes");
    let on_path = rows.iter().any(|row| row.path_ns.is_some());
    let longest = if on_path { "are longest on the critical path" } else { "lived longest" };
    let which = match explained.others {
        0 => format!("{all}, in order of birth:"),
        _ => format!("{all}, of which these {shown} {longest}, in order of birth:"),
    };
    out.push('\n');
    for line in wrapped(&which, style.width) {
        let _ = writeln!(out, "{line}");
    }
    // Long times leave no room for all columns: the begin goes first, then the CPU time.
    let tables = [&[][..], &["from"], &["from", "CPU"]].map(|without| table(rows, without));
    let fits = tables.iter().find(|table| table.fits(style.width)).unwrap_or(&tables[2]);
    for line in fits.lines(style.width) {
        let _ = writeln!(out, "{line}");
    }
    let name = command_line(&[trace.display().to_string()]);
    let more = format!("More of one of them: proctrace show PID {}", terminal(&name));
    out.push('\n');
    for line in wrapped(&more, style.width) {
        let _ = writeln!(out, "{line}");
    }
    out
}

/// Its head, and what it has of a process.
type Column<'a> = (&'static str, Align, &'a dyn Fn(&ExplainedProcess) -> String);

/// Table of what processes did, without some of the columns.
fn table(rows: &[ExplainedProcess], without: &[&str]) -> Table {
    let known = |ns: Option<u64>| ns.map_or_else(|| "?".to_owned(), time);
    let waited = |row: &ExplainedProcess| match row.waited.as_deref() {
        None => "?".to_owned(),
        Some([]) => String::new(),
        Some([most, ..]) => format!("{} {}", most.what, time(most.ns)),
    };
    let columns: [Column<'_>; 7] = [
        ("pid", Align::Right, &|row| row.pid.to_string()),
        ("from", Align::Right, &|row| time(row.begin_ns)),
        ("lived", Align::Right, &|row| time(row.wall_ns)),
        ("CPU", Align::Right, &|row| known(row.cpu_ns)),
        ("on path", Align::Right, &|row| known(row.path_ns)),
        ("waited for", Align::Left, &waited),
        ("command", Align::Left, &|row| terminal(&row.command).into_owned()),
    ];
    let kept: Vec<_> = columns.iter().filter(|(name, ..)| !without.contains(name)).collect();
    let heads: Vec<(&'static str, Align)> =
        kept.iter().map(|(name, align, _)| (*name, *align)).collect();
    let mut table = Table::new(&heads).without_prefixes();
    for row in rows {
        table.row(kept.iter().map(|(_, _, cell)| cell(row)));
    }
    table
}

/// Gain of one piece of advice, and its kind: "-1.20 s wall (34 %) polling".
fn gains(advice: &Advice, advised: &Advised) -> String {
    format!("{} {}", gain(advice, advised), advice.kind)
}

/// Possible gain of one piece of advice, in a word: "up to 1.20 s wall (34 %)".
fn at_most(advice: &Advice, advised: &Advised) -> String {
    let high = |of: Gain| Gain { middle: of.high, ..of };
    // In the quantity of which it is the larger part.
    let part = |of: Gain, whole: u64| of.high as f64 / whole.max(1) as f64;
    let is_cpu = part(advice.cpu_ns, advised.cpu_ns) > part(advice.wall_ns, advised.wall_ns);
    let most = Advice {
        wall_ns: if is_cpu { Gain::default() } else { high(advice.wall_ns) },
        cpu_ns: high(advice.cpu_ns),
        memory_bytes: advice.memory_bytes.map(high),
        ..Advice::default()
    };
    gain(&most, advised).replacen('-', "up to ", 1)
}

/// Gain of one piece of advice, in a word: "-1.20 s wall (34 %)".
fn gain(advice: &Advice, advised: &Advised) -> String {
    let (of, whole, unit, what): (Gain, u64, fn(u64) -> String, &str) =
        match (advice.memory_bytes, advised.peak_bytes) {
            _ if advice.wall_ns.middle > 0 => (advice.wall_ns, advised.wall_ns, time, "wall"),
            (Some(memory), Some(peak)) if advice.cpu_ns.middle == 0 => {
                (memory, peak, bytes, "memory")
            }
            _ => (advice.cpu_ns, advised.cpu_ns, time, "CPU"),
        };
    let percent = 100.0 * of.middle as f64 / whole.max(1) as f64;
    format!("-{} {what} ({percent:.0} %)", unit(of.middle))
}

/// Heading of advice, the same wherever it is printed: its kind, and the change.
pub fn advice_head(advice: &Advice) -> String {
    format!("{}: {}", advice.kind, advice.what)
}

/// A gain with its range and its part of the whole: "1.20 s (0.90 s to 1.50 s), 34 %".
pub fn advice_gain(gain: Gain, whole: u64, unit: fn(u64) -> String) -> String {
    if gain.high == 0 {
        return "nothing".to_owned();
    }
    let percent = 100.0 * gain.middle as f64 / whole.max(1) as f64;
    format!("{} ({} to {}), {percent:.1} %", unit(gain.middle), unit(gain.low), unit(gain.high))
}

/// Text on what was predicted and what is observed.
pub fn observed_text(observed: &Observed, style: Style) -> String {
    let mut out = String::new();
    let (wall, cpu) = (
        change(observed.wall_before_ns, observed.wall_after_ns, time),
        change(observed.cpu_before_ns, observed.cpu_after_ns, time),
    );
    let _ = writeln!(out, "Observed in total:\n   wall    {wall}\n   CPU     {cpu}");
    if let (Some(before), Some(after)) = (observed.peak_before_bytes, observed.peak_after_bytes) {
        let _ = writeln!(out, "   memory  {}", change(before, after, bytes));
    }
    let certain = observed.advice.iter().filter(|one| one.advice.is_certain()).count();
    if let Some(together) = observed.together.filter(|_| certain > 1) {
        let _ = writeln!(
            out,
            "Predicted for all that surely gains something together:\n   wall    {}\n   CPU     {}",
            less(together.wall_ns, observed.wall_before_ns, time),
            less(together.cpu_ns, observed.cpu_before_ns, time)
        );
    }
    if observed.advice.is_empty() {
        let _ = writeln!(out, "\nBefore, nothing paid more than {} %.", observed.min_percent);
    }
    let separate = observed.advice.iter().filter(|one| one.advice.part_of.is_none());
    for (one, place) in separate.zip(1..) {
        let advice = &one.advice;
        out.push('\n');
        let head = format!("{place}. {}", advice_head(advice));
        for (at, line) in wrapped(&head, style.width.saturating_sub(3)).iter().enumerate() {
            let line = if at == 0 { style.bold(line) } else { format!("   {}", style.bold(line)) };
            let _ = writeln!(out, "{line}");
        }
        push_verdict(&mut out, one, observed, style);
    }
    for filled in &observed.caches_filled {
        out.push('\n');
        let text =
            format!("This run seems to have filled a cache: {filled}. Record the next one, too.");
        for line in wrapped(&text, style.width) {
            let _ = writeln!(out, "{line}");
        }
    }
    out
}

/// Appends whether it was followed, and what came of that.
fn push_verdict(out: &mut String, one: &ObservedAdvice, observed: &Observed, style: Style) {
    let ObservedAdvice { advice, verdict, .. } = one;
    let taken = match verdict.taken {
        Taken::Yes => "followed",
        Taken::InPart => "followed in part",
        Taken::No => "not followed",
        Taken::OnlyFilled => "followed, but this run only fills the cache: record the next one",
        Taken::Unknown => "cannot be told",
    };
    let said = format!("{taken} ({})", verdict.because);
    for line in wrapped(&said, style.width.saturating_sub(3)) {
        let _ = writeln!(out, "   {line}");
    }
    let is_followed = matches!(verdict.taken, Taken::Yes | Taken::InPart);
    let mut row =
        |label: &str, predicted: Gain, outturn: Option<Outturn>, unit: fn(u64) -> String| {
            if predicted.high == 0 {
                return;
            }
            let _ = writeln!(
                out,
                "   {label:<8}predicted -{} ({} to {})",
                unit(predicted.middle),
                unit(predicted.low),
                unit(predicted.high)
            );
            if let Some(Outturn { observed, judged }) = outturn {
                let sign = if observed < 0 { '+' } else { '-' };
                let by = unit(observed.unsigned_abs());
                let _ = writeln!(out, "           observed  {sign}{by}: {}", judged.says());
            } else if is_followed {
                let _ = writeln!(out, "           observed  not to be told from the other changes");
            }
        };
    row("wall", advice.wall_ns, verdict.wall, time);
    row("CPU", advice.cpu_ns, verdict.cpu, time);
    if let (Some(memory), Some(_)) = (advice.memory_bytes, observed.peak_before_bytes) {
        row("memory", memory, verdict.memory, bytes);
    }
}

/// A gain as a change, like [`change`].
fn less(of: Gain, whole: u64, unit: fn(u64) -> String) -> String {
    let sign = if of.high == 0 { "" } else { "-" };
    format!("{sign}{}", advice_gain(of, whole, unit))
}

/// "1.20 s -> 0.80 s, -400 ms (-33.3 %)".
fn change(before: u64, after: u64, unit: fn(u64) -> String) -> String {
    let sign = if after > before { '+' } else { '-' };
    let by = before.abs_diff(after);
    let change = format!("{} -> {}, {sign}{}", unit(before), unit(after), unit(by));
    if before == 0 {
        return change;
    }
    format!("{change} ({sign}{:.1} %)", 100.0 * by as f64 / before as f64)
}

/// Each piece of advice that gains something at any rate, in lines, whole: a command that is cut cannot be followed.
pub(crate) fn pieces(advised: &Advised, width: usize) -> Vec<Vec<String>> {
    let one =
        |advice: &Advice| wrapped(&format!("{}: {}", gain(advice, advised), advice.what), width);
    advised.advice.iter().filter(|advice| advice.is_certain()).map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proctrace_findings::{Mismatch, Resource, WaitedFor};

    fn advised(advice: Vec<Advice>) -> Advised {
        Advised {
            wall_ns: 2_000_000_000,
            cpu_ns: 1_000_000_000,
            peak_bytes: Some(1_000_000_000),
            has_path: true,
            min_percent: 1.0,
            together: None,
            path: None,
            requests: Vec::new(),
            advice,
        }
    }

    fn some() -> Advice {
        Advice {
            kind: "polling",
            what: format!("wait for {}", "x".repeat(200)),
            evidence: "\x1b[31m`sh` runs `sleep #`".to_owned(),
            wall_ns: Gain { low: 1_000_000, middle: 200_000_000, high: 400_000_000 },
            memory_bytes: Some(Gain { low: 0, middle: 100_000_000, high: 200_000_000 }),
            ..Advice::default()
        }
    }

    fn plain(width: usize) -> Style {
        Style { width, rows: 10, ..Style::default() }
    }

    #[test]
    fn lines_fit_and_names_cannot_control_the_terminal() {
        let text = advice_text(&advised(vec![some()]), plain(80));
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(!text.contains('\x1b'), "{text:?}");
        assert!(text.contains("wall    200 ms (1.0 ms to 400 ms), 10.0 %"), "{text}");
        assert!(text.contains("memory  100 MB (0 B to 200 MB), 10.0 %"), "{text}");
        assert!(text.contains("CPU     nothing"), "{text}");
    }

    #[test]
    fn cpu_time_that_is_not_known_is_not_nothing() {
        let text = advice_text(&Advised { cpu_ns: 0, ..advised(vec![some()]) }, plain(80));
        assert!(text.contains("CPU time not known"), "{text}");
        assert!(text.contains("CPU     not known\n"), "{text}");
    }

    #[test]
    fn advice_about_the_same_processes_is_named_below_the_better_one() {
        let cpu_ns = Gain::new(10_000_000, 20_000_000, 20_000_000);
        let nothing = Gain::default();
        let part =
            Advice { part_of: Some(1), wall_ns: nothing, cpu_ns, memory_bytes: None, ..some() };
        let unsure = Advice { kind: "straggler", cpu_ns: nothing, ..part.clone() };
        let all = [vec![some()], vec![part; 5], vec![unsure]].concat();
        let text = advice_text(&advised(all), plain(80));
        assert_eq!(text.matches("\n2. ").count(), 0, "{text}");
        assert!(text.contains("   or else -20.0 ms CPU (2 %) polling: wait for"), "{text}");
        assert!(!text.contains("straggler"), "{text}");
        assert!(text.contains("           and 2 more: --json has them"), "{text}");
    }

    #[test]
    fn what_may_gain_nothing_is_below_what_gains_something() {
        let gain = Gain { low: 0, middle: 200_000_000, high: 400_000_000 };
        let possible =
            Advice { kind: "serial-process", wall_ns: gain, memory_bytes: None, ..some() };
        let text = advice_text(&advised(vec![some(), possible.clone()]), plain(80));
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        let (sure, below) = text.split_once("\nPossible, but it may gain nothing").unwrap();
        assert!(sure.contains("\n1. polling: ") && !sure.contains("serial-process"), "{text}");
        assert!(below.contains("\n2. serial-process: "), "{text}");
        assert!(below.replace("\n   ", " ").ends_with("; up to 400 ms wall (20 %)\n"), "{text}");
        let text = advice_text(&advised(vec![possible]), plain(80));
        assert!(
            text.starts_with("No change that proctrace knows is sure to pay more than 1 %."),
            "{text}"
        );
        assert!(text.contains("\n1. serial-process: "), "{text}");
    }

    #[test]
    fn processes_of_advice_fit_however_long_they_took() {
        let row = |waited: &[(&'static str, u64)], ns: u64| ExplainedProcess {
            pid: 4_194_303,
            begin_ns: ns,
            wall_ns: ns,
            cpu_ns: Some(ns),
            path_ns: Some(ns),
            waited: Some(waited.iter().map(|(what, ns)| WaitedFor { what, ns: *ns }).collect()),
            command: "\u{202e}sim --events 1".to_owned(),
            ..ExplainedProcess::default()
        };
        let long_ns = 100_000_000_000;
        for rows in [
            vec![row(&[("a CPU", 1_000_000), ("a child", 5)], 20_000_000)],
            vec![row(&[("another thread", long_ns)], long_ns), row(&[], long_ns)],
        ] {
            let explained = Explained { advice: some(), rows, others: 3 };
            let text = explained_text(&explained, 2, Path::new("a b.ptrace"), plain(80));
            assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
            assert!(text.starts_with("2. polling: ") && text.contains("events 1"), "{text}");
            assert!(text.contains("are longest on the critical path"), "{text}");
            assert!(text.contains("proctrace show PID 'a b.ptrace'"), "{text}");
            assert!(!text.contains('\u{202e}'), "{text:?}");
        }
    }

    #[test]
    fn nothing_is_said_plainly() {
        let text = advice_text(&advised(Vec::new()), plain(80));
        assert_eq!(text, "No change that proctrace knows pays more than 1 %.\n");
    }

    #[test]
    fn a_piece_is_whole() {
        // What may gain nothing is not for the summary.
        let low = |gain: Gain| Gain { low: 0, ..gain };
        let wall_ns = low(some().wall_ns);
        let possible = Advice { wall_ns, memory_bytes: some().memory_bytes.map(low), ..some() };
        assert!(pieces(&advised(vec![possible]), 60).is_empty());
        let pieces = pieces(&advised(vec![some()]), 60);
        assert_eq!((pieces.len(), pieces[0].len()), (1, 5));
        assert_eq!(pieces[0][0], "-200 ms wall (10 %): wait for");
        assert_eq!(pieces[0].concat().matches('x').count(), 200);
        assert!(pieces[0].iter().all(|line| line.chars().count() <= 60));
        // Advice that gains nothing but memory.
        let memory_bytes = Some(Gain::new(1, 100_000_000, 200_000_000));
        let (wall_ns, cpu_ns) = (Gain::default(), Gain::default());
        let only = Advice { wall_ns, cpu_ns, memory_bytes, ..some() };
        let line = &super::pieces(&advised(vec![only]), 60)[0][0];
        assert!(line.starts_with("-100 MB memory (10 %): "), "{line}");
    }

    #[test]
    fn requests_that_do_not_fit_are_told_with_and_without_advice() {
        let mismatch = Mismatch {
            resource: Resource::Cores,
            asked: 8,
            variable: "SLURM_CPUS_ON_NODE",
            used: 1.2,
            fits: 2,
        };
        let text = advice_text(&Advised { requests: vec![mismatch], ..advised(vec![]) }, plain(80));
        assert!(
            text.contains("CPUs: 8 for the job (SLURM_CPUS_ON_NODE), 1.2 used; 2 would do"),
            "{text}"
        );
    }
}
