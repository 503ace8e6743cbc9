//! One process as text: its life, commands, costs, children, look-ups, waits and memory.

use std::fmt::Write as _;

use proctrace_findings::{
    Candidate, ChildGroup, Command, Figures, MissedName, OwnStep, ProcessDetails, Relative, Table,
    Unit, Values, bytes, count, counted, sparkline, time,
};

use crate::data::table_text;
use crate::escape::terminal;
use crate::fit::columns;
use crate::style::Style;
use crate::usage::usage;
use crate::words::{begins, command_line, push_words};

/// "gcc (2955)": for lists of relatives.
fn name(relative: &Relative) -> String {
    format!("{} ({})", relative.program, relative.pid)
}

/// Several processes of one pid, of which one must be chosen.
pub fn candidates_text(candidates: &[Candidate], style: Style) -> String {
    let of = || candidates.iter();
    let pids = of().map(|one| u64::try_from(one.process.pid).ok()).collect();
    let serials = of().map(|one| Some(u64::from(one.process.serial))).collect();
    let table =
        Table::new("candidates", "Several processes match: choose one by --serial or PID@TIME")
            .column("serial", "serial", Unit::Text, Values::Whole(serials))
            .column("pid", "pid", Unit::Text, Values::Whole(pids))
            .whole("born_ns", "born at", Unit::Nanoseconds, of().map(|one| one.born_ns))
            .whole("ended_ns", "ended at", Unit::Nanoseconds, of().map(|one| one.ended_ns))
            .text("command", "command", of().map(|one| &*one.command));
    table_text(&table, style)
}

/// Everything that is known of a process.
pub fn process_text(process: &ProcessDetails, style: Style) -> String {
    let mut out = String::new();
    let who = &process.process;
    let role = process.role.as_ref().map_or_else(String::new, |role| format!(" ({role})"));
    let title = format!("{}{role}, pid {}, serial {}", who.program, who.pid, who.serial);
    for line in crate::words::broken(&title, style.width) {
        let _ = writeln!(out, "{}", style.bold(&line));
    }
    push_words(&mut out, "Life", &life(process), style);
    for sent in &process.signals {
        let words = format!("{} at {} from {}", sent.signal, time(sent.time_ns), sent.sent_by);
        push_words(&mut out, "Signal", &words, style);
    }
    for step in &process.steps {
        push_words(&mut out, "Step", &own_step(step), style);
    }
    push_words(&mut out, "Parents", &parents(process), style);
    push_usage(&mut out, &process.usage, style);
    if let Some(threads) = process.threads.filter(|threads| *threads > 0) {
        push_words(&mut out, "Threads", &format!("{} besides the first", count(threads)), style);
    }
    push_words(&mut out, "Children", &children(process), style);
    if let Some(path) = path(process) {
        push_words(&mut out, "Path", &path, style);
    }
    if let Some(why) = &process.not_known {
        push_words(&mut out, "Unknown", why, style);
    }
    push_commands(&mut out, process, style);
    for table in tables(process) {
        out.push('\n');
        out.push_str(&table_text(&table, style));
    }
    out
}

/// What a step used, of which the process is one.
fn own_step(step: &OwnStep) -> String {
    let of = if step.group == step.step {
        String::new()
    } else {
        format!(" of {}", terminal(&step.group))
    };
    let begins = if step.begins_it { "begins" } else { "belongs to" };
    let cpu = step.cpu_ns.map_or_else(String::new, |cpu_ns| format!(", CPU {}", time(cpu_ns)));
    let processes = counted(step.processes, "process", "processes");
    format!("{begins} {}{of}: {}{cpu}, {processes}", terminal(&step.step), time(step.wall_ns))
}

fn life(process: &ProcessDetails) -> String {
    let verb = if process.birth_recorded { "born" } else { "first seen" };
    let mut words = format!("{verb} at {}", time(process.born_ns));
    match (process.ended_ns, process.life_ns) {
        (Some(ended_ns), Some(life_ns)) => {
            let (ended, life) = (time(ended_ns), time(life_ns));
            let _ = match process.birth_recorded {
                true => write!(words, ", ended at {ended} after {life}"),
                false => write!(words, ", ended at {ended}, {life} after its creation"),
            };
            match process.outcome.as_deref() {
                Some(how) if how.starts_with("exit ") => {
                    let _ = write!(words, ": {how}");
                }
                Some(how) => {
                    let _ = write!(words, ": killed by {how}");
                }
                None => words.push_str(": how is not known"),
            }
            if let Some(by) = &process.sent_by {
                let _ = write!(words, " from {by}");
            }
            if process.core_dump {
                words.push_str(", core dumped");
            }
        }
        _ if process.let_go => {
            words.push_str(", left to a debugger, and not recorded from then on")
        }
        _ => words.push_str(", alive at the end of the recording"),
    }
    if process.outlived_parent {
        words.push_str(" · outlived its parent");
        if let Some(by) = &process.adopted_by {
            let _ = write!(words, ", adopted by {}", name(by));
        }
    }
    words
}

