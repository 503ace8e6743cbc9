//! Search for the processes that a pid, a serial or the name of a program means.

use proctrace_findings::{Candidate, time};
use proctrace_overview::details::since;
use proctrace_overview::nearest::nearest;
use proctrace_overview::steps::group_of;
use proctrace_recording::Recording;
use proctrace_recording::error::AnalysisError;
use proctrace_recording::steps::Step;
use proctrace_wire::Quantity;

use super::{clock_time, is_alive, relatives};

/// The process that is meant, or the program all of whose processes are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    /// The process with this serial number.
    Serial(u32),
    /// A process with this pid, or with a thread of this id.
    Pid {
        /// The pid.
        pid: i32,
        /// A time at which it was alive, since the start of the recording.
        at_ns: Option<u64>,
    },
    /// All processes that ran a program of this name.
    Program(String),
}

/// The processes that are meant, by index.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    One(usize),
    /// They had the same pid.
    Several(Vec<usize>),
    /// Numbers of programs with the same name.
    Program(Vec<usize>),
}

/// One process, or several of which one must be chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Chosen {
    /// The process with this serial.
    One(u32),
    /// Several.
    Of(Vec<Candidate>),
}

/// The one process that is meant, or all that may be.
///
/// # Errors
/// If there is none.
pub fn choose(recording: &Recording, wanted: &Wanted) -> Result<Chosen, AnalysisError> {
    let all = match find(recording, wanted)? {
        Found::One(at) => return Ok(Chosen::One(recording.processes()[at].serial)),
        Found::Several(all) => all,
        Found::Program(programs) => relatives::that_ran(recording, &programs).0,
    };
    Ok(Chosen::Of(all.iter().map(|at| relatives::candidate(recording, *at)).collect()))
}

/// The process with a serial, by index.
pub(super) fn of_serial(recording: &Recording, serial: u32) -> Result<usize, AnalysisError> {
    let at = recording.processes().iter().position(|process| process.serial == serial);
    at.ok_or_else(|| none(format!("serial {serial}"), "no process has this serial"))
}

/// The processes that are meant.
pub(super) fn find(recording: &Recording, wanted: &Wanted) -> Result<Found, AnalysisError> {
    match wanted {
        Wanted::Serial(serial) => of_serial(recording, *serial).map(Found::One),
        Wanted::Pid { pid, at_ns } => of_pid(recording, *pid, *at_ns),
        Wanted::Program(name) => of_program(recording, name),
    }
}

fn of_pid(recording: &Recording, pid: i32, at_ns: Option<u64>) -> Result<Found, AnalysisError> {
    let at_clock_ns = at_ns.map(|at_ns| clock_time(recording, at_ns)).transpose()?;
    let processes = || recording.processes().iter().enumerate();
    let mut all: Vec<usize> =
        processes().filter(|(_, process)| process.pid == pid).map(|(at, _)| at).collect();
    if all.is_empty() {
        let threads = recording.tasks().iter().filter(|task| task.tid() == Some(pid));
        all = threads.map(|task| task.process()).collect();
        all.dedup();
    }
    if all.is_empty() {
        // A program may have such a name.
        return of_program(recording, &pid.to_string())
            .map_err(|_| none(format!("pid {pid}"), "no process of the recording had this pid"));
    }
    let alive: Vec<usize> = match at_clock_ns {
        Some(time_ns) => {
            let alive = |at: &usize| is_alive(&recording.processes()[*at], time_ns);
            all.iter().copied().filter(alive).collect()
        }
        None => all.clone(),
    };
    match (&alive[..], at_ns) {
        ([one], _) => Ok(Found::One(*one)),
        ([], Some(at_ns)) => {
            let lives: Vec<String> =
                all.iter().take(LIVES_MAX).map(|at| life(recording, *at)).collect();
            let rest = if all.len() > LIVES_MAX { ", …" } else { "" };
            let why = format!("none was alive then, but {}{rest}", lives.join(", "));
            Err(none(format!("pid {pid} at {}", time(at_ns)), &why))
        }
        _ => Ok(Found::Several(alive)),
    }
}

/// Most lives that an error lists.
const LIVES_MAX: usize = 3;

/// "one from 1.20 s to 1.50 s".
fn life(recording: &Recording, at: usize) -> String {
    let process = &recording.processes()[at];
    let born = time(since(recording, process.born_ns));
    match process.ended_ns() {
        Some(ended_ns) => format!("one from {born} to {}", time(since(recording, ended_ns))),
        None => format!("one from {born} on"),
    }
}

fn of_program(recording: &Recording, name: &str) -> Result<Found, AnalysisError> {
    let what = || format!("{name:?}");
    if let Some(why) = recording.knows().why_not(&Quantity::WHO) {
        return Err(none(what(), &format!("programs are not known ({why})")));
    }
    let programs = || recording.programs().iter().enumerate();
    let found: Vec<usize> =
        programs().filter(|(_, program)| program.name == name).map(|(at, _)| at).collect();
    if found.is_empty() {
        match &of_step(recording, name)[..] {
            [] => {}
            [one] => return Ok(Found::One(*one)),
            several => return Ok(Found::Several(several.to_vec())),
        }
        let steps = recording.steps().all.iter().map(|step| &*step.named.name);
        let names = recording.programs().iter().map(|program| &*program.name).chain(steps);
        let nothing = match recording.steps().all.is_empty() {
            true => "no process ran such a program",
            false => "neither a program nor a step of this name ran",
        };
        let why = match nearest(name, names) {
            Some(meant) => format!("{nothing}; did you mean {meant:?}?"),
            None => nothing.to_owned(),
        };
        return Err(none(what(), &why));
    }
    let (last, went_on) = relatives::that_ran(recording, &found);
    match (&last[..], went_on) {
        ([one], 0) => Ok(Found::One(*one)),
        _ => Ok(Found::Program(found)),
    }
}

/// The first processes of the steps of this name, or if there is none, of those of this group.
fn of_step(recording: &Recording, name: &str) -> Vec<usize> {
    let steps = || recording.steps().all.iter();
    let first = |step: &Step| {
        let run = recording.runs().get(step.run as usize);
        run.map(|run| run.process as usize)
    };
    let named: Vec<usize> =
        steps().filter(|step| step.named.name == name).filter_map(first).collect();
    if !named.is_empty() {
        return named;
    }
    steps().filter(|step| group_of(step) == name).filter_map(first).collect()
}

fn none(what: String, why: &str) -> AnalysisError {
    AnalysisError::View { what, why: why.to_owned() }
}
