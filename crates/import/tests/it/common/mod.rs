//! Contents of an imported log, counted record by record.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Cursor, Read};
use std::path::Path;
use std::process::{Command, Stdio};

use proctrace_import::{ImportError, Imported, Log, strace};
use proctrace_wire::{Frames, Record, Stream};

/// Counts that are the same in every log of one deterministic program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) unborn: u64,
    pub(crate) processes: u64,
    pub(crate) threads: u64,
    pub(crate) renames: u64,
    /// Executed paths with their arguments.
    pub(crate) execs: BTreeMap<Vec<u8>, u64>,
    pub(crate) execs_failed: BTreeMap<Vec<u8>, u64>,
    /// Status and whether it is the end of a process.
    pub(crate) exits: BTreeMap<(u32, bool), u64>,
    pub(crate) lookups_failed: u64,
    pub(crate) opened: u64,
    /// Paths before and since of renames.
    pub(crate) moved: BTreeSet<[String; 2]>,
    /// Paths of look-ups and opens.
    pub(crate) paths: BTreeSet<String>,
}

impl Counts {
    fn take(&mut self, record: Record<'_>) {
        match record {
            Record::Attach(_) => self.unborn += 1,
            Record::Fork(fork) if !fork.is_thread() => self.processes += 1,
            Record::Fork(_) => self.threads += 1,
            Record::Rename(_) => self.renames += 1,
            Record::Exec(exec) => {
                let key = [exec.path, b" ", exec.argv].concat();
                *self.execs.entry(key).or_default() += 1;
            }
            Record::ExecFailed(_, path) => {
                *self.execs_failed.entry(path.to_vec()).or_default() += 1;
            }
            Record::Exit(exit) => {
                // A thread's status is that of its process only at its end.
                let is_process = exit.bits & proctrace_wire::layout::EXIT_PROCESS != 0;
                let status = if is_process { exit.status } else { 0 };
                *self.exits.entry((status, is_process)).or_default() += 1;
            }
            Record::LookupNamed(_, path) => {
                self.lookups_failed += 1;
                self.paths.insert(String::from_utf8_lossy(path).into_owned());
            }
            Record::OpenedNamed(_, path) => {
                self.opened += 1;
                self.paths.insert(String::from_utf8_lossy(path).into_owned());
            }
            Record::Moved(_, from, path) => {
                let text = |path| String::from_utf8_lossy(path).into_owned();
                self.moved.insert([text(from), text(path)]);
            }
            Record::LookupAgain(_) => self.lookups_failed += 1,
            Record::OpenedAgain(_) => self.opened += 1,
            _ => {}
        }
    }

    pub(crate) fn executed(&self) -> u64 {
        self.execs.values().sum()
    }

    /// The same without paths, which some options show in another form.
    pub(crate) fn without_paths(&self) -> Self {
        Self { paths: BTreeSet::new(), moved: BTreeSet::new(), ..self.clone() }
    }
}

/// Imports the texts of logs, with the tasks that their names tell.
pub(crate) fn import(texts: &[(Vec<u8>, Option<i32>)]) -> Result<(Counts, Imported), ImportError> {
    let log = |(text, pid): &(Vec<u8>, Option<i32>)| {
        let text = text.clone();
        let open = move || Ok(Box::new(Cursor::new(text.clone())) as Box<dyn Read>);
        Log { name: "log".to_owned(), pid: *pid, open: Box::new(open) }
    };
    let mut counts = Counts::default();
    let imported = strace(texts.iter().map(log).collect(), &mut |_: Stream, _, bytes| {
        counts.take(Record::decode(Frames::new(bytes).next().unwrap().unwrap()).unwrap());
        Ok(())
    })?;
    Ok((counts, imported))
}

/// The same of one log.
pub(crate) fn import_one(text: &[u8]) -> (Counts, Imported) {
    import(&[(text.to_vec(), None)]).unwrap_or_else(|error| panic!("{error}"))
}

/// Runs a program under strace; returns its log, or that of stderr without `into_file`. `None` if this strace has no such
/// option.
pub(crate) fn strace_of(
    options: &[&str],
    into_file: bool,
    program: &Path,
    arguments: &[&str],
) -> Option<Vec<u8>> {
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("log");
    let mut command = Command::new("strace");
    command.args(options).env_remove("LD_LIBRARY_PATH").current_dir(directory.path());
    if into_file {
        command.arg("-o").arg(&log);
    }
    let output = command
        .arg(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .output()
        .expect("strace is here: cargo xtask setup");
    let said = String::from_utf8_lossy(&output.stderr);
    let refusals = ["invalid option", "unrecognized option", "not supported by this build"];
    if refusals.iter().any(|refusal| said.contains(refusal)) {
        return None;
    }
    assert!(output.status.success(), "{options:?}: {said}");
    Some(if into_file { std::fs::read(log).unwrap() } else { output.stderr })
}
