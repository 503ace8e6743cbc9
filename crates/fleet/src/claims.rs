//! Identity of a job, and what it says that it is: what its recorder found out, and what its environment
//! claims.

use std::collections::BTreeMap;
use std::path::Path;

use proctrace_analysis::Recording;
use proctrace_wire::escape::to_bytes;
use strum::IntoStaticStr;

use crate::identity::Identity;

/// Source by which the identifier of a job is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub(crate) enum KnownBy {
    /// A label, given by whoever summarizes.
    Label,
    /// The batch system has given its cgroup the number.
    Cgroup,
    /// The job says so.
    Environment,
}

impl KnownBy {
    pub(crate) fn name(self) -> &'static str {
        self.into()
    }
}

/// Identity of a job, and what it claims.
#[derive(Debug, Clone, Default)]
pub(crate) struct Who {
    /// Identity that counts, without labels.
    pub(crate) identity: Identity,
    /// Source by which the identifier is known.
    pub(crate) batch_id_from: Option<KnownBy>,
    /// Identity that the environment claims.
    pub(crate) claimed: Identity,
    /// The name that the user gave the job.
    pub(crate) claimed_job_name: Option<String>,
}

impl Who {
    /// Identity from a recording. Of a job that others recorded, only what it cannot choose counts, where that is
    /// known.
    pub(crate) fn of(recording: &Recording) -> Self {
        let trailer = recording.trailer();
        let mut variables = trailer.map(|trailer| trailer.job.clone()).unwrap_or_default();
        variables.extend(recording.header().job.clone());
        let mut who = Self::claiming(&variables);
        let Some(cgroup) = cgroup_of_job(recording) else { return who };
        // The name of a user can be chosen, too: without the user of the processes it is not known.
        let of_node = trailer.and_then(|trailer| trailer.of_node.as_ref());
        who.identity.user = of_node
            .and_then(|node| node.user.clone().or_else(|| node.uid.map(|uid| uid.to_string())));
        if let Some(number) = slurm_job(cgroup) {
            who.identity.batch_system = Some("slurm".to_owned());
            who.identity.batch_id = Some(number);
            who.batch_id_from = Some(KnownBy::Cgroup);
        }
        who
    }

    fn claiming(variables: &BTreeMap<String, String>) -> Self {
        let claimed = Identity::of(variables);
        Self {
            identity: claimed.clone(),
            batch_id_from: claimed.batch_id.is_some().then_some(KnownBy::Environment),
            claimed,
            claimed_job_name: variables.get("SLURM_JOB_NAME").cloned(),
        }
    }
}

/// The cgroup that is the job, if the recorder was not started by the job itself.
pub(crate) fn cgroup_of_job(recording: &Recording) -> Option<&str> {
    let header = recording.header();
    header.cgroup.as_deref().filter(|_| header.command.is_empty())
}

/// The number of a job of Slurm by its cgroup: `slurmstepd.scope/job_17`.
fn slurm_job(cgroup: &str) -> Option<String> {
    let bytes = to_bytes(cgroup);
    let cgroup = Path::new(std::str::from_utf8(&bytes).ok()?);
    let above = cgroup.parent()?.file_name()?.to_str()?;
    let number = cgroup.file_name()?.to_str()?.strip_prefix("job_")?;
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    (above.ends_with("slurmstepd.scope") && is_number).then(|| number.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cgroup_of_slurm_tells_the_number() {
        assert_eq!(slurm_job("/c/system.slice/n1_slurmstepd.scope/job_17").as_deref(), Some("17"));
        for other in [
            "/c/slurmstepd.scope/job_x",
            "/c/jobs/job_17",
            "job_17",
            "",
            "/",
            "/c/slurmstepd.scope/job_",
        ] {
            assert_eq!(slurm_job(other), None, "{other}");
        }
    }
}
