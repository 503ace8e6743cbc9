//! The compiled BPF object: loading it with the options of a recording, and access to its maps.

use std::fs::File;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::Ordering;

use aya::maps::{Array, HashMap, Map, MapData, MapError, PerCpuArray};
use aya::programs::Program;
use aya::{Btf, Ebpf, EbpfError, EbpfLoader, Endianness, VerifierLogLevel, include_bytes_aligned};
use proctrace_record::{Options, Scope};
use proctrace_trace::{Hook, LossCount};
use proctrace_wire::{Kind, LossReason};
use rustix::mm::ProtFlags;
use rustix::param::page_size;

use crate::btf_extract::{Extracts, extract, names_in_object};
use crate::error::{ProbeError, not_permitted, root_cause};
use crate::hooks::{Hooks, NAMES_ATTACHED_TO, RETURN_PROGRAM, attach_all};
use crate::mapping::Mapping;
use crate::options::{ENV_NAME_MAX, ENV_NAMES_MAX, EbpfOptions, OnFull, PIDS_MAX, Settings};
use crate::program_info::{self, ProgramStatistics};
use crate::rights::Rights;
use crate::ring::Ring;

pub(crate) static OBJECT: &[u8] =
    include_bytes_aligned!(concat!(env!("OUT_DIR"), "/proctrace.bpf.o"));

/// The programs, loaded and attached: a source of records.
///
/// Start the recorder's threads after this: during loading, for a short time no file can be opened.
pub struct Probe {
    /// The programs; None once they are detached.
    pub(crate) ebpf: Option<Ebpf>,
    pub(crate) hooks: Hooks,
    pub(crate) lifecycle: Ring,
    pub(crate) lookups: Ring,
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

/// `struct env_name` of recorder.bpf.h.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
struct EnvName {
    want: [u64; 4],
    mask: [u64; 4],
}

// SAFETY: repr(C) structs of integers without padding: any bytes are valid, and all are
// initialised.
unsafe impl aya::Pod for Orders {}
// SAFETY: as above.
unsafe impl aya::Pod for EnvName {}

/// Must equal the constant in recorder.bpf.h.
const SCRATCHES_A_CPU: u32 = 2;

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
        let (counts, orders, losses) = (take("counts")?, take("orders")?, take("losses")?);
        let ring = |map| Ring::new(map, options.ring_bytes).map_err(ProbeError::set_up("rings"));
        let (lifecycle, lookups) = (ring(lifecycle)?, ring(lookups)?);
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
        "on_sample" => Kind::Sample,
        name if name.starts_with(RETURN_PROGRAM) => Kind::LookupFailed,
        _ => Kind::Loss,
    }
}

/// The kernel's type information.
pub(crate) struct KernelBtf {
    /// The types that the programs refer to, for relocation.
    named: Btf,
    /// The ids of attach targets.
    pub(crate) attachable: Btf,
}

pub(crate) fn kernel_btf() -> Result<KernelBtf, ProbeError> {
    let no_btf = |error: io::Error| ProbeError::NoBtf(error.to_string());
    let mut file = File::open("/sys/kernel/btf/vmlinux").map_err(no_btf)?;
    let bytes = file.metadata().map_err(no_btf)?.len() as usize;
    let mut read = Vec::new();
    // Linux 6.16 and later allow mmap here (commit a539e2a6d51d), which saves a copy of 5 MB.
    let mapping = Mapping::of_file(file.as_fd(), bytes);
    let whole = match &mapping {
        // SAFETY: the kernel never changes its type information.
        Ok(mapping) => unsafe { mapping.bytes(0, bytes) },
        Err(_) => {
            file.read_to_end(&mut read).map_err(no_btf)?;
            &read
        }
    };
    let parse = |bytes: &[u8]| {
        Btf::parse(bytes, Endianness::default())
            .map_err(|error| ProbeError::NoBtf(root_cause(&error)))
    };
    let names = names_in_object(OBJECT);
    match names.and_then(|names| extract(whole, &names, NAMES_ATTACHED_TO)) {
        Some(Extracts { named, attachable }) => {
            Ok(KernelBtf { named: parse(&named)?, attachable: parse(&attachable)? })
        }
        None => Ok(KernelBtf { named: parse(whole)?, attachable: parse(whole)? }),
    }
}

