//! Phases: what happened between the marks of the payload, altogether and by program and directory.

use std::cmp::Reverse;

use proctrace_findings::{Figure, Health, MarkedPhase, Table, Unit, Values, counted};
use proctrace_overview::options::{Content, Options};
use proctrace_overview::phases::{CPU, SPLIT};
use proctrace_recording::Recording;
use proctrace_recording::error::AnalysisError;
use proctrace_recording::marks::{MarkedBy, ProgramSums};
use proctrace_wire::Quantity;
use proctrace_wire::escape::to_text;

use crate::analysis::Analysis;

const PROGRAMS: &str = "phase_programs";
const DIRECTORIES: &str = "phase_directories";

pub(crate) fn section(of: &Analysis<'_>, options: &Options) -> Content {
    content(of, options, None)
}

impl Analysis<'_> {
    /// A report of one phase, by its name or `#N`: its figures, and what ran and was looked up in it.
    ///
    /// # Errors
    /// If the recording has no such phase.
    pub fn phase(&self, name: &str, options: &Options) -> Result<Content, AnalysisError> {
        let phase = self.phase_at(name)?;
        Ok(content(self, options, Some(phase)).only_known(self.recording.knows()))
    }

    /// Begin and end of the phase of that name, relative to the start of the recording.
    ///
    /// # Errors
    /// If the recording has no such phase.
    pub fn phase_time_ns(&self, name: &str) -> Result<(u64, u64), AnalysisError> {
        let (phase, recording) = (self.phase_at(name)?, self.recording);
        let since = |time_ns: u64| time_ns.saturating_sub(recording.first_ns());
        let phases = recording.phases();
        Ok((since(phases.begins_ns[phase]), since(phases.end_of_ns(phase))))
    }

    fn phase_at(&self, name: &str) -> Result<usize, AnalysisError> {
        let recording = self.recording;
        recording.phase_named(name).ok_or_else(|| {
            const NAMED: usize = 20;
            let all = recording.phases().len();
            let mut names: Vec<String> =
                (0..all.min(NAMED)).map(|at| format!("{:?}", recording.phase_name(at))).collect();
            if all > NAMED {
                names.push(format!("and {} more", all - NAMED));
            }
            let why = match all {
                0 => "the recording has no marks (proctrace mark TEXT sets one)".to_owned(),
                _ => format!("its phases are {}", names.join(", ")),
            };
            AnalysisError::View { what: format!("the phase {name:?}"), why }
        })
    }
}

/// The tables of all phases, or of one.
fn content(of: &Analysis<'_>, options: &Options, only: Option<usize>) -> Content {
    let recording = of.recording;
    let all = of.phases().unwrap_or(&[]);
    let shown: Vec<(usize, &MarkedPhase)> =
        all.iter().enumerate().filter(|(at, _)| only.is_none_or(|only| only == *at)).collect();
    let mut phases = phases_table(recording, &shown, options.cores(recording));
    if recording.marks().left_out > 0 {
        let more = counted(recording.marks().left_out, "further mark", "further marks");
        phases = phases.note(format!("{more} left out: too many to be phases."));
    }
    if may_lack_marks(&of.health()) {
        phases = phases.note(
            "Records of forks, execs or look-ups were lost, or parts are damaged: marks may be \
             missing.",
        );
    }
    if only.is_some() {
        phases = phases.note(
            "Not divided by phase: peak RSS, context switches, page faults and storage, of which \
             only totals of whole processes are exact; parents and exit status belong to whole \
             processes. --section and --gantt-from have more.",
        );
    }
    let tables = vec![phases, programs_table(recording, only), directories_table(recording, only)];
    Content { tables, charts: Vec::new() }
}

/// True if a lost record could have been a mark.
fn may_lack_marks(health: &Health) -> bool {
    const MARKS: [&str; 5] = ["fork", "exec", "lookup_failed", "lookup_named", "lookup_again"];
    !health.damage.is_empty() || health.losses.iter().any(|loss| MARKS.contains(&&*loss.kind))
}

