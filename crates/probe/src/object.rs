//! The compiled BPF object: loading it with the options of a recording, and access to its maps.

use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering;

use aya::Ebpf;
use aya::maps::{Array, HashMap, Map, MapData, PerCpuArray};
use aya::programs::Program;
use proctrace_record::{Options, Scope};
use proctrace_trace::{Hook, LossCount};
use proctrace_wire::{Kind, LossReason};
use rustix::mm::ProtFlags;
use rustix::param::page_size;

use crate::error::ProbeError;
use crate::hooks::{ENTRY_PROGRAM, Hooks, RETURN_PROGRAM, attach_all};
use crate::loader::{kernel_btf, load_object};
use crate::mapping::Mapping;
use crate::options::{EbpfOptions, PIDS_MAX, Settings};
use crate::program_info::{self, ProgramStatistics};
use crate::rights::Rights;
use crate::ring::Ring;

/// The programs, loaded and attached: a source of records.
pub struct Probe {
    /// The programs; None once they are detached.
    pub(crate) ebpf: Option<Ebpf>,
    pub(crate) hooks: Hooks,
    pub(crate) lifecycle: Ring,
    pub(crate) lookups: Ring,
    pub(crate) waits: Ring,
    pub(crate) maps: Maps,
    pub(crate) rights: Rights,
    pub(crate) options: EbpfOptions,
    /// Runs that the kernel had skipped until the programs were detached.
    pub(crate) skipped: Vec<LossCount>,
}

/// The maps that the recorder accesses.
pub(crate) struct Maps {
    counts: Mapping,
    orders: Array<MapData, Orders>,
    losses: PerCpuArray<MapData, u64>,
}

/// `struct counts` of recorder.bpf.h.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct TaskCounts {
    pub(crate) born: u64,
    pub(crate) ended: u64,
    pub(crate) lost: u64,
}

/// `struct orders` of recorder.bpf.h.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct Orders {
    pub(crate) launch_armed: u32,
    pub(crate) pass: u32,
}

// SAFETY: a repr(C) struct of integers without padding: any bytes are valid, and all are initialised.
unsafe impl aya::Pod for Orders {}

impl Probe {
    /// Loads the programs and attaches each to the best hook that this kernel offers; then drops
    /// the capabilities that this required, unless the caller is root.
    ///
    /// # Errors
    /// When the kernel refuses, when an event has no hook, or when there are other threads that
    /// would keep the capabilities.
    pub fn load(wanted: &Options, options: &EbpfOptions) -> Result<Self, ProbeError> {
        let settings = Settings { wanted, ebpf: options };
        let btf = kernel_btf()?;
        let rights =
            Rights::of_this_process().map_err(ProbeError::system("read our capabilities"))?;
        let mut ebpf = load_object(settings, &btf, rights)?;
        ask_for_pids(&mut ebpf, &wanted.scope, rights)?;
        let hooks = attach_all(&mut ebpf, &btf.attachable, settings)?;
        let mut take = |name: &'static str| {
            ebpf.take_map(name).ok_or_else(|| ProbeError::SetUp {
                what: "maps",
                source: format!("the object has no map {name}").into(),
            })
        };
        let lifecycle = take("lifecycle")?;
        let lookups = take("lookups")?;
        let waits = take("waits")?;
        let (counts, orders, losses) = (take("counts")?, take("orders")?, take("losses")?);
        let ring = |map, bytes| Ring::new(map, bytes).map_err(ProbeError::set_up("rings"));
        let lifecycle = ring(lifecycle, options.ring_bytes)?;
        let lookups = ring(lookups, options.ring_bytes)?;
        let waits = ring(waits, settings.waits_ring_bytes())?;
        let maps = Maps {
            counts: map_counts(&counts).map_err(ProbeError::set_up("maps"))?,
            orders: Array::try_from(orders).map_err(ProbeError::set_up("maps"))?,
            losses: PerCpuArray::try_from(losses).map_err(ProbeError::set_up("maps"))?,
        };
        rights.give_up(|| maps.orders.get(&0, 0).is_ok())?;
        Ok(Self {
            ebpf: Some(ebpf),
            hooks,
            lifecycle,
            lookups,
            waits,
            rights,
            options: options.clone(),
            skipped: Vec::new(),
            maps,
        })
    }

    /// The hooks in use.
    pub fn hooks(&self) -> &[Hook] {
        &self.hooks.list
    }

    /// The kernel's statistics of each loaded program, sorted by name.
    pub fn programs(&self) -> Vec<ProgramStatistics> {
        let figures = |(name, program)| program_info::ask(name, program_fd(program).ok()?).ok();
        let loaded = self.ebpf.iter().flat_map(Ebpf::programs);
        let mut programs: Vec<_> = loaded.filter_map(figures).collect();
        programs.sort_by(|a, b| a.program.name.cmp(&b.program.name));
        programs
    }
}

