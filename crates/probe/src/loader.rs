//! Loading the compiled programs into the kernel: relocated by the kernel's types, with the options of a
//! recording as their constants.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use aya::maps::MapError;
use aya::{Btf, Ebpf, EbpfError, EbpfLoader, Endianness, VerifierLogLevel};
use proctrace_record::{Options, Scope};

use crate::btf_extract::{Extracts, extract, names_in_object};
use crate::caller::{Caller, INITIAL_PID_NAMESPACE, PidNamespace, Recorder};
use crate::error::{ProbeError, not_permitted, root_cause};
use crate::hooks::NAMES_ATTACHED_TO;
use crate::kernel_types::KernelTypes;
use crate::options::{ENV_NAME_MAX, ENV_NAMES_MAX, OnFull, Settings};

/// Must equal the constant in recorder.bpf.h.
const SCRATCHES_A_CPU: u32 = 2;

/// `struct env_name` of recorder.bpf.h.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
struct EnvName {
    want: [u64; 4],
    mask: [u64; 4],
}

// SAFETY: a repr(C) struct of integers without padding: any bytes are valid, and all are initialised.
unsafe impl aya::Pod for EnvName {}

/// Constants of the programs, under their names in bpf/.
struct Constants {
    recorder_pid: u32,
    recorder_pidns_dev: u64,
    recorder_pidns_ino: u64,
    recorder_tgid: u32,
    recorder_started_ns: u64,
    pid_level: u32,
    pid_home: u64,
    wake_bytes: u64,
    ring_bytes: u64,
    block_when_full: u32,
    scope: u32,
    scope_cgroup: u64,
    wanted_calls: u32,
    hooked_calls: u32,
    waits_min_ns: u64,
    waits_wake_bytes: u64,
    stack_bytes: u64,
    record_opens: u32,
    time_one_in: u32,
    env_names: [EnvName; ENV_NAMES_MAX],
    env_names_len: u32,
    hash_seed: u64,
    restricted: u32,
    caller_uid: u32,
    caller_gid: u32,
    caller_caps: u64,
    caller_may_trace: u32,
    caller_may_read: u32,
    caller_user_ns: u64,
    caller_user_ns_level: u32,
    empty_programs: u32,
}

impl Constants {
    fn of(settings: Settings<'_>, caller: &Caller) -> Result<Self, ProbeError> {
        let Settings { wanted, ebpf, cgroup, .. } = settings;
        let rights = caller.rights;
        let (recorder_pid, namespace) = match caller.recorder {
            Recorder::Here { pid, namespace } => {
                refuse_memory_in_namespace(wanted, namespace.inode)?;
                (pid, namespace)
            }
            Recorder::Elsewhere { .. } => (0, PidNamespace::default()),
        };
        let (recorder_tgid, recorder_started_ns, pid_level, pid_home) = match caller.recorder {
            Recorder::Here { .. } => (0, 0, 0, 0),
            Recorder::Elsewhere { tgid, started_ns, pid_level, pid_namespace } => {
                (tgid, started_ns, pid_level, pid_namespace)
            }
        };
        Ok(Self {
            recorder_pid,
            recorder_pidns_dev: namespace.device,
            recorder_pidns_ino: namespace.inode,
            recorder_tgid,
            recorder_started_ns,
            pid_level,
            pid_home,
            wake_bytes: u64::from(ebpf.ring_bytes / 4),
            ring_bytes: u64::from(ebpf.ring_bytes),
            block_when_full: u32::from(ebpf.on_full == OnFull::Block),
            scope: match wanted.scope {
                Scope::Launched => 0,
                Scope::Pids(_) => 1,
                Scope::All => 2,
                Scope::Jobs(_) => 3,
            },
            scope_cgroup: cgroup.unwrap_or(0),
            wanted_calls: wanted.misses.bits(),
            hooked_calls: wanted.hooked_calls().bits(),
            // 16 KiB, or a page if that is larger (arm64); only KASAN doubles it.
            stack_bytes: (16 << 10).max(rustix::param::page_size() as u64),
            waits_wake_bytes: u64::from(settings.waits_ring_bytes() / 4),
            waits_min_ns: wanted.waits_min.map_or(0, nanoseconds),
            record_opens: u32::from(wanted.opens),
            time_one_in: wanted.time_one_in.unwrap_or(0),
            env_names: env_names(&wanted.env_names)?,
            env_names_len: u32::try_from(wanted.env_names.len()).unwrap_or(u32::MAX),
            hash_seed: RandomState::new().build_hasher().finish(),
            restricted: u32::from(rights.restricted),
            caller_uid: rights.uid,
            caller_gid: rights.gid,
            caller_caps: rights.capabilities,
            caller_may_trace: u32::from(rights.may_trace),
            caller_may_read: u32::from(rights.may_read),
            caller_user_ns: rights.user_ns,
            caller_user_ns_level: rights.user_ns_level,
            empty_programs: u32::from(ebpf.empty_programs),
        })
    }

