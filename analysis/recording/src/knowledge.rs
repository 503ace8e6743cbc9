//! The quantities that a recording contains, and those that each result needs: a result whose
//! quantities are not known is left out, never computed from the zeros that stand in for them.

use std::collections::BTreeMap;

use proctrace_findings::{Knowledge as State, Known, Loss, Unit};
use proctrace_trace::{Header, Knowledge, SCOPE_TREE};
use proctrace_wire::{Kind, Quantity};

use Quantity::{
    Cpu, Execs, Faults, Forks, Io, LookupsAccess, LookupsChdir, LookupsExec, LookupsOpen,
    LookupsReadlink, LookupsStat, Memory, PeakRss, RunDelay, Samples, Split, Switches, Times,
    Waits,
};

/// Quantities needed to know which program each process ran: its own exec, or its forker's program.
pub const WHO: &[Quantity] = &[Forks, Execs];
const LOOKUPS: &[Quantity] =
    &[LookupsOpen, LookupsStat, LookupsAccess, LookupsReadlink, LookupsChdir];

/// Knowledge of each quantity.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Knows {
    absent: BTreeMap<Quantity, String>,
    estimates: BTreeMap<Quantity, String>,
    bounds: BTreeMap<Quantity, String>,
    /// True if the source read sums over a whole tree of processes.
    sums_tree: bool,
}

/// Metrics that are sums over all tasks.
const SUMS: [&str; 5] = [
    "total_cpu_seconds",
    "total_cpu_user_seconds",
    "total_cpu_system_seconds",
    "read_bytes",
    "write_bytes",
];

impl Knows {
    /// The initial state, as declared in the header.
    pub fn of(header: &Header) -> Self {
        let mut knows = Self { sums_tree: header.scope == SCOPE_TREE, ..Self::default() };
        for quantity in Quantity::ALL {
            match header.knows(quantity) {
                Knowledge::Exact => {}
                Knowledge::Estimate { method } => {
                    knows.estimates.insert(quantity, method);
                }
                Knowledge::Absent { reason } => {
                    knows.absent.insert(quantity, reason);
                }
            }
        }
        // Without times there are no durations.
        if let Some(reason) = knows.absent.get(&Times).cloned() {
            for quantity in [Cpu, RunDelay, Samples, Memory, Waits, Quantity::LookupTimes] {
                knows.absent.entry(quantity).or_insert_with(|| reason.clone());
            }
        }
        // Without CPU time there is nothing to split.
        if let Some(reason) = knows.absent.get(&Cpu).cloned() {
            knows.absent.insert(Split, reason);
        }
        knows
    }

    /// Marks a quantity as unknown.
    pub fn lacks(&mut self, quantity: Quantity, reason: String) {
        self.absent.entry(quantity).or_insert(reason);
    }

    /// Marks a quantity as estimated.
    pub fn estimates(&mut self, quantity: Quantity, method: String) {
        self.estimates.entry(quantity).or_insert(method);
    }

    /// Marks a quantity as a lower bound.
    pub fn bounds(&mut self, quantity: Quantity, why: &str) {
        self.bounds.entry(quantity).or_insert_with(|| why.to_owned());
    }

    /// True if all of these are known, exactly or not.
    pub fn all(&self, needs: &[Quantity]) -> bool {
        !needs.iter().any(|quantity| self.absent.contains_key(quantity))
    }

    /// The value, if every quantity it needs is known.
    pub fn some<T>(&self, needs: &[Quantity], figure: T) -> Option<T> {
        self.all(needs).then_some(figure)
    }

    /// True if sums over all tasks are known. They lack those whose births are not known, unless the source read the
    /// sums themselves.
    pub fn sums(&self, needs: &[Quantity]) -> bool {
        let is_needed = |need: &&Quantity| **need != Forks || !self.sums_tree;
        !needs.iter().filter(is_needed).any(|quantity| self.absent.contains_key(quantity))
    }

    /// The sum over all tasks, if it is known.
    pub fn sum<T>(&self, needs: &[Quantity], figure: T) -> Option<T> {
        self.sums(needs).then_some(figure)
    }

