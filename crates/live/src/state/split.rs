//! User and system time by program, split as `report` splits it.

use std::collections::BTreeMap;

use proctrace_findings::Figure;
use proctrace_replay::CpuTime;
use proctrace_replay::ticks::{Balance, ENOUGH_TICKS, Pools, Ticks, divide};

use super::process::Process;
use super::programs::Program;
use super::view::View;

/// The CPU time of all programs, split by pooled ticks.
#[derive(Debug)]
pub struct Divided {
    /// True if the recording contains user and system time.
    is_known: bool,
    tick_ns: u64,
    whole: Ticks,
    programs: Vec<CpuTime>,
    pools: Pools,
    balance: Balance,
}

impl View {
    /// Splits the CPU time that each program has used so far.
    pub fn divided(&self) -> Divided {
        let programs = self.programs.all();
        let tick_ns = self.tick_ns();
        let whole = programs.iter().fold(Ticks::default(), |sum, p| sum.plus(p.used.ticks()));
        let mut numbers = BTreeMap::new();
        let category_of: Vec<usize> = programs
            .iter()
            .map(|program| {
                let next = numbers.len();
                *numbers.entry(program.name.category.as_deref()).or_insert(next)
            })
            .collect();
        let left: Vec<Ticks> =
            programs.iter().map(|program| program.used.ticks().minus(program.own.ticks)).collect();
        let pools = Pools::new(tick_ns, whole, &left, &category_of);
        let mut parts: Vec<CpuTime> = programs
            .iter()
            .enumerate()
            .map(|(at, program)| divide(program.used.run_ns, &program.own, pools.share(at)))
            .collect();
        let balance = Balance::of_whole(parts.iter().copied().sum(), whole);
        for part in &mut parts {
            *part = balance.of_time(*part);
        }
        let is_known = self.knows(Figure::SystemNs);
        Divided { is_known, tick_ns, whole, programs: parts, pools, balance }
    }
}

impl Divided {
    /// The user and the system time of a program.
    pub fn of(&self, program: &Program) -> CpuTime {
        self.programs.get(program.number as usize).copied().unwrap_or_default()
    }

    /// The user and the system time of a process: a part of that of its program.
    pub fn of_process(&self, process: &Process) -> CpuTime {
        let pooled = self.pools.share(process.program as usize);
        self.balance.of_time(divide(process.used.run_ns, &process.own, pooled))
    }

    /// The number of ticks.
    pub fn ticks(&self, ticks: Ticks) -> f64 {
        ticks.count(self.tick_ns)
    }

    /// The share of system time in percent of a group with this CPU time and these ticks; None if the
    /// recording does not contain it, or if too few ticks hit it or the whole recording.
    pub fn system_percent(&self, cpu: CpuTime, ticks: Ticks) -> Option<f64> {
        let enough = |ticks: Ticks| self.ticks(ticks) >= ENOUGH_TICKS;
        let total_ns = cpu.total_ns();
        (self.is_known && enough(ticks) && enough(self.whole) && total_ns > 0)
            .then(|| 100.0 * cpu.system_ns as f64 / total_ns as f64)
    }
}
