//! The details of one process.

use std::collections::HashMap;
use std::path::Path;

use proctrace_classify::names::{base, text};
use proctrace_findings::{
    Command, Figure, MemoryAt, MissedName, OwnStep, ProcessDetails, ReceivedSignal,
};
use proctrace_overview::details::calls::each_call;
use proctrace_overview::details::{relative, since, waits};
use proctrace_overview::ends::known_status;
use proctrace_overview::figures::{needs_of_all, of_process};
use proctrace_overview::passes::is_divided;
use proctrace_overview::senders::{sender, sender_of};
use proctrace_overview::steps::{group_of, sums};
use proctrace_recording::Recording;
use proctrace_recording::books::detached::is_detached;
use proctrace_recording::error::AnalysisError;
use proctrace_replay::{Body, Exec};
use proctrace_wire::layout::EXEC_BEFORE;
use proctrace_wire::{Outcome, Quantity, dumped_core, signal_name};

use super::looked_up::{self, Missed, directories};
use super::relatives::{self, Below, parents};

/// Quantities needed by the details of a process, besides its figures.
const NEEDS: [Quantity; 6] = [
    Quantity::Forks,
    Quantity::Execs,
    Quantity::Argv,
    Quantity::Environment,
    Quantity::Waits,
    Quantity::Signals,
];

/// Details of a process that only the trace has, not the recording.
#[derive(Debug, Default)]
struct FromTrace {
    commands: Vec<Command>,
    directory: Option<String>,
    missed: Missed,
    searched: Vec<MissedName>,
}

pub(super) fn details(
    recording: &Recording,
    path: &Path,
    at: usize,
) -> Result<ProcessDetails, AnalysisError> {
    let told = read(recording, path, at)?;
    let process = &recording.processes()[at];
    let status = known_status(process);
    let outcome = status.map(Outcome::of_status);
    let signal = outcome.and_then(Outcome::signal);
    let below = Below::of(recording);
    let children = (at + 1..recording.processes().len())
        .filter(|child| relatives::parent(recording, *child) == Some(at));
    let knows = recording.knows();
    let adopted_by = process.reaper().filter(|reaper| Some(*reaper) != process.parent());
    // Attached by its recorder when it was created.
    let is_command = recording.root().is_some_and(|root| root.serial == process.serial);
    let founder = process.tasks().next().map(|task| &recording.tasks()[task]);
    Ok(ProcessDetails {
        process: relative(recording, at),
        role: recording.role_of(process).map(str::to_owned),
        born_ns: since(recording, process.born_ns),
        birth_recorded: founder.is_some_and(|task| task.forked) || is_command,
        ended_ns: process.ended_ns().map(|ended_ns| since(recording, ended_ns)),
        let_go: recording.blind().let_go.contains(&at),
        life_ns: process.life_ns(),
        outcome: outcome.map(|outcome| outcome.name().into_owned()),
        core_dump: signal.is_some() && status.is_some_and(dumped_core),
        sent_by: signal.and_then(|signal| sender_of(recording, at, signal)),
        signals: signals(recording, at),
        outlived_parent: is_detached(recording, process),
        adopted_by: adopted_by.map(|reaper| relative(recording, reaper)),
        steps: own_steps(recording, at),
        parents: parents(recording, at).into_iter().map(|at| relative(recording, at)).collect(),
        commands: told.commands,
        forked_from: (process.execs == 0)
            .then(|| process.spawned_in().map(|run| recording.line_of_run(run).to_owned()))
            .flatten(),
        directory: told.directory,
        usage: of_process(recording, at),
        threads: knows.some(&[Quantity::Forks], process.tasks().len().saturating_sub(1) as u64),
        children: relatives::groups(recording, children, Some(&below)),
        descendants: knows.some(&[Quantity::Forks], below.processes(at)),
        descendants_cpu_ns: knows.some(&[Quantity::Forks, Quantity::Cpu], below.cpu_ns(at)),
        missed_directories: directories(recording, at),
        missed_paths: told.missed.names(),
        searched_by_parent: told.searched,
        waits: waits::waits(recording, process),
        path: waits::path(recording, at),
        memory: memory(recording, at),
        recorded_ns: recording.recorded_ns(),
        not_known: knows.why_not(&needs_of_all(&NEEDS)),
    })
}

