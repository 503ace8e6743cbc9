//! `wrappers`: scripts that start many processes before they execute the real program.

use std::collections::BTreeMap;

use proctrace_classify::fast::{Bits, FastMap};
use proctrace_findings::{Advice, Gain, counted};

use super::Found;
use super::counter::is_of_system;
use super::evidence::{Evidence, Removal, less, more};
use super::names::{called, first_word, script};

/// Helpers of each program on average.
const HELPERS_MIN: usize = 3;

/// A template, read once: millions of runs may have the same one.
struct Line<'a> {
    is_of_system: bool,
    /// True if it is the text of a shell.
    is_text: bool,
    called: &'a str,
}

impl<'a> Line<'a> {
    fn of(template: &'a str) -> Self {
        Self {
            is_of_system: is_of_system(template),
            is_text: template.split(' ').nth(1) == Some("-c"),
            called: called(template),
        }
    }
}

/// The starts of one program through wrappers.
#[derive(Default)]
struct Starts {
    processes: Vec<u32>,
    helpers: Vec<u32>,
    /// CPU time of the processes themselves before the exec of the real program.
    before_ns: u64,
}

/// Per real program, which may be a script: the helpers that its process started before the last exec.
///
/// Wall: as [`Evidence::without`] for the helpers, with the process's own time on the path before its last exec
/// (high). CPU: that of the helpers and of the process before that exec.
pub(super) fn find(evidence: &Evidence<'_>) -> Vec<Found> {
    let mut groups: BTreeMap<(&str, Option<&str>), Starts> = BTreeMap::new();
    let (scripts, of_system) = scripts(evidence);
    for (process, it) in evidence.processes() {
        // The command itself is no wrapper: a shell executes the last command of its text in place. Of one that was there
        // before, it is not known what it executed first: a subshell, as a wrapper, executes its last command in place.
        if it.execs < 2
            || it.was_there()
            || !scripts.contains(process as usize)
            || of_system.contains(process as usize)
            || process == 0
        {
            continue;
        }
        let Some(run) = it.run().and_then(|run| evidence.recording.runs().get(run as usize)) else {
            continue;
        };
        let children = evidence.children(process).iter().copied();
        let helpers: Vec<u32> =
            children.filter(|child| evidence.process(*child).born_ns < run.time_ns).collect();
        if let (false, Some(template)) = (helpers.is_empty(), evidence.own_template(process)) {
            let program = (first_word(template), script(template));
            let starts = groups.entry(program).or_default();
            starts.processes.push(process);
            starts.helpers.extend(helpers);
            starts.before_ns = starts.before_ns.saturating_add(run.before.all()[0]);
        }
    }
    groups.into_values().filter_map(|starts| advice(evidence, starts)).collect()
}

/// Processes whose first program is not the text of a shell, which does more than to prepare its last command; and those that ran
/// a script of the system.
fn scripts(evidence: &Evidence<'_>) -> (Bits, Bits) {
    let (mut known, mut scripts) = (Bits::default(), Bits::default());
    let mut of_system = Bits::default();
    let lines: Vec<Line<'_>> =
        evidence.recording.templates().iter().map(|template| Line::of(template)).collect();
    for run in evidence.recording.runs() {
        let process = run.process as usize;
        let line = &lines[run.template as usize];
        // Nobody goes round a script of the system: it sets what its program needs.
        if line.is_of_system {
            of_system.insert(process);
        }
        if !known.contains(process) {
            known.insert(process);
            // Whoever executes itself again, as make does with a new Makefile, is no wrapper either.
            let last = evidence.own_template_number(run.process);
            let is_again = last == Some(run.template)
                || line.called == last.map_or("", |last| lines[last as usize].called);
            if !line.is_text && !is_again {
                scripts.insert(process);
            }
        }
    }
    (scripts, of_system)
}

fn advice(evidence: &Evidence<'_>, starts: Starts) -> Option<Found> {
    let template = evidence.own_template(*starts.processes.first()?)?;
    let programs = starts.processes.len();
    let helpers = evidence.with_descendants(&starts.helpers);
    if helpers.len() < HELPERS_MIN * programs {
        return None;
    }
    let removal = evidence.without(&starts.helpers)?;
    let own_ns = before_exec_ns(evidence, &starts.processes);
    let before_ns = starts.before_ns;
    let removal = Removal {
        wall: Gain { high: removal.wall.high.saturating_add(more(own_ns)), ..removal.wall }
            .at_most(evidence.wall_ns),
        cpu: Gain {
            low: removal.cpu.low.saturating_add(less(before_ns)),
            middle: removal.cpu.middle.saturating_add(before_ns),
            high: removal.cpu.high.saturating_add(more(before_ns)),
        }
        .at_most(evidence.cpu_ns),
        ..removal
    };
    let first = starts.processes[0];
    let advice = Advice {
        kind: "wrappers",
        started: Some(first),
        what: format!(
            "Start the real program of `{}` by its path, without the wrapper",
            evidence.line(first)
        ),
        evidence: format!(
            "{} such as `{}`{}, with {} before the program itself: {:.1} each",
            counted(programs as u64, "start", "starts"),
            evidence.line(first),
            evidence.started_by(first),
            counted(removal.processes.len() as u64, "process", "processes"),
            removal.processes.len() as f64 / programs as f64,
        ),
        commands: vec![script(template).unwrap_or_else(|| first_word(template)).to_owned()],
        method: evidence.method().into(),
        risk: "the wrapper may set variables that the program needs".into(),
        check: "compare the environments; then record again and use `advise --against`".into(),
        ..Advice::default()
    };
    Some(Found::without(removal, advice).keyed(template))
}

/// The processes' own time on the path before their last exec.
fn before_exec_ns(evidence: &Evidence<'_>, processes: &[u32]) -> u64 {
    let recording = evidence.recording;
    let exec_ns = |process: u32| {
        let run = recording.processes()[process as usize].run()?;
        Some((process as usize, recording.runs().get(run as usize)?.time_ns))
    };
    let execs: FastMap<usize, u64> =
        processes.iter().filter_map(|process| exec_ns(*process)).collect();
    let parts = evidence.path.iter().flat_map(|path| &path.parts);
    let before = parts.filter_map(|part| {
        let exec_ns = execs.get(&recording.tasks()[part.task as usize].process())?;
        Some(part.end_ns.min(*exec_ns).saturating_sub(part.begin_ns))
    });
    before.fold(0, u64::saturating_add)
}