    /// True if the source read sums over a whole tree, of which one process in the recording has all.
    pub fn is_of_a_tree(&self) -> bool {
        self.sums_tree
    }

    /// True if what a metric needs is known.
    pub fn knows_metric(&self, family: &str) -> bool {
        let needs = metric_needs(family).unwrap_or(&[]);
        if SUMS.contains(&family) { self.sums(needs) } else { self.all(needs) }
    }

    /// True if the failures of a family of calls, given by name, are known.
    pub fn knows_family(&self, family: &str) -> bool {
        !self.absent.keys().any(|quantity| quantity.family() == Some(family))
    }

    /// The reason a quantity is not known; None if it is.
    pub(crate) fn why_absent(&self, quantity: Quantity) -> Option<&str> {
        self.absent.get(&quantity).map(String::as_str)
    }

    /// The reason quantities are not known: "failed stats are not known (left out by --misses)".
    pub fn why_not(&self, needs: &[Quantity]) -> Option<String> {
        let missing =
            needs.iter().filter_map(|quantity| Some((quantity, self.absent.get(quantity)?)));
        let mut says: Vec<(&str, Vec<&str>)> = Vec::new();
        for (quantity, reason) in missing {
            match says.iter_mut().find(|(known, _)| known == reason) {
                Some((_, quantities)) => quantities.push(quantity.says()),
                None => says.push((reason, vec![quantity.says()])),
            }
        }
        let says: Vec<String> = says
            .into_iter()
            .map(|(reason, quantities)| format!("{}: {reason}", quantities.join(", ")))
            .collect();
        (!says.is_empty()).then(|| says.join("; "))
    }

    /// The state of every quantity, in the form of the findings. Lost records turn exact quantities
    /// into lower bounds.
    pub fn findings(&self, losses: &[Loss]) -> Vec<Known> {
        let state = |quantity: Quantity| {
            if let Some(reason) = self.absent.get(&quantity) {
                return (State::Absent, Some(reason.clone()));
            }
            if let Some(method) = self.estimates.get(&quantity) {
                return (State::Estimate, Some(method.clone()));
            }
            if let Some(why) = self.bounds.get(&quantity) {
                return (State::LowerBound, Some(why.clone()));
            }
            let lost: u64 = losses
                .iter()
                .filter(|loss| is_lost_with(quantity, &loss.kind))
                .fold(0, |lost, loss| lost.saturating_add(loss.count));
            match lost {
                0 => (State::Exact, None),
                1 => (State::LowerBound, Some("1 record was lost".to_owned())),
                lost => (State::LowerBound, Some(format!("{lost} records were lost"))),
            }
        };
        Quantity::ALL
            .into_iter()
            .map(|quantity| {
                let (state, why) = state(quantity);
                Known { quantity: quantity.name(), state, why }
            })
            .collect()
    }
}

/// True if losing records of a kind makes a quantity incomplete.
fn is_lost_with(quantity: Quantity, kind: &str) -> bool {
    let kind = Kind::ALL.into_iter().find(|known| known.name() == kind);
    match kind {
        // A task that is not followed is missing from every quantity.
        Some(Kind::Fork | Kind::Attach) | None => true,
        Some(Kind::Exec) => matches!(quantity, Execs | Quantity::Argv),
        Some(Kind::ExecArgs) => quantity == Quantity::Argv,
        Some(Kind::ExecFailed) => quantity == LookupsExec,
        Some(Kind::Exit) => {
            matches!(quantity, Cpu | Split | Switches | RunDelay | Faults | PeakRss | Io)
        }
        Some(Kind::LookupFailed | Kind::LookupNamed | Kind::LookupAgain) => {
            Quantity::LOOKUPS.contains(&quantity)
        }
        Some(Kind::Sample | Kind::Tick) => quantity == Samples,
        Some(Kind::Env) => quantity == Quantity::Environment,
        Some(Kind::Memory) => quantity == Memory,
        Some(Kind::LookupTime) => quantity == Quantity::LookupTimes,
        Some(Kind::OpenedNamed | Kind::OpenedAgain) => quantity == Quantity::OpenedFiles,
        Some(Kind::Place | Kind::Mounts) => quantity == Quantity::Mounts,
        Some(Kind::Wait) => quantity == Quantity::Waits,
        Some(Kind::Signal) => quantity == Quantity::Signals,
        Some(Kind::Rename | Kind::Loss | Kind::Blind | Kind::Workdir) => false,
    }
}