    fn set<'a>(&'a self, loader: &mut EbpfLoader<'a>) {
        loader
            .override_global("recorder_pid", &self.recorder_pid, true)
            .override_global("recorder_pidns_dev", &self.recorder_pidns_dev, true)
            .override_global("recorder_pidns_ino", &self.recorder_pidns_ino, true)
            .override_global("recorder_tgid", &self.recorder_tgid, true)
            .override_global("recorder_started_ns", &self.recorder_started_ns, true)
            .override_global("pid_level", &self.pid_level, true)
            .override_global("pid_home", &self.pid_home, true)
            .override_global("wake_bytes", &self.wake_bytes, true)
            .override_global("ring_bytes", &self.ring_bytes, true)
            .override_global("block_when_full", &self.block_when_full, true)
            .override_global("scope", &self.scope, true)
            .override_global("scope_cgroup", &self.scope_cgroup, true)
            .override_global("wanted_calls", &self.wanted_calls, true)
            .override_global("hooked_calls", &self.hooked_calls, true)
            .override_global("stack_bytes", &self.stack_bytes, true)
            .override_global("waits_min_ns", &self.waits_min_ns, true)
            .override_global("waits_wake_bytes", &self.waits_wake_bytes, true)
            .override_global("record_opens", &self.record_opens, true)
            .override_global("time_one_in", &self.time_one_in, true)
            .override_global("env_names", &self.env_names, true)
            .override_global("env_names_len", &self.env_names_len, true)
            .override_global("hash_seed", &self.hash_seed, true)
            .override_global("restricted", &self.restricted, true)
            .override_global("caller_uid", &self.caller_uid, true)
            .override_global("caller_gid", &self.caller_gid, true)
            .override_global("caller_caps", &self.caller_caps, true)
            .override_global("caller_may_trace", &self.caller_may_trace, true)
            .override_global("caller_may_read", &self.caller_may_read, true)
            .override_global("caller_user_ns", &self.caller_user_ns, true)
            .override_global("caller_user_ns_level", &self.caller_user_ns_level, true)
            .override_global("empty_programs", &self.empty_programs, true);
    }
}

/// The kernel's type information.
pub(crate) struct KernelBtf {
    /// The types that the programs refer to, for relocation.
    pub(crate) named: Btf,
    /// The ids of attach targets.
    pub(crate) attachable: Btf,
}

/// The types of the kernel that `object`, one of our compiled BPF objects, needs.
pub(crate) fn kernel_btf(object: &[u8]) -> Result<KernelBtf, ProbeError> {
    let types = KernelTypes::open().map_err(|error| ProbeError::NoBtf(error.to_string()))?;
    let parse = |bytes: &[u8]| {
        Btf::parse(bytes, Endianness::default())
            .map_err(|error| ProbeError::NoBtf(root_cause(&error)))
    };
    let whole = types.bytes();
    let names = names_in_object(object);
    match names.and_then(|names| extract(whole, &names, NAMES_ATTACHED_TO)) {
        Some(Extracts { named, attachable }) => {
            Ok(KernelBtf { named: parse(&named)?, attachable: parse(&attachable)? })
        }
        None => Ok(KernelBtf { named: parse(whole)?, attachable: parse(whole)? }),
    }
}

