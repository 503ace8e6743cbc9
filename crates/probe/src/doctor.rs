//! Determines by trying what this kernel and this user can do.

mod policy;

use std::fs;
use std::os::unix::fs::PermissionsExt;

use proctrace_record::Options;
use rustix::thread::{CapabilitySet, capabilities};

use crate::caller::Caller;
use crate::compiled;
use crate::error::{ProbeError, advice};
use crate::hooks::{EVENTS, Need, attach};
use crate::loader::{kernel_btf, load_object};
use crate::options::{EbpfOptions, Settings};
use crate::rights::Rights;
use crate::seccomp::forbids_bpf;

/// The result of one check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// The name of the check.
    pub name: &'static str,
    /// The verdict.
    pub verdict: Verdict,
    /// The finding.
    pub found: String,
    /// The remedy, if there is one.
    pub advice: Option<String>,
}

/// The outcome of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// As it should be.
    Good,
    /// Worth knowing; recordings are possible.
    Note,
    /// Recording is not possible.
    Bad,
}

/// Checks everything that recording depends on, and tries every hook.
pub fn examine() -> Vec<Check> {
    let mut checks = vec![kernel(), btf(), privileges()];
    checks.extend(seccomp());
    checks.extend(who_is_recorded());
    checks.extend(who_records());
    checks.extend(policy::checks());
    checks.extend([tracepoints(), preemption()]);
    checks.extend(hooks());
    checks
}

impl Check {
    fn good(name: &'static str, found: impl Into<String>) -> Self {
        Self { name, verdict: Verdict::Good, found: found.into(), advice: None }
    }

    fn note(name: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { name, verdict: Verdict::Note, found: found.into(), advice: Some(advice.into()) }
    }

    fn bad(name: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { name, verdict: Verdict::Bad, found: found.into(), advice: Some(advice.into()) }
    }
}

fn kernel() -> Check {
    let name = rustix::system::uname();
    let found = format!(
        "Linux {} on {}",
        name.release().to_string_lossy(),
        name.machine().to_string_lossy()
    );
    Check::good("kernel", found)
}

fn btf() -> Check {
    match kernel_btf(&compiled::programs()) {
        Ok(_) => Check::good("BTF type information", "/sys/kernel/btf/vmlinux"),
        Err(error) => Check::bad(
            "BTF type information",
            error.to_string(),
            "use a distribution kernel of 5.15 or later, or\nbuild yours with CONFIG_DEBUG_INFO_BTF=y",
        ),
    }
}

fn privileges() -> Check {
    let effective = capabilities(None).map_or(CapabilitySet::empty(), |sets| sets.effective);
    let in_user_namespace = fs::read_to_string("/proc/self/uid_map")
        .is_ok_and(|map| map.split_whitespace().last() != Some("4294967295"));
    if in_user_namespace {
        return Check::bad(
            "privileges",
            "inside a user namespace, where the kernel never\nallows BPF",
            "record from outside the container, or in one that\nis not rootless",
        );
    }
    if effective.contains(CapabilitySet::SYS_ADMIN) {
        Check::good("privileges", "CAP_SYS_ADMIN")
    } else if effective.contains(CapabilitySet::BPF | CapabilitySet::PERFMON) {
        Check::good("privileges", "CAP_BPF and CAP_PERFMON")
    } else {
        Check::bad(
            "privileges",
            "neither CAP_BPF with CAP_PERFMON nor CAP_SYS_ADMIN",
            format!("run with sudo, or {}", advice()),
        )
    }
}

/// Check of seccomp, only where there is something to say.
fn seccomp() -> Option<Check> {
    forbids_bpf().then(|| {
        Check::bad(
            "seccomp",
            "a filter forbids bpf(2), as the default profiles\nof container engines do",
            "start the container with a profile that allows bpf(2):\n\
             --security-opt seccomp=PROFILE (docs/broker.md)",
        )
    })
}

fn who_is_recorded() -> Option<Check> {
    const NAME: &str = "recorded processes";
    let rights = Rights::of_this_process().ok()?;
    Some(if rights.restricted {
        Check::good(
            NAME,
            format!(
                "processes that user {} may trace;\n\
                 set-user-ID programs without arguments and paths",
                rights.uid
            ),
        )
    } else if rights.uid == 0 {
        Check::good(NAME, "all, with arguments and environment")
    } else {
        Check::note(
            NAME,
            "all, because of CAP_SYS_PTRACE: anyone who may\n\
             execute this file can read the arguments and\n\
             environments of all users, including root",
            "without that capability, users record only what\n\
             they run: setcap cap_bpf,cap_perfmon+ep",
        )
    })
}

