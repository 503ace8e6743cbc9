//! A process that is alive or has ended lately: what is known of it.

use proctrace_replay::ticks::Own;
use proctrace_wire::Exec;
use proctrace_wire::escape::to_text;
use proctrace_wire::layout::EXEC_WITHHELD;

use super::rates::Recent;
use proctrace_replay::Usage;

/// Bytes of a command line that are kept.
const COMMAND_MAX: usize = 4096;

/// Directories that are counted for each process.
const SEARCHED_MAX: usize = 12;

/// A process, named by the serial of its first task.
pub type Process = proctrace_lineage::Process<Life>;

/// Knowledge about a process besides its relatives.
#[derive(Debug, Clone, Default)]
pub struct Life {
    /// Time at which it began.
    pub started_ns: u64,
    /// The number of its program.
    pub program: u32,
    /// The number of the program that its forker was running.
    pub(crate) spawner: Option<u32>,
    /// The innermost step of the workflow that it belongs to, by position.
    pub step: Option<u32>,
    /// Its name: that of the file, or the one it gave itself.
    pub comm: [u8; 16],
    /// Command that it executed last; None if it has only forked.
    pub command: Option<Box<CommandLine>>,
    /// Threads that it started, its first not counted.
    pub threads_started: u64,
    /// Processes that it started.
    pub children_started: u64,
    /// Programs that it executed.
    pub execs: u64,
    /// Sum of what its tasks used, while it was recorded.
    pub used: Usage,
    /// The part of its CPU time that was split by its tasks' own ticks.
    pub(crate) own: Own,
    /// CPU time in nanoseconds, lately.
    pub cpu: Recent,
    /// Resident memory at the last sample; None if it was never sampled.
    pub rss_bytes: Option<u64>,
    /// State of the task that was sampled last, as in /proc/PID/stat.
    pub state: Option<char>,
    /// Failed look-ups.
    pub lookups_failed: u64,
    /// Number of a directory, and failed look-ups in it.
    pub(crate) searched: Vec<(u32, u64)>,
    /// The directories that the numbers are valid for.
    pub(crate) searched_in: u32,
    /// Its peak RSS, known when it has ended.
    pub maxrss_bytes: Option<u64>,
}

/// The command of an exec.
#[derive(Debug, Clone, Default)]
pub struct CommandLine {
    /// The path as given to execve.
    pub path: Vec<u8>,
    /// The executable.
    pub exe: Vec<u8>,
    /// The working directory.
    pub cwd: Vec<u8>,
    /// The first arguments, each with its NUL.
    pub argv: Vec<u8>,
    /// True if there are more.
    pub is_cut: bool,
    /// True if the recorder's user may not see it.
    pub is_withheld: bool,
}

impl CommandLine {
    pub(crate) fn of(exec: &Exec<'_>) -> Self {
        let argv = &exec.argv[..exec.argv.len().min(COMMAND_MAX)];
        Self {
            path: exec.path.to_vec(),
            exe: exec.exe.to_vec(),
            cwd: exec.cwd.to_vec(),
            argv: argv.to_vec(),
            is_cut: argv.len() < exec.fixed.argv_bytes as usize,
            is_withheld: exec.fixed.bits & EXEC_WITHHELD != 0,
        }
    }

    /// Cuts every string to this many bytes.
    fn shrink(&mut self, bytes_max: usize) {
        for path in [&mut self.path, &mut self.exe, &mut self.cwd] {
            if path.len() > bytes_max {
                path.truncate(bytes_max);
                path.extend("…".as_bytes());
            }
            path.shrink_to_fit();
        }
        self.is_cut |= self.argv.len() > bytes_max;
        self.argv.truncate(bytes_max);
        self.argv.shrink_to_fit();
    }

    /// The arguments, separated by spaces.
    pub fn text(&self) -> String {
        if self.is_withheld {
            return "(withheld)".to_owned();
        }
        if self.argv.is_empty() {
            return to_text(&self.path).into_owned();
        }
        let argv = self.argv.strip_suffix(b"\0").unwrap_or(&self.argv);
        let words: Vec<_> = argv.split(|byte| *byte == 0).map(to_text).collect();
        let mut text = words.join(" ");
        if self.is_cut {
            text.push_str(" …");
        }
        text
    }
}

impl Life {
    /// Its command line, or its name in parentheses if it never executed anything.
    pub fn title(&self) -> String {
        match &self.command {
            Some(command) => command.text(),
            None => format!("({})", self.name()),
        }
    }

    /// Its name.
    pub fn name(&self) -> String {
        let end = self.comm.iter().position(|byte| *byte == 0).unwrap_or(self.comm.len());
        to_text(&self.comm[..end]).into_owned()
    }

    /// Keeps at most so many bytes of each string.
    pub(crate) fn shrink(&mut self, bytes_max: usize) {
        if let Some(command) = &mut self.command {
            command.shrink(bytes_max);
        }
    }

    /// Counts a failed look-up in a directory. Of many directories, those that came first are
    /// counted; `lookups_failed` counts all.
    pub(crate) fn searched_in_vain(&mut self, directory: u32, generation: u32) {
        self.lookups_failed = self.lookups_failed.saturating_add(1);
        if self.searched_in != generation {
            self.searched.clear();
            self.searched_in = generation;
        }
        if let Some((_, count)) = self.searched.iter_mut().find(|(known, _)| *known == directory) {
            *count = count.saturating_add(1);
        } else if self.searched.len() < SEARCHED_MAX {
            self.searched.push((directory, 1));
        }
    }
}
