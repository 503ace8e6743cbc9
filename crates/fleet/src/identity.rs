//! Identity of a job: from the variables of its batch system and from labels.

use std::collections::BTreeMap;

use crate::redact::Redaction;

/// Identity of a job, as far as it is known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Identity {
    /// The site.
    pub site: Option<String>,
    /// The queue or partition.
    pub queue: Option<String>,
    /// The name of the batch system.
    pub batch_system: Option<String>,
    /// The job's identifier there.
    pub batch_id: Option<String>,
    /// The name of the user, which is not written anywhere.
    pub user: Option<String>,
    /// The version of the software.
    pub release: Option<String>,
    /// CPUs that the job asked for.
    pub cores: Option<u64>,
    /// All other labels.
    pub labels: BTreeMap<String, String>,
}

/// A batch system and the variables by which it tells a job who it is: of each list the first that
/// is set.
struct System {
    name: &'static str,
    id: &'static [&'static str],
    site: &'static [&'static str],
    queue: &'static [&'static str],
    user: &'static [&'static str],
    cores: &'static [&'static str],
    release: &'static [&'static str],
}

/// Workload management systems come before the batch systems in which their pilots run, whose
/// variables a job of theirs inherits.
const SYSTEMS: &[System] = &[
    System {
        name: "alien",
        id: &["ALIEN_PROC_ID"],
        site: &["ALIEN_SITE"],
        queue: &["CE_NAME"],
        user: &["ALIEN_USER"],
        cores: &["CPUCores"],
        release: &[],
    },
    System {
        name: "dirac",
        id: &["DIRACJOBID", "JOBID"],
        site: &["DIRACSITE", "DIRAC_SITE"],
        queue: &["CE_NAME"],
        user: &[],
        cores: &["DIRAC_PROCESSORS"],
        release: &[],
    },
    System {
        name: "panda",
        id: &["PandaID", "PANDAID"],
        site: &["PILOT_SITENAME"],
        queue: &["PANDA_RESOURCE"],
        user: &[],
        cores: &["ATHENA_CORE_NUMBER"],
        release: &[],
    },
    System {
        name: "slurm",
        id: &["SLURM_JOB_ID"],
        site: &["SLURM_CLUSTER_NAME"],
        queue: &["SLURM_JOB_PARTITION"],
        user: &["SLURM_JOB_USER"],
        cores: &["SLURM_CPUS_PER_TASK", "SLURM_CPUS_ON_NODE"],
        release: &[],
    },
    System {
        name: "pbs",
        id: &["PBS_JOBID"],
        site: &["PBS_SERVER"],
        queue: &["PBS_QUEUE"],
        user: &["PBS_O_LOGNAME"],
        cores: &["NCPUS"],
        release: &[],
    },
    System {
        name: "condor",
        // HTCondor itself only names the file that has the number: `record` reads it.
        id: &["CONDOR_ID"],
        site: &[],
        queue: &["_CONDOR_SLOT"],
        user: &[],
        cores: &[],
        release: &[],
    },
    System {
        name: "github",
        id: &["GITHUB_RUN_ID"],
        site: &["GITHUB_REPOSITORY"],
        queue: &["GITHUB_WORKFLOW"],
        user: &["GITHUB_ACTOR"],
        cores: &[],
        release: &["GITHUB_SHA"],
    },
    System {
        name: "gitlab",
        id: &["CI_JOB_ID"],
        site: &["CI_SERVER_HOST"],
        queue: &["CI_JOB_NAME"],
        user: &["GITLAB_USER_LOGIN"],
        cores: &[],
        release: &["CI_COMMIT_SHA"],
    },
    System {
        name: "jenkins",
        id: &["BUILD_NUMBER"],
        site: &["NODE_NAME"],
        queue: &["JOB_NAME"],
        user: &[],
        cores: &[],
        release: &["GIT_COMMIT"],
    },
];

/// Variables that exist elsewhere too, and the one that must be there for a system to be meant.
const ONLY_WITH: &[(&str, &str)] = &[("dirac", "DIRAC"), ("jenkins", "JENKINS_URL")];

/// Variables that show a system which does not tell a job its number.
const MEANT_BY: &[(&str, &[&str])] = &[("condor", &["_CONDOR_JOB_AD", "_CONDOR_SLOT"])];

