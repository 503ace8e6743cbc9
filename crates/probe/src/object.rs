//! A recording in the kernel: its buffers, its maps and what keeps it attached.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::Ordering;

use aya::maps::{Array, Map, MapData, PerCpuArray};
use proctrace_record::{Options, Scope};
use proctrace_trace::{Hook, LossCount};
use proctrace_wire::{Kind, LossReason};
use rustix::mm::ProtFlags;
use rustix::param::page_size;

use crate::caller::Caller;
use crate::error::ProbeError;
use crate::hooks::{ENTRY_PROGRAM, RETURN_PROGRAM};
use crate::job_cgroups::JobCgroups;
use crate::keeper::Keeper;
use crate::loaded::{Loaded, Readable};
use crate::loader::cgroup_id;
use crate::mapping::Mapping;
use crate::options::{EbpfOptions, Settings};
use crate::rights::Rights;
use crate::ring::Ring;
use crate::task_iterator::TaskIterator;

/// The programs, loaded and attached: a source of records.
pub struct Probe {
    /// Hooks that were attached.
    pub(crate) hooks: Vec<Hook>,
    /// Keeps it attached.
    pub(crate) keeper: Box<dyn Keeper>,
    /// The passes over all tasks, by the names of their programs.
    pub(crate) iterators: Vec<(String, TaskIterator)>,
    pub(crate) lifecycle: Ring,
    pub(crate) lookups: Ring,
    pub(crate) waits: Ring,
    pub(crate) maps: Maps,
    pub(crate) rights: Rights,
    /// The cgroups, in a recording of many jobs, that have jobs below them.
    pub(crate) jobs: Option<JobCgroups>,
    pub(crate) options: EbpfOptions,
    /// The name of the backend.
    pub(crate) name: &'static str,
    /// Runs that the kernel had skipped until the programs were detached.
    pub(crate) skipped: Option<Vec<LossCount>>,
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
    pub(crate) held_up: u64,
    pub(crate) held_up_ns: u64,
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
        let caller = Caller::this_process()?;
        check_pids(wanted, caller.rights)?;
        let cgroup = wanted.cgroup.as_deref().map(cgroup_id).transpose()?;
        let Loaded { readable, attached, parents, .. } =
            Loaded::load(wanted, options, cgroup, &caller, None)?;
        let kept: (_, Box<dyn Keeper>) = ("ebpf", Box::new(attached));
        let mut probe = Self::of(readable, wanted, options, caller.rights, kept)?;
        if let (Scope::Jobs(patterns), Some(parents)) = (&wanted.scope, parents) {
            probe.jobs = Some(JobCgroups::new(patterns.clone(), map_of(parents)?)?);
        }
        caller.rights.give_up(|| probe.maps.orders.get(&0, 0).is_ok())?;
        Ok(probe)
    }

    /// Records with programs that another process, named `name`, has loaded for this one, and which record
    /// only what this one may trace. It keeps them attached until its `keeper` here is dropped.
    ///
    /// # Errors
    /// When the kernel does not allow their use, which it does without privileges since Linux 6.0.
    pub fn of_other(
        readable: Readable,
        wanted: &Options,
        options: &EbpfOptions,
        (name, keeper): (&'static str, Box<dyn Keeper>),
    ) -> Result<Self, ProbeError> {
        let rights =
            Rights::of_this_process().map_err(ProbeError::system("read our capabilities"))?;
        let rights = Rights { restricted: true, ..rights };
        let probe = Self::of(readable, wanted, options, rights, (name, keeper))?;
        probe.maps.orders.get(&0, 0).map_err(ProbeError::set_up("maps"))?;
        Ok(probe)
    }

    fn of(
        readable: Readable,
        wanted: &Options,
        options: &EbpfOptions,
        rights: Rights,
        (name, keeper): (&'static str, Box<dyn Keeper>),
    ) -> Result<Self, ProbeError> {
        let settings = Settings { wanted, ebpf: options, cgroup: None, tracefs: None };
        let map = map_of;
        let ring = |map, bytes| Ring::new(map, bytes).map_err(ProbeError::set_up("rings"));
        let [lifecycle, lookups, waits, counts, orders, losses] = readable.maps;
        Ok(Self {
            lifecycle: ring(map(lifecycle)?, options.ring_bytes)?,
            lookups: ring(map(lookups)?, options.ring_bytes)?,
            waits: ring(map(waits)?, settings.waits_ring_bytes())?,
            maps: Maps {
                counts: map_counts(&map(counts)?).map_err(ProbeError::set_up("maps"))?,
                orders: Array::try_from(map(orders)?).map_err(ProbeError::set_up("maps"))?,
                losses: PerCpuArray::try_from(map(losses)?).map_err(ProbeError::set_up("maps"))?,
            },
            hooks: readable.hooks,
            keeper,
            iterators: readable
                .iterators
                .into_iter()
                .map(|(name, link)| (name, TaskIterator { link }))
                .collect(),
            rights,
            jobs: None,
            options: options.clone(),
            name,
            skipped: None,
        })
    }

    /// The hooks in use.
    pub fn hooks(&self) -> &[Hook] {
        &self.hooks
    }

    /// The iterator of this program, if the recording has one.
    pub(crate) fn iterator(&self, program: &str) -> Option<&TaskIterator> {
        let mut iterators = self.iterators.iter();
        iterators.find(|(name, _)| name == program).map(|(_, iterator)| iterator)
    }
}

impl std::fmt::Debug for Probe {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Probe").field("hooks", &self.hooks).finish_non_exhaustive()
    }
}

