//! Recordings for tests, record by record.

use std::path::Path;

use proctrace_live::{ByFile, View};
use proctrace_trace::{BlockInfo, Header, Reader};
use proctrace_wire::layout::{
    Again, Attach, ExecFixed, Exit, Fork, Head, Loss, MissFixed, Named, Sample,
};
use proctrace_wire::{IntoBytes, Kind, Stream};
use zerocopy::{FromBytes, FromZeros, Immutable};

pub(crate) const SECOND: u64 = 1_000_000_000;

/// The header of a real recording, with a start at 0 and this command.
pub(crate) fn header(command: &[&str]) -> Header {
    let traces =
        Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").unwrap()).join("../../fixtures/traces");
    let mut header = Reader::open(traces.join("tour-5.ptrace")).unwrap().header().clone();
    header.command = command.iter().map(|word| (*word).to_owned()).collect();
    (header.started_ns, header.cpus, header.page_bytes) = (0, 2, 4096);
    header.tick_ns = Some(4_000_000);
    header
}

pub(crate) fn view(command: &[&str]) -> View {
    View::new(header(command), Box::new(ByFile))
}

fn record<T: IntoBytes + Immutable>(fixed: &T, rest: &[u8]) -> Vec<u8> {
    let mut bytes = fixed.as_bytes().to_vec();
    bytes.extend_from_slice(rest);
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    let size = u16::try_from(bytes.len()).unwrap().to_le_bytes();
    bytes[2..4].copy_from_slice(&size);
    bytes
}

fn new<T: FromZeros + FromBytes + IntoBytes>(kind: Kind, task: u32, time_ns: u64) -> T {
    let mut fixed = T::new_zeroed();
    let head = Head { kind: kind as u16, size: 0, task, time_ns };
    fixed.as_mut_bytes()[..size_of::<Head>()].copy_from_slice(head.as_bytes());
    fixed
}

fn comm(name: &str) -> [u8; 16] {
    let mut comm = [0; 16];
    comm[..name.len()].copy_from_slice(name.as_bytes());
    comm
}

/// Passes one record to a view, as a block.
pub(crate) fn give(view: &mut View, stream: Stream, time_ns: u64, bytes: &[u8]) {
    let info = BlockInfo {
        stream,
        records: 1,
        raw_bytes: 0,
        stored_bytes: 0,
        first_ns: time_ns,
        last_ns: time_ns,
    };
    view.take(&info, bytes);
}

/// What a view is told, record by record.
pub(crate) trait Told: Sized {
    /// Passes one record.
    fn given(&mut self, stream: Stream, time_ns: u64, bytes: &[u8]);

    fn lifecycle(&mut self, time_ns: u64, bytes: &[u8]) {
        self.given(Stream::Lifecycle, time_ns, bytes);
    }

    /// The launched command: serial and pid 1.
    fn with_root(mut self, name: &str) -> Self {
        self.attaches(1, 1, 0);
        self.execs(1, SECOND / 100, &format!("/bin/{name}"), &[name]);
        self
    }

    fn attaches(&mut self, serial: u32, pid: i32, parent_pid: i32) {
        let mut attach: Attach = new(Kind::Attach, serial, 1);
        (attach.process, attach.tgid, attach.tid, attach.parent_tgid) =
            (serial, pid, pid, parent_pid);
        attach.comm = comm("before");
        self.lifecycle(1, &record(&attach, b""));
    }

    /// A process with the serial as its pid.
    fn forks(&mut self, parent: u32, child: u32, time_ns: u64) {
        self.clones(parent, child, child, time_ns);
    }

    fn clones(&mut self, forker: u32, child: u32, process: u32, time_ns: u64) {
        let pid = |serial: u32| i32::try_from(serial).unwrap_or(i32::MAX);
        let mut fork: Fork = new(Kind::Fork, forker, time_ns);
        (fork.process, fork.tgid, fork.child, fork.child_process) =
            (forker, pid(forker), child, process);
        (fork.child_tgid, fork.child_tid) = (pid(process), pid(child));
        (fork.parent_tgid, fork.start_ns, fork.comm) = (pid(forker), time_ns, comm("forked"));
        self.lifecycle(time_ns, &record(&fork, b""));
    }

    fn execs(&mut self, process: u32, time_ns: u64, path: &str, argv: &[&str]) {
        self.execs_after(process, time_ns, path, argv, 0);
    }

    fn execs_after(&mut self, process: u32, time_ns: u64, path: &str, argv: &[&str], run_ns: u64) {
        let mut exec: ExecFixed = new(Kind::Exec, process, time_ns);
        let argv: Vec<u8> =
            argv.iter().flat_map(|word| [word.as_bytes(), b"\0"].concat()).collect();
        (exec.process, exec.run_ns) = (process, run_ns);
        exec.path_bytes = u16::try_from(path.len()).unwrap();
        (exec.argv_bytes, exec.argv_here) = (argv.len() as u32, argv.len() as u32);
        let rest = [path.as_bytes(), &argv].concat();
        self.lifecycle(time_ns, &record(&exec, &rest));
    }

    fn exits(&mut self, task: u32, time_ns: u64, run_ns: u64) {
        self.exits_with(task, time_ns, run_ns, 0);
    }

    /// Ends with a status as wait(2) has it.
    fn exits_with(&mut self, task: u32, time_ns: u64, run_ns: u64, status: u32) {
        let mut exit: Exit = new(Kind::Exit, task, time_ns);
        (exit.process, exit.run_ns, exit.maxrss_pages) = (task, run_ns, 100);
        exit.status = status;
        self.lifecycle(time_ns, &record(&exit, b""));
    }

    fn samples(&mut self, task: u32, time_ns: u64, run_ns: u64) {
        let mut sample: Sample = new(Kind::Sample, task, time_ns);
        (sample.run_ns, sample.rss_pages, sample.state) = (run_ns, 250, u16::from(b'S'));
        (sample.utime_ns, sample.stime_ns) = (run_ns / 4 * 3, run_ns / 4);
        self.given(Stream::Samples, time_ns, &record(&sample, b""));
    }

    fn misses(&mut self, task: u32, time_ns: u64, path: &str) {
        let mut miss: MissFixed = new(Kind::LookupFailed, task, time_ns);
        (miss.error, miss.path_bytes) = (2, u16::try_from(path.len()).unwrap());
        self.given(Stream::Lookups, time_ns, &record(&miss, path.as_bytes()));
    }

    fn misses_named(&mut self, task: u32, number: u32, path: &str) {
        let mut named: Named = new(Kind::LookupNamed, task, 2);
        (named.error, named.path_bytes) = (2, u16::try_from(path.len()).unwrap());
        (named.number, named.slot) = (number, number);
        self.given(Stream::Lookups, 2, &record(&named, path.as_bytes()));
    }

    fn misses_again(&mut self, task: u32, number: u32) {
        let mut again: Again = new(Kind::LookupAgain, task, 3);
        again.number = number;
        self.given(Stream::Lookups, 3, &record(&again, b""));
    }

    fn loses(&mut self, kind: Kind, count: u64) {
        let mut loss: Loss = new(Kind::Loss, 0, 4);
        (loss.kind, loss.reason, loss.count) = (kind as u16, 1, count);
        self.lifecycle(4, &record(&loss, b""));
    }
}

impl Told for View {
    fn given(&mut self, stream: Stream, time_ns: u64, bytes: &[u8]) {
        give(self, stream, time_ns, bytes);
    }
}