fn phases_table(recording: &Recording, phases: &[(usize, &MarkedPhase)], cores: u32) -> Table {
    let of = || phases.iter().map(|(_, phase)| *phase);
    let numbers = phases.iter().map(|(at, _)| Some(*at as u64));
    let idle = |phase: &MarkedPhase| Some((f64::from(cores) - phase.cores_in_use?).max(0.0));
    let by = of().map(|phase| phase.mark.as_ref().map(|mark| mark.program.clone())).collect();
    let pid = of().map(|phase| u64::try_from(phase.mark.as_ref()?.pid).ok());
    let table = Table::new("phases", "Phases between marks of the payload")
        .rows_need(&[Quantity::Forks, Quantity::Execs, Quantity::Argv])
        .text("phase", "phase", of().map(|phase| &*phase.name))
        .whole("number", "#", Unit::Text, numbers)
        .detail()
        .whole("begin_ns", "begin", Unit::Nanoseconds, of().map(|phase| phase.begin_ns))
        .whole("end_ns", "end", Unit::Nanoseconds, of().map(|phase| phase.end_ns))
        .detail()
        .whole("wall_ns", "wall", Unit::Nanoseconds, of().map(MarkedPhase::wall_ns))
        .whole("cpu_ns", "CPU", Unit::Nanoseconds, of().map(|phase| phase.cpu_ns))
        .needs(Figure::CpuNs.needs())
        .whole("user_ns", "user", Unit::Nanoseconds, of().map(|phase| phase.user_ns))
        .needs(Figure::UserNs.needs())
        .detail()
        .whole("system_ns", "system", Unit::Nanoseconds, of().map(|phase| phase.system_ns))
        .needs(Figure::SystemNs.needs())
        .real("cores_in_use", "cores used", Unit::Cores, of().map(|phase| phase.cores_in_use))
        .needs(&[Quantity::Cpu, Quantity::Samples])
        .detail()
        .real("cores_idle", "idle", Unit::Cores, of().map(idle))
        .needs(&[Quantity::Cpu, Quantity::Samples])
        .whole("processes", "processes", Unit::Count, of().map(|phase| phase.processes))
        .whole("threads", "threads", Unit::Count, of().map(|phase| phase.threads))
        .detail()
        .whole("execs", "execs", Unit::Count, of().map(|phase| phase.execs))
        .detail()
        .whole("processes_ended", "ended", Unit::Count, of().map(|phase| phase.processes_ended))
        .detail()
        .whole("failed_lookups", "look-ups", Unit::Count, of().map(|phase| phase.failed_lookups))
        .needs(Figure::FailedLookups.needs())
        .whole("peak_pss_bytes", "peak PSS", Unit::Bytes, of().map(|phase| phase.peak_pss_bytes))
        .detail()
        .column("setter", "set by", Unit::Text, Values::Text(by))
        .detail()
        .whole("setter_pid", "pid", Unit::Text, pid)
        .detail()
        .longest_by("wall_ns");
    let lookups = recording.marks().all.iter().any(|mark| mark.by == MarkedBy::Lookup);
    let table = table.note(
        "A phase lasts from a mark to the next one, whichever process set it. processes: born in \
         it; look-ups: failed ones. CPU of tasks that lived in several phases is spread evenly \
         between two samples.",
    );
    if !lookups {
        return table;
    }
    table.note("Marks set by look-ups carry the time of the last scheduler tick, milliseconds ago.")
}

