//! The header and trailer of an imported trace: above all, what it does not know.

use std::collections::BTreeMap;

use proctrace_trace::{
    Ended, Header, Knowledge, LossCount, Outcome, PayloadUsage, Processor, RecorderUsage, Trailer,
};
use proctrace_wire::{Family, Kind, Quantity, WIRE_VERSION, escape::to_text};

use crate::seen::Seen;
use crate::totals::{Root, Totals};

/// The time of the first line on the clock of the records, which has no relation to that of the machine:
/// logs do not have it.
pub(crate) const START_NS: u64 = 1_000_000_000;
/// Interval of the recording: without samples it only decides how finely a recording is divided.
const INTERVAL_NS: u64 = 100_000_000;

/// A header that knows nothing, of a machine that is not known: an empty name, no CPU, no memory.
pub fn blank(backend: &str, scope: &str, started_unix_ns: u64) -> Header {
    let mut header = Header {
        wire_version: WIRE_VERSION,
        recorder: env!("CARGO_PKG_VERSION").to_owned(),
        backend: backend.to_owned(),
        command: Vec::new(),
        scope: scope.to_owned(),
        restricted: false,
        cgroup: None,
        cwd: String::new(),
        host: String::new(),
        kernel: String::new(),
        machine: String::new(),
        cpus: 0,
        page_bytes: 4096,
        memory_bytes: 0,
        started_unix_ns,
        started_ns: START_NS,
        interval_ns: INTERVAL_NS,
        memory_interval_ns: None,
        ring_bytes: 0,
        on_full: String::new(),
        misses: Vec::new(),
        opens: false,
        lookups_timed_one_in: None,
        waits_min_ns: None,
        env_names: Vec::new(),
        job: BTreeMap::new(),
        tick_ns: None,
        hooks: Vec::new(),
        knowledge: BTreeMap::new(),
        processor: Processor::default(),
    };
    header.knows_nothing(&format!("not in a log of {backend}"));
    header
}

/// Facts about a log of strace once it has been read.
pub(crate) struct Read<'a> {
    pub(crate) seen: Seen,
    pub(crate) totals: Totals,
    pub(crate) root: Option<&'a Root>,
    /// True if strace was told to follow children, as far as the log shows.
    pub(crate) follows: bool,
    pub(crate) started_unix_ns: u64,
    pub(crate) has_times: bool,
}

/// The header of a log of strace.
pub(crate) fn of_strace(read: &Read<'_>) -> Header {
    let scope = if read.root.is_some() { "command" } else { "pids" };
    let mut header = blank("strace", scope, read.started_unix_ns);
    let argv = read.root.map(|root| &root.argv[..]).unwrap_or_default();
    let cwd = read.root.and_then(|root| root.cwd.as_deref()).unwrap_or_default();
    header.cwd = to_text(cwd).into_owned();
    header.command = argv.iter().map(|argument| to_text(argument).into_owned()).collect();
    for family in Family::ALL.into_iter().filter(|family| read.seen.has(*family)) {
        header.misses.push(family.name().to_owned());
    }
    header.opens = read.seen.has(Family::Open);
    if read.totals.with_environment > 0 {
        header.env_names = proctrace_trace::ENV_NAMES.map(str::to_owned).to_vec();
    }
    for quantity in Quantity::ALL {
        if let Some(knowledge) = knowledge(quantity, read) {
            header.knowledge.insert(quantity.name().to_owned(), knowledge);
        }
    }
    header
}

