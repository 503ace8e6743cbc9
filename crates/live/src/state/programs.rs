//! Sums by program.

use proctrace_replay::ticks::Own;

use super::FastMap;
use super::classify::ProgramName;
use super::process::Process;
use super::rates::Recent;
use proctrace_replay::Usage;

/// Programs that are kept apart; further ones are summed up together.
const PROGRAMS_MAX: usize = 4096;

/// The program of processes whose birth or exec is not in the trace.
pub(crate) const UNKNOWN: u32 = 0;

/// The program of all that are not kept apart.
const OTHERS: u32 = 1;

/// Sums over the processes of a program, ended and alive. A process counts for the last program that it executed, or
/// for its parent's if it never executed one, with all that it used and looked up from its birth on: as in a report.
#[derive(Debug, Clone)]
pub struct Program {
    /// Its number.
    pub(crate) number: u32,
    /// Its category and name.
    pub name: ProgramName,
    /// Processes, ended ones included.
    pub processes: u64,
    /// Those that are alive.
    pub alive: u64,
    /// Threads of these processes, except the first of each.
    pub threads: u64,
    /// Successful execs.
    pub execs: u64,
    /// Sum of what its processes used.
    pub used: Usage,
    /// The part of their CPU time that was split by their tasks' own ticks.
    pub(crate) own: Own,
    /// CPU time in nanoseconds, lately.
    pub cpu: Recent,
    /// Failed look-ups.
    pub lookups_failed: u64,
}

/// All programs of a recording, in bounded memory.
#[derive(Debug, Clone)]
pub struct Programs {
    known: Vec<Program>,
    numbers: FastMap<ProgramName, u32>,
}

impl Default for Programs {
    fn default() -> Self {
        let mut programs = Self { known: Vec::new(), numbers: FastMap::default() };
        for name in ["(unknown)", "(others)"] {
            programs.number_of(&ProgramName { category: None, name: name.to_owned() });
        }
        programs
    }
}

impl Programs {
    pub(crate) fn number_of(&mut self, name: &ProgramName) -> u32 {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        if self.known.len() >= PROGRAMS_MAX {
            return OTHERS;
        }
        // Fits: there are fewer than PROGRAMS_MAX.
        let number = self.known.len() as u32;
        self.known.push(Program {
            number,
            name: name.clone(),
            processes: 0,
            alive: 0,
            threads: 0,
            execs: 0,
            used: Usage::default(),
            own: Own::default(),
            cpu: Recent::default(),
            lookups_failed: 0,
        });
        self.numbers.insert(name.clone(), number);
        number
    }

    pub(crate) fn get_mut(&mut self, number: u32) -> &mut Program {
        let at = (number as usize).min(self.known.len() - 1);
        &mut self.known[at]
    }

    /// The program with this number.
    pub fn get(&self, number: u32) -> Option<&Program> {
        self.known.get(number as usize)
    }

    /// Programs that occurred.
    pub fn iter(&self) -> impl Iterator<Item = &Program> {
        let occurred = |program: &&Program| {
            let Program { processes, execs, used, lookups_failed, .. } = program;
            [*processes, *execs, used.run_ns, *lookups_failed].iter().any(|number| *number > 0)
        };
        self.known.iter().filter(occurred)
    }

    /// All programs by number, those that did not occur as well.
    pub(crate) fn all(&self) -> &[Program] {
        &self.known
    }

    /// A process now runs another program.
    pub(crate) fn moves(&mut self, process: &Process, to: u32) {
        let program = self.get_mut(process.program);
        program.processes = program.processes.saturating_sub(1);
        program.alive = program.alive.saturating_sub(1);
        program.threads = program.threads.saturating_sub(process.threads_started);
        program.used = program.used.since(process.used);
        program.own = program.own.minus(process.own);
        program.cpu.leave(process.cpu);
        program.lookups_failed = program.lookups_failed.saturating_sub(process.lookups_failed);
        let program = self.get_mut(to);
        program.processes = program.processes.saturating_add(1);
        program.alive = program.alive.saturating_add(1);
        program.threads = program.threads.saturating_add(process.threads_started);
        program.used = program.used.plus(process.used);
        program.own = program.own.plus(process.own);
        program.cpu.join(process.cpu);
        program.lookups_failed = program.lookups_failed.saturating_add(process.lookups_failed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_bounded() {
        let mut programs = Programs::default();
        for number in 0..10_000 {
            let name = ProgramName { category: None, name: format!("p{number}") };
            let number = programs.number_of(&name);
            programs.get_mut(number).processes += 1;
        }
        assert_eq!(programs.known.len(), PROGRAMS_MAX);
        assert_eq!(programs.iter().map(|program| program.processes).sum::<u64>(), 10_000);
    }

    #[test]
    fn a_program_of_which_only_look_ups_are_known_occurred() {
        let mut programs = Programs::default();
        assert_eq!(programs.iter().count(), 0);
        programs.get_mut(UNKNOWN).lookups_failed = 3;
        assert_eq!(programs.iter().count(), 1);
    }
}