/// The quantities that a metric needs, by its stable name; `None` if there is no such family.
pub fn metric_needs(family: &str) -> Option<&'static [Quantity]> {
    Some(match family {
        "total_processes" | "total_threads" | "total_tasks" => &[Forks],
        "peak_tasks" | "peak_processes" => &[Forks, Times],
        "total_detached" => &[Forks],
        "total_execs" => &[Execs],
        "execs" => &[Execs],
        "total_execs_failed" => &[LookupsExec],
        "total_commands"
        | "total_framework_processes"
        | "processes"
        | "threads"
        | "command_processes"
        | "command_threads"
        | "detached_processes"
        | "spawns" => WHO,
        "total_failed_lookups" => LOOKUPS,
        "command_failed_lookups" => {
            &[Forks, Execs, LookupsOpen, LookupsStat, LookupsAccess, LookupsReadlink, LookupsChdir]
        }
        // Decided per family of calls: see `by_kind`.
        "failed_lookups" | "directory_failed_lookups" => &[],
        "total_opens" => &[LookupsOpen],
        "total_cpu_user_seconds" | "total_cpu_system_seconds" => &[Forks, Cpu, Split],
        "total_cpu_seconds" => &[Forks, Cpu],
        "detached_cpu_seconds" | "unwaited_cpu_seconds" => &[Forks, Cpu],
        "cpu_user_seconds" | "cpu_system_seconds" => &[Forks, Execs, Cpu, Split],
        "command_cpu_seconds" => &[Forks, Execs, Cpu],
        "wall_seconds" => &[Times],
        "run_delay_seconds" => &[Forks, RunDelay],
        "phase_begin_seconds" | "phase_wall_seconds" => &[Execs, Quantity::Argv, Times],
        "phase_processes" => &[Forks, Execs, Quantity::Argv],
        "phase_cpu_seconds" => &[Forks, Execs, Quantity::Argv, Cpu, Samples],
        "phase_failed_lookups" => &[
            Execs,
            Quantity::Argv,
            LookupsOpen,
            LookupsStat,
            LookupsAccess,
            LookupsReadlink,
            LookupsChdir,
        ],
        "phase_peak_pss_bytes" => &[Execs, Quantity::Argv, Memory],
        "peak_rss_bytes" => &[Forks, PeakRss],
        "command_peak_rss_bytes" => &[Forks, Execs, Quantity::Argv, PeakRss],
        "peak_pss_bytes" => &[Memory],
        "switches_voluntary" | "switches_involuntary" => &[Forks, Switches],
        "faults_minor" | "faults_major" => &[Forks, Faults],
        "read_bytes" | "write_bytes" => &[Forks, Io],
        _ => return None,
    })
}

/// Metrics that are broken down by family of calls, each family known independently.
pub const BY_KIND: [&str; 2] = ["failed_lookups", "directory_failed_lookups"];

