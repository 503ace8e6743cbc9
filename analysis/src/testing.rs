//! Recordings made by hand, for tests whose truth is arithmetic.

use proctrace_replay::CpuTime;

use crate::recording::{Process, Run};

/// A process of which nothing is known but its number.
pub(crate) fn process(serial: u32) -> Process {
    Process {
        serial,
        pid: i32::try_from(serial).unwrap_or(i32::MAX),
        parent: None,
        reaper: None,
        spawned_by: None,
        spawned_in: None,
        run: None,
        role: None,
        depth: 0,
        born_ns: 0,
        ended_ns: None,
        status: None,
        last_parent_pid: None,
        program: 0,
        execs: 0,
        tasks: Vec::new(),
        cpu: CpuTime::default(),
        before_ns: 0,
        waited_before_ns: 0,
        tail_ns: 0,
        waited_ns: None,
        autoreaped: false,
        maxrss_bytes: 0,
    }
}

/// A run of a process.
pub(crate) fn run(process: u32, program: u32) -> Run {
    Run {
        time_ns: 0,
        process,
        program,
        template: 0,
        happened_here: true,
        before_run_ns: 0,
        before_user_ns: 0,
        before_system_ns: 0,
    }
}