/// A file with capabilities that everybody may execute grants them to everybody.
fn who_records() -> Option<Check> {
    const NAME: &str = "permission to record";
    const ATTRIBUTE: &str = "security.capability";
    let file = std::env::current_exe().ok()?;
    let mut value = [0; 64];
    rustix::fs::getxattr(&file, ATTRIBUTE, &mut value[..]).ok().filter(|bytes| *bytes > 0)?;
    let is_ignored = rustix::fs::statvfs(&file)
        .is_ok_and(|mount| mount.f_flag.contains(rustix::fs::StatVfsMountFlags::NOSUID));
    let file_mode = fs::metadata(&file).ok()?.permissions().mode();
    let file = file.display();
    if is_ignored {
        return Some(Check::note(
            NAME,
            format!(
                "{file} has capabilities, which the\nkernel ignores: it is on a mount with nosuid"
            ),
            "use a copy on a local disk, or a broker (docs/broker.md)",
        ));
    }
    Some(if file_mode & 0o001 == 0 {
        Check::good(NAME, format!("{file} has capabilities,\nand not all users may execute it"))
    } else {
        Check::note(
            NAME,
            format!(
                "all users: {file} has capabilities,\n\
                 so anyone who executes it runs BPF programs in the\n\
                 kernel, at system calls and context switches of all\n\
                 processes"
            ),
            advice(),
        )
    })
}

fn tracepoints() -> Check {
    const NAME: &str = "classic tracepoints";
    let paranoid = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap_or_default();
    let paranoid = paranoid.trim();
    match crate::tracefs::Tracefs::open()
        .and_then(|tracefs| tracefs.tracepoint_id("syscalls", "sys_exit_openat"))
    {
        Ok(_) => {
            Check::good(NAME, format!("tracefs is readable, perf_event_paranoid is {paranoid}"))
        }
        Err(error) => Check::note(
            NAME,
            format!("tracefs: {error}; perf_event_paranoid is {paranoid}"),
            "where fexit is not used, recordings use the\n\
             more expensive hook tp_btf/sys_exit; root or\n\
             CAP_SYS_ADMIN avoids that",
        ),
    }
}

fn preemption() -> Check {
    if !crate::preemption::is_full() {
        return Check::good("preemption", "not full");
    }
    let found = "full: failed look-ups are taken from tracepoints,\nbecause hooks on functions would miss some";
    if crate::preemption::skips_silently() {
        let advice = "this kernel may skip programs without counting that, so that figures are lower bounds;\n\
                      Linux 6.2 and later do not, nor do kernels that are not fully preemptible";
        return Check::note("preemption", found, advice);
    }
    Check::good("preemption", found)
}

fn hooks() -> Vec<Check> {
    let object = compiled::programs();
    let Ok(btf) = kernel_btf(&object) else { return Vec::new() };
    // The smallest rings suffice: nothing is recorded.
    let own = EbpfOptions { ring_bytes: 4096, ..EbpfOptions::default() };
    let settings =
        Settings { wanted: &Options::default(), ebpf: &own, cgroup: None, tracefs: None };
    let caller = Caller::this_process();
    let mut ebpf = match caller.and_then(|caller| load_object(&object, settings, &btf, &caller)) {
        Ok(ebpf) => ebpf,
        Err(error) => {
            // The other lines repeat what the check of privileges says.
            let text = error.to_string();
            let found = text.lines().next().unwrap_or_default();
            return vec![Check::bad("loading", found, "see the checks above")];
        }
    };
    let preempted = crate::preemption::is_full();
    EVENTS
        .iter()
        .map(|event| match attach(event, &mut ebpf, &btf.attachable, settings, preempted) {
            Ok((hook, _detached_when_dropped)) => Check::good(event.name, hook.hook),
            Err(error) if event.need(settings) == Need::Must => Check::bad(
                event.name,
                error.to_string(),
                "recording is not possible without this hook",
            ),
            Err(error) => {
                // That nothing is allowed is said elsewhere.
                let why = match &error {
                    ProbeError::NotPermitted { source, .. } => source.to_string(),
                    error => error.to_string(),
                };
                Check::note(event.name, why, "recordings work without this hook")
            }
        })
        .collect()
}
