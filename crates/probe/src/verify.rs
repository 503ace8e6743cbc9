//! Programs given to the kernel, which verifies them: several at the same time, before each is attached.

use std::collections::HashMap;
use std::num::NonZero;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Mutex;
use std::thread::{self, available_parallelism};

use aya::programs::{Program, ProgramError};
use aya::{Btf, Ebpf};

use crate::error::BoxError;

/// Threads that load programs, at most.
const LOADERS_MAX: usize = 4;

/// Loads programs, each for its attach target, at the same time on all CPUs. The kernel's verifier takes most of a recorder's
/// start, and verifies several programs at once for a caller with CAP_BPF, if it is given several.
///
/// One that is refused is tried again where it is attached, which knows what to do then.
pub(crate) fn load_all(ebpf: &mut Ebpf, targets: &HashMap<String, String>, btf: &Btf) {
    let programs = ebpf.programs_mut().filter_map(|(name, program)| {
        let target = targets.get(name)?;
        Some((program, target))
    });
    let queue = Mutex::new(programs.collect::<Vec<_>>());
    let next = || queue.lock().ok()?.pop();
    let work = || {
        while let Some((program, target)) = next() {
            let _ = load(program, target, btf);
        }
    };
    let others = available_parallelism().map_or(1, NonZero::get).min(LOADERS_MAX) - 1;
    thread::scope(|scope| {
        for _ in 0..others {
            let _ = thread::Builder::new().name("verify".into()).spawn_scoped(scope, work);
        }
        work();
    });
}

/// Loads a program, if it is not loaded yet, for its attach target.
fn load(program: &mut Program, target: &str, btf: &Btf) -> Result<(), ProgramError> {
    let loaded = match program {
        Program::BtfTracePoint(program) => program.load(target, btf),
        Program::Iter(program) => program.load(target, btf),
        Program::FExit(program) => program.load(target, btf),
        Program::FEntry(program) => program.load(target, btf),
        Program::TracePoint(program) => program.load(),
        _ => Err(ProgramError::UnexpectedProgramType),
    };
    match loaded {
        Err(ProgramError::AlreadyLoaded) => Ok(()),
        loaded => loaded,
    }
}

/// A program, loaded for its attach target if it was not before.
pub(crate) fn loaded<'a>(
    ebpf: &'a mut Ebpf,
    name: &str,
    target: &str,
    btf: &Btf,
) -> Result<BorrowedFd<'a>, BoxError> {
    let program = ebpf.program_mut(name);
    let program = program.ok_or_else(|| format!("the BPF object has no program {name}"))?;
    load(program, target, btf)?;
    program_fd(program).ok_or_else(|| format!("the program {name} is not loaded").into())
}

/// True if the kernel has taken the program of this name.
pub(crate) fn is_loaded(ebpf: &Ebpf, name: &str) -> bool {
    ebpf.program(name).and_then(program_fd).is_some()
}

pub(crate) fn program_fd(program: &Program) -> Option<BorrowedFd<'_>> {
    match program {
        Program::BtfTracePoint(program) => program.fd().ok().map(AsFd::as_fd),
        Program::FEntry(program) => program.fd().ok().map(AsFd::as_fd),
        Program::FExit(program) => program.fd().ok().map(AsFd::as_fd),
        Program::TracePoint(program) => program.fd().ok().map(AsFd::as_fd),
        Program::Iter(program) => program.fd().ok().map(AsFd::as_fd),
        _ => None,
    }
}