/// Knowledge of a quantity in a log; `None` for those that no log has.
fn knowledge(quantity: Quantity, read: &Read<'_>) -> Option<Knowledge> {
    let Read { seen, totals, .. } = read;
    let absent = |reason: &str| Knowledge::Absent { reason: reason.to_owned() };
    let estimate = |method: String| Knowledge::Estimate { method };
    let exact_if = |known: bool, reason: &str| match known {
        true => Knowledge::Exact,
        false => absent(reason),
    };
    const NOT_LOGGED: &str = "the log of strace has no such calls";
    const ONLY_SUCCESSES: &str = "no call in the log failed: strace ran with -z?";
    if let Some(family) = quantity.family() {
        let family = Family::from_name(family)?;
        if seen.lacks_failures() {
            return Some(absent(ONLY_SUCCESSES));
        }
        return Some(exact_if(seen.has(family), NOT_LOGGED));
    }
    const ONLY_FAILURES: &str = "no call in the log succeeded: strace ran with -Z?";
    Some(match quantity {
        Quantity::Forks | Quantity::Execs | Quantity::Argv | Quantity::OpenedFiles
            if seen.lacks_successes() =>
        {
            absent(ONLY_FAILURES)
        }
        Quantity::Forks if !seen.has_forks() && !seen.is_everything() && totals.processes > 1 => {
            absent(NOT_LOGGED)
        }
        Quantity::Forks if seen.has_forks() && !read.follows => {
            estimate("strace ran without -f: only the children of one process".to_owned())
        }
        // Threads to which it attached have no births either.
        Quantity::Forks if read.root.is_none() && totals.unborn > 0 => absent(
            "strace attached to several tasks, and which are threads of one process is not in the log",
        ),
        Quantity::Forks if totals.unborn > 0 => estimate(format!(
            "{} tasks whose births are not in the log count as processes",
            totals.unborn
        )),
        Quantity::Forks => Knowledge::Exact,
        Quantity::Execs if seen.has_forks() && !read.follows => {
            absent("strace ran without -f: what children executed is not in the log")
        }
        Quantity::Execs => exact_if(seen.has(Family::Exec), NOT_LOGGED),
        Quantity::Argv if !seen.has(Family::Exec) => absent(NOT_LOGGED),
        Quantity::Argv if totals.execs > 0 && totals.without_arguments == totals.execs => {
            absent("the log has no arguments of execs")
        }
        Quantity::Argv if totals.argv_cut > 0 => estimate(format!(
            "strace cut the arguments of {} execs (-s), or has only their address",
            totals.argv_cut
        )),
        Quantity::Argv => Knowledge::Exact,
        Quantity::Environment if totals.with_environment == 0 => absent("strace ran without -v"),
        Quantity::Environment if totals.environments_cut + totals.without_environment > 0 => {
            let cut = totals.environments_cut + totals.without_environment;
            estimate(format!("strace cut the environments of {cut} execs (-s)"))
        }
        Quantity::Environment => Knowledge::Exact,
        Quantity::OpenedFiles if !seen.has(Family::Open) => absent(NOT_LOGGED),
        Quantity::OpenedFiles if totals.opens_as_given > 0 => {
            estimate("paths as given to the calls: strace ran without -y".to_owned())
        }
        Quantity::OpenedFiles => Knowledge::Exact,
        Quantity::FileSizes => absent("a log of strace has no sizes of files"),
        Quantity::LookupTimes => absent("calls take much longer under strace"),
        Quantity::Times => exact_if(read.has_times, "strace ran without -ttt"),
        _ => return None,
    })
}

/// Totals of what was written.
pub(crate) struct Written {
    pub(crate) ended_ns: u64,
    pub(crate) all_ended: bool,
    pub(crate) tasks: u64,
    pub(crate) records: BTreeMap<String, u64>,
    pub(crate) losses: Vec<LossCount>,
}

/// The trailer. The usage of the command is 0 because it is not known: the header says so.
pub(crate) fn trailer(written: Written, root: Option<&Root>) -> Trailer {
    let payload = root.and_then(|root| {
        Some(PayloadUsage {
            outcome: Outcome::of_status(root.status?),
            exited_ns: root.ended_ns,
            user_ns: 0,
            system_ns: 0,
            maxrss_bytes: 0,
        })
    });
    Trailer {
        ended_ns: written.ended_ns,
        ended: match (written.all_ended, &payload) {
            (true, _) => Ended::TreeExited,
            (false, Some(_)) => Ended::RootExited,
            (false, None) => Ended::Interrupted,
        },
        payload,
        tasks: written.tasks,
        records: written.records,
        losses: written.losses,
        cgroup: None,
        machine: None,
        recorder: RecorderUsage::default(),
        programs: Vec::new(),
        job: std::collections::BTreeMap::new(),
        held_up: None,
        of_node: None,
    }
}

/// Counts by the name of their kind, without zeros.
pub(crate) fn by_name(count: impl Fn(Kind) -> u64) -> BTreeMap<String, u64> {
    Kind::ALL
        .into_iter()
        .filter(|kind| count(*kind) > 0)
        .map(|kind| (kind.name().to_owned(), count(kind)))
        .collect()
}
