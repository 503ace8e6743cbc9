//! The comparison of the rows of the lake with what Slurm says and with what the jobs do.

use sha2::{Digest, Sha256};

use super::plan::{How, Planned, When};
use super::recorder::{Row, SITE_KEY};
use super::site::{CLUSTER, PARTITION, USERS};
use super::truth::Job;

/// A job with all that must be found of it.
#[derive(Debug)]
pub(super) struct Expected<'a> {
    pub(super) job: &'a Job,
    pub(super) planned: &'a Planned,
    /// True if it is about the run before Slurm ran it again.
    pub(super) is_earlier: bool,
}

impl Expected<'_> {
    /// Processes, those of Slurm in the job's cgroup included.
    pub(super) fn processes(&self) -> u64 {
        let element = self.job.element.as_ref().map_or(0, |it| it.1);
        let others = match self.planned.earlier {
            Some((_, others)) if self.is_earlier => others,
            _ => (self.planned.others)(element),
        };
        // PrologFlags=Contain: slurmstepd(8), and a sleep(1).
        let outside_steps = if self.planned.when == When::Second { 2 } else { 0 };
        self.planned.steps + others + outside_steps
    }

    /// The command line: the name of the job stands for Slurm's copy of the script.
    pub(super) fn command(&self) -> String {
        match self.planned.how {
            How::Batch(_, arguments) => {
                [&["/bin/sh", self.planned.name], arguments].concat().join(" ")
            }
            How::Direct(command) => command.join(" "),
        }
    }

    /// Its status as a shell has it.
    pub(super) fn exit_code(&self) -> i64 {
        match self.planned.earlier {
            Some((status, _)) if self.is_earlier => status,
            _ => self.job.exit_code(),
        }
    }

    /// Number of rows that there must be, and true if they must be marked as partial.
    pub(super) fn rows(&self) -> (usize, bool) {
        let (number, is_partial) = self.planned.when.rows();
        if self.job.ran {
            (number + usize::from(self.planned.earlier.is_some()), is_partial)
        } else {
            (0, false)
        }
    }

    /// Faults of a row of it.
    pub(super) fn faults(&self, row: &Row) -> Vec<String> {
        let mut faults = Vec::new();
        let is_partial = self.rows().1;
        let mut compare = |what: &str, found: Option<String>, expected: String, may_lack: bool| {
            if found.is_none() && may_lack {
                return;
            }
            if found.as_ref() != Some(&expected) {
                let found = found.unwrap_or_else(|| "not known".to_owned());
                faults.push(format!("{what} {found}, not {expected}"));
            }
        };
        compare("batch_system", row.batch_system.clone(), "slurm".into(), false);
        compare("batch_id", row.batch_id.clone(), self.job.id.clone(), false);
        // Claims: the variables of a short job may be gone before anybody looks.
        compare("claimed_batch_id", row.claimed_batch_id.clone(), self.job.shown_id(), true);
        compare("site", row.site.clone(), CLUSTER.into(), true);
        compare("queue", row.queue.clone(), PARTITION.into(), true);
        let user = USERS[usize::from(self.planned.is_of_second_user)];
        compare("user (Slurm)", Some(self.job.user.clone()), user.into(), false);
        compare("user_hash", row.user_hash.clone(), hash(user), true);
        let nameless = self.command().replace(self.planned.name, "slurm_script");
        // The name of the job is lost with the recorder.
        let command = row.command.clone().filter(|it| !is_partial || *it != nameless);
        compare("command", command, self.command(), is_partial);
        let exit_code = row.exit_code.map(|code| code.to_string());
        compare("exit_code", exit_code, self.exit_code().to_string(), is_partial);
        let marked = row.partial.map(|partial| partial.to_string());
        compare("partial", marked, is_partial.to_string(), false);
        let sound = row.sound.map(|sound| sound.to_string());
        compare("sound", sound, (!is_partial).to_string(), false);
        compare("lost_records", row.lost_records.map(|lost| lost.to_string()), "0".into(), false);
        let (found, expected) = (row.processes, self.processes());
        // A part of a job has no more than the whole.
        if found.is_none_or(|found| found > expected || (found < expected && !is_partial)) {
            faults.push(format!("processes {found:?}, not {expected}"));
        }
        faults
    }
}

/// docs/fleet.md: HMAC-SHA-256 (RFC 2104) of the name, the first bytes of it in hexadecimal digits.
fn hash(user: &str) -> String {
    const BLOCK_BYTES: usize = 64;
    const KEPT_BYTES: usize = 12;
    let mut key = [0; BLOCK_BYTES];
    key[..SITE_KEY.len()].copy_from_slice(SITE_KEY);
    let padded = |with: u8| key.map(|byte| byte ^ with);
    let inner = Sha256::new().chain_update(padded(0x36)).chain_update(user).finalize();
    let outer = Sha256::new().chain_update(padded(0x5c)).chain_update(inner).finalize();
    outer.iter().take(KEPT_BYTES).map(|byte| format!("{byte:02x}")).collect()
}