/// Table of the programs that ran in each phase, most CPU time first.
fn programs_table(recording: &Recording, only: Option<usize>) -> Table {
    let knows = recording.knows();
    let mut rows: Vec<(usize, usize, ProgramSums)> = recording
        .phases()
        .programs
        .iter()
        .map(|((phase, program), sums)| (*phase as usize, *program as usize, *sums))
        .filter(|(phase, ..)| only.is_none_or(|only| only == *phase))
        .filter(|(.., sums)| sums.cpu_ns > 0 || sums.processes > 0 || sums.lookups_failed > 0)
        .collect();
    rows.sort_unstable_by_key(|(phase, program, sums)| {
        (*phase, Reverse((sums.cpu_ns, sums.processes)), *program)
    });
    let of = || rows.iter();
    let name = |program: usize| recording.programs().get(program).map_or("?", |it| &*it.name);
    Table::new(PROGRAMS, "Programs by phase")
        .rows_need(&[Quantity::Forks, Quantity::Execs, Quantity::Argv])
        .text("phase", "phase", of().map(|(phase, ..)| recording.phase_name(*phase)))
        .text("program", "program", of().map(|(_, program, _)| name(*program)))
        .whole("processes", "processes", Unit::Count, of().map(|(.., sums)| sums.processes))
        .whole(
            "cpu_ns",
            "CPU",
            Unit::Nanoseconds,
            of().map(|(.., sums)| knows.some(CPU, sums.cpu_ns)),
        )
        .needs(Figure::CpuNs.needs())
        .whole(
            "system_ns",
            "system",
            Unit::Nanoseconds,
            of().map(|(.., sums)| knows.some(SPLIT, sums.cpu().system_ns)),
        )
        .needs(Figure::SystemNs.needs())
        .whole(
            "failed_lookups",
            "look-ups",
            Unit::Count,
            of().map(|(.., sums)| sums.lookups_failed),
        )
        .needs(Figure::FailedLookups.needs())
        .note("By the program that a process ran last. processes: born in the phase.")
}