/// The steps that a process belongs to, innermost first.
fn own_steps(recording: &Recording, at: usize) -> Vec<OwnStep> {
    let steps = recording.steps();
    let innermost = u32::try_from(at).ok().and_then(|at| steps.of_process(at));
    let Some(innermost) = innermost else { return Vec::new() };
    let sums = sums(recording);
    let own = |number: u32| {
        let (step, sum) = (&steps.all[number as usize], &sums[number as usize]);
        let run = recording.runs().get(step.run as usize);
        OwnStep {
            step: step.named.name.clone(),
            group: group_of(step),
            begins_it: run.is_some_and(|run| run.process as usize == at),
            wall_ns: sum.wall_ns(),
            cpu_ns: sum.figures[Figure::CpuNs],
            processes: sum.processes,
        }
    };
    steps.up(innermost).map(own).collect()
}

/// Details of a process that only the trace has, not the recording.
fn read(recording: &Recording, path: &Path, at: usize) -> Result<FromTrace, AnalysisError> {
    let process = &recording.processes()[at];
    let (missed, searched) = looked_up::read(recording, at, path)?;
    let mut told = FromTrace { missed, ..FromTrace::default() };
    let programs: HashMap<u64, u32> = recording
        .runs()
        .iter()
        .filter(|run| run.process as usize == at)
        .map(|run| (run.time_ns, run.program))
        .collect();
    let mut times = Vec::new();
    let FromTrace { commands, directory, missed, .. } = &mut told;
    each_call(
        recording,
        path,
        |process| process == at,
        |_, _| (),
        |_, event| match event.body {
            Body::Exec(exec) => {
                let time_ns = exec.record.head.time_ns;
                let program = programs.get(&time_ns).copied();
                times.push(time_ns);
                commands.push(command(recording, &exec, program));
            }
            Body::ExecFailed(miss) => missed.add(&miss.record, &miss.path),
            Body::Workdir(workdir) => *directory = Some(text(&workdir.path)),
            _ => {}
        },
    )?;
    commands.sort_by_key(|command| command.time_ns);
    times.sort_unstable();
    let ends = times.iter().skip(1).copied().map(Some).chain([process.ended_ns()]);
    for ((command, begin_ns), end_ns) in commands.iter_mut().zip(&times).zip(ends) {
        command.ran_ns = end_ns.map(|end_ns| end_ns.saturating_sub(*begin_ns));
    }
    // A script is looked for by its own name, not by that of its interpreter.
    let first = told.commands.first().map(|command| match &command.interpreter {
        Some(_) => command.program.clone().unwrap_or_default(),
        None => command.exe.clone(),
    });
    told.searched =
        first.map(|name| searched.of_program(base(name.as_bytes()))).unwrap_or_default();
    Ok(told)
}

fn command(recording: &Recording, exec: &Exec, program: Option<u32>) -> Command {
    let name = program.and_then(|program| recording.programs().get(program as usize));
    let arguments = || exec.argv.iter().map(|argument| text(argument)).collect();
    let environment = exec
        .environment
        .as_ref()
        .map(|variables| variables.iter().map(|(name, value)| (text(name), text(value))).collect());
    Command {
        time_ns: since(recording, exec.record.head.time_ns),
        ran_ns: None,
        program: name.map(|program| program.name.clone()),
        recorded: exec.record.bits & EXEC_BEFORE == 0,
        exe: text(&exec.exe),
        interpreter: exec.interpreter.as_deref().map(text),
        arguments: recording.knows().all(&[Quantity::Argv]).then(arguments),
        arguments_cut: exec.argv_truncated,
        directory: text(&exec.cwd),
        environment,
    }
}

fn signals(recording: &Recording, at: usize) -> Vec<ReceivedSignal> {
    let mine =
        recording.signals().unwrap_or_default().iter().filter(|sent| sent.process as usize == at);
    mine.map(|sent| ReceivedSignal {
        time_ns: since(recording, sent.time_ns),
        signal: signal_name(i32::from(sent.signal)).into_owned(),
        sent_by: sender(recording, sent),
    })
    .collect()
}

fn memory(recording: &Recording, at: usize) -> Vec<MemoryAt> {
    let mine = recording
        .memory_readings()
        .unwrap_or_default()
        .iter()
        .filter(|reading| reading.process == at);
    mine.map(|reading| MemoryAt {
        time_ns: since(recording, reading.record.head.time_ns),
        rss_bytes: reading.record.rss_bytes,
        pss_bytes: reading.record.pss_bytes,
        uss_bytes: is_divided(&reading.record).then_some(reading.record.uss_bytes),
        swap_bytes: reading.record.swap_bytes,
    })
    .collect()
}