impl std::fmt::Debug for Probe {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Probe").field("hooks", &self.hooks.list).finish_non_exhaustive()
    }
}

impl Maps {
    pub(crate) fn task_counts(&self) -> TaskCounts {
        let count = |nth: usize| self.counts.position(nth * 8).load(Ordering::Acquire) as u64;
        // Read in this order, so that `born` includes every ended task.
        let ended = count(1);
        TaskCounts { born: count(0), ended, lost: count(2) }
    }

    pub(crate) fn give_orders(&mut self, orders: Orders) -> Result<(), ProbeError> {
        self.orders.set(0, orders, 0).map_err(ProbeError::set_up("maps"))
    }

    pub(crate) fn losses(&self) -> Result<Vec<LossCount>, ProbeError> {
        // PT_LOSS_REASONS of wire.h
        const REASONS: u32 = LossReason::ALL.len() as u32 + 1;
        let mut losses = Vec::new();
        // Avoids a hundred system calls, which nearly always find nothing.
        if self.task_counts().lost == 0 {
            return Ok(losses);
        }
        for kind in Kind::ALL {
            for reason in LossReason::ALL {
                let key = kind as u32 * REASONS + reason as u32;
                let per_cpu = self.losses.get(&key, 0).map_err(ProbeError::set_up("maps"))?;
                for (cpu, count) in (0u32..).zip(per_cpu.iter()).filter(|(_, count)| **count > 0) {
                    losses.push(LossCount { kind, reason, cpu: Some(cpu), count: *count });
                }
            }
        }
        Ok(losses)
    }
}

fn map_counts(map: &Map) -> io::Result<Mapping> {
    let Map::Array(map) = map else {
        return Err(io::Error::other("the map is not an array"));
    };
    Mapping::new(map.fd().as_fd(), ProtFlags::READ, 0, page_size())
}

fn program_fd(program: &Program) -> Result<std::os::fd::BorrowedFd<'_>, ()> {
    match program {
        Program::BtfTracePoint(program) => program.fd().map(AsFd::as_fd).map_err(|_| ()),
        Program::FEntry(program) => program.fd().map(AsFd::as_fd).map_err(|_| ()),
        Program::FExit(program) => program.fd().map(AsFd::as_fd).map_err(|_| ()),
        Program::TracePoint(program) => program.fd().map(AsFd::as_fd).map_err(|_| ()),
        Program::Iter(program) => program.fd().map(AsFd::as_fd).map_err(|_| ()),
        _ => Err(()),
    }
}

/// The kind of record that is missing when a program did not run. Runs of a program that is not listed
/// here would be counted as records that were lost; a test makes sure that there is none.
pub(crate) fn kind_of_program(name: &str) -> Kind {
    match name {
        "on_newtask" => Kind::Fork,
        "on_exec" => Kind::Exec,
        "on_rename" => Kind::Rename,
        "on_exit_told" | "on_exit_guessed" | "on_switch" => Kind::Exit,
        "on_return" | "on_sys_exit" => Kind::LookupFailed,
        "on_adopt" | "on_cgroup_attach" => Kind::Attach,
        "on_io_uring" => Kind::Blind,
        "on_waking" => Kind::Wait,
        "on_signal" => Kind::Signal,
        "on_entry" => Kind::LookupTime,
        "on_sample" => Kind::Sample,
        name if name.starts_with(RETURN_PROGRAM) => Kind::LookupFailed,
        name if name.starts_with(ENTRY_PROGRAM) => Kind::LookupTime,
        _ => Kind::Loss,
    }
}

/// Passes the requested pids to the programs.
fn ask_for_pids(ebpf: &mut Ebpf, scope: &Scope, rights: Rights) -> Result<(), ProbeError> {
    let Scope::Pids(pids) = scope else { return Ok(()) };
    if pids.len() > PIDS_MAX {
        return Err(ProbeError::Option(format!(
            "cannot record {} processes: at most {PIDS_MAX} can be given",
            pids.len()
        )));
    }
    let map = ebpf.map_mut("scope_pids").ok_or_else(|| ProbeError::SetUp {
        what: "maps",
        source: "the object has no map scope_pids".into(),
    })?;
    let mut map = HashMap::<_, u32, u8>::try_from(map).map_err(ProbeError::set_up("maps"))?;
    for pid in pids {
        if !std::path::Path::new(&format!("/proc/{pid}")).is_dir() {
            return Err(ProbeError::Option(format!("there is no process {pid}")));
        }
        rights.check(*pid)?;
        map.insert(pid, 1, 0).map_err(ProbeError::set_up("maps"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loader::OBJECT;

    #[test]
    fn every_program_has_a_kind_of_record() {
        let object = aya_obj::Object::parse(OBJECT).expect("the object that was compiled in");
        assert!(object.programs.len() > 10, "{:?}", object.programs.keys());
        for name in object.programs.keys() {
            assert_ne!(kind_of_program(name), Kind::Loss, "{name}");
        }
    }
}
