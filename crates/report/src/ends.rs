//! Ends of processes, in a line of the summary.

use std::fmt::Write as _;

use proctrace_findings::{EndStep, Ends, Outcome, ProgramEnd, time};

use crate::escape::terminal;
use crate::fit::columns;
use crate::number::count;
use crate::table::shorten;

/// Maximum number of outcomes named in the summary, for signals and for other outcomes each.
const NAMED: usize = 3;
/// Maximum length of a program's name there.
const NAME_WIDTH: usize = 16;

/// Maximum columns of a path in the cause: a word that fits into a line of the summary.
const PATH_WIDTH: usize = 56;

/// Lines of the summary, wrapped to `width`; None if all processes exited with 0 or nothing is
/// known.
pub(crate) fn summary(ends: &Ends, width: usize) -> Option<String> {
    let mut parts = Vec::new();
    if ends.signalled > 0 {
        let killed = format!("{} killed by a signal", count(ends.signalled));
        let of_signals = |end: &&ProgramEnd| matches!(end.outcome, Outcome::Signal(_));
        parts.push(with_names(killed, ends, of_signals, width));
    }
    if ends.failed > 0 {
        let failed = format!("{} exited with a non-zero status", count(ends.failed));
        let of_codes = |end: &&ProgramEnd| matches!(end.outcome, Outcome::Code(_));
        parts.push(with_names(failed, ends, of_codes, width));
    }
    (!parts.is_empty()).then(|| parts.join(" · "))
}

/// Cause of the command's failure, in one sentence; None if it did not, or alone and by its own
/// decision.
pub(crate) fn cause(ends: &Ends) -> Option<String> {
    let (first, rest) = ends.cause.split_first()?;
    if rest.is_empty() && first.sent_by.is_none() && first.last_failed.is_none() {
        return None;
    }
    let name = |step: &EndStep| shorten(&terminal(&step.program), PATH_WIDTH);
    let mut text = match (&first.sent_by, first.how.strip_prefix("exit ")) {
        (Some(by), None) => {
            format!("{} (pid {}) was ended by {}", name(first), first.pid, first.how)
                + &format!(" from {}", terminal(by))
        }
        (Some(by), Some(code)) => {
            format!("{} (pid {}) exited with {code}", name(first), first.pid)
                + &format!(" after a signal from {}", terminal(by))
        }
        (None, None) => format!("{} (pid {}) was ended by {}", name(first), first.pid, first.how),
        (None, Some(code)) => format!("{} (pid {}) exited with {code}", name(first), first.pid),
    };
    if let Some(time_ns) = first.time_ns {
        let _ = write!(text, " at {}", time(time_ns));
    }
    if !rest.is_empty() {
        let same = |one: &EndStep, next: &EndStep| {
            (&one.program, &one.how, one.is_certain, &one.last_failed)
                == (&next.program, &next.how, next.is_certain, &next.last_failed)
        };
        let followed = rest.chunk_by(same).map(|steps| {
            let likely = if steps[0].is_certain { "" } else { "probably " };
            let times = match steps.len() {
                1 => String::new(),
                several => format!(" ×{}", count(several as u64)),
            };
            let own = steps[0].last_failed.as_ref().map_or_else(String::new, |last| {
                let path = shorten(&terminal(&last.path), PATH_WIDTH);
                format!(", or because of {} {path} ({})", last.call, last.error)
            });
            format!("{likely}{}{times} ({}{own})", name(&steps[0]), steps[0].how)
        });
        let _ = write!(text, "; because of it {}", followed.collect::<Vec<_>>().join(", "));
    }
    if let Some(last) = &first.last_failed {
        let (call, path) = (last.call, terminal(&last.path));
        let before = time(last.before_ns);
        let is_search = first.how == "exit 127" && last.error == "ENOENT";
        let shown = shorten(&path, PATH_WIDTH);
        let _ = match path.rsplit('/').next().filter(|_| is_search) {
            // 127: a shell did not find the command (POSIX), or a linker not the library. If the kernel does not find the
            // interpreter of a script, that is the same error (execve(2)).
            Some(name) => {
                let or = if call == "exec" { " or its interpreter" } else { "" };
                let name = shorten(name, PATH_WIDTH);
                write!(text, "; not found: {name}{or}, last tried as {shown}")
            }
            None => {
                let what = if call == "exec" { "tried last" } else { "last failed look-up" };
                write!(text, "; {what}: {call} {shown} ({}), {before} before", last.error)
            }
        };
    }
    Some(text)
}

/// Appends as many of the most severe outcomes as fit: "(cc1 SIGSEGV ×2 with core dump, python3
/// SIGKILL, …)".
fn with_names(
    text: String,
    ends: &Ends,
    wanted: impl Fn(&&ProgramEnd) -> bool,
    width: usize,
) -> String {
    let all: Vec<&ProgramEnd> = ends.by_program.iter().filter(|end| wanted(end)).collect();
    for shown in (1..=NAMED.min(all.len())).rev() {
        let mut names: Vec<String> = all[..shown].iter().map(|end| name(end)).collect();
        if shown < all.len() {
            names.push("…".to_owned());
        }
        let whole = format!("{text} ({})", names.join(", "));
        if columns(&whole) <= width {
            return whole;
        }
    }
    text
}