/// Quantities that a table needs for its rows and for all of its columns.
pub fn table_needs(table: &str) -> Option<&'static [Quantity]> {
    Some(match table {
        "counts" | "programs" | "lives" | "spawn_sources" | "spawn_lines" | "spawners"
        | "spawn_pairs" | "ancestry" => WHO,
        "lifetimes" => &[Forks, Times],
        "ends" | "end_chain" | "fatal_signals" => WHO,
        "accounting" | "accounting_why" => &[Forks, Cpu],
        "accounting_looks" => &[Forks, Cpu, Samples],
        "accounting_processes" => &[Forks, Execs, Cpu],
        "detached" | "programs_by_cpu" => WHO,
        // Each metric is checked by itself, and look-ups per call.
        "summary" | "lookups" | "lookup_paths" => &[],
        "lookup_programs" => {
            &[Forks, Execs, LookupsOpen, LookupsStat, LookupsAccess, LookupsReadlink, LookupsChdir]
        }
        "opened_files" | "needed_files" => &[Quantity::OpenedFiles],
        "file_flows" => &[Forks, Execs, Quantity::OpenedFiles],
        "memory_processes" | "memory_courses" => &[Forks, Execs, Memory],
        "memory_looks" => &[Forks, Memory],
        // These describe the recording itself and are always known.
        "laws" | "losses" | "known" | "unseen" => &[],
        // Each series is checked by itself.
        "correlations" | "correlation_lags" | "correlation_signs" | "correlation_matrix" => &[],
        "switches" | "switches_programs" => &[Forks, Execs, Switches],
        "task_states" => &[Forks, Cpu, RunDelay, Samples],
        "concurrency" | "serial" | "amdahl" | "overcommit" => &[Forks, Cpu, Samples],
        "startup" | "startup_totals" => {
            &[Forks, Execs, LookupsOpen, LookupsStat, LookupsAccess, LookupsReadlink, LookupsChdir]
        }
        "pools" | "pool_phases" | "pool_scaling" | "pool_workers" | "pool_cores"
        | "pool_writer" | "pool_resources" => &[Forks, Execs, Cpu, Samples],
        "pool_memory" => &[Forks, Execs, Memory],
        "critical_path" | "path_stretches" | "path_programs" | "path_categories"
        | "path_phases" => &[Forks, Execs, Waits],
        "phases" | "phase_programs" => &[Forks, Execs, Quantity::Argv],
        "phase_directories" => &[
            Execs,
            Quantity::Argv,
            LookupsOpen,
            LookupsStat,
            LookupsAccess,
            LookupsReadlink,
            LookupsChdir,
        ],
        _ => return None,
    })
}

/// The quantity that all values of a unit need.
pub fn unit_needs(unit: Unit) -> &'static [Quantity] {
    match unit {
        Unit::Nanoseconds | Unit::PerSecond => &[Times],
        _ => &[],
    }
}

/// Quantities that a column needs, in whichever table it occurs, beside what its unit does.
pub fn column_needs(column: &str) -> &'static [Quantity] {
    match column {
        "system_percent"
        | "system_low_percent"
        | "system_high_percent"
        | "ticks"
        | "user_ns"
        | "system_ns"
        | "system_cpu_ns"
        | "system_mean_ns" => &[Cpu, Split],
        "cpu_ns"
        | "cpu_mean_ns"
        | "cpu_percent"
        | "shorter_cpu_ns"
        | "shorter_cpu_percent"
        | "efficiency_percent"
        | "per_cpu_second"
        | "loading_cpu_most_ns" => &[Cpu],
        "voluntary" | "involuntary" | "voluntary_ratio" | "migrations" => &[Switches],
        "minor_faults" => &[Faults],
        "peak_rss_bytes" => &[PeakRss],
        "cores_in_use" | "cores_idle" => &[Cpu, Samples],
        "faster" | "wanted_percent" => &[RunDelay],
        "command_line" => &[Quantity::Argv],
        "failed_lookups" => LOOKUPS,
        _ => &[],
    }
}

/// Quantities that a chart needs.
pub fn chart_needs(chart: &str) -> Option<&'static [Quantity]> {
    Some(match chart {
        "counts" | "categories" | "spawners" | "ancestry_count" => WHO,
        "ancestry_cpu" => &[Forks, Execs, Cpu],
        "ancestry_system" => &[Forks, Execs, Cpu, Split],
        "lifetimes" => &[Forks, Execs, Times],
        "accounting" => &[Forks, Cpu, Split],
        "correlations" => &[],
        "switches" => &[Forks, Execs, Switches, Cpu],
        "task_states" => &[Forks, Cpu, RunDelay, Samples],
        "concurrency" | "amdahl" => &[Forks, Cpu, Samples],
        "startup" => {
            &[Forks, Execs, LookupsOpen, LookupsStat, LookupsAccess, LookupsReadlink, LookupsChdir]
        }
        "pool_workers" | "pool_cpu" | "pool_writer" => &[Forks, Execs, Cpu, Samples],
        "pool_memory" | "pool_sharing" => &[Forks, Execs, Memory],
        "critical_path" => &[Forks, Execs, Waits],
        _ => return None,
    })
}