fn parents(process: &ProcessDetails) -> String {
    const SHOWN: usize = 12;
    if process.parents.is_empty() {
        return "none in the recording".to_owned();
    }
    let mut names: Vec<String> = process.parents.iter().take(SHOWN).map(name).collect();
    if process.parents.len() > SHOWN {
        names.push(format!("… {} more", process.parents.len() - SHOWN));
    }
    names.join(" < ")
}

fn children(process: &ProcessDetails) -> String {
    let all = process.children.iter().map(|group| group.processes).fold(0, u64::saturating_add);
    let Some(descendants) = process.descendants else { return "not known".to_owned() };
    if all == 0 {
        return "none".to_owned();
    }
    let mut words = counted(all, "child", "children");
    if descendants > all {
        let _ = write!(words, ", {}", counted(descendants, "descendant", "descendants"));
    }
    if let Some(cpu_ns) = process.descendants_cpu_ns {
        let _ = write!(words, " with {} of CPU time", time(cpu_ns));
    }
    words
}

fn path(process: &ProcessDetails) -> Option<String> {
    let path = process.path.as_ref()?;
    if path.path_ns == 0 {
        return Some("not on the critical path".to_owned());
    }
    Some(format!(
        "{} on the critical path: {} running, {} waiting for a CPU, {} for other things",
        time(path.path_ns),
        time(path.running_ns),
        time(path.waiting_for_cpu_ns),
        time(path.waiting_ns)
    ))
}

/// Appends the usage of one process, or of all of a program.
pub(crate) fn push_usage(out: &mut String, used: &Figures, style: Style) {
    for (topic, words) in usage(used, Some("-")) {
        push_words(out, topic.label(), &words, style);
    }
}

fn push_commands(out: &mut String, process: &ProcessDetails, style: Style) {
    let _ = writeln!(out, "\n{}", style.bold("Commands"));
    if process.commands.is_empty() {
        let words = match &process.forked_from {
            Some(command) => format!("it never called exec; its forker ran: {command}"),
            None => "no exec was recorded".to_owned(),
        };
        push_words(out, "", &words, style);
    }
    let shown = process.commands.len().min(style.rows);
    let mut before = None;
    for command in &process.commands[..shown] {
        push_command(out, command, before, style);
        before = Some(command);
    }
    if shown < process.commands.len() {
        let more = counted((process.commands.len() - shown) as u64, "more exec", "more execs");
        let _ = writeln!(out, "  … {more}: --all, or --top N");
    }
    if let Some(directory) = &process.directory {
        push_words(out, "", &format!("last working directory {directory}"), style);
    }
}

/// Most characters of a variable.
const VARIABLE_MAX: usize = 200;

/// Appends a command with the directory and the variables that differ from those of the exec before
/// it.
fn push_command(out: &mut String, command: &Command, before: Option<&Command>, style: Style) {
    let mut words = match &command.arguments {
        Some(arguments) => command_line(arguments),
        None => "arguments not known".to_owned(),
    };
    if command.arguments_cut {
        words.push_str(" …");
    }
    // The longest times leave no room beside them.
    let at = time(command.time_ns);
    match columns(&at) {
        0..=8 => push_words(out, &at, &words, style),
        _ => push_words(out, "", &format!("{at}: {words}"), style),
    }
    let mut about = vec![command.exe.clone()];
    about.extend(command.interpreter.as_ref().map(|by| format!("by {by}")));
    if before.is_none_or(|before| before.directory != command.directory) {
        about.push(format!("in {}", command.directory));
    }
    match (command.recorded, command.ran_ns) {
        (false, _) => about.push("before the recording".to_owned()),
        (true, Some(ran_ns)) => about.push(format!("for {}", time(ran_ns))),
        (true, None) => {}
    }
    push_words(out, "", &about.join(" · "), style);
    if before.is_none_or(|before| before.environment != command.environment) {
        // Lists of directories may be longer than all else together; --all prints them.
        let most = if style.rows == usize::MAX { usize::MAX } else { VARIABLE_MAX };
        for (name, value) in command.environment.iter().flatten() {
            push_words(out, "", &begins(&format!("{name}={value}"), most), style);
        }
    }
}

