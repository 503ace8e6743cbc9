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

/// Names the program of an exec.
pub trait Classify {
    /// `spawner` is the program that the forking process was running, if known.
    fn classify(&mut self, exec: &Exec<'_>, spawner: Option<&ProgramName>) -> ProgramName;
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
