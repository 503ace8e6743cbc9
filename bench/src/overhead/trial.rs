//! One run of a payload, with or without a tracer: its time, the tracer's cost, and the observed
//! events.

use std::ffi::OsString;
use std::fs;
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use nix::errno::Errno;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid, waitpid};
use serde::{Deserialize, Serialize};

use super::counts::Seen;
use super::own;
use super::site::{Site, plain};
use super::tracers::{How, Ready, Stop, Tracer};
use super::tree;
use super::watch::{Watch, Watched, interrupt, kill_group, nix_pid, real};

/// The results of one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Trial {
    /// Wall time of the payload alone, from before its fork to after its wait.
    pub(crate) payload_wall_ns: u64,
    /// User and system time of the payload alone.
    pub(crate) payload_cpu_ns: u64,
    /// CPU time of payload, tracer and stopwatch, from first start to last exit.
    pub(crate) all_cpu_ns: u64,
    /// Wall time from the first start to the last exit.
    pub(crate) command_wall_ns: u64,
    pub(crate) output_bytes: u64,
    pub(crate) tracer_peak_bytes: Option<u64>,
    /// CPU time of the tracer when the payload began, if it reports it.
    #[serde(default)]
    pub(crate) tracer_loading_ns: Option<u64>,
    pub(crate) seen: Seen,
}

const READY_LIMIT: Duration = Duration::from_secs(60);
const READY_POLL: Duration = Duration::from_millis(20);
/// Time without a new descriptor after which everything counts as attached.
const READY_QUIET: Duration = Duration::from_millis(300);

/// Runs it; fails if the run takes longer than `limit`.
pub(super) fn run(
    tracer: &Tracer,
    payload: &[OsString],
    site: &mut Site,
    limit: Duration,
) -> Result<Trial> {
    site.clear()?;
    let cpu_before_ns = children_cpu_ns()?;
    let began = Instant::now();
    let ended = match tracer.how {
        How::Starts(command) => started_by(command(site)?, tracer, payload, site, limit),
        How::Beside(commands, ready, stop) => beside(commands, ready, stop, payload, site, limit),
    };
    let command_wall_ns = u64::try_from(began.elapsed().as_nanos())?;
    reap_strays()?;
    let all_cpu_ns = children_cpu_ns()? - cpu_before_ns;
    let watched = ended?;
    if watched.timed_out {
        bail!("timed out after {} s", limit.as_secs());
    }
    let (payload_wall_ns, payload_cpu_ns) = stop_watch(site)?;
    let mut seen = (tracer.count)(site)?;
    let (execs, exits) = tracer.sees_of_stop_watch();
    seen.counts = seen.counts.without(execs, exits);
    let tracer_loading_ns =
        (tracer.name == super::tracers::PROCTRACE).then(|| own::loading_ns(site)).transpose()?;
    Ok(Trial {
        tracer_loading_ns,
        payload_wall_ns,
        payload_cpu_ns,
        all_cpu_ns,
        command_wall_ns,
        output_bytes: site.output_bytes()?,
        tracer_peak_bytes: watched.peak_bytes.filter(|_| tracer.name != super::tracers::NONE),
        seen,
    })
}

fn started_by(
    mut command: Command,
    tracer: &Tracer,
    payload: &[OsString],
    site: &Site,
    limit: Duration,
) -> Result<Watched> {
    if tracer.name != super::tracers::NONE {
        command.arg(&site.timed);
    }
    command.arg(site.stop_watch()).args(payload).stdin(Stdio::null()).stdout(Stdio::null());
    plain(command.stderr(site.append_log()?)).process_group(0);
    let mut child = command.spawn().context("cannot start it")?;
    let watch = Watch::start(vec![child.id()], vec![child.id()], limit);
    let waited = wait_unreaped(child.id());
    let watched = watch.finish();
    let status = child.wait()?;
    waited?;
    let watched = watched?;
    ensure!(status.success() || watched.timed_out, "{status}: {}", site.last_words());
    Ok(watched)
}

