//! The recorder of the node, and the rows that it leaves.

use std::fs;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::Deserialize;

use super::cluster::{in_cgroup, wait_until};
use super::printed::text_of;
use super::site::Site;

/// The secret under which the lake has the names of users.
pub(super) const SITE_KEY: &[u8] = b"a key of sixteen or more bytes";

/// Something that records the jobs of the node.
#[derive(Debug)]
pub(super) struct Recorder {
    child: Child,
    log: PathBuf,
}

impl Recorder {
    /// Starts one, and returns when it is ready.
    pub(super) fn new(site: &Site, proctrace: &Path, name: &str) -> Result<Self> {
        let cgroup = site.cgroups()[0].join("recorder");
        fs::create_dir_all(&cgroup)?;
        fs::write(site.path("key"), SITE_KEY)?;
        // sd_notify(3), as systemd does it for a unit of Type=notify.
        let socket_path = site.path(name);
        let socket = UnixDatagram::bind(&socket_path)?;
        socket.set_nonblocking(true)?;
        let log = site.path(&format!("{name}.log"));
        let child = in_cgroup(&cgroup)
            .arg(proctrace)
            .args(["record", "--all"])
            .arg(format!("--per-cgroup={}", site.pattern()))
            .arg("--output")
            .arg(site.path("out"))
            .arg("--summary")
            .arg(lake(site))
            .args(["--discard-trace", "--site-key"])
            .arg(site.path("key"))
            .env("NOTIFY_SOCKET", &socket_path)
            .stdin(std::process::Stdio::null())
            .stderr(fs::File::create(&log)?)
            .spawn()
            .with_context(|| format!("cannot run {}", proctrace.display()))?;
        let mut recorder = Self { child, log };
        let mut message = [0; 256];
        let mut length = None;
        wait_until("the recorder to be ready", Duration::from_secs(60), || {
            length = socket.recv(&mut message).ok();
            ensure!(
                recorder.child.try_wait()?.is_none(),
                "the recorder ended: {}",
                recorder.said()
            );
            Ok(length.is_some())
        })?;
        let message = String::from_utf8_lossy(&message[..length.unwrap_or_default()]).into_owned();
        ensure!(message.contains("READY=1"), "the recorder says {message}");
        Ok(recorder)
    }

    fn said(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Kills it as the out-of-memory killer would.
    pub(super) fn kill(mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Ends it as systemd does, and returns its last line.
    pub(super) fn stop(mut self) -> Result<String> {
        kill(Pid::from_raw(self.child.id().try_into()?), Signal::SIGTERM)?;
        let mut ended = None;
        wait_until("the recorder to end", Duration::from_secs(120), || {
            ended = self.child.try_wait()?;
            Ok(ended.is_some())
        })?;
        let said = self.said();
        if !ended.is_some_and(|status| status.success()) {
            bail!("the recorder ended with {ended:?}: {said}");
        }
        Ok(said.lines().last().unwrap_or_default().to_owned())
    }
}

/// Directory of summaries.
fn lake(site: &Site) -> PathBuf {
    site.path("lake")
}

/// Row of the lake about a job.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Row {
    pub(super) batch_system: Option<String>,
    pub(super) batch_id: Option<String>,
    pub(super) claimed_batch_id: Option<String>,
    pub(super) site: Option<String>,
    pub(super) queue: Option<String>,
    pub(super) user_hash: Option<String>,
    pub(super) command: Option<String>,
    pub(super) exit_code: Option<i64>,
    pub(super) processes: Option<u64>,
    pub(super) lost_records: Option<u64>,
    pub(super) partial: Option<bool>,
    pub(super) sound: Option<bool>,
}

/// All rows, in order of time.
pub(super) fn rows(site: &Site, proctrace: &Path) -> Result<Vec<Row>> {
    let text = text_of(
        Command::new(proctrace)
            .args(["fleet", "--format", "json"])
            .arg("SELECT * FROM jobs ORDER BY started_unix_us")
            .arg(lake(site)),
    )?;
    serde_json::from_str(&text).context("cannot read the rows of the lake")
}

/// The number of jobs of which a summary was written.
pub(super) fn summaries(site: &Site) -> Result<usize> {
    let mut summaries = 0;
    let Ok(days) = fs::read_dir(lake(site).join("table=jobs")) else { return Ok(0) };
    for day in days {
        for entry in fs::read_dir(day?.path())? {
            // A file that is being written has another name.
            summaries += usize::from(!entry?.file_name().to_string_lossy().starts_with('.'));
        }
    }
    Ok(summaries)
}