fn name(end: &ProgramEnd) -> String {
    let how = match end.outcome {
        Outcome::Code(code) => code.to_string(),
        Outcome::Signal(_) => end.how.clone(),
    };
    let mut text = format!("{} {how}", shorten(&terminal(&end.program), NAME_WIDTH));
    if end.processes > 1 {
        // Writing to a String cannot fail.
        let _ = write!(text, " ×{}", count(end.processes));
    }
    if end.core_dumps > 0 {
        text.push_str(" with core dump");
    }
    text
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proctrace_findings::LastFailed;

    fn end(program: &str, outcome: Outcome, processes: u64) -> ProgramEnd {
        ProgramEnd {
            program: program.into(),
            outcome,
            how: outcome.name().into_owned(),
            processes,
            core_dumps: 0,
            example_pid: 4711,
            example_parent: "make".into(),
        }
    }

    /// Ends in which every number is about `n`.
    pub(crate) fn extreme(name: &str, n: u64) -> Ends {
        let of = |outcome| {
            let mut end = end(name, outcome, n);
            end.core_dumps = n;
            end
        };
        let by_program = (1..9).flat_map(|n| [of(Outcome::Signal(n)), of(Outcome::Code(n))]);
        Ends {
            succeeded: n,
            failed: n,
            signalled: n,
            core_dumps: n,
            unknown: n,
            by_program: by_program.collect(),
            ..Ends::default()
        }
    }

    #[test]
    fn the_worst_are_named() {
        let mut ends = Ends {
            succeeded: 9,
            failed: 14,
            signalled: 3,
            core_dumps: 1,
            unknown: 0,
            by_program: vec![
                end("cc1", Outcome::Signal(11), 2),
                end("python3", Outcome::Signal(9), 1),
                end("sh", Outcome::Code(7), 1),
                end("cc", Outcome::Code(1), 1),
                end("grep", Outcome::Code(1), 11),
                end("test", Outcome::Code(1), 1),
            ],
            ..Ends::default()
        };
        ends.by_program[0].core_dumps = 1;
        assert_eq!(
            summary(&ends, 80).unwrap(),
            "3 killed by a signal (cc1 SIGSEGV ×2 with core dump, python3 SIGKILL) · \
             14 exited with a non-zero status (sh 7, cc 1, grep 1 ×11, …)"
        );
        // Fewer are named if space is short.
        assert_eq!(
            summary(&ends, 59).unwrap(),
            "3 killed by a signal (cc1 SIGSEGV ×2 with core dump, …) · \
             14 exited with a non-zero status (sh 7, cc 1, …)"
        );
        assert_eq!(
            summary(&ends, 40).unwrap(),
            "3 killed by a signal · 14 exited with a non-zero status"
        );
        assert_eq!(summary(&Ends { succeeded: 3, unknown: 2, ..Ends::default() }, 80), None);
    }

    fn step(program: &str, how: &str, sent_by: Option<&str>) -> EndStep {
        EndStep {
            time_ns: Some(12_400_000_000),
            pid: 71,
            program: program.into(),
            how: how.into(),
            is_certain: program != "job",
            sent_by: sent_by.map(str::to_owned),
            last_failed: None,
        }
    }

    #[test]
    fn the_cause_is_a_sentence() {
        let of = |cause| self::cause(&Ends { cause, ..Ends::default() });
        let oom = step("cc1", "SIGKILL", Some("the out-of-memory killer"));
        assert_eq!(
            of(vec![oom, step("gcc", "exit 4", None), step("make", "exit 2", None)]).unwrap(),
            "cc1 (pid 71) was ended by SIGKILL from the out-of-memory killer at 12.4 s; because of \
             it gcc (exit 4), make (exit 2)"
        );
        assert_eq!(
            of(vec![step("gcc", "exit 1", None), step("job", "exit 1", None)]).unwrap(),
            "gcc (pid 71) exited with 1 at 12.4 s; because of it probably job (exit 1)"
        );
        let deep = vec![step("make", "exit 2", None); 6];
        assert_eq!(
            of([vec![step("gcc", "exit 1", None)], deep].concat()).unwrap(),
            "gcc (pid 71) exited with 1 at 12.4 s; because of it make ×6 (exit 2)"
        );
        let handled = step("job", "exit 143", Some("batchd (pid 5)"));
        assert_eq!(
            of(vec![handled]).unwrap(),
            "job (pid 71) exited with 143 after a signal from batchd (pid 5) at 12.4 s"
        );
        assert_eq!(of(vec![step("false", "exit 1", None)]), None);
        let path = format!("/scratch/{}/settings.conf", "long-name/".repeat(20));
        let last_failed =
            LastFailed { call: "open", path, error: "ENOENT".into(), before_ns: 1000 };
        let missed = EndStep { last_failed: Some(last_failed), ..step("sim", "exit 1", None) };
        let said = of(vec![missed]).unwrap();
        assert!(said.contains("/settings.conf (ENOENT), 1 µs before"), "{said}");
        assert!(said.split(' ').all(|word| columns(word) <= PATH_WIDTH), "{said}");
        assert_eq!(of(Vec::new()), None);
    }
}
