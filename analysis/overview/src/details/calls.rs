//! Command lines of processes, from the trace: a recording in memory keeps only templates of command
//! lines.

use std::path::Path;

use proctrace_lineage::Serials;
use proctrace_replay::{Assembler, Body, Event, Exec, records};
use proctrace_trace::Reader;
use proctrace_wire::{Record, Stream};

use proctrace_classify::fast::FastMap;
use proctrace_recording::Recording;
use proctrace_recording::error::AnalysisError;

/// Passes the execs, failed execs and final directories of some processes to `take`, in file order, each
/// with the index of its process; and every environment block with its id to `environment`.
pub fn each_call(
    recording: &Recording,
    path: &Path,
    wanted: impl Fn(usize) -> bool,
    mut environment: impl FnMut(u64, &[u8]),
    mut take: impl FnMut(usize, Event),
) -> Result<(), AnalysisError> {
    let mut of_task = Serials::default();
    for task in recording.tasks() {
        of_task.insert(task.serial, task.process());
    }
    let founded = |serial: u32| {
        of_task.get(serial).filter(|process| recording.processes()[*process].serial == serial)
    };
    let process_of = |event: &Event| match &event.body {
        Body::Exec(exec) => founded(exec.record.process),
        Body::Workdir(workdir) => founded(workdir.record.process),
        _ => of_task.get(event.task),
    };
    let mut assembler = Assembler::default();
    let mut emit = |event: Event| {
        if let Some(process) = process_of(&event) {
            take(process, event);
        }
    };
    records(&mut Reader::open(path)?, Stream::Lifecycle, |record| {
        let process = match &record {
            Record::Env(env, bytes) => {
                environment(env.env_id, bytes);
                return assembler.take(record, &mut emit);
            }
            // Those of execs that are not wanted have nothing to continue.
            Record::ExecArgs(..) => return assembler.take(record, &mut emit),
            Record::Exec(exec) => founded(exec.fixed.process),
            Record::ExecFailed(miss, _) => of_task.get(miss.head.task),
            Record::Workdir(workdir, _) => founded(workdir.process),
            _ => None,
        };
        if process.is_some_and(&wanted) {
            assembler.take(record, &mut emit);
        }
    });
    assembler.finish(&mut emit);
    Ok(())
}

/// Passes every exec to `take`, in file order, with its process and its program run; and every environment
/// block with its id to `environment`.
pub fn each_exec(
    recording: &Recording,
    path: &Path,
    mut take: impl FnMut(usize, Option<u32>, &Exec),
    environment: impl FnMut(u64, &[u8]),
) -> Result<(), AnalysisError> {
    let runs: FastMap<(u32, u64), u32> =
        (0..).zip(recording.runs()).map(|(at, run)| ((run.process, run.time_ns), at)).collect();
    each_call(
        recording,
        path,
        |_| true,
        environment,
        |process, event| {
            let Body::Exec(exec) = event.body else { return };
            let key = (u32::try_from(process).unwrap_or(u32::MAX), exec.record.head.time_ns);
            take(process, runs.get(&key).copied(), &exec);
        },
    )
}
