//! The node: namespaces in which the daemons of Slurm run, and what removes all of it.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::printed::text_of;
use super::site::{ADDRESS, NODE, Site, USERS};

/// Waits for what the daemons do; they have no way to say that it is done.
pub(super) fn wait_until(
    what: &str,
    limit: Duration,
    mut is_so: impl FnMut() -> Result<bool>,
) -> Result<()> {
    let began = Instant::now();
    while !is_so()? {
        if began.elapsed() > limit {
            bail!("waited {} s for {what}", limit.as_secs());
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    Ok(())
}

/// A shell that removes everything as soon as this process ends, however it does.
#[derive(Debug)]
pub(super) struct Cleaner(Child);

/// Script whose arguments are the cgroup and the directory. A cgroup can be removed when its last process is gone.
const CLEAN: &str = r#"
read -r never
[ -e "$1/cgroup.kill" ] && echo 1 > "$1/cgroup.kill"
n=0
while [ -d "$1" ] && [ $n -lt 100 ]; do
    find "$1" -depth -type d -exec rmdir {} + 2> /dev/null
    [ -d "$1" ] && sleep 0.1
    n=$((n + 1))
done
rm -rf --one-file-system "$2"
[ ! -d "$1" ] && [ ! -e "$2" ]
"#;

impl Cleaner {
    pub(super) fn new(site: &Site) -> Result<Self> {
        let child = Command::new("setsid")
            .args(["sh", "-c", CLEAN, "sh"])
            .args([&site.cgroups()[0], &site.directory])
            .stdin(Stdio::piped())
            .spawn()
            .context("cannot run setsid")?;
        Ok(Self(child))
    }

    /// Removes everything.
    pub(super) fn clean(mut self) -> Result<()> {
        drop(self.0.stdin.take());
        if !self.0.wait()?.success() {
            bail!("something of the cluster is left");
        }
        Ok(())
    }
}

/// The first process of the node; its arguments are the file of hosts, the file that says that it is ready, the name
/// and the address. It waits for all processes that lose their parents.
const INIT: &str = r#"
set -e
hostname "$3"
ip link set lo up
ip address add "$4/32" dev lo
mount -t proc proc /proc
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mount --bind "$1" /etc/hosts
mkdir -p /sys/fs/cgroup/system.slice
: > "$2"
while :; do sleep 3600 & wait $!; done
"#;

/// The namespaces.
#[derive(Debug)]
pub(super) struct Cluster<'a> {
    site: &'a Site,
    /// unshare(1), which takes the first process with it when it ends.
    unshare: Child,
    /// The first process, by its number outside.
    init: String,
}

impl<'a> Cluster<'a> {
    /// Makes the namespaces.
    pub(super) fn new(site: &'a Site) -> Result<Self> {
        let [_, node] = site.cgroups();
        fs::create_dir_all(&node).with_context(|| format!("cannot make {}", node.display()))?;
        let ready = site.path("ready");
        let unshare = in_cgroup(&node)
            .args(["setpriv", "--pdeathsig=KILL", "unshare"])
            .args(["--cgroup", "--mount", "--uts", "--net", "--ipc", "--pid", "--fork"])
            .args(["--kill-child", "sh", "-c", INIT, "sh"])
            .args([&site.path("hosts"), &ready])
            .args([NODE, ADDRESS])
            .stdin(Stdio::null())
            .spawn()
            .context("cannot run unshare")?;
        let children = format!("/proc/{0}/task/{0}/children", unshare.id());
        wait_until("the namespaces", Duration::from_secs(20), || Ok(ready.exists()))?;
        let children = fs::read_to_string(children)?;
        let init = children.split_whitespace().next().context("unshare has no child")?.to_owned();
        Ok(Self { site, unshare, init })
    }

    /// A command in the namespaces, without the environment of this process.
    fn inside(&self, mut before: Command) -> Command {
        before
            .args(["nsenter", "--target", &self.init])
            .args(["--cgroup", "--mount", "--uts", "--net", "--ipc", "--pid"])
            // Entering a mount namespace changes the directory.
            .args(["env".into(), format!("--chdir={}", self.site.path("jobs").display())])
            .env_clear()
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
            .env("SLURM_CONF", self.site.path("slurm.conf"));
        before
    }

    /// A command of root.
    pub(super) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.inside(Command::new("env"));
        command.args(arguments);
        command
    }

    /// A command of a user.
    pub(super) fn command_of(&self, user: usize) -> Result<Command> {
        let name = USERS[user];
        let found = nix::unistd::User::from_name(name)?;
        let found = found.with_context(|| format!("there is no user {name}"))?;
        let mut command = self.inside(Command::new("env"));
        command
            .args(["setpriv", &format!("--reuid={}", found.uid)])
            .args([&format!("--regid={}", found.gid), "--clear-groups"])
            .env("USER", name);
        Ok(command)
    }

    /// Runs a command of root, and returns what it prints.
    pub(super) fn output(&self, arguments: &[&str]) -> Result<String> {
        text_of(&mut self.command(arguments))
    }

    /// Starts a daemon in the node's cgroup; it goes to the background when it is ready.
    fn daemon(&self, arguments: &[&str], preloaded: bool) -> Result<()> {
        let mut command = self.inside(in_cgroup(&self.site.cgroups()[1]));
        if preloaded && self.site.is_hybrid {
            command
                .arg("env")
                .arg(format!("LD_PRELOAD={}", self.site.path("unified.so").display()));
        }
        text_of(command.args(arguments).stdin(Stdio::null())).map(drop)
    }

    /// Starts munged(8), and then Slurm.
    pub(super) fn start(&self) -> Result<()> {
        let at = self.site.directory.display();
        let options = [
            format!("--key-file={at}/munge.key"),
            format!("--socket={at}/run/munge.socket"),
            format!("--pid-file={at}/run/munged.pid"),
            format!("--log-file={at}/run/munged.log"),
            format!("--seed-file={at}/run/munged.seed"),
        ];
        let options = options.iter().map(String::as_str);
        // It would refuse a directory below one that all can write to.
        self.daemon(&["munged", "--force"].into_iter().chain(options).collect::<Vec<_>>(), false)?;
        self.start_slurm()
    }

    fn start_slurm(&self) -> Result<()> {
        self.daemon(&["slurmctld"], false)?;
        self.daemon(&["slurmd", "-N", NODE], true)?;
        wait_until("the node to be idle", Duration::from_secs(60), || {
            Ok(self.output(&["sinfo", "--noheader", "--format=%T"])?.trim() == "idle")
        })
    }

    /// Starts Slurm again, for what a daemon reads once.
    pub(super) fn restart_slurm(&self) -> Result<()> {
        for name in ["slurmd", "slurmctld"] {
            let file = self.site.path(&format!("run/{name}.pid"));
            let pid = fs::read_to_string(&file)?;
            self.output(&["kill", pid.trim()])?;
            wait_until(name, Duration::from_secs(60), || {
                let alive =
                    self.command(&["kill", "-0", pid.trim()]).stderr(Stdio::null()).status();
                Ok(!alive?.success())
            })?;
        }
        self.start_slurm()
    }
}

impl Drop for Cluster<'_> {
    fn drop(&mut self) {
        let _ = self.unshare.kill();
        let _ = self.unshare.wait();
    }
}

/// A command that is run in this cgroup.
pub(super) fn in_cgroup(cgroup: &Path) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", "echo 0 > \"$1/cgroup.procs\" && shift && exec \"$@\"", "sh"]).arg(cgroup);
    command
}
