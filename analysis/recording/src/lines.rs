//! Command lines as they were: of one process, and of several that differ in their numbers.
//!
//! A template stands for all command lines that differ only in numbers and random characters. It is good to count by,
//! and nothing that somebody can look for or run again: `sh ./n#.sh` is no script. So the command lines of the first
//! programs that ran are kept, and of each template one.

use std::collections::BTreeSet;

use proctrace_classify::names::Names;

use crate::Recording;
use crate::process::Process;

/// Program runs whose command lines are kept: the names of a job's parts are among the first. It bounds the memory
/// to 11 MB, twice that while they are gathered, if all are long and different.
const RUNS_MAX: usize = 1 << 16;
/// Different lines that are compared with each other.
const COMPARED_MAX: usize = 64;

/// Command lines, escaped and with single spaces, cut like templates.
#[derive(Debug, Default)]
pub struct Lines {
    lines: Vec<String>,
    /// Lines by the number of the program run, for the first of them.
    of_run: Vec<u32>,
    /// The first of each template, by the template's number.
    examples: Vec<String>,
}

/// [`Lines`] while they are gathered.
#[derive(Debug, Default)]
pub struct Gathered {
    lines: Names,
    of_run: Vec<u32>,
    examples: Vec<String>,
}

impl Gathered {
    /// True if the line of the next program run is kept.
    pub fn wants(&self, template: u32) -> bool {
        self.of_run.len() < RUNS_MAX || template as usize >= self.examples.len()
    }

    /// Keeps the line of a program run, as that of its template if it is the first.
    pub fn keep(&mut self, template: u32, line: &str) {
        if template as usize == self.examples.len() {
            self.examples.push(line.to_owned());
        }
        if self.of_run.len() < RUNS_MAX {
            let number = self.lines.number_of(line);
            self.of_run.push(number);
        }
    }

    pub fn done(self) -> Lines {
        Lines { lines: self.lines.into_inner(), of_run: self.of_run, examples: self.examples }
    }
}

impl Recording {
    /// The command line that a process ran last, as it was; as that of another one of the same template if
    /// it was not kept. Empty if none was recorded.
    pub fn line_of(&self, process: &Process) -> &str {
        process.run().map_or("", |run| self.line_of_run(run))
    }

    /// The command line of a program run, likewise.
    pub fn line_of_run(&self, run: u32) -> &str {
        let kept = self.lines.of_run.get(run as usize);
        let line = kept.and_then(|number| self.lines.lines.get(*number as usize));
        line.map_or_else(
            || self.runs.get(run as usize).map_or("", |run| self.example_of(run.template)),
            String::as_str,
        )
    }

    /// A command line of this template, as it was.
    pub fn example_of(&self, template: u32) -> &str {
        self.lines.examples.get(template as usize).map_or("", String::as_str)
    }

    /// One line for each template for all that ran with it.
    pub fn lines_of_templates(&self) -> Vec<String> {
        let mut distinct: Vec<Distinct> = vec![Distinct::default(); self.templates.len()];
        for (at, run) in self.runs.iter().enumerate() {
            if let Some(distinct) = distinct.get_mut(run.template as usize) {
                distinct.add_run(self, at);
            }
        }
        distinct.iter().zip(0..).map(|(lines, at)| self.line_of_all(at, lines)).collect()
    }

    /// One line for several processes of one template: its words as they were where all have the same.
    pub fn line_of_all(&self, template: u32, distinct: &Distinct) -> String {
        let Some(text) = self.templates.get(template as usize) else { return String::new() };
        if !distinct.is_whole {
            return text.clone();
        }
        let line = |number: &u32| self.lines.lines.get(*number as usize).map(String::as_str);
        together(text, &distinct.lines.iter().filter_map(line).collect::<Vec<_>>())
    }
}

/// The different command lines of several processes.
#[derive(Debug, Clone)]
pub struct Distinct {
    /// Their numbers.
    lines: BTreeSet<u32>,
    /// True if these are all.
    is_whole: bool,
}

impl Default for Distinct {
    fn default() -> Self {
        Self { lines: BTreeSet::new(), is_whole: true }
    }
}

impl Distinct {
    /// Adds the line that a process ran last.
    pub fn add(&mut self, recording: &Recording, process: &Process) {
        self.add_run(recording, process.run().map_or(usize::MAX, |run| run as usize));
    }

    fn add_run(&mut self, recording: &Recording, run: usize) {
        match recording.lines.of_run.get(run) {
            Some(number) if self.lines.len() < COMPARED_MAX => {
                self.lines.insert(*number);
            }
            Some(number) => self.is_whole &= self.lines.contains(number),
            None => self.is_whole = false,
        }
    }
}

/// The words that all lines have, and those of their template in the other places.
fn together(template: &str, lines: &[&str]) -> String {
    let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let mut template = words(template);
    let lines: Vec<Vec<String>> = lines.iter().map(|line| words(line)).collect();
    let Some((first, others)) = lines.split_first() else { return template.join(" ") };
    // A long line ends where its template did not.
    if lines.iter().any(|line| line.len() != template.len()) {
        return if others.is_empty() { first.join(" ") } else { template.join(" ") };
    }
    for (at, word) in template.iter_mut().enumerate() {
        if others.iter().all(|line| line[at] == first[at]) {
            word.clone_from(&first[at]);
        }
    }
    template.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_stands_only_where_lines_differ() {
        let of = |lines: &[&str]| together("sh ./n#.sh -j# out#", lines);
        assert_eq!(of(&["sh ./n1.sh -j2 out7"]), "sh ./n1.sh -j2 out7");
        assert_eq!(of(&["sh ./n1.sh -j2 out7", "sh ./n2.sh -j2 out7"]), "sh ./n#.sh -j2 out7");
        assert_eq!(of(&[]), "sh ./n#.sh -j# out#");
    }

    #[test]
    fn lines_are_kept_for_as_many_runs_as_there_is_room() {
        let mut gathered = Gathered::default();
        for at in 0..RUNS_MAX + 10 {
            assert_eq!(gathered.wants(0), at < RUNS_MAX, "{at}");
            gathered.keep(0, &format!("true {at}"));
        }
        assert!(gathered.wants(1));
        gathered.keep(1, "false 7");
        let lines = gathered.done();
        assert_eq!((lines.of_run.len(), lines.lines.len()), (RUNS_MAX, RUNS_MAX));
        assert_eq!(lines.examples, ["true 0", "false 7"]);
    }
}
