//! Work and usage of each worker of a pool.

use proctrace_findings::{Axis, Bars, Chart, ChartBody, Figure, Series, Table, Unit};
use proctrace_overview::events::{EventLog, Events};
use proctrace_recording::Recording;
use proctrace_recording::split::Divided;
use proctrace_wire::Quantity;

use crate::sections::pool::find::{Pool, end_ns};
use crate::sections::pool::tree::Tree;

/// The first wire version whose exit records contain migrations.
const MIGRATIONS_SINCE: u32 = 3;

/// One worker and its descendants.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Account {
    pub(crate) name: String,
    pub(crate) pid: i32,
    /// Begin, since the start of the recording.
    pub(crate) begin_ns: u64,
    pub(crate) end_ns: u64,
    pub(crate) used: Divided,
    pub(crate) voluntary: u64,
    pub(crate) involuntary: u64,
    /// `None` where it was not recorded.
    pub(crate) migrations: Option<u64>,
    pub(crate) minor_faults: u64,
    pub(crate) peak_rss_bytes: Option<u64>,
    pub(crate) events: Option<Events>,
}

impl Account {
    pub(crate) fn cpu_ns(&self) -> u64 {
        self.used.cpu.total_ns()
    }

    /// Events per second of the worker's own event loop time if known, otherwise of its lifetime.
    fn events_per_second(&self) -> Option<f64> {
        let events = self.events?;
        let ns = events.loop_ns.unwrap_or(self.end_ns.saturating_sub(self.begin_ns));
        (ns > 0).then_some(events.events? as f64 / (ns as f64 / 1e9))
    }
}

/// One account per worker, in order.
pub(crate) fn accounts(
    recording: &Recording,
    pool: &Pool,
    tree: &Tree,
    logs: &[EventLog],
) -> Vec<Account> {
    let mut place = vec![None; recording.processes().len()];
    let numbers: Vec<u64> = pool.workers.iter().map(|worker| worker.number).collect();
    let mut accounts: Vec<Account> = pool
        .workers
        .iter()
        .zip(events_of(&numbers, logs))
        .enumerate()
        .map(|(at, (worker, events))| {
            place[worker.process] = Some(at);
            let process = &recording.processes()[worker.process];
            Account {
                name: worker.name.clone(),
                pid: process.pid,
                begin_ns: process.born_ns.saturating_sub(recording.first_ns()),
                end_ns: end_ns(recording, process).saturating_sub(recording.first_ns()),
                migrations: Some(0),
                events,
                ..Account::default()
            }
        })
        .collect();
    let mut any_migration = false;
    for (at, process) in recording.processes().iter().enumerate() {
        let Some(account) =
            tree.head(at).and_then(|head| place[head]).and_then(|at| accounts.get_mut(at))
        else {
            continue;
        };
        account.used.add(&recording.divided_of(process));
        account.peak_rss_bytes =
            account.peak_rss_bytes.max(recording.known_peak_rss_bytes(process));
        for task in process.tasks().map(|task| &recording.tasks()[task]) {
            let used = task.used();
            account.voluntary = account.voluntary.saturating_add(used.nvcsw);
            account.involuntary = account.involuntary.saturating_add(used.nivcsw);
            account.minor_faults = account.minor_faults.saturating_add(used.minflt);
            // Only exit records contain migrations.
            let moved = task.end().map(|end| u64::from(end.record.migrations));
            any_migration |= moved.is_some_and(|moved| moved > 0);
            account.migrations =
                account.migrations.zip(moved).map(|(sum, moved)| sum.saturating_add(moved));
        }
    }
    // In earlier versions the field was always zero.
    if recording.header().wire_version < MIGRATIONS_SINCE && !any_migration {
        accounts.iter_mut().for_each(|account| account.migrations = None);
    }
    accounts
}

/// Assigns logs to workers by the numbers in their paths, if these are distinct; otherwise, if
/// there are as many logs as workers, in order.
fn events_of(numbers: &[u64], logs: &[EventLog]) -> Vec<Option<Events>> {
    let mut told: Vec<Option<u64>> = logs.iter().map(EventLog::number).collect();
    told.sort_unstable();
    told.dedup();
    let numbered = told.len() == logs.len() && !told.contains(&None);
    numbers
        .iter()
        .enumerate()
        .map(|(at, number)| {
            let log = if numbered {
                logs.iter().find(|log| log.number() == Some(*number))
            } else if logs.len() == numbers.len() {
                logs.get(at)
            } else {
                None
            };
            log.map(|log| log.events)
        })
        .collect()
}

