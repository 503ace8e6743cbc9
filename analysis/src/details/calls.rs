//! What processes executed, from the trace: a recording in memory keeps only templates of command lines.

use std::path::Path;

use proctrace_replay::{Assembler, Body, Event, records};
use proctrace_trace::Reader;
use proctrace_wire::{Record, Stream};

use crate::error::AnalysisError;
use crate::load::serials::Serials;
use crate::recording::Recording;

/// Passes the execs, failed execs and final directories of some processes to `take`, in file order, each
/// with the index of its process; and every environment block with its id to `environment`.
pub(crate) fn each_call(
    recording: &Recording,
    path: &Path,
    wanted: impl Fn(usize) -> bool,
    mut environment: impl FnMut(u64, &[u8]),
    mut take: impl FnMut(usize, Event),
) -> Result<(), AnalysisError> {
    let mut of_task = Serials::default();
    for task in &recording.tasks {
        of_task.insert(task.serial, task.process());
    }
    let founded = |serial: u32| {
        of_task.get(serial).filter(|process| recording.processes[*process].serial == serial)
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