fn beside(
    commands: fn(&Site) -> Result<Vec<Command>>,
    ready: Ready,
    stop: Stop,
    payload: &[OsString],
    site: &mut Site,
    limit: Duration,
) -> Result<Watched> {
    let mut gated = Command::new(&site.timed);
    gated.arg("-g").arg(site.stop_watch()).args(payload);
    plain(gated.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()));
    let mut gated = gated.process_group(0).spawn().context("cannot start the payload")?;
    site.root_pid = u64::from(gated.id());
    site.others = tree::alive();
    let mut tracers = Vec::new();
    let ended = (|| {
        for mut command in commands(site)? {
            let input = if stop == Stop::EndOfInput { Stdio::piped() } else { Stdio::null() };
            plain(command.stdin(input).stderr(site.append_log()?)).process_group(0);
            tracers.push(command.spawn().context("cannot start it")?);
        }
        await_ready(&tracers, ready, site)?;
        // Repeated: the tracer has not seen the parents of tasks created meanwhile.
        site.others.extend(tree::alive());
        site.others.remove(&site.root_pid);
        let pids: Vec<u32> = tracers.iter().map(Child::id).collect();
        let groups = pids.iter().copied().chain([gated.id()]).collect();
        let watch = Watch::start(pids.clone(), groups, limit);
        gated.stdin.take().context("the payload's stdin is not piped")?.write_all(b"\n")?;
        let mut waited = wait_unreaped(gated.id());
        for tracer in &mut tracers {
            match stop {
                Stop::Interrupt => interrupt(tracer.id()),
                Stop::EndOfInput => drop(tracer.stdin.take()),
            }
            waited = waited.and(wait_unreaped(tracer.id()));
        }
        let watched = watch.finish();
        waited.and(watched)
    })();
    if ended.is_err() {
        tracers.iter().chain([&gated]).for_each(|child| kill_group(child.id()));
    }
    for child in tracers.iter_mut().chain([&mut gated]) {
        // This closes its input, so it does not block at the gate.
        child.wait()?;
    }
    super::raw_ftrace::clean();
    ended
}

/// Waits until the tracers are attached; fails if one exits or the time limit expires.
fn await_ready(tracers: &[Child], ready: Ready, site: &Site) -> Result<()> {
    let began = Instant::now();
    let (mut held, mut since) = (0, Instant::now());
    loop {
        std::thread::sleep(READY_POLL);
        for tracer in tracers {
            let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT | WaitPidFlag::WNOHANG;
            let state = waitid(Id::Pid(nix_pid(tracer.id())), flags)?;
            ensure!(
                state == WaitStatus::StillAlive,
                "it exited immediately: {}",
                site.last_words()
            );
        }
        ensure!(began.elapsed() < READY_LIMIT, "it was not ready within a minute");
        match ready {
            Ready::Writes(file) => {
                if file(site).exists() {
                    return Ok(());
                }
            }
            Ready::Holds(kind, at_least) => {
                let each: Vec<usize> =
                    tracers.iter().map(|tracer| descriptors(real(tracer.id()), kind)).collect();
                let now = each.iter().sum();
                if now != held {
                    (held, since) = (now, Instant::now());
                }
                let enough = each.iter().all(|count| *count >= at_least);
                if enough && since.elapsed() >= READY_QUIET {
                    return Ok(());
                }
            }
        }
    }
}

fn descriptors(pid: u32, kind: &str) -> usize {
    let entries = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let links = entries.filter_map(|entry| fs::read_link(entry.path()).ok());
    links.filter(|link| link.to_string_lossy().contains(kind)).count()
}

/// Waits for a process to exit without reaping it, so that its pid is not reused.
fn wait_unreaped(pid: u32) -> Result<()> {
    loop {
        match waitid(Id::Pid(nix_pid(pid)), WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT) {
            Err(Errno::EINTR) => {}
            other => return other.map(drop).context("cannot wait"),
        }
    }
}

/// Reaps orphans of a tracer: we are their subreaper, so their CPU time is accounted to us.
fn reap_strays() -> Result<()> {
    let deadline = Instant::now() + Duration::from_secs(5);
    loop {
        match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Err(Errno::ECHILD) => return Ok(()),
            Err(Errno::EINTR) => {}
            Err(error) => return Err(error).context("cannot wait for remaining processes"),
            Ok(WaitStatus::StillAlive) if Instant::now() > deadline => {
                bail!("processes of the run did not end")
            }
            Ok(WaitStatus::StillAlive) => std::thread::sleep(Duration::from_millis(1)),
            Ok(_) => {}
        }
    }
}

/// User and system time of all reaped children.
fn children_cpu_ns() -> Result<u64> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let ns = |time: nix::sys::time::TimeVal| -> Result<u64> {
        Ok(u64::try_from(time.tv_sec() * 1_000_000 + time.tv_usec())? * 1000)
    };
    Ok(ns(usage.user_time())? + ns(usage.system_time())?)
}

/// The output of the fixture `timed`: wall and CPU time.
fn stop_watch(site: &Site) -> Result<(u64, u64)> {
    let text = fs::read_to_string(site.stop_watch()).context("the payload was not timed")?;
    let numbers: Vec<u64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let [wall_ns, user_us, system_us, status] = numbers[..] else { bail!("timed wrote {text:?}") };
    ensure!(status == 0, "the payload failed ({status})");
    Ok((wall_ns, (user_us + system_us) * 1000))
}
