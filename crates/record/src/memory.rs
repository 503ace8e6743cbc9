//! The memory of processes, from /proc/PID/smaps_rollup.
//!
//! No BPF program can compute the proportional share (PSS): for this the kernel walks the page
//! tables of the process with its memory map locked. Because of this cost it is a separate option.

use std::fs;

use proctrace_wire::layout::{Head, Memory, Sample};
use proctrace_wire::{IntoBytes, Kind};

use crate::clock::boot_ns;

/// The memory record of the process whose leader this sample describes; None if it has ended.
pub(crate) fn look(sample: &Sample) -> Option<Vec<u8>> {
    let text = fs::read_to_string(format!("/proc/{}/smaps_rollup", sample.tgid)).ok()?;
    let rollup = Rollup::parse(&text)?;
    let memory = Memory {
        head: Head {
            kind: Kind::Memory as u16,
            size: u16::try_from(size_of::<Memory>()).ok()?,
            task: sample.process,
            time_ns: boot_ns(),
        },
        process: sample.process,
        tgid: sample.tgid,
        rss_bytes: rollup.rss,
        pss_bytes: rollup.pss,
        uss_bytes: rollup.private,
        shared_bytes: rollup.shared,
        swap_bytes: rollup.swap,
        vmem_bytes: vmem_bytes(sample.tgid).unwrap_or(0),
    };
    Some(memory.as_bytes().to_vec())
}

/// The address space of a process: the first number of /proc/PID/statm.
fn vmem_bytes(pid: i32) -> Option<u64> {
    let statm = fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
    let pages: u64 = statm.split(' ').next()?.parse().ok()?;
    pages.checked_mul(u64::try_from(rustix::param::page_size()).ok()?)
}

/// The fields used from smaps_rollup, in bytes.
#[derive(Debug, Default, PartialEq, Eq)]
struct Rollup {
    rss: u64,
    pss: u64,
    private: u64,
    shared: u64,
    swap: u64,
}

impl Rollup {
    fn parse(text: &str) -> Option<Self> {
        let mut rollup = Self::default();
        let mut known = false;
        // The first line is the address range.
        for line in text.lines().skip(1) {
            let (name, value) = line.split_once(':')?;
            let kib = value.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()?;
            let bytes = kib.checked_mul(1024)?;
            let field = match name {
                "Rss" => &mut rollup.rss,
                "Pss" => &mut rollup.pss,
                "Private_Clean" | "Private_Dirty" | "Private_Hugetlb" => &mut rollup.private,
                "Shared_Clean" | "Shared_Dirty" | "Shared_Hugetlb" => &mut rollup.shared,
                "Swap" => &mut rollup.swap,
                _ => continue,
            };
            *field = field.checked_add(bytes)?;
            known = true;
        }
        known.then_some(rollup)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_lines_are_summed_up() {
        let text = "55d0-7ffd ---p 00000000 00:00 0    [rollup]\n\
                    Rss:                1896 kB\nPss:                 247 kB\n\
                    Pss_Anon:             96 kB\nShared_Clean:       1776 kB\n\
                    Shared_Dirty:          4 kB\nPrivate_Clean:         0 kB\n\
                    Private_Dirty:       116 kB\nSwap:                  8 kB\n";
        let want = Rollup {
            rss: 1896 << 10,
            pss: 247 << 10,
            private: 116 << 10,
            shared: 1780 << 10,
            swap: 8 << 10,
        };
        assert_eq!(Rollup::parse(text), Some(want));
        for odd in ["", "x\n", "x\nRss 5", "x\nRss: 5 MB", "x\nRss: 99999999999999999999 kB"] {
            assert_eq!(Rollup::parse(odd), None, "{odd}");
        }
    }
}
