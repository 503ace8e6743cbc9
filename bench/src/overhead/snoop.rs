//! Counts events of tools that print a line per event of the whole machine: bpftrace, bcc tools,
//! forkstat.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::counts::{Counts, Seen};
use super::site::Site;
use super::tree::Tree;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Fork,
    Exec,
    Exit,
    FailedOpen,
}

/// One output line of any of them.
struct Event {
    kind: Kind,
    task: u64,
    /// The parent, if the line contains it.
    parent: Option<u64>,
}

/// The bpftrace script for the four kinds of events; `hooks.bt` of a run.
pub(super) const BPFTRACE_SCRIPT: &str = r#"tracepoint:sched:sched_process_fork { printf("f %llu %d %d\n", nsecs, args->child_pid, args->parent_pid); }
tracepoint:sched:sched_process_exec { printf("x %llu %d %s\n", nsecs, pid, str(args->filename)); }
tracepoint:sched:sched_process_exit { printf("e %llu %d\n", nsecs, tid); }
tracepoint:syscalls:sys_enter_openat { @path[tid] = args->filename; }
tracepoint:syscalls:sys_exit_openat {
    if (args->ret < 0) { printf("o %llu %d %d %s\n", nsecs, pid, args->ret, str(@path[tid])); }
    delete(@path[tid]);
}
END { clear(@path); }
"#;

pub(super) fn count_bpftrace(site: &Site) -> Result<Seen> {
    let kinds = Kind::all();
    let text = read(&site.out(""))?;
    let mut events: Vec<(u64, Event)> = text.lines().filter_map(bpftrace).collect();
    // It reads the per-CPU buffers one after another.
    events.sort_by_key(|(time_ns, _)| *time_ns);
    Ok(tally(site, &kinds, events.into_iter().map(|(_, event)| event).collect()))
}

pub(super) fn count_bcc(site: &Site) -> Result<Seen> {
    let mut events = Vec::new();
    for (tool, parse) in [
        (".execsnoop", execsnoop as fn(&str) -> Option<Event>),
        (".exitsnoop", exitsnoop),
        (".opensnoop", opensnoop),
    ] {
        events.extend(read(&site.out(tool))?.lines().filter_map(parse));
    }
    Ok(tally(site, &[Kind::Exec, Kind::Exit, Kind::FailedOpen], events))
}

pub(super) fn count_forkstat(site: &Site) -> Result<Seen> {
    let text = read(&site.out(""))?;
    let mut parent = None;
    let events = text.lines().filter_map(|line| forkstat(line, &mut parent)).collect();
    let mut seen = tally(site, &[Kind::Fork, Kind::Exec, Kind::Exit], events);
    // The kernel's connector drops messages that do not fit into the socket buffer, and forkstat
    // does not check for this.
    seen.lost = None;
    Ok(seen)
}

impl Kind {
    fn all() -> [Self; 4] {
        [Self::Fork, Self::Exec, Self::Exit, Self::FailedOpen]
    }
}