impl Identity {
    /// Identity from variables of the environment. `None` in all fields if there is no batch
    /// system, except for the user.
    pub fn of(variables: &BTreeMap<String, String>) -> Self {
        let first = |names: &[&str]| names.iter().find_map(|name| variables.get(*name)).cloned();
        let mut found = Self { user: first(&["USER", "LOGNAME"]), ..Self::default() };
        let is_meant = |system: &&System| {
            let needs = ONLY_WITH.iter().find(|(name, _)| *name == system.name);
            let named = |prefix: &str| variables.keys().any(|name| name.starts_with(prefix));
            let shown = MEANT_BY.iter().find(|(name, _)| *name == system.name);
            let is_shown = shown.is_some_and(|(_, names)| first(names).is_some());
            (first(system.id).is_some() || is_shown)
                && needs.is_none_or(|(_, prefix)| named(prefix))
        };
        let Some(system) = SYSTEMS.iter().find(is_meant) else { return found };
        found.batch_system = Some(system.name.to_owned());
        found.batch_id = first(system.id).map(|id| whole_id(system.name, id, variables));
        found.site = first(system.site);
        found.queue = first(system.queue);
        found.user = first(system.user).or(found.user);
        found.cores = first(system.cores).and_then(|n| n.trim().parse().ok()).filter(|n| *n > 0);
        found.release = first(system.release);
        found
    }

    /// Identity without names: values of variables can be those of a user's project. Labels are added
    /// afterwards: who summarizes says them on purpose.
    #[must_use]
    pub(crate) fn redacted(mut self, redaction: Redaction<'_>) -> Self {
        for field in [&mut self.site, &mut self.queue, &mut self.release] {
            *field = field.take().map(|text| redaction.text(text));
        }
        self
    }

    /// Identity with labels, which take precedence: site, queue, batch_system, batch_id, user,
    /// release and cores set these fields.
    #[must_use]
    pub fn labelled(mut self, labels: &[(String, String)]) -> Self {
        for (name, value) in labels {
            let value = value.clone();
            match name.as_str() {
                "site" => self.site = Some(value),
                "queue" => self.queue = Some(value),
                "batch_system" => self.batch_system = Some(value),
                "batch_id" => self.batch_id = Some(value),
                "user" => self.user = Some(value),
                "release" => self.release = Some(value),
                "cores" => self.cores = value.parse().ok().or(self.cores),
                _ => {
                    self.labels.insert(name.clone(), value);
                }
            }
        }
        self
    }
}

