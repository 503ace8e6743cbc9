//! A compilation database (compile_commands.json) of the compilers that ran.
//!
//! Compilers below another compiler, such as cc1 below gcc, gcc below ccache or nvcc, are part of its
//! call. What a tool could not use is left out and counted.

mod call;
mod names;

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Write};

use proctrace_findings::{TimelineItem, TimelineProcess, TimelineRun};
use serde::Serialize;

use self::call::CompilerCall;
use crate::json::Lines;
use crate::{Viewer, Written};

/// Number of levels above a compiler at which another one is looked for.
const LEVELS_MAX: usize = 32;

pub(crate) struct CompileCommands<W> {
    out: W,
    entries: Lines,
    processes: Vec<Process>,
    /// Hashes of the entries.
    seen: HashSet<u64>,
    left_out: LeftOut,
}

/// State kept of each process.
struct Process {
    parent: Option<u32>,
    begin_ns: u64,
    /// Time at which it first ran a compiler.
    compiles_from_ns: Option<u64>,
}

/// Compilers that ran and are not in the file.
#[derive(Default)]
struct LeftOut {
    no_arguments: u64,
    cut: u64,
    no_directory: u64,
    not_utf8: u64,
    repeated: u64,
    assembler: u64,
    fortran: u64,
    response_files: u64,
}

/// An entry of the database.
#[derive(Serialize)]
struct Entry<'a> {
    directory: &'a str,
    file: &'a str,
    arguments: &'a [&'a str],
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<&'a str>,
}

impl<W: Write> CompileCommands<W> {
    pub(crate) fn begin(mut out: W) -> io::Result<Self> {
        out.write_all(b"[")?;
        Ok(Self {
            out,
            entries: Lines::default(),
            processes: Vec::new(),
            seen: HashSet::new(),
            left_out: LeftOut::default(),
        })
    }

    fn process(&mut self, of: &TimelineProcess<'_>) {
        let parent = of.forker.map(|forker| forker.process);
        self.processes.push(Process { parent, begin_ns: of.begin_ns, compiles_from_ns: None });
    }

    fn run(&mut self, run: &TimelineRun<'_>) -> io::Result<()> {
        let first = run.arguments.and_then(|arguments| arguments.first());
        let Some(arguments) = run.arguments.filter(|_| first.is_some()) else {
            self.left_out.no_arguments += u64::from(names::is_compiler(run.exe));
            return Ok(());
        };
        let Some(arguments) = names::compiler_call(arguments, run.exe) else { return Ok(()) };
        if self.is_below_compiler(run) {
            return Ok(());
        }
        if let Some(process) = self.processes.get_mut(run.process as usize) {
            process.compiles_from_ns.get_or_insert(run.begin_ns);
        }
        let Some(mut call) = CompilerCall::of(arguments, names::is_of_clang(&arguments[0])) else {
            return Ok(());
        };
        if names::is_of_fortran(&arguments[0]) {
            let sources: Vec<usize> = call.sources.drain(..).map(|(at, _)| at).collect();
            call.fortran.extend(sources);
        }
        self.left_out.assembler += call.assembler.len() as u64;
        self.left_out.fortran += call.fortran.len() as u64;
        if call.sources.is_empty() {
            // It may only link. Which files it compiles, if any, is known to nobody but the compiler.
            let is_of_file = call.has_response_file && call.files().next().is_none();
            self.left_out.response_files += u64::from(is_of_file);
            return Ok(());
        }
        if run.arguments_cut {
            self.left_out.cut += 1;
        } else if run.cwd.is_empty() {
            self.left_out.no_directory += 1;
        } else {
            self.entries(run.cwd, arguments, &call)?;
        }
        Ok(())
    }

    /// True if the process, or one above it at the time of the fork, was in a compiler already.
    fn is_below_compiler(&self, run: &TimelineRun<'_>) -> bool {
        let (mut at, mut time_ns) = (Some(run.process), run.begin_ns);
        for _ in 0..LEVELS_MAX {
            let process = at.and_then(|at| self.processes.get(at as usize));
            let Some(process) = process else { return false };
            if process.compiles_from_ns.is_some_and(|from_ns| from_ns <= time_ns) {
                return true;
            }
            (at, time_ns) = (process.parent, process.begin_ns);
        }
        false
    }

    /// One entry for each source file, without the others: tools expect one compilation in each.
    fn entries(
        &mut self,
        cwd: &[u8],
        arguments: &[Vec<u8>],
        call: &CompilerCall<'_>,
    ) -> io::Result<()> {
        for (at, source) in &call.sources {
            let file = absolute(cwd, source);
            let is_other = |place: usize| place != *at && call.files().any(|other| other == place);
            let own = arguments.iter().enumerate().filter(|(place, _)| !is_other(*place));
            let words: Option<Vec<&str>> =
                own.map(|(_, word)| std::str::from_utf8(word).ok()).collect();
            let texts = (words, std::str::from_utf8(cwd).ok(), std::str::from_utf8(&file).ok());
            let (Some(words), Some(directory), Some(file)) = texts else {
                self.left_out.not_utf8 += 1;
                continue;
            };
            let output = call.output.and_then(|output| std::str::from_utf8(output).ok());
            let mut hasher = DefaultHasher::new();
            (directory, file, &words).hash(&mut hasher);
            if !self.seen.insert(hasher.finish()) {
                self.left_out.repeated += 1;
                continue;
            }
            let entry = Entry { directory, file, arguments: &words, output };
            self.entries.push(&mut self.out, &entry)?;
        }
        Ok(())
    }
}

/// The path of a source file, which the compiler looks up in its working directory.
fn absolute(cwd: &[u8], source: &[u8]) -> Vec<u8> {
    if source.starts_with(b"/") {
        return source.to_vec();
    }
    let slash: &[u8] = if cwd.ends_with(b"/") { b"" } else { b"/" };
    [cwd, slash, source].concat()
}

impl LeftOut {
    fn notes(&self) -> Vec<String> {
        let counts = [
            (self.no_arguments, "their arguments were not recorded"),
            (self.cut, "arguments are missing from the recording"),
            (self.no_directory, "their directory is not known"),
            (self.not_utf8, "their arguments or directory are not UTF-8"),
            (self.repeated, "they repeat another one"),
            (self.assembler, "they are in assembler"),
            (self.fortran, "they are in Fortran"),
            (self.response_files, "their arguments are in response files (@FILE)"),
        ];
        let counts = counts.into_iter().filter(|(count, _)| *count > 0);
        counts.map(|(count, why)| format!("{count} left out because {why}")).collect()
    }
}

impl<W: Write> Viewer for CompileCommands<W> {
    fn take(&mut self, item: &TimelineItem<'_>) -> io::Result<()> {
        match item {
            TimelineItem::Process(process) => {
                self.process(process);
                Ok(())
            }
            TimelineItem::Run(run) => self.run(run),
            _ => Ok(()),
        }
    }

    fn finish(mut self: Box<Self>) -> io::Result<Written> {
        self.out.write_all(b"\n]\n")?;
        self.out.flush()?;
        let names = ("compilation", "compilations");
        Ok(Written { items: self.entries.written, names, notes: self.left_out.notes() })
    }
}

#[cfg(test)]
mod tests;
