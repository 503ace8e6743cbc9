//! Whether a BPF program can be preempted by another task's.
//!
//! A trampoline disables migration, but not preemption. On a fully preemptible kernel a task can
//! lose the CPU in the middle of a program; until it runs again, the kernel skips that program for
//! all other tasks on that CPU (recursion_misses). Tracepoints disable preemption, until Linux 7.0.
//! Seen on 6.12 with preempt=full, with four bursts of look-ups on two CPUs: of 120,000 look-ups
//! 16,572 were skipped with fexit, none with the tracepoint.

use std::fs;

/// Whether tasks can be preempted anywhere in the kernel. With preempt=lazy this requires a task
/// that stays in the kernel for a whole tick.
pub(crate) fn is_full() -> bool {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let release = rustix::system::uname();
    let release = release.release().to_string_lossy();
    full_by_debugfs(&read("/sys/kernel/debug/sched/preempt"))
        .or_else(|| full_by_command_line(&read("/proc/cmdline")))
        .or_else(|| full_by_config(&read(&format!("/boot/config-{release}"))))
        .unwrap_or_else(|| full_by_version(&read("/proc/version")))
}

/// Whether the kernel may skip programs without counting that, so that a trace may lack tasks and not say so.
///
/// Until 6.2, a program that looks for a task's state finds none while another one on that CPU, which was preempted,
/// is in the middle of such a search (`bpf_task_storage_busy`). A pass over all tasks can be preempted there on a fully
/// preemptible kernel. The function that later kernels use instead tells them apart, also where it was backported.
pub(crate) fn skips_silently() -> bool {
    is_full() && !knows_function(b"bpf_task_storage_get_recur")
}

/// Whether the kernel's types have a name, which ends in NUL there.
fn knows_function(name: &[u8]) -> bool {
    let types = fs::read("/sys/kernel/btf/vmlinux").unwrap_or_default();
    let named = [b"\0", name, b"\0"].concat();
    types.windows(named.len()).any(|bytes| bytes == named)
}

/// `none voluntary (full)`: the mode in parentheses is active.
fn full_by_debugfs(modes: &str) -> Option<bool> {
    let (_, rest) = modes.split_once('(')?;
    Some(rest.split_once(')')?.0 == "full")
}

fn full_by_command_line(line: &str) -> Option<bool> {
    let mut modes = line.split_ascii_whitespace().filter_map(|word| word.strip_prefix("preempt="));
    Some(modes.next_back()? == "full")
}

/// The default mode of the kernel's build.
fn full_by_config(config: &str) -> Option<bool> {
    let has = |option: &str| config.lines().any(|line| line == option);
    (!config.is_empty()).then(|| has("CONFIG_PREEMPT=y") || has("CONFIG_PREEMPT_RT=y"))
}

/// For a kernel with dynamic preemption this does not reveal the mode.
fn full_by_version(version: &str) -> bool {
    version.split_ascii_whitespace().any(|word| matches!(word, "PREEMPT" | "PREEMPT_RT"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_source_tells_what_it_knows() {
        assert_eq!(full_by_debugfs("none voluntary (full)\n"), Some(true));
        assert_eq!(full_by_debugfs("full (lazy)\n"), Some(false));
        assert_eq!(full_by_debugfs("(none) voluntary full\n"), Some(false));
        assert_eq!(full_by_debugfs(""), None);
        assert_eq!(full_by_command_line("quiet preempt=none preempt=full ro"), Some(true));
        assert_eq!(full_by_command_line("quiet preempt=voluntary"), Some(false));
        assert_eq!(full_by_command_line("quiet"), None);
        assert_eq!(full_by_config("CONFIG_PREEMPT_DYNAMIC=y\nCONFIG_PREEMPT=y\n"), Some(true));
        assert_eq!(full_by_config("# CONFIG_PREEMPT is not set\n"), Some(false));
        assert_eq!(full_by_config(""), None);
        assert!(full_by_version("Linux version 6.1.0 (gcc) #1 SMP PREEMPT Debian 6.1\n"));
        assert!(!full_by_version("Linux version 6.18.4 #1 SMP PREEMPT_DYNAMIC @0\n"));
    }
}
