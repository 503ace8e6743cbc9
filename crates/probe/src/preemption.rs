//! Preemption of BPF programs: whether one can be interrupted by another task's.
//!
//! A trampoline disables migration, but not preemption. On a fully preemptible kernel a task can
//! lose the CPU in the middle of a program; until it runs again, the kernel skips that program for
//! all other tasks on that CPU (recursion_misses). Tracepoints disable preemption, until Linux 7.0.
//! Seen on 6.12 with preempt=full, with four bursts of look-ups on two CPUs: of 120,000 look-ups
//! 16,572 were skipped with fexit, none with the tracepoint.

use std::fs;

use crate::kernel_types::KernelTypes;

/// Preemption of tasks that are in the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// Anywhere.
    Full,
    /// Only where it has stayed in the kernel for a whole tick.
    Lazy,
    /// Only where it allows it.
    Voluntary,
}

/// True if tasks can be preempted anywhere in the kernel.
pub(crate) fn is_full() -> bool {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let release = rustix::system::uname();
    let release = release.release().to_string_lossy();
    let mode = by_debugfs(&read("/sys/kernel/debug/sched/preempt"))
        .or_else(|| by_command_line(&read("/proc/cmdline")))
        .or_else(|| by_config(&read(&format!("/boot/config-{release}"))))
        .or_else(|| by_version(&read("/proc/version")));
    acts_as_full(mode, || knows_function(b"__hrtimer_rearm_deferred"))
}

/// Since 7.1 (9213aa4784cf, whose function BTF has) each end of a time slice preempts at once, by a timer of its own and
/// also with preempt=lazy: 37 parked tasks caused 42,207 skips there. From then on x86 and arm64 have no other mode than
/// these two, so that one that is not known is one of them.
fn acts_as_full(mode: Option<Mode>, slices_end_at_once: impl FnOnce() -> bool) -> bool {
    match mode {
        Some(Mode::Full) => true,
        Some(Mode::Voluntary) => false,
        Some(Mode::Lazy) | None => slices_end_at_once(),
    }
}

/// True if the kernel may skip programs without counting that, so that a trace may lack tasks and not say so.
///
/// Until 6.2, a program that looks for a task's state finds none while another one on that CPU, which was preempted,
/// is in the middle of such a search (`bpf_task_storage_busy`). A pass over all tasks can be preempted there on a fully
/// preemptible kernel. The function that later kernels use instead tells them apart, also where it was backported.
pub(crate) fn skips_silently() -> bool {
    is_full() && !knows_function(b"bpf_task_storage_get_recur")
}

fn knows_function(name: &[u8]) -> bool {
    KernelTypes::open().is_ok_and(|types| types.have(name))
}

fn by_name(name: &str) -> Mode {
    match name {
        "full" => Mode::Full,
        "lazy" => Mode::Lazy,
        _ => Mode::Voluntary,
    }
}

/// `none voluntary (full)`: the mode in parentheses is active.
fn by_debugfs(modes: &str) -> Option<Mode> {
    let (_, rest) = modes.split_once('(')?;
    Some(by_name(rest.split_once(')')?.0))
}

fn by_command_line(line: &str) -> Option<Mode> {
    let mut modes = line.split_ascii_whitespace().filter_map(|word| word.strip_prefix("preempt="));
    modes.next_back().map(by_name)
}

/// The default mode of the kernel's build.
fn by_config(config: &str) -> Option<Mode> {
    let has = |option: &str| config.lines().any(|line| line == option);
    let mode = match () {
        () if has("CONFIG_PREEMPT=y") || has("CONFIG_PREEMPT_RT=y") => Mode::Full,
        () if has("CONFIG_PREEMPT_LAZY=y") => Mode::Lazy,
        () => Mode::Voluntary,
    };
    (!config.is_empty()).then_some(mode)
}

/// Mode by the version of the kernel; with dynamic preemption, this does not reveal the mode.
fn by_version(version: &str) -> Option<Mode> {
    version.split_ascii_whitespace().find_map(|word| match word {
        "PREEMPT" | "PREEMPT_RT" => Some(Mode::Full),
        "PREEMPT_LAZY" => Some(Mode::Lazy),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_source_tells_what_it_knows() {
        let (full, lazy, voluntary) = (Some(Mode::Full), Some(Mode::Lazy), Some(Mode::Voluntary));
        assert_eq!(by_debugfs("none voluntary (full)\n"), full);
        assert_eq!(by_debugfs("full (lazy)\n"), lazy);
        assert_eq!(by_debugfs("(none) voluntary full\n"), voluntary);
        assert_eq!(by_debugfs(""), None);
        assert_eq!(by_command_line("quiet preempt=none preempt=full ro"), full);
        assert_eq!(by_command_line("quiet preempt=voluntary"), voluntary);
        assert_eq!(by_command_line("preempt=lazy"), lazy);
        assert_eq!(by_command_line("quiet"), None);
        assert_eq!(by_config("CONFIG_PREEMPT_DYNAMIC=y\nCONFIG_PREEMPT=y\n"), full);
        assert_eq!(by_config("# CONFIG_PREEMPT is not set\nCONFIG_PREEMPT_LAZY=y\n"), lazy);
        assert_eq!(by_config("# CONFIG_PREEMPT is not set\n"), voluntary);
        assert_eq!(by_config(""), None);
        assert_eq!(by_version("Linux version 6.1.0 (gcc) #1 SMP PREEMPT Debian 6.1\n"), full);
        assert_eq!(by_version("Linux version 6.18.4 #1 SMP PREEMPT_DYNAMIC @0\n"), None);
        assert_eq!(by_version("Linux version 7.3 #1 SMP PREEMPT_LAZY\n"), lazy);
    }

    #[test]
    fn lazy_is_full_where_slices_end_at_once() {
        for mode in [Some(Mode::Lazy), None] {
            assert!(acts_as_full(mode, || true) && !acts_as_full(mode, || false), "{mode:?}");
        }
        assert!(acts_as_full(Some(Mode::Full), || false));
        assert!(!acts_as_full(Some(Mode::Voluntary), || true));
    }
}
