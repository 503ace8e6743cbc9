//! Whether a program in the kernel can be interrupted by another task's.
//!
//! A trampoline keeps a program on its CPU, but does not keep the CPU to it. Where the kernel is fully
//! preemptible, a task can lose the CPU in the middle of a program; until it is back, the
//! kernel skips that program for everybody else there (recursion_misses). Tracepoints disable
//! preemption, until Linux 7.0. Seen on 6.12 with preempt=full, with four storms of look-ups on two
//! CPUs: of 120,000 look-ups 16,572 skipped with fexit, none with the tracepoint.

use std::fs;

/// Whether tasks lose the CPU anywhere in the kernel. With preempt=lazy it takes a task that stays in
/// there for a whole tick.
pub(crate) fn is_full() -> bool {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let release = rustix::system::uname();
    let release = release.release().to_string_lossy();
    full_by_debugfs(&read("/sys/kernel/debug/sched/preempt"))
        .or_else(|| full_by_command_line(&read("/proc/cmdline")))
        .or_else(|| full_by_config(&read(&format!("/boot/config-{release}"))))
        .unwrap_or_else(|| full_by_version(&read("/proc/version")))
}

/// `none voluntary (full)`: the one in use.
fn full_by_debugfs(modes: &str) -> Option<bool> {
    let (_, rest) = modes.split_once('(')?;
    Some(rest.split_once(')')?.0 == "full")
}

fn full_by_command_line(line: &str) -> Option<bool> {
    let mut modes = line.split_ascii_whitespace().filter_map(|word| word.strip_prefix("preempt="));
    Some(modes.next_back()? == "full")
}

/// What the kernel was built to begin with.
fn full_by_config(config: &str) -> Option<bool> {
    let has = |option: &str| config.lines().any(|line| line == option);
    (!config.is_empty()).then(|| has("CONFIG_PREEMPT=y") || has("CONFIG_PREEMPT_RT=y"))
}

/// Of a kernel that can change it, this does not tell what it is.
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