impl Maps {
    pub(crate) fn task_counts(&self) -> TaskCounts {
        let count = |nth: usize| self.counts.position(nth * 8).load(Ordering::Acquire) as u64;
        // Read in this order, so that `born` includes every ended task.
        let ended = count(1);
        TaskCounts {
            born: count(0),
            ended,
            lost: count(2),
            held_up: count(3),
            held_up_ns: count(4),
        }
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

fn map_of(descriptor: OwnedFd) -> Result<Map, ProbeError> {
    MapData::from_fd(descriptor).and_then(Map::from_map_data).map_err(ProbeError::set_up("maps"))
}

fn map_counts(map: &Map) -> io::Result<Mapping> {
    let Map::Array(map) = map else {
        return Err(io::Error::other("the map is not an array"));
    };
    Mapping::new(map.fd().as_fd(), ProtFlags::READ, 0, page_size())
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
        "on_moved" | "on_removed" => Kind::Moved,
        "on_closing" | "on_end_of_writer" => Kind::Written,
        "on_entry" => Kind::LookupTime,
        "on_sample" => Kind::Sample,
        name if name.starts_with(RETURN_PROGRAM) => Kind::LookupFailed,
        name if name.starts_with(ENTRY_PROGRAM) => Kind::LookupTime,
        _ => Kind::Loss,
    }
}

/// Checks that the requested processes exist and may be recorded, by a process that may record only what it
/// may trace.
///
/// # Errors
/// The one that does not, or may not.
pub fn check_own_pids(wanted: &Options) -> Result<(), ProbeError> {
    let rights = Rights::of_this_process().map_err(ProbeError::system("read our capabilities"))?;
    check_pids(wanted, Rights { restricted: true, ..rights })
}

/// Says that a requested process does not exist, or may not be recorded, before anything is loaded.
fn check_pids(wanted: &Options, rights: Rights) -> Result<(), ProbeError> {
    let Scope::Pids(pids) = &wanted.scope else { return Ok(()) };
    for pid in pids {
        if !Path::new(&format!("/proc/{pid}")).is_dir() {
            return Err(ProbeError::Option(format!("there is no process {pid}")));
        }
        rights.check(*pid)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compiled;

    #[test]
    fn every_program_has_a_kind_of_record() {
        let object =
            aya_obj::Object::parse(&compiled::programs()).expect("the object that was compiled in");
        assert!(object.programs.len() > 10, "{:?}", object.programs.keys());
        for name in object.programs.keys() {
            assert_ne!(kind_of_program(name), Kind::Loss, "{name}");
        }
    }
}
