//! `proctrace show`: everything about one process, or about a program.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, bail};
use proctrace_analysis::{Recording, Wanted, show};
use proctrace_findings::{Candidate, Shown};
use proctrace_record::nanoseconds;
use proctrace_report::{candidates_text, process_text, program_text};

use crate::args::{DEFAULT_TRACE, InspectFormat, RulesArgs, ShowArgs, parse_duration};
use crate::exit_code::{self, Misuse};
use crate::waiting::during;
use crate::{incomplete, print, rules};

pub(crate) fn run(args: &ShowArgs) -> Result<ExitCode> {
    let (wanted, trace) = asked(args)?;
    let recording = load(&trace, &args.rules)?;
    let shown = during("looking it up", || show(&recording, &trace, &wanted))?;
    let style = print::style((!args.all).then_some(args.top));
    match &shown {
        Shown::Candidates(candidates) => choose_one(candidates, args.format, style),
        Shown::Process(process) => answer(args.format, &shown, || process_text(process, style)),
        Shown::Program(program) => answer(args.format, &shown, || program_text(program, style)),
    }
}

/// Reads a trace, and warns if it is incomplete. It is never dropped, since the process ends with it.
pub(crate) fn load(trace: &Path, rules: &RulesArgs) -> Result<std::mem::ManuallyDrop<Recording>> {
    let recording = std::mem::ManuallyDrop::new(rules::load(trace, rules)?);
    incomplete::warn(trace, &recording);
    Ok(recording)
}

/// The same for questions that need no look-ups.
pub(crate) fn load_lives(
    trace: &Path,
    rules: &RulesArgs,
) -> Result<std::mem::ManuallyDrop<Recording>> {
    let recording = std::mem::ManuallyDrop::new(rules::load_lives(trace, rules)?);
    incomplete::warn(trace, &recording);
    Ok(recording)
}

/// Lists the processes that a pid may mean; which is an error in the arguments.
pub(crate) fn choose_one(
    candidates: &[Candidate],
    format: InspectFormat,
    style: proctrace_report::Style,
) -> Result<ExitCode> {
    let all = Shown::Candidates(candidates.to_vec());
    answer(format, &all, || candidates_text(candidates, style))?;
    Ok(exit_code::USAGE.into())
}

fn answer(format: InspectFormat, shown: &Shown, text: impl FnOnce() -> String) -> Result<ExitCode> {
    print::answer(format == InspectFormat::Json, shown, text)
}

/// Whom, and in which trace. With --serial, the only other argument is the trace.
fn asked(args: &ShowArgs) -> Result<(Wanted, PathBuf)> {
    match (args.serial, &args.who) {
        (None, Some(who)) => {
            let is_file = args.trace == Path::new(DEFAULT_TRACE) && Path::new(who).is_file();
            if is_file && who.contains(['/', '.']) {
                let why = "is a file where a pid or a program is expected";
                bail!(Misuse(format!("{who} {why}: use proctrace show PID {who}")));
            }
            Ok((wanted(who)?, args.trace.clone()))
        }
        (Some(serial), Some(trace)) if args.trace == Path::new(DEFAULT_TRACE) => {
            Ok((Wanted::Serial(serial), trace.into()))
        }
        (Some(_), Some(_)) => {
            bail!(Misuse("--serial replaces the pid or the program: give one of them".to_owned()))
        }
        (Some(serial), None) => Ok((Wanted::Serial(serial), args.trace.clone())),
        (None, None) => bail!(Misuse("a pid or the name of a program is missing".to_owned())),
    }
}

/// A pid, a pid and a time, or the name of a program.
pub(crate) fn wanted(who: &str) -> Result<Wanted> {
    if let Ok(pid) = who.parse() {
        return Ok(Wanted::Pid { pid, at_ns: None });
    }
    if let Some((pid, time)) = who.split_once('@')
        && let Ok(pid) = pid.parse()
    {
        let at = parse_duration(time).map_err(|error| Misuse(format!("{who}: {error}")))?;
        return Ok(Wanted::Pid { pid, at_ns: Some(nanoseconds(at)) });
    }
    Ok(Wanted::Program(who.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pids_times_and_names_are_told_apart() {
        let of = |who| wanted(who).ok();
        let pid = |at_ns| Some(Wanted::Pid { pid: 13971, at_ns });
        assert_eq!(of("13971"), pid(None));
        assert_eq!(of("13971@2.5s"), pid(Some(2_500_000_000)));
        assert_eq!(of("13971@2.5"), None);
        assert_eq!(of("g++-12"), Some(Wanted::Program("g++-12".to_owned())));
        assert_eq!(of("getty@tty1"), Some(Wanted::Program("getty@tty1".to_owned())));
    }
}
