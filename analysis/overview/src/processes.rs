//! Individual processes as rows of tables.

use proctrace_findings::{Figure, Table, Unit, Values};

use proctrace_recording::Recording;
use proctrace_recording::process::Process;

/// Adds the pid, and the program with its role, of each process.
pub fn labels(table: Table, recording: &Recording, rows: &[usize]) -> Table {
    let of = || rows.iter().map(|at| &recording.processes()[*at]);
    let program = |process: &Process| {
        let name = &recording.program_of(process).name;
        match recording.role_of(process) {
            Some(role) => format!("{name} {role}"),
            None => name.clone(),
        }
    };
    let pids = of().map(|process| u64::try_from(process.pid).ok()).collect();
    table.column("pid", "pid", Unit::Text, Values::Whole(pids)).text(
        "program",
        "program",
        of().map(program),
    )
}

/// Adds the CPU time of each process; split where it has enough ticks of its own.
pub fn cpu_columns(table: Table, recording: &Recording, rows: &[usize]) -> Table {
    let of = || rows.iter().map(|at| &recording.processes()[*at]);
    let own = |process: &Process| recording.split().own(&recording.divided_of(process));
    table
        .whole("cpu_ns", "CPU", Unit::Nanoseconds, of().map(|process| process.cpu.total_ns()))
        .needs(Figure::CpuNs.needs())
        .whole("user_ns", "user", Unit::Nanoseconds, of().map(|p| Some(own(p)?.user_ns)))
        .needs(Figure::UserNs.needs())
        .whole("system_ns", "system", Unit::Nanoseconds, of().map(|p| Some(own(p)?.system_ns)))
        .needs(Figure::SystemNs.needs())
}