/// The identifier with what distinguishes jobs that share it.
fn whole_id(system: &str, id: String, variables: &BTreeMap<String, String>) -> String {
    let of = |name: &str| variables.get(name);
    match system {
        // sbatch(1): the elements of an array have numbers of their own, by which nobody knows them.
        "slurm" => match (of("SLURM_ARRAY_JOB_ID"), of("SLURM_ARRAY_TASK_ID")) {
            (Some(array), Some(task)) => format!("{array}_{task}"),
            _ => id,
        },
        "github" => {
            let attempt = of("GITHUB_RUN_ATTEMPT").map_or("1", String::as_str);
            let job = of("GITHUB_JOB").map_or("", String::as_str);
            format!("{id}.{attempt}/{job}")
        }
        // Builds are counted for each project.
        "jenkins" => {
            format!("{}#{id}", of("JOB_NAME").map_or("", String::as_str))
        }
        _ => id,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proctrace_trace::JOB_VARIABLES;

    fn of(variables: &[(&str, &str)]) -> Identity {
        let variable = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Identity::of(&variables.iter().map(variable).collect())
    }

    fn told(identity: &Identity) -> [&str; 5] {
        let text = |field: &'_ Option<String>| field.clone().unwrap_or_else(|| "-".into()).leak();
        let it = identity;
        [
            text(&it.batch_system),
            text(&it.batch_id),
            text(&it.site),
            text(&it.queue),
            text(&it.user),
        ]
        .map(|text| &*text)
    }

    #[test]
    fn every_variable_that_is_asked_for_is_recorded() {
        for system in SYSTEMS {
            for names in
                [system.id, system.site, system.queue, system.user, system.cores, system.release]
            {
                for name in names {
                    assert!(JOB_VARIABLES.contains(name), "{name} of {}", system.name);
                }
            }
        }
        for name in
            ["SLURM_ARRAY_JOB_ID", "SLURM_ARRAY_TASK_ID", "GITHUB_RUN_ATTEMPT", "GITHUB_JOB"]
        {
            assert!(JOB_VARIABLES.contains(&name));
        }
    }

    #[test]
    fn batch_systems_are_told_apart() {
        let slurm = [
            ("SLURM_JOB_ID", "77"),
            ("SLURM_ARRAY_JOB_ID", "70"),
            ("SLURM_ARRAY_TASK_ID", "7"),
            ("SLURM_JOB_PARTITION", "long"),
            ("SLURM_CLUSTER_NAME", "hpc"),
            ("SLURM_CPUS_ON_NODE", "16"),
            ("SLURM_CPUS_PER_TASK", "8"),
            ("USER", "ann"),
        ];
        assert_eq!(told(&of(&slurm)), ["slurm", "70_7", "hpc", "long", "ann"]);
        assert_eq!(of(&slurm).cores, Some(8));
        // A pilot in a Slurm job runs a job of a grid.
        let pilot = [slurm.as_slice(), &[("ALIEN_PROC_ID", "3"), ("ALIEN_SITE", "CERN")]].concat();
        assert_eq!(told(&of(&pilot))[..3], ["alien", "3", "CERN"]);
        let dirac = [("JOBID", "9"), ("DIRACSITE", "LCG.X.ch"), ("DIRAC_PROCESSORS", "4")];
        assert_eq!(told(&of(&dirac))[..3], ["dirac", "9", "LCG.X.ch"]);
        assert_eq!(told(&of(&[("JOBID", "9")]))[0], "-");
        let panda = [("PandaID", "5"), ("PANDA_RESOURCE", "CERN-PROD"), ("_CONDOR_SLOT", "slot1")];
        assert_eq!(told(&of(&panda)), ["panda", "5", "-", "CERN-PROD", "-"]);
        let pbs = [("PBS_JOBID", "12.head"), ("PBS_QUEUE", "batch"), ("PBS_O_LOGNAME", "eve")];
        assert_eq!(told(&of(&pbs)), ["pbs", "12.head", "-", "batch", "eve"]);
        let condor = [("_CONDOR_JOB_AD", "/scratch/dir_7/.job.ad"), ("_CONDOR_SLOT", "slot1_1")];
        let found = of(&condor);
        assert_eq!(told(&found)[..4], ["condor", "-", "-", "slot1_1"]);
        let numbered = [condor.as_slice(), &[("CONDOR_ID", "4711.3")]].concat();
        assert_eq!(told(&of(&numbered))[1], "4711.3");
        let github = [("GITHUB_RUN_ID", "1"), ("GITHUB_JOB", "test"), ("GITHUB_ACTOR", "bob")];
        assert_eq!(told(&of(&github)), ["github", "1.1/test", "-", "-", "bob"]);
        let gitlab = [("CI_JOB_ID", "8"), ("CI_JOB_NAME", "t"), ("CI_COMMIT_SHA", "abc")];
        assert_eq!(told(&of(&gitlab))[..2], ["gitlab", "8"]);
        assert_eq!(of(&gitlab).release.as_deref(), Some("abc"));
        let jenkins = [("JENKINS_URL", "x"), ("JOB_NAME", "nightly"), ("BUILD_NUMBER", "3")];
        assert_eq!(told(&of(&jenkins))[..2], ["jenkins", "nightly#3"]);
        assert_eq!(told(&of(&[("BUILD_NUMBER", "3")]))[0], "-");
    }

    #[test]
    fn labels_take_precedence() {
        let label = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let labels = [label("site", "T2"), label("release", "v1"), label("campaign", "mc26")];
        let found = of(&[("SLURM_JOB_ID", "1"), ("SLURM_CLUSTER_NAME", "hpc")]).labelled(&labels);
        assert_eq!((found.site.as_deref(), found.release.as_deref()), (Some("T2"), Some("v1")));
        assert_eq!(found.labels, BTreeMap::from([label("campaign", "mc26")]));
    }
}
