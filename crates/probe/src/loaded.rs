//! The programs of a recording, loaded and attached, as descriptors.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use aya::Ebpf;
use aya::maps::{HashMap, Map, MapData};
use proctrace_record::{Options, Scope};
use proctrace_trace::Hook;

use crate::caller::Caller;
use crate::compiled;
use crate::error::ProbeError;
use crate::hooks::attach_all;
use crate::loader::{kernel_btf, load_object};
use crate::options::{EbpfOptions, PIDS_MAX, Settings};
use crate::tracefs::Tracefs;
use crate::verify::program_fd;

/// The maps that a recorder accesses, in the order of [`Readable::maps`].
pub const MAPS: [&str; 6] = ["lifecycle", "lookups", "waits", "counts", "orders", "losses"];

/// Descriptors of loaded and attached programs, and of what they write to.
#[derive(Debug)]
pub struct Loaded {
    /// Descriptors that a recorder reads: with this alone, it can attach nothing.
    pub readable: Readable,
    /// Descriptors that keep the programs attached.
    pub attached: Attachments,
    /// Maps that only the programs use, and that outlive a recording only if something refers to its programs.
    pub internal: Vec<OwnedFd>,
    /// The map of cgroups that have jobs below them, in a recording of many jobs.
    pub parents: Option<OwnedFd>,
}

/// Descriptors that a recorder needs of loaded programs. None of these descriptors gives access to anything but
/// the records of this recording, and the iterators work in its recorder only.
#[derive(Debug)]
pub struct Readable {
    /// Hooks to which the programs are attached.
    pub hooks: Vec<Hook>,
    /// The maps of [`MAPS`].
    pub maps: [OwnedFd; MAPS.len()],
    /// The links of task iterators, by program name.
    pub iterators: Vec<(String, OwnedFd)>,
}

/// Descriptors that keep programs attached: they are until all copies of these descriptors are closed. Whoever
/// has one of a program can attach that program again, as often as it likes and without any rights
/// (BPF_RAW_TRACEPOINT_OPEN).
#[derive(Debug, Default)]
pub struct Attachments {
    /// The programs by name, for their statistics.
    pub programs: Vec<(String, OwnedFd)>,
    /// The links of programs that are attached to functions or to tracepoints by their BTF.
    pub links: Vec<OwnedFd>,
    /// The events that attach programs to classic tracepoints.
    pub tracepoints: Vec<OwnedFd>,
}

/// The maps that no recorder reads.
const INTERNAL: [&str; 2] = ["tasks", "threads"];

impl Loaded {
    /// Loads the programs and attaches each to the best hook that this kernel offers. `cgroup` is the id of
    /// the cgroup to record, [`cgroup_id`](crate::cgroup_id); the path in `wanted` is not looked at.
    ///
    /// # Errors
    /// When the kernel refuses, or when an event has no hook.
    pub fn load(
        wanted: &Options,
        options: &EbpfOptions,
        cgroup: Option<u64>,
        caller: &Caller,
        tracefs: Option<&Tracefs>,
    ) -> Result<Self, ProbeError> {
        let settings = Settings { wanted, ebpf: options, cgroup, tracefs };
        let object = compiled::programs();
        let btf = kernel_btf(&object)?;
        let mut ebpf = load_object(&object, settings, &btf, caller)?;
        ask_for_pids(&mut ebpf, &wanted.scope)?;
        let hooks = attach_all(&mut ebpf, &btf.attachable, settings)?;
        let mut programs = Vec::new();
        for (name, program) in ebpf.programs() {
            // Those of other hooks have not been loaded.
            let Some(descriptor) = program_fd(program) else { continue };
            programs.push((name.to_owned(), copy(descriptor)?));
        }
        let mut maps = Vec::new();
        for name in MAPS {
            let map = ebpf.map(name).and_then(map_data).ok_or_else(|| missing(name))?;
            maps.push(copy(map.fd().as_fd())?);
        }
        let maps = maps.try_into().map_err(|_| missing("of these"))?;
        let mut internal = Vec::new();
        for name in INTERNAL {
            let map = ebpf.map(name).and_then(map_data).ok_or_else(|| missing(name))?;
            internal.push(copy(map.fd().as_fd())?);
        }
        let parents = match &wanted.scope {
            Scope::Jobs(_) => {
                let map = ebpf.map("scope_parents").and_then(map_data);
                Some(copy(map.ok_or_else(|| missing("scope_parents"))?.fd().as_fd())?)
            }
            _ => None,
        };
        let named = |(name, link): (&str, OwnedFd)| (name.to_owned(), link);
        let iterators = hooks.iterators.into_iter().map(named).collect();
        Ok(Self {
            readable: Readable { hooks: hooks.list, maps, iterators },
            attached: Attachments { programs, links: hooks.links, tracepoints: hooks.tracepoints },
            internal,
            parents,
        })
    }
}

fn copy(descriptor: BorrowedFd<'_>) -> Result<OwnedFd, ProbeError> {
    descriptor
        .try_clone_to_owned()
        .map_err(|source| ProbeError::System { what: "copy a descriptor", source })
}

fn missing(name: &str) -> ProbeError {
    ProbeError::SetUp { what: "maps", source: format!("the object has no map {name}").into() }
}

fn map_data(map: &Map) -> Option<&MapData> {
    match map {
        Map::Array(map)
        | Map::RingBuf(map)
        | Map::PerCpuArray(map)
        | Map::HashMap(map)
        | Map::Unsupported(map) => Some(map),
        _ => None,
    }
}

/// Passes the requested pids to the programs.
fn ask_for_pids(ebpf: &mut Ebpf, scope: &Scope) -> Result<(), ProbeError> {
    let Scope::Pids(pids) = scope else { return Ok(()) };
    if pids.len() > PIDS_MAX {
        return Err(ProbeError::Option(format!(
            "cannot record {} processes: at most {PIDS_MAX} can be given",
            pids.len()
        )));
    }
    let map = ebpf.map_mut("scope_pids").ok_or_else(|| missing("scope_pids"))?;
    let mut map = HashMap::<_, u32, u8>::try_from(map).map_err(ProbeError::set_up("maps"))?;
    for pid in pids {
        map.insert(pid, 1, 0).map_err(ProbeError::set_up("maps"))?;
    }
    Ok(())
}
