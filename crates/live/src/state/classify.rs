//! Classification of the program that an exec ran.

use proctrace_wire::Exec;
use proctrace_wire::escape::to_text;
use proctrace_wire::layout::EXEC_WITHHELD;

/// The program that an exec ran, as it is summed up.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ProgramName {
    /// The category; None if nothing classifies programs.
    pub category: Option<String>,
    /// The name of the program or script.
    pub name: String,
}

/// A step of a workflow, as whoever coordinates the job names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepName {
    /// Its name.
    pub name: String,
    /// Position of the step that it is a part of, which comes before.
    pub parent: Option<u32>,
}

/// Names the program of an exec, and the steps of a workflow. Processes are known by the serials of their first tasks.
pub trait Classify {
    /// `spawner` is the program that the forking process was running, if known.
    fn classify(&mut self, exec: &Exec<'_>, spawner: Option<&ProgramName>) -> ProgramName;

    /// True if it tells steps.
    fn knows_steps(&self) -> bool {
        false
    }

    /// An environment, before the execs that have it.
    fn environment(&mut self, _id: u64, _block: &[u8]) {}

    /// A process is born.
    fn born(&mut self, _process: u32, _forker: Option<u32>) {}

    /// A process executes a program, at this time since 1970.
    fn step(&mut self, _exec: &Exec<'_>, _process: u32, _parent: Option<u32>, _unix_ns: u64) {}

    /// A process has ended.
    fn gone(&mut self, _process: u32) {}

    /// The innermost step that a process belongs to, by position.
    fn step_of(&self, _process: u32) -> Option<u32> {
        None
    }

    /// The step at a position; `None` beyond the last.
    fn named(&self, _step: u32) -> Option<StepName> {
        None
    }
}

/// Programs by the name of their file, without categories.
#[derive(Debug, Clone, Copy, Default)]
pub struct ByFile;

impl Classify for ByFile {
    fn classify(&mut self, exec: &Exec<'_>, _: Option<&ProgramName>) -> ProgramName {
        if exec.fixed.bits & EXEC_WITHHELD != 0 {
            return ProgramName { category: None, name: "(withheld)".to_owned() };
        }
        let path = exec.known_as();
        let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
        ProgramName { category: None, name: to_text(name).into_owned() }
    }
}