/// True if the needs of a table or chart of this name are declared: each must declare them.
pub fn says_what_it_needs(name: &str) -> bool {
    table_needs(name).is_some() || chart_needs(name).is_some()
}

/// Quantities that a time series needs, by its name in the correlations.
pub fn series_needs(series: &str) -> &'static [Quantity] {
    match series {
        "system CPU" | "user CPU" => &[Forks, Execs, Cpu, Split, Samples],
        "forks" | "live tasks" => &[Forks, Times],
        "exits" => &[Times],
        "switches" | "voluntary" | "involuntary" => &[Forks, Switches, Samples],
        "running" => &[Samples],
        "read" | "write" => &[Forks, Io, Samples],
        "execs" => &[Execs, Times],
        "look-ups" => {
            &[LookupsOpen, LookupsStat, LookupsAccess, LookupsReadlink, LookupsChdir, Times]
        }
        _ => &[],
    }
}

/// Quantities that the check of a conservation law needs.
pub(crate) fn law_needs(law: &str) -> &'static [Quantity] {
    match law {
        "births" | "parents" | "starts" => &[Forks],
        "waits" | "cpu" | "cgroup" => &[Forks, Cpu],
        "failed execs" => &[LookupsExec],
        "opens" => &[Quantity::OpenedFiles],
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proctrace_findings::FAMILIES;

    #[test]
    fn every_family_of_figures_says_what_it_needs() {
        for family in FAMILIES {
            assert!(metric_needs(family.name).is_some(), "{}", family.name);
        }
    }

    #[test]
    fn reasons_are_told_once() {
        let mut knows = Knows::default();
        for quantity in [LookupsOpen, LookupsStat] {
            knows.lacks(quantity, "left out by --misses".into());
        }
        knows.lacks(Memory, "recorded without --memory".into());
        assert_eq!(
            knows.why_not(&[LookupsOpen, Memory, LookupsStat, Forks]).as_deref(),
            Some(
                "failed opens, failed stats: left out by --misses; memory over time: recorded \
                 without --memory"
            )
        );
        assert_eq!(knows.why_not(&[Forks]), None);
        assert!(knows.knows_metric("total_cpu_seconds"));
        knows.lacks(Forks, "not in a log of prmon".into());
        assert!(!knows.knows_metric("total_cpu_seconds") && !knows.sums(&[Forks, Cpu]));
        knows.sums_tree = true;
        assert!(knows.knows_metric("total_cpu_seconds") && knows.sums(&[Forks, Cpu]));
        assert!(!knows.knows_metric("detached_cpu_seconds") && !knows.all(&[Forks, Cpu]));
        assert!(!knows.sums(&[Forks, Memory]));
        assert_eq!((knows.some(&[Cpu], 1), knows.some(&[Cpu, Memory], 1)), (Some(1), None));
    }

    #[test]
    fn losses_make_lower_bounds() {
        let loss = |kind: Kind| Loss { kind: kind.name().into(), reason: "ring".into(), count: 3 };
        let of = |kind, quantity: Quantity| {
            let known = Knows::default().findings(&[loss(kind)]);
            known.into_iter().find(|known| known.quantity == quantity.name()).unwrap().state
        };
        assert_eq!(of(Kind::Fork, Cpu), State::LowerBound);
        assert_eq!(of(Kind::LookupFailed, Cpu), State::Exact);
        assert_eq!(of(Kind::LookupFailed, LookupsStat), State::LowerBound);
        assert_eq!(of(Kind::Sample, Samples), State::LowerBound);
    }
}
