//! Collects, while a trace is read, what it could not see.

use std::collections::BTreeSet;

use proctrace_wire::BlindSpot;
use proctrace_wire::layout::{EXEC_COMPAT, EXEC_WITHHELD, EXIT_WITHHELD};

/// Processes with activity that cannot be observed, by index.
#[derive(Debug, Default)]
pub struct Blindness {
    pub compat: BTreeSet<usize>,
    pub io_uring: BTreeSet<usize>,
    pub refused_tracer: BTreeSet<usize>,
    pub let_go: BTreeSet<usize>,
    pub systemd_run: BTreeSet<usize>,
    pub withheld: BTreeSet<usize>,
}

impl Blindness {
    pub(crate) fn note_exec(&mut self, process: usize, exec: &proctrace_wire::Exec<'_>) {
        if exec.fixed.bits & EXEC_COMPAT != 0 {
            self.compat.insert(process);
        }
        if exec.fixed.bits & EXEC_WITHHELD != 0 {
            self.withheld.insert(process);
        }
        if asks_systemd(exec) {
            self.systemd_run.insert(process);
        }
    }

    pub(crate) fn note_exit(&mut self, process: usize, bits: u32) {
        if bits & EXIT_WITHHELD != 0 {
            self.withheld.insert(process);
        }
    }

    pub fn note(&mut self, process: usize, what: u32) {
        match BlindSpot::from_number(what) {
            Some(BlindSpot::IoUring) => self.io_uring.insert(process),
            Some(BlindSpot::RefusedTracer) => self.refused_tracer.insert(process),
            Some(BlindSpot::LetGo) => self.let_go.insert(process),
            None => false,
        };
    }
}

/// Returns whether this is systemd-run starting something that will not be a descendant. With --scope it runs the
/// command itself.
fn asks_systemd(exec: &proctrace_wire::Exec<'_>) -> bool {
    let name = exec.exe.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    name == b"systemd-run"
        && !exec
            .argv
            .split(|byte| *byte == 0)
            .skip(1)
            .take_while(|argument| argument.starts_with(b"-"))
            .any(|argument| argument == b"--scope")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proctrace_wire::layout::ExecFixed;
    use zerocopy::FromZeros;

    fn exec<'a>(exe: &'a [u8], argv: &'a [u8]) -> proctrace_wire::Exec<'a> {
        let fixed = ExecFixed::new_zeroed();
        proctrace_wire::Exec { fixed, path: exe, interp: b"", exe, cwd: b"/", argv }
    }

    #[test]
    fn what_is_withheld_is_noted_once_for_each_process() {
        let mut blind = Blindness::default();
        let mut hidden = exec(b"", b"");
        hidden.fixed.bits = EXEC_WITHHELD;
        blind.note_exec(1, &hidden);
        blind.note_exit(1, EXIT_WITHHELD);
        blind.note_exit(2, EXIT_WITHHELD);
        blind.note_exec(3, &exec(b"/bin/true", b"true\0"));
        blind.note_exit(3, 0);
        assert_eq!(blind.withheld, BTreeSet::from([1, 2]));
    }

    #[test]
    fn only_a_service_runs_elsewhere() {
        assert!(asks_systemd(&exec(b"/usr/bin/systemd-run", b"systemd-run\0sleep\x001\0")));
        let scope = b"systemd-run\0--user\0--scope\0sleep\x001\0";
        assert!(!asks_systemd(&exec(b"/usr/bin/systemd-run", scope)));
        let argument = b"systemd-run\0sh\0--scope\0";
        assert!(asks_systemd(&exec(b"/usr/bin/systemd-run", argument)));
        assert!(!asks_systemd(&exec(b"/usr/bin/true", b"systemd-run\0")));
    }
}