fn read(path: &Path) -> Result<String> {
    let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Counts the payload's events. Lines of several CPUs are unordered, so parents are collected
/// first.
fn tally(site: &Site, kinds: &[Kind], events: Vec<Event>) -> Seen {
    let mut tree = Tree::new(site.root_pid, &site.others, kinds.contains(&Kind::Fork));
    for (at, event) in events.iter().enumerate() {
        if let Some(parent) = event.parent {
            tree.add(event.task, parent, at);
        }
    }
    let mut counts: BTreeMap<Kind, u64> = kinds.iter().map(|kind| (*kind, 0)).collect();
    for (at, event) in events.iter().enumerate() {
        // The fork and the exec of the stopwatch itself do not belong to the payload.
        if event.task != site.root_pid || event.kind == Kind::Exit {
            let told = event.parent.unwrap_or(event.task);
            let ours = event.task == site.root_pid || tree.holds(told, at);
            *counts.entry(event.kind).or_default() += u64::from(ours);
        }
    }
    let counted = |kind| counts.get(&kind).copied();
    Seen {
        counts: Counts {
            forks: counted(Kind::Fork),
            execs: counted(Kind::Exec),
            exits: counted(Kind::Exit),
            failed_opens: counted(Kind::FailedOpen),
        },
        records: Some(events.len() as u64),
        lost: Some(losses(&fs::read_to_string(site.log()).unwrap_or_default())),
    }
}

/// The sum of the lines `Lost 275 events on CPU #0!` and `Lost 3 events`.
fn losses(log: &str) -> u64 {
    log.lines()
        .filter_map(|line| {
            line.trim().strip_prefix("Lost ")?.split(' ').next()?.parse::<u64>().ok()
        })
        .sum()
}

/// Parses a line of the script above, with its time.
fn bpftrace(line: &str) -> Option<(u64, Event)> {
    let mut words = line.split(' ');
    let kind = match words.next()? {
        "f" => Kind::Fork,
        "x" => Kind::Exec,
        "e" => Kind::Exit,
        "o" => Kind::FailedOpen,
        _ => return None,
    };
    let time_ns = words.next()?.parse().ok()?;
    let task = words.next()?.parse().ok()?;
    let parent = if kind == Kind::Fork { Some(words.next()?.parse().ok()?) } else { None };
    Some((time_ns, Event { kind, task, parent }))
}

/// The numbers after a name field of 16 columns, which may contain spaces.
fn after_name(line: &str) -> Option<impl Iterator<Item = u64>> {
    Some(line.get(16..)?.split_whitespace().map_while(|word| word.parse().ok()))
}

/// `PCOMM PID PPID RET ARGS`
fn execsnoop(line: &str) -> Option<Event> {
    let mut numbers = after_name(line)?;
    let (task, parent, result) = (numbers.next()?, numbers.next()?, numbers.next()?);
    (result == 0).then_some(Event { kind: Kind::Exec, task, parent: Some(parent) })
}

/// `PCOMM PID PPID TID AGE(s) EXIT_CODE`; a thread's parent is its process.
fn exitsnoop(line: &str) -> Option<Event> {
    let mut numbers = after_name(line)?;
    let (process, parent, task) = (numbers.next()?, numbers.next()?, numbers.next()?);
    let parent = if task == process { parent } else { process };
    Some(Event { kind: Kind::Exit, task, parent: Some(parent) })
}

/// `PID COMM FD ERR PATH`
fn opensnoop(line: &str) -> Option<Event> {
    let task = line.split(' ').next()?.parse().ok()?;
    Some(Event { kind: Kind::FailedOpen, task, parent: None })
}

/// `Time Event PID Info Duration Process`; a fork has two lines, the parent's before the child's.
fn forkstat(line: &str, parent: &mut Option<u64>) -> Option<Event> {
    let mut words = line.split_whitespace();
    let (kind, task) = (words.nth(1)?, words.next()?.parse().ok()?);
    match (kind, words.next()) {
        ("fork" | "clone", Some("parent")) => {
            *parent = Some(task);
            None
        }
        ("fork" | "clone", _) => Some(Event { kind: Kind::Fork, task, parent: parent.take() }),
        ("exec", _) => Some(Event { kind: Kind::Exec, task, parent: None }),
        ("exit", _) => Some(Event { kind: Kind::Exit, task, parent: None }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn site() -> Site {
        Site {
            scratch: std::path::PathBuf::new(),
            directory: "/nonexistent".into(),
            release: "/nonexistent".into(),
            timed: "/nonexistent".into(),
            root_pid: 100,
            others: HashSet::from([7, 100]),
        }
    }

    fn counted(text: &str, parse: impl FnMut(&str) -> Option<Event>) -> Counts {
        tally(&site(), &Kind::all(), text.lines().filter_map(parse).collect()).counts
    }

    #[test]
    fn bpftrace_lines_of_other_trees_do_not_count() {
        let text = "Attaching 6 probes...\nx 3 101 /bin/spawn\nf 2 101 100\nf 1 100 7\nx 1 100 /timed\n\
            f 4 102 101\no 5 101 -2 /a b\no 6 7 -2 /c\nf 7 8 7\ne 8 8\ne 9 102\ne 9 101\ne 9 100\n";
        let parse = |line: &str| Some(bpftrace(line)?.1);
        assert_eq!(counted(text, parse), Counts::all(2, 1, 3, 1));
        assert_eq!(bpftrace("e 17 8").unwrap().0, 17);
    }

    #[test]
    fn bcc_columns_survive_names_with_spaces() {
        let event = execsnoop("opt cgu.0        101    100      0 /bin/x -1").unwrap();
        assert_eq!((event.task, event.parent), (101, Some(100)));
        assert!(execsnoop("PCOMM            PID    PPID   RET ARGS").is_none());
        assert!(execsnoop("sh               101    100     -2 /bin/y").is_none());
        let thread = exitsnoop("opt cgu.0        14160   13488   14182   0.06    0").unwrap();
        assert_eq!((thread.task, thread.parent), (14182, Some(14160)));
        let leader = exitsnoop("sleep            5346    5266    5346    3.00    0").unwrap();
        assert_eq!((leader.task, leader.parent), (5346, Some(5266)));
        assert_eq!(
            opensnoop("5341   forkstat          -1   2 /proc/5426/status").unwrap().task,
            5341
        );
        assert!(opensnoop("PID    COMM              FD ERR PATH").is_none());
    }

    #[test]
    fn forkstat_pairs_are_one_fork() {
        let text = "Time     Event   PID Info   Duration Process\n\
            16:30:48 fork    100 parent          timed x\n16:30:48 fork    101 child           timed x\n\
            16:30:48 exec    101                 threads 4\n\
            16:30:48 clone   101 parent          threads 4\n16:30:48 clone   102 thread          threads 4\n\
            16:30:48 exit    102      0   0.000s threads 4\n16:30:48 exit      7      0   0.000s sh\n";
        let mut parent = None;
        assert_eq!(counted(text, |line| forkstat(line, &mut parent)), Counts::all(2, 1, 1, 0));
    }

    #[test]
    fn losses_are_added_up() {
        assert_eq!(
            losses("Attaching\nLost 275 events on CPU #0!\nLost 3 events\nLost in thought\n"),
            278
        );
    }
}
