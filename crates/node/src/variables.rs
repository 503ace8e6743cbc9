//! The variables by which a job knows its batch system, read from one of its processes.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;

use proctrace_record::{job_variables, variables};

/// Maximum part of an environment that is searched.
const ENVIRONMENT_BYTES_MAX: u64 = 1 << 20;
/// Number of programs after which a job is one without a batch system.
const TRIES_MAX: u32 = 256;

/// Members of [`proctrace_trace::JOB_VARIABLES`] that the kernel's programs record at each exec in a recording of many jobs: a job of
/// some milliseconds has ended before its environment can be read. All would be more than they can look for.
pub const RECORDED_VARIABLES: &[&str] = &[
    "SLURM_JOB_ID",
    "SLURM_JOB_NAME",
    "SLURM_ARRAY_JOB_ID",
    "SLURM_ARRAY_TASK_ID",
    "SLURM_JOB_PARTITION",
    "SLURM_CLUSTER_NAME",
    "SLURM_CPUS_PER_TASK",
    "PBS_JOBID",
    "PBS_QUEUE",
    "NCPUS",
    "_CONDOR_JOB_AD",
    "_CONDOR_SLOT",
    "CONDOR_ID",
    "PandaID",
    "PANDAID",
    "PILOT_SITENAME",
    "DIRACJOBID",
    "DIRACSITE",
    "ALIEN_PROC_ID",
    "ALIEN_SITE",
    "GITHUB_RUN_ID",
    "CI_JOB_ID",
];

/// Variables that have been found so far.
#[derive(Debug, Default)]
pub(crate) struct Variables {
    /// In a record of an environment: only [`RECORDED_VARIABLES`].
    recorded: BTreeMap<String, String>,
    found: BTreeMap<String, String>,
    tries: u32,
    is_complete: bool,
}

impl Variables {
    /// Looks at the environment of a process that has just executed a program, unless enough is known. The
    /// first processes of a job often are the batch system's own, which does not have the job's variables.
    pub(crate) fn look_at(&mut self, pid: i32) {
        if self.is_complete || self.tries >= TRIES_MAX {
            return;
        }
        self.tries += 1;
        let mut environment = Vec::new();
        let Ok(file) = File::open(format!("/proc/{pid}/environ")) else { return };
        if file.take(ENVIRONMENT_BYTES_MAX).read_to_end(&mut environment).is_ok() {
            self.take(&environment);
        }
    }

    /// Takes the record of an environment. The first with a variable of a batch system counts.
    pub(crate) fn take_recorded(&mut self, environment: &[u8]) {
        if self.recorded.is_empty() {
            self.recorded = job_variables(variables(environment));
        }
    }

    fn take(&mut self, environment: &[u8]) {
        let found = job_variables(variables(environment));
        // Everybody has the name of a user.
        self.is_complete = found.keys().any(|name| name != "USER" && name != "LOGNAME");
        if self.is_complete || self.found.is_empty() {
            self.found = found;
        }
    }

    /// All that was found: what the job says of itself, which it can choose.
    pub(crate) fn of(&self) -> BTreeMap<String, String> {
        let mut found = self.recorded.clone();
        found.extend(self.found.clone());
        found
    }
}

#[cfg(test)]
mod tests {
    use proctrace_trace::JOB_VARIABLES;

    use super::*;

    #[test]
    fn the_first_environment_of_a_batch_system_counts() {
        let mut variables = Variables::default();
        variables.take(b"USER=condor\0PATH=/bin\0");
        variables.take(b"USER=alice\0SLURM_JOB_ID=17\0SLURM_JOB_PARTITION=\0junk\0");
        let found = variables.of();
        let pairs: Vec<_> = found.iter().map(|(name, value)| (&name[..], &value[..])).collect();
        assert_eq!(pairs, [("SLURM_JOB_ID", "17"), ("USER", "alice")]);
        variables.look_at(i32::try_from(std::process::id()).unwrap());
        assert_eq!(variables.of(), found);
    }

    #[test]
    fn what_the_kernel_recorded_is_enough() {
        let mut variables = Variables::default();
        variables.take_recorded(b"PATH=/bin\0");
        variables.take_recorded(b"SLURM_JOB_ID=17\0SLURM_JOB_PARTITION=long\0");
        variables.take_recorded(b"SLURM_JOB_ID=18\0");
        assert_eq!(variables.of()["SLURM_JOB_ID"], "17");
        // The rest is read where it can be.
        variables.take(b"SLURM_JOB_ID=17\0SLURM_JOB_USER=alice\0");
        assert_eq!(variables.of().len(), 3);
        assert!(RECORDED_VARIABLES.iter().all(|name| JOB_VARIABLES.contains(name)));
    }

    #[test]
    fn a_process_is_read() {
        let mut variables = Variables::default();
        variables.look_at(-1);
        assert_eq!(variables.of(), BTreeMap::new());
        for _ in 0..1000 {
            variables.look_at(-1);
        }
        assert_eq!(variables.tries, TRIES_MAX);
    }
}