fn tables(process: &ProcessDetails) -> Vec<Table> {
    let mut tables = vec![groups("Children by command", &process.children)];
    tables.push(waits(process));
    tables.push(missed("Failed look-ups by directory", "directory", &process.missed_directories));
    tables.push(missed("Failed look-ups by path", "path", &process.missed_paths));
    let title = "Where its parent looked for its program in vain, in order of time";
    tables.push(missed(title, "path", &process.searched_by_parent));
    tables.push(stretches(process));
    tables.push(memory(process));
    tables.retain(|table| table.height() > 0);
    tables
}

/// Processes by command line.
pub(crate) fn groups(title: &str, groups: &[ChildGroup]) -> Table {
    let of = || groups.iter();
    let pids = of().map(|group| u64::try_from(group.first_pid).ok()).collect();
    Table::new("children", title)
        .whole("processes", "processes", Unit::Count, of().map(|group| group.processes))
        .whole("descendants", "below", Unit::Count, of().map(|group| group.descendants))
        .whole("cpu_ns", "CPU", Unit::Nanoseconds, of().map(|group| group.cpu_ns))
        .whole("longest_ns", "longest", Unit::Nanoseconds, of().map(|group| group.longest_ns))
        .whole("failed", "failed", Unit::Count, of().map(|group| group.failed))
        .column("first_pid", "first pid", Unit::Text, Values::Whole(pids))
        .text("command", "command", of().map(|group| &*group.command))
}

fn missed(title: &str, what: &'static str, names: &[MissedName]) -> Table {
    let of = || names.iter();
    Table::new("missed", title)
        .whole("count", "failed", Unit::Count, of().map(|name| name.count))
        .text("family", "call", of().map(|name| &*name.family))
        .text("errno", "errno", of().map(|name| &*name.errno))
        .text("name", what, of().map(|name| &*name.name))
}

fn waits(process: &ProcessDetails) -> Table {
    let all = process.waits.as_deref().unwrap_or_default();
    let of = || all.iter();
    let by = |name: &(String, u64)| format!("{} {}", name.0.replace(", ", " "), count(name.1));
    let ended_by = of().map(|group| group.ended_by.iter().map(by).collect::<Vec<_>>().join(", "));
    Table::new("waits", "Times off the CPU")
        .text("waits_for", "for", of().map(|group| group.waits_for))
        .whole("count", "times", Unit::Count, of().map(|group| group.count))
        .whole("asleep_ns", "asleep", Unit::Nanoseconds, of().map(|group| group.asleep_ns))
        .whole("for_cpu_ns", "no CPU", Unit::Nanoseconds, of().map(|group| group.for_cpu_ns))
        .whole("longest_ns", "longest", Unit::Nanoseconds, of().map(|group| group.longest_ns))
        .whole("since_ns", "at", Unit::Nanoseconds, of().map(|group| group.longest_since_ns))
        .lists("ended_by", "ended by", ended_by)
}

fn stretches(process: &ProcessDetails) -> Table {
    let all = process.path.as_ref().map_or(&[][..], |path| &path.stretches);
    Table::new("stretches", "On the critical path")
        .whole("begin_ns", "at", Unit::Nanoseconds, all.iter().map(|one| one.begin_ns))
        .whole("length_ns", "for", Unit::Nanoseconds, all.iter().map(|one| one.length_ns))
        .text("doing", "doing", all.iter().map(|one| &*one.doing))
        .longest_by("length_ns")
}

fn memory(process: &ProcessDetails) -> Table {
    const PARTS: usize = 60;
    let of = || process.memory.iter();
    let most = of().map(|at| at.pss_bytes).max().unwrap_or(0);
    let end_ns = process.ended_ns.unwrap_or(process.recorded_ns);
    let length_ns = end_ns.saturating_sub(process.born_ns);
    let readings: Vec<(u64, u64)> =
        of().map(|at| (at.time_ns.saturating_sub(process.born_ns), at.pss_bytes)).collect();
    let table = Table::new("memory", "Memory over time")
        .whole("time_ns", "at", Unit::Nanoseconds, of().map(|at| at.time_ns))
        .whole("pss_bytes", "PSS", Unit::Bytes, of().map(|at| at.pss_bytes))
        .whole("uss_bytes", "USS", Unit::Bytes, of().map(|at| at.uss_bytes))
        .whole("rss_bytes", "RSS", Unit::Bytes, of().map(|at| at.rss_bytes))
        .whole("swap_bytes", "swap", Unit::Bytes, of().map(|at| at.swap_bytes))
        .longest_by("pss_bytes");
    let strip = sparkline(&readings, length_ns, most, PARTS);
    table.note(format!("PSS from birth to end, up to {}:", bytes(most))).note(strip)
}