/// Values as multiples of the first worker's.
fn to_first(values: &[Option<f64>]) -> Vec<Option<f64>> {
    let first = values.first().copied().flatten().filter(|first| *first > 0.0);
    values.iter().map(|value| Some((*value)? / first?)).collect()
}

fn cpu_to_first(accounts: &[Account]) -> Vec<Option<f64>> {
    to_first(&accounts.iter().map(|a| Some(a.cpu_ns() as f64)).collect::<Vec<_>>())
}

fn events_to_first(accounts: &[Account]) -> Vec<Option<f64>> {
    to_first(&accounts.iter().map(|a| Some(a.events?.events? as f64)).collect::<Vec<_>>())
}

fn events(accounts: &[Account]) -> impl Iterator<Item = Option<u64>> {
    accounts.iter().map(|account| account.events.and_then(|events| events.events))
}

/// Table of the time of each worker, its CPU time and its events.
pub(crate) fn work_table(accounts: &[Account]) -> Table {
    let table = Table::new("pool_workers", "Workers: time and events")
        .rows_need(&[Quantity::Forks, Quantity::Execs, Quantity::Cpu, Quantity::Samples])
        .text("worker", "worker", accounts.iter().map(|a| a.name.clone()))
        .whole("pid", "pid", Unit::Text, accounts.iter().map(|a| u64::try_from(a.pid).ok()))
        .whole("begin_ns", "begins", Unit::Nanoseconds, accounts.iter().map(|a| a.begin_ns))
        .whole("end_ns", "ends", Unit::Nanoseconds, accounts.iter().map(|a| a.end_ns))
        .whole("cpu_ns", "CPU", Unit::Nanoseconds, accounts.iter().map(Account::cpu_ns))
        .needs(Figure::CpuNs.needs())
        .real("cpu_to_first", "vs first", Unit::Ratio, cpu_to_first(accounts))
        .note(
            "Times are relative to the start of the recording. CPU: of a worker and all processes \
             it started. vs first: as a multiple of the first worker's.",
        );
    if events(accounts).all(|events| events.is_none()) {
        return table.note(
            "Events are not known: name the workers' logs with --events-log GLOB. CPU time serves \
             as a substitute.",
        );
    }
    table
        .whole("events", "events", Unit::Count, events(accounts))
        .real("events_to_first", "vs first", Unit::Ratio, events_to_first(accounts))
        .real(
            "events_per_second",
            "rate",
            Unit::PerSecond,
            accounts.iter().map(Account::events_per_second),
        )
        .note(
            "rate: events per second of the loop time in the log, or of the worker's lifetime if \
             the log has none.",
        )
}

/// Kernel resources used by each worker.
pub(crate) fn resources_table(recording: &Recording, accounts: &[Account], forked: bool) -> Table {
    let (split, page_bytes) = (recording.split(), recording.header().page_bytes);
    let table = Table::new("pool_resources", "Workers: resources used")
        .rows_need(&[Quantity::Forks, Quantity::Execs, Quantity::Cpu, Quantity::Samples])
        .text("worker", "worker", accounts.iter().map(|a| a.name.clone()))
        .whole(
            "user_ns",
            "user",
            Unit::Nanoseconds,
            accounts.iter().map(|a| split.own(&a.used).map(|cpu| cpu.user_ns)),
        )
        .needs(Figure::UserNs.needs())
        .whole(
            "system_ns",
            "system",
            Unit::Nanoseconds,
            accounts.iter().map(|a| split.own(&a.used).map(|cpu| cpu.system_ns)),
        )
        .needs(Figure::SystemNs.needs())
        .whole("voluntary", "vol.", Unit::Count, accounts.iter().map(|a| a.voluntary))
        .needs(&[Quantity::Switches])
        .whole("involuntary", "invol.", Unit::Count, accounts.iter().map(|a| a.involuntary))
        .needs(&[Quantity::Switches])
        .whole("migrations", "moved", Unit::Count, accounts.iter().map(|a| a.migrations))
        .needs(Figure::Migrations.needs())
        .whole("minor_faults", "faults", Unit::Count, accounts.iter().map(|a| a.minor_faults))
        .needs(Figure::MinorFaults.needs())
        .whole("peak_rss_bytes", "peak RSS", Unit::Bytes, accounts.iter().map(|a| a.peak_rss_bytes))
        .needs(Figure::PeakRssBytes.needs())
        .note(
            "vol., invol.: context switches. moved: migrations to another CPU; none for a pinned \
             worker.",
        );
    if forked {
        table.note(format!(
            "faults: minor faults since the fork. A write fault on a shared page copies it: at \
             most this many times {page_bytes} bytes are no longer shared."
        ))
    } else {
        table
    }
}

