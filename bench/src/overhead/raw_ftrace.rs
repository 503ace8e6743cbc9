//! The kernel's ftrace through tracefs alone, as trace-cmd uses it: a buffer per CPU whose pages
//! are written to a file unparsed, which shows the cost of recording without any formatting.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use serde::{Deserialize, Serialize};
use xtask::run::{as_root, run as execute};

use super::counts::{Counts, Seen};
use super::ring;
use super::site::Site;

pub(super) const TRACEFS: &str = "/sys/kernel/tracing";
const INSTANCE: &str = "/sys/kernel/tracing/instances/proctrace-bench";
const EVENTS: [&str; 4] = [
    "sched/sched_process_fork",
    "sched/sched_process_exec",
    "sched/sched_process_exit",
    "syscalls/sys_exit_openat",
];
/// Interval at which a buffer is drained: at a million small events per second its 1.4 MB last for 50 ms.
const TICK: Duration = Duration::from_millis(20);

/// Task to trace and output files. Stops at the end of its input.
#[derive(Args)]
pub(crate) struct RawFtraceArgs {
    #[arg(long)]
    pid: u32,
    /// Prefix of the output files, to which the CPU is appended.
    #[arg(long)]
    output: PathBuf,
    /// Output file for the number of lost events.
    #[arg(long)]
    summary: PathBuf,
}

#[derive(Serialize, Deserialize)]
struct Summary {
    /// The ids of [`EVENTS`].
    ids: Vec<u16>,
    page_bytes: usize,
    lost: u64,
}

/// Mounts tracefs if it is not mounted.
pub(super) fn mount() -> Result<()> {
    if !Path::new(TRACEFS).join("instances").exists() {
        execute(as_root("mount").args(["-t", "tracefs", "nodev", TRACEFS]))?;
    }
    Ok(())
}

/// Removes the remains of a killed reader.
pub(super) fn clean() {
    if Path::new(INSTANCE).exists() {
        let _ = as_root("rmdir").arg(INSTANCE).status();
    }
}

struct Instance;

impl Drop for Instance {
    fn drop(&mut self) {
        let _ = fs::remove_dir(INSTANCE);
    }
}

fn set(file: &str, value: &str) -> Result<()> {
    let path = Path::new(INSTANCE).join(file);
    fs::write(&path, value).with_context(|| format!("cannot write {value} to {}", path.display()))
}

/// The reader: a separate process, so that its CPU time and memory can be measured.
pub(crate) fn run(args: &RawFtraceArgs) -> Result<()> {
    fs::create_dir(INSTANCE).context("cannot create a trace instance")?;
    let _instance = Instance;
    set("options/event-fork", "1")?;
    set("set_event_pid", &args.pid.to_string())?;
    set("events/syscalls/sys_exit_openat/filter", "ret < 0")?;
    let mut ids = Vec::new();
    for event in EVENTS {
        let id = fs::read_to_string(Path::new(INSTANCE).join(format!("events/{event}/id")))?;
        ids.push(id.trim().parse()?);
        set(&format!("events/{event}/enable"), "1")?;
    }
    let cpus = cpus()?;
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let stop = &stop;
        let readers: Vec<_> =
            cpus.iter().map(|cpu| scope.spawn(move || drain(cpu, &args.output, stop))).collect();
        // The existence of the summary file signals that setup is complete.
        let ready = File::create(&args.summary).context("cannot create the summary");
        let ended = std::io::stdin().read_to_end(&mut Vec::new());
        let off = set("tracing_on", "0");
        stop.store(true, Ordering::Relaxed);
        for reader in readers {
            reader.join().map_err(|_| anyhow::anyhow!("a reader panicked"))??;
        }
        ready?;
        ended?;
        off
    })?;
    let page_bytes = rustix::param::page_size();
    let mut lost = 0;
    for cpu in &cpus {
        let stats = fs::read_to_string(Path::new(INSTANCE).join(format!("per_cpu/{cpu}/stats")))?;
        lost += lost_of(&stats);
    }
    let summary = serde_json::to_vec(&Summary { ids, page_bytes, lost })?;
    fs::write(&args.summary, summary).context("cannot write the summary")
}

fn cpus() -> Result<Vec<String>> {
    let mut cpus = Vec::new();
    for entry in fs::read_dir(Path::new(INSTANCE).join("per_cpu"))? {
        cpus.push(entry?.file_name().into_string().ok().context("the name of a CPU is not UTF-8")?);
    }
    ensure!(!cpus.is_empty(), "there is no per-CPU buffer to read");
    Ok(cpus)
}

/// Writes a CPU's pages to a file until told to stop and the buffer is empty.
fn drain(cpu: &str, output: &Path, stop: &AtomicBool) -> Result<()> {
    let mut name = output.as_os_str().to_owned();
    name.push(format!(".{cpu}"));
    let mut file = File::create(name).context("cannot create the output")?;
    let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let pipe = Path::new(INSTANCE).join(format!("per_cpu/{cpu}/trace_pipe_raw"));
    let mut pipe = OpenOptions::new().read(true).custom_flags(flags).open(pipe)?;
    let mut page = vec![0; rustix::param::page_size()];
    loop {
        // Loaded before reading, so that all events up to the stop are read.
        let last = stop.load(Ordering::Relaxed);
        loop {
            match pipe.read(&mut page) {
                Ok(0) => break,
                // A partially read page is returned without its unused end.
                Ok(length) => {
                    page[length..].fill(0);
                    file.write_all(&page)?;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => bail!("cannot read the trace: {error}"),
            }
        }
        if last {
            return Ok(());
        }
        std::thread::sleep(TICK);
    }
}

/// Events that the kernel overwrote or dropped.
fn lost_of(stats: &str) -> u64 {
    stats
        .lines()
        .filter_map(|line| {
            let (name, number) = line.split_once(": ")?;
            let loss = matches!(name, "overrun" | "commit overrun" | "dropped events");
            loss.then(|| number.trim().parse::<u64>().ok())?
        })
        .sum()
}

pub(super) fn count(site: &Site) -> Result<Seen> {
    let summary = fs::read(summary_file(site)).context("the reader wrote no summary")?;
    let summary: Summary =
        serde_json::from_slice(&summary).context("the summary of the reader is incomplete")?;
    let mut counts = BTreeMap::<u16, u64>::new();
    for entry in fs::read_dir(&site.directory)? {
        let entry = entry?;
        if entry.file_name().as_encoded_bytes().starts_with(b"out") {
            for (id, count) in ring::count(&fs::read(entry.path())?, summary.page_bytes)? {
                *counts.entry(id).or_default() += count;
            }
        }
    }
    let count = |at: usize| summary.ids.get(at).and_then(|id| counts.get(id)).copied().unwrap_or(0);
    Ok(Seen {
        counts: Counts::all(count(0), count(1), count(2), count(3)),
        records: Some(counts.values().sum()),
        lost: Some(summary.lost),
    })
}

pub(super) fn summary_file(site: &Site) -> PathBuf {
    site.directory.join("summary")
}

#[cfg(test)]
mod tests {
    #[test]
    fn losses_are_those_of_the_kernel() {
        let stats = "entries: 5\noverrun: 3\ncommit overrun: 1\nbytes: 100\ndropped events: 2\nread events: 9\n";
        assert_eq!(super::lost_of(stats), 6);
    }
}