pub(crate) fn load_object(
    settings: Settings<'_>,
    btf: &KernelBtf,
    rights: Rights,
) -> Result<Ebpf, ProbeError> {
    let Settings { wanted, ebpf: options } = settings;
    let ring_bytes = options.ring_bytes;
    if !ring_bytes.is_power_of_two() || ring_bytes < 4096 {
        return Err(ProbeError::Option(format!(
            "invalid ring buffer size of {ring_bytes} bytes: it must be a power of two, 4096 or more"
        )));
    }
    let env_names = env_names(&wanted.env_names)?;
    let env_names_len = u32::try_from(wanted.env_names.len()).unwrap_or(u32::MAX);
    let wake_bytes = u64::from(ring_bytes / 4);
    let namespace = std::fs::metadata("/proc/self/ns/pid")
        .map_err(ProbeError::system("read /proc/self/ns/pid (is /proc mounted?)"))?;
    let (namespace_dev, namespace_ino) = (namespace.dev(), namespace.ino());
    // PROC_PID_INIT_INO of linux/proc_ns.h: in another namespace the pids in records differ from
    // those in its /proc.
    if wanted.memory_interval.is_some() && namespace_ino != 0xefff_fffc {
        return Err(ProbeError::Option(
            "the memory of processes cannot be recorded from inside a pid namespace".into(),
        ));
    }
    let pid = std::process::id();
    let scope: u32 = match wanted.scope {
        Scope::Launched => 0,
        Scope::Pids(_) => 1,
        Scope::All => 2,
    };
    // A cgroup's id is the inode number of its directory.
    let scope_cgroup = match &wanted.cgroup {
        None => 0,
        Some(path) => cgroup_id(path)?,
    };
    let wanted_calls = wanted.misses.bits();
    let block = u32::from(options.on_full == OnFull::Block);
    let hash_seed = RandomState::new().build_hasher().finish();
    let cpus = aya::util::nr_cpus()
        .map_err(|(_, source)| ProbeError::System { what: "count the CPUs", source })?;

    // aya raises RLIMIT_MEMLOCK if an old kernel requires it; the payload must not inherit that.
    let memlock = rustix::process::getrlimit(rustix::process::Resource::Memlock);
    let loaded = new_loader()
        .btf(Some(&btf.named))
        // for task storage: aya creates the map, and only the programs use it
        .allow_unsupported_maps()
        // Used only if the verifier rejects a program.
        .verifier_log_level(VerifierLogLevel::DEBUG | VerifierLogLevel::STATS)
        .map_max_entries("lifecycle", ring_bytes)
        .map_max_entries("lookups", ring_bytes)
        .map_max_entries("scratches", SCRATCHES_A_CPU * u32::try_from(cpus).unwrap_or(1))
        .override_global("recorder_pid", &pid, true)
        .override_global("recorder_pidns_dev", &namespace_dev, true)
        .override_global("recorder_pidns_ino", &namespace_ino, true)
        .override_global("wake_bytes", &wake_bytes, true)
        .override_global("ring_bytes", &u64::from(ring_bytes), true)
        .override_global("block_when_full", &block, true)
        .override_global("scope", &scope, true)
        .override_global("scope_cgroup", &scope_cgroup, true)
        .override_global("wanted_calls", &wanted_calls, true)
        .override_global("env_names", &env_names, true)
        .override_global("env_names_len", &env_names_len, true)
        .override_global("hash_seed", &hash_seed, true)
        .override_global("restricted", &u32::from(rights.restricted), true)
        .override_global("caller_uid", &rights.uid, true)
        .override_global("caller_gid", &rights.gid, true)
        .override_global("caller_caps", &rights.capabilities, true)
        .override_global("empty_programs", &u32::from(options.empty_programs), true)
        .load(OBJECT);
    let _ = rustix::process::setrlimit(rustix::process::Resource::Memlock, memlock);
    loaded.map_err(|error| match (not_permitted(&error), error) {
        (Some(source), _) => ProbeError::NotPermitted { call: "loading", source },
        (None, EbpfError::MapError(MapError::CreateError { name, io_error }))
            if name == "tasks" && io_error.raw_os_error() == Some(libc::EINVAL) =>
        {
            ProbeError::NoTaskStorage(io_error)
        }
        (None, error) => ProbeError::Load(error.into()),
    })
}

/// A loader without the kernel's types.
///
/// `EbpfLoader::new` reads and parses all types of the kernel, for a default that is replaced
/// later: 20 ms of CPU time and 8 MB. It skips this if it cannot open the file, so for that moment
/// the limit of open files is zero; see [`Probe::load`] on threads. If it can open the file
/// nevertheless, this costs only time.
fn new_loader() -> EbpfLoader<'static> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let none = Rlimit { current: Some(0), maximum: limit.maximum };
    let closed = setrlimit(Resource::Nofile, none).is_ok();
    let loader = EbpfLoader::new();
    if closed {
        // Restoring the previous limit cannot fail.
        let _ = setrlimit(Resource::Nofile, limit);
    }
    loader
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

fn cgroup_id(path: &std::path::Path) -> Result<u64, ProbeError> {
    let option = |why: &str| {
        Err(ProbeError::Option(format!("cannot record the cgroup {}: {why}", path.display())))
    };
    match std::fs::metadata(path) {
        Err(error) => option(&error.to_string()),
        Ok(_) if !path.join("cgroup.procs").is_file() => {
            option("it is not a directory of a cgroup filesystem")
        }
        Ok(_) if !path.join("cgroup.controllers").is_file() => {
            option("it belongs to cgroup v1; only cgroup v2 is supported")
        }
        Ok(metadata) => Ok(metadata.ino()),
    }
}

fn env_names(names: &[String]) -> Result<[EnvName; ENV_NAMES_MAX], ProbeError> {
    if names.len() > ENV_NAMES_MAX {
        return Err(ProbeError::Option(format!(
            "cannot record {} environment variables: at most {ENV_NAMES_MAX} are possible",
            names.len()
        )));
    }
    let mut out = [EnvName::default(); ENV_NAMES_MAX];
    for (name, slot) in names.iter().zip(&mut out) {
        if name.is_empty() || name.len() > ENV_NAME_MAX || name.contains('=') {
            return Err(ProbeError::Option(format!(
                "cannot record an environment variable named {name:?}: \
                 a name must have 1 to {ENV_NAME_MAX} bytes and no ="
            )));
        }
        for (at, byte) in name.bytes().chain([b'=']).enumerate() {
            slot.want[at / 8] |= u64::from(byte) << (at % 8 * 8);
            slot.mask[at / 8] |= 0xff << (at % 8 * 8);
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_program_has_a_kind_of_record() {
        let object = aya_obj::Object::parse(OBJECT).expect("the object that was compiled in");
        assert!(object.programs.len() > 10, "{:?}", object.programs.keys());
        for name in object.programs.keys() {
            assert_ne!(kind_of_program(name), Kind::Loss, "{name}");
        }
    }
}
