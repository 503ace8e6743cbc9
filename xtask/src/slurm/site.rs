//! The files of a cluster of one node, in a directory of its own: configuration, keys, scripts.

use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::printed::text_of;

/// The node's name, and what it resolves to. glibc resolves nothing in a network namespace in which no address but
/// 127.0.0.1 is configured (getaddrinfo(3), AI_ADDRCONFIG), so there is one of those for documentation (RFC 5737).
pub(super) const NODE: &str = "n1";
pub(super) const ADDRESS: &str = "192.0.2.1";
pub(super) const CLUSTER: &str = "proctrace";
pub(super) const PARTITION: &str = "long";

/// Two users that every system has.
pub(super) const USERS: [&str; 2] = ["nobody", "daemon"];

/// The directory, and the cgroup that everything runs in.
#[derive(Debug)]
pub(super) struct Site {
    pub(super) directory: PathBuf,
    /// Mount point of cgroup v2.
    pub(super) mounted: PathBuf,
    /// The name of the cgroup below it.
    pub(super) cgroup: String,
    /// True if controllers of cgroup v1 are mounted, too.
    pub(super) is_hybrid: bool,
}

impl Site {
    /// Writes what does not change.
    pub(super) fn new() -> Result<Self> {
        let cgroup = format!("proctrace-slurm-{}", std::process::id());
        let memberships = fs::read_to_string("/proc/self/cgroup")?;
        let site = Self {
            directory: std::env::temp_dir().join(&cgroup),
            mounted: mount_point()?,
            cgroup,
            is_hybrid: memberships.lines().any(|line| !line.starts_with("0::")),
        };
        // Nobody else may have made it.
        fs::create_dir(&site.directory)
            .with_context(|| format!("cannot make {}", site.directory.display()))?;
        set_mode(&site.directory, 0o755)?;
        for (name, mode) in [("state", 0o700), ("spool", 0o755), ("run", 0o755), ("jobs", 0o1777)] {
            fs::create_dir(site.path(name))?;
            set_mode(&site.path(name), mode)?;
        }
        fs::write(site.path("hosts"), format!("127.0.0.1 localhost\n127.0.0.1 {NODE}\n"))?;
        let mut key = [0; 128];
        fs::File::open("/dev/urandom")?.read_exact(&mut key)?;
        fs::write(site.path("munge.key"), key)?;
        set_mode(&site.path("munge.key"), 0o400)?;
        fs::write(site.path("cgroup.conf"), "CgroupPlugin=cgroup/v2\nIgnoreSystemd=yes\n")?;
        fs::write(
            site.path("prolog"),
            format!("#!/bin/sh\necho \"$SLURM_JOB_ID\" >> {}\n", site.path("prologs").display()),
        )?;
        set_mode(&site.path("prolog"), 0o755)?;
        if site.is_hybrid {
            fs::write(site.path("unified.c"), include_str!("unified.c"))?;
            let mut compiler = Command::new("cc");
            compiler.args(["-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o"]);
            compiler.arg(site.path("unified.so")).arg(site.path("unified.c")).arg("-ldl");
            text_of(&mut compiler)?;
        }
        Ok(site)
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// The cgroup of everything, and the one that is the root to the node.
    pub(super) fn cgroups(&self) -> [PathBuf; 2] {
        let all = self.mounted.join(&self.cgroup);
        let node = all.join("node");
        [all, node]
    }

    /// The pattern of the cgroups of jobs.
    pub(super) fn pattern(&self) -> String {
        format!("{}/node/system.slice/*slurmstepd.scope/job_*", self.cgroup)
    }

    /// Writes slurm.conf: with a prolog and a step for what is outside of steps, or without.
    pub(super) fn configure(&self, with_prolog: bool) -> Result<()> {
        let prolog = match with_prolog {
            true => format!("Prolog={}\nPrologFlags=Contain", self.path("prolog").display()),
            false => String::new(),
        };
        // jobacct_gather/cgroup needs the controllers.
        let gather = if self.is_hybrid { "linux" } else { "cgroup" };
        let text = format!(
            "ClusterName={CLUSTER}
SlurmctldHost={NODE}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={at}/run/munge.socket,cred_expire=5
CredType=cred/munge
StateSaveLocation={at}/state
SlurmdSpoolDir={at}/spool
SlurmctldPidFile={at}/run/slurmctld.pid
SlurmdPidFile={at}/run/slurmd.pid
SlurmctldLogFile={at}/run/slurmctld.log
SlurmdLogFile={at}/run/slurmd.log
SlurmdParameters=config_overrides
SchedulerParameters=sched_interval=1,batch_sched_delay=0
ProctrackType=proctrack/cgroup
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/{gather}
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SwitchType=switch/none
MpiDefault=none
MailProg=/bin/true
MinJobAge=86400
KillWait=5
ReturnToService=2
{prolog}
NodeName={NODE} NodeAddr=127.0.0.1 CPUs=16 State=UNKNOWN
PartitionName={PARTITION} Nodes={NODE} Default=YES MaxTime=10 State=UP
",
            at = self.directory.display(),
        );
        fs::write(self.path("slurm.conf"), text)?;
        Ok(())
    }

    /// A pipe on which the script of a job waits.
    pub(super) fn make_fifo(&self, name: &str) -> Result<PathBuf> {
        let path = self.path("jobs").join(name);
        if path.exists() {
            return Ok(path);
        }
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::empty())?;
        set_mode(&path, 0o666)?;
        Ok(path)
    }

    /// The last lines of the logs of the daemons.
    pub(super) fn logs(&self) -> String {
        let tail = |name: &str| {
            let text = fs::read_to_string(self.path("run").join(name)).unwrap_or_default();
            let lines: Vec<&str> = text.lines().collect();
            format!("{name}:\n{}\n", lines[lines.len().saturating_sub(20)..].join("\n"))
        };
        ["munged.log", "slurmctld.log", "slurmd.log"].map(tail).concat()
    }
}

/// Directory on which cgroup v2 is mounted.
fn mount_point() -> Result<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mounts")?;
    let mut fields = mounts.lines().map(|line| line.split(' ').skip(1));
    let found = fields.find_map(|mut of| of.next().filter(|_| of.next() == Some("cgroup2")));
    match found {
        Some(path) => Ok(path.into()),
        None => bail!("cgroup v2 is not mounted"),
    }
}

fn set_mode(path: &Path, mode: u32) -> Result<()> {
    fs::set_permissions(path, fs::Permissions::from_mode(mode))?;
    Ok(())
}