/// CPU time and events of each worker as a multiple of the first worker's.
pub(crate) fn chart(accounts: &[Account]) -> Chart {
    let mut series = vec![Series { name: "CPU time".into(), values: cpu_to_first(accounts) }];
    if events(accounts).any(|events| events.is_some()) {
        series.push(Series { name: "events".into(), values: events_to_first(accounts) });
    }
    let bars = Bars {
        rows: accounts.iter().map(|account| account.name.clone()).collect(),
        axis: Axis::linear("relative to the first worker", Unit::Ratio),
        series,
        stacked: false,
    };
    Chart::new("pool_workers", "Work of each worker", ChartBody::Bars(bars))
        .needs(&[Quantity::Forks, Quantity::Execs, Quantity::Cpu, Quantity::Samples])
        .note(format!("n = {} workers.", accounts.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sections::pool::find::pools;
    use crate::sections::pool::testing::{MS, PAGE_BYTES, Tape, Used};
    use proctrace_overview::options::Options;

    fn log(path: &str, events: u64) -> EventLog {
        let events = Events { events: Some(events), loop_ns: Some(2_000 * MS), lines: 1 };
        EventLog { path: path.into(), events }
    }

    fn of(recording: &Recording, logs: &[EventLog]) -> Vec<Account> {
        let pool = &pools(recording, &Options::default(), 2)[0];
        accounts(recording, pool, &Tree::of(recording, pool), logs)
    }

    #[test]
    fn a_worker_answers_for_what_it_started() {
        let mut tape = Tape::new("athena");
        tape.fork(100, 1, 2).fork(110, 1, 3).thread(200, 3, 4).fork(300, 2, 5);
        tape.exec(301, 5, "/usr/bin/sed").exit(310, 5, Used::ms(7));
        tape.thread_exit(400, 4, Used { user_ms: 30, migrations: 2, ..Used::default() });
        let used = Used {
            user_ms: 100,
            system_ms: 20,
            voluntary: 5,
            involuntary: 3,
            minor_faults: 50,
            migrations: 1,
            peak_pages: 10,
            written_bytes: 0,
        };
        tape.exit(900, 2, used).exit(950, 3, used);
        let accounts = of(&tape.exit(1000, 1, Used::ms(1)).recording(), &[]);
        assert_eq!(accounts[0].cpu_ns(), 127 * MS);
        assert_eq!(accounts[1].cpu_ns(), 150 * MS);
        assert_eq!((accounts[0].begin_ns, accounts[0].end_ns), (100 * MS, 900 * MS));
        assert_eq!(accounts[1].migrations, Some(3));
        assert_eq!(accounts[0].minor_faults, 50);
        assert_eq!(accounts[0].peak_rss_bytes, Some(10 * PAGE_BYTES));
        let ratio = cpu_to_first(&accounts)[1].unwrap();
        assert!((ratio - 150.0 / 127.0).abs() < 1e-9);
    }

    #[test]
    fn logs_find_their_workers() {
        let logs = [log("worker_1/x.log", 30), log("worker_0/x.log", 20)];
        let mut tape = Tape::new("athena");
        tape.fork(100, 1, 2).fork(110, 1, 3).exit(900, 2, Used::ms(1)).exit(900, 3, Used::ms(1));
        let recording = tape.exit(1000, 1, Used::ms(1)).recording();
        let accounts = of(&recording, &logs);
        assert_eq!(events(&accounts).collect::<Vec<_>>(), [Some(20), Some(30)]);
        assert_eq!(events_to_first(&accounts), [Some(1.0), Some(1.5)]);
        assert_eq!(accounts[0].events_per_second(), Some(10.0));
        let without_numbers = [log("a.log", 1), log("b.log", 2)];
        let accounts = of(&recording, &without_numbers);
        assert_eq!(events(&accounts).collect::<Vec<_>>(), [Some(1), Some(2)]);
        assert_eq!(events(&of(&recording, &without_numbers[..1])).flatten().count(), 0);
    }
}