/// Creates the maps of `object`, the programs of a recording. The programs are loaded later.
pub(crate) fn load_object(
    object: &[u8],
    settings: Settings<'_>,
    btf: &KernelBtf,
    caller: &Caller,
) -> Result<Ebpf, ProbeError> {
    let ring_bytes = settings.ebpf.ring_bytes;
    if !ring_bytes.is_power_of_two() || ring_bytes < 4096 {
        return Err(ProbeError::Option(format!(
            "a ring buffer of {ring_bytes} bytes: it must be a power of two, 4096 or more"
        )));
    }
    if settings.ebpf.on_full == OnFull::Block && caller.rights.restricted {
        return Err(ProbeError::Option(
            "--on-full block makes tasks wait with preemption off, which only root and CAP_SYS_PTRACE may \
             ask for; by ptrace it takes no privileges: --backend ptrace"
                .into(),
        ));
    }
    let constants = Constants::of(settings, caller)?;
    let cpus = aya::util::nr_cpus()
        .map_err(|(_, source)| ProbeError::System { what: "count the CPUs", source })?;
    // aya raises RLIMIT_MEMLOCK if an old kernel requires it; the payload must not inherit that.
    let memlock = rustix::process::getrlimit(rustix::process::Resource::Memlock);
    let mut loader = new_loader();
    loader
        .btf(Some(&btf.named))
        // for task storage: aya creates the map, and only the programs use it
        .allow_unsupported_maps()
        // Used only if the verifier rejects a program.
        .verifier_log_level(VerifierLogLevel::DEBUG | VerifierLogLevel::STATS)
        .map_max_entries("lifecycle", ring_bytes)
        .map_max_entries("lookups", ring_bytes)
        .map_max_entries("waits", settings.waits_ring_bytes())
        .map_max_entries("scratches", SCRATCHES_A_CPU * u32::try_from(cpus).unwrap_or(1));
    constants.set(&mut loader);
    let loaded = loader.load(object);
    let _ = rustix::process::setrlimit(rustix::process::Resource::Memlock, memlock);
    loaded.map_err(|error| match (not_permitted(&error), error) {
        (Some(source), _) => ProbeError::not_permitted("loading", source),
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
/// `EbpfLoader::new` reads and parses all types of the kernel for a default that `btf` replaces: 20
/// ms of CPU time and 8 MB (docs/decisions/0011-kernel-type-extracts.md). It does without them if
/// the file cannot be opened, so it is called in a thread of its own that may open none. No other
/// thread is affected, and if the filter cannot be installed, this costs only time.
pub(crate) fn new_loader() -> EbpfLoader<'static> {
    let thread = std::thread::Builder::new().name("loader".to_owned());
    let made = thread.spawn(|| {
        let _ = refuse_to_open();
        EbpfLoader::new()
    });
    match made.map(std::thread::JoinHandle::join) {
        Ok(Ok(loader)) => loader,
        Ok(Err(_)) | Err(_) => EbpfLoader::new(),
    }
}

/// Makes open(2) and openat(2) fail with ENOENT in this thread, for the rest of its life.
fn refuse_to_open() -> std::io::Result<()> {
    /// Instructions of classic BPF: <linux/bpf_common.h>.
    const LOAD_WORD: u16 = 0x20;
    const JUMP_IF_EQUAL: u16 = 0x15;
    const RETURN: u16 = 0x06;
    let instruction = |code, k, jt| libc::sock_filter { code, jt, jf: 0, k };
    // The number of the system call is the first field of struct seccomp_data (seccomp(2)).
    let mut filter = [
        instruction(LOAD_WORD, 0, 0),
        instruction(JUMP_IF_EQUAL, libc::SYS_openat as u32, 2),
        #[cfg(target_arch = "x86_64")]
        instruction(JUMP_IF_EQUAL, libc::SYS_open as u32, 1),
        #[cfg(not(target_arch = "x86_64"))]
        instruction(JUMP_IF_EQUAL, libc::SYS_openat as u32, 1),
        instruction(RETURN, libc::SECCOMP_RET_ALLOW, 0),
        instruction(RETURN, libc::SECCOMP_RET_ERRNO | libc::ENOENT as u32, 0),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // Needed without CAP_SYS_ADMIN. It holds for this thread, which executes nothing.
    rustix::thread::set_no_new_privs(true)?;
    // SAFETY: the kernel copies the filter, which outlives the call.
    let done = unsafe {
        libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &raw const program)
    };
    if done == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}

/// Refuses to read memory in another namespace than the initial one: there the pids in records differ from those in its
/// /proc.
fn refuse_memory_in_namespace(wanted: &Options, namespace: u64) -> Result<(), ProbeError> {
    if wanted.memory_interval.is_some() && namespace != INITIAL_PID_NAMESPACE {
        return Err(ProbeError::Option(
            "the memory of processes cannot be read from inside a pid namespace".into(),
        ));
    }
    Ok(())
}

/// Nanoseconds as the programs count: at least one, since 0 stands for none.
fn nanoseconds(duration: Duration) -> u64 {
    proctrace_record::nanoseconds(duration).max(1)
}

/// The id of a cgroup: the inode number of its directory.
///
/// # Errors
/// When the path is not one of a cgroup.
pub fn cgroup_id(path: &std::path::Path) -> Result<u64, ProbeError> {
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
    fn only_the_filtered_thread_cannot_open_files() {
        let opens = || std::fs::File::open("/proc/self/status").map(drop);
        let inside = std::thread::spawn(move || {
            refuse_to_open().expect("seccomp filters");
            opens().map_err(|error| error.kind())
        });
        assert_eq!(inside.join().expect("no panic"), Err(std::io::ErrorKind::NotFound));
        opens().expect("this thread has no filter");
        new_loader();
        opens().expect("this thread has no filter still");
    }
}