/// Table of the directories where each phase looked in vain, most often first.
fn directories_table(recording: &Recording, only: Option<usize>) -> Table {
    let mut rows: Vec<(usize, usize, u64)> = recording
        .phases()
        .directories
        .iter()
        .map(|((phase, directory), count)| (*phase as usize, *directory as usize, *count))
        .filter(|(phase, ..)| only.is_none_or(|only| only == *phase))
        .collect();
    rows.sort_unstable_by_key(|(phase, directory, count)| (*phase, Reverse(*count), *directory));
    let of = || rows.iter();
    let name = |directory: usize| {
        let path = recording.directories().get(directory);
        path.map_or_else(|| "?".to_owned(), |path| to_text(path).into_owned())
    };
    Table::new(DIRECTORIES, "Directories of failed look-ups by phase")
        .rows_need(&Quantity::LOOKUPS_OF_PHASES)
        .text("phase", "phase", of().map(|(phase, ..)| recording.phase_name(*phase)))
        .text("directory", "directory", of().map(|(_, directory, _)| name(*directory)))
        .whole("failed_lookups", "look-ups", Unit::Count, of().map(|(.., count)| *count))
        .needs(Figure::FailedLookups.needs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proctrace_scenes::{MB, MS, S, Scene, real};
    use proctrace_wire::Call;

    /// Two phases after the first: `a` by command at 1 s, `b` by look-up at 3 s, until 4 s.
    fn recording() -> Recording {
        let mut scene = Scene::new(4, 100 * MS);
        scene.exec(0, 1, "/opt/job", (0, 0)).open_failed(MS, 1, "/lib/x.so");
        // Lives in all phases, and is sampled once.
        scene.fork(500 * MS, 1, 2).sample(2 * S, 2, (S, 0));
        scene.fork(990 * MS, 1, 3);
        let argv = ["proctrace", "mark", "a"];
        scene.exec_with(S, 3, "/usr/bin/proctrace", &argv, (0, 0)).exit(S + MS, 3, (0, 0));
        // Lives in one phase.
        scene.fork(S + 2 * MS, 1, 4).exec(S + 2 * MS, 4, "/bin/sed", (0, 0));
        scene.open_failed(2 * S, 4, "/lib/x.so").open_failed(2 * S, 4, "/lib/y.so");
        scene.exit_with(2 * S, 4, (300 * MS, 0), |exit| exit.lookups_failed = 2);
        scene.look_up_failed(3 * S, 1, Call::Access, "/proc/proctrace-mark/b");
        scene.memory(S / 2, 1, (9 * MB, 5 * MB, MB)).memory(2 * S, 1, (9 * MB, 7 * MB, MB));
        scene.exit(4 * S, 2, (3 * S, 0));
        scene.exit_with(4 * S, 1, (0, 0), |exit| exit.lookups_failed = 2);
        scene.load(Some((4 * S, 3 * S + 300 * MS, 0)))
    }

    #[test]
    fn each_phase_has_its_own_and_the_sum_is_the_whole() {
        let recording = recording();
        let analysis = Analysis::of(&recording);
        let tables = section(&analysis, &Options::default()).tables;
        let of = |phase: &str, column: &str| real(&tables[0], "phase", phase, column);
        let before = "(before)";
        for (column, expected) in [
            ("wall_ns", [S, 2 * S, S]),
            ("processes", [3, 1, 0]),
            ("execs", [1, 2, 0]),
            ("processes_ended", [0, 2, 2]),
            ("failed_lookups", [1, 2, 0]),
        ] {
            let found = [before, "a", "b"].map(|phase| of(phase, column));
            assert_eq!(found, expected.map(|number| Some(number as f64)), "{column}");
        }
        // Task 2 used 1 s from 0.5 s to 2 s, and 2 s from then to 4 s; task 4 used 0.3 s in `a`.
        let cpu = [before, "a", "b"].map(|phase| of(phase, "cpu_ns").unwrap());
        let expected = [S as f64 / 3.0, (S + 300 * MS) as f64 + 2.0 * S as f64 / 3.0, S as f64];
        for (found, expected) in cpu.iter().zip(expected) {
            assert!((found - expected).abs() <= 1.0, "{cpu:?} {expected}");
        }
        let whole = analysis.summary();
        assert_eq!(cpu.iter().sum::<f64>(), whole.cpu_ns.unwrap() as f64);
        assert_eq!(whole.lookups_in_vain, Some(3));
        let peaks = [before, "a", "b"].map(|phase| of(phase, "peak_pss_bytes"));
        assert_eq!(peaks, [Some((5 * MB) as f64), Some((7 * MB) as f64), None]);
        let idle = of("b", "cores_idle").unwrap();
        assert!((idle - 3.0).abs() < 1e-6, "{idle}");
        let laws = analysis.health().laws;
        assert!(laws.iter().all(|law| !law.is_broken()), "{laws:?}");
    }

    #[test]
    fn one_phase_has_only_its_programs_and_directories() {
        let recording = recording();
        let analysis = Analysis::of(&recording);
        let tables = analysis.phase("a", &Options::default()).unwrap().tables;
        assert_eq!(tables[0].height(), 1);
        assert_eq!(real(&tables[1], "program", "sed", "processes"), Some(1.0));
        assert_eq!(real(&tables[1], "program", "sed", "cpu_ns"), Some(300.0 * MS as f64));
        assert_eq!(real(&tables[2], "directory", "/lib", "failed_lookups"), Some(2.0));
        assert_eq!(analysis.phase_time_ns("#1").unwrap(), (S, 3 * S));
        let error = analysis.phase("c", &Options::default()).unwrap_err().to_string();
        assert!(error.contains("\"a\", \"b\""), "{error}");
    }

    #[test]
    fn without_marks_there_are_no_phases() {
        let recording = proctrace_scenes::daemon();
        let analysis = Analysis::of(&recording);
        assert_eq!(analysis.phases(), Some(&[][..]));
        let tables = section(&analysis, &Options::default()).tables;
        assert!(tables.iter().all(|table| table.height() == 0));
        let error = analysis.phase("#0", &Options::default()).unwrap_err().to_string();
        assert!(error.contains("no marks"), "{error}");
    }
}
