//! Jobs by the word of Slurm: scontrol(1), which knows them for as long as MinJobAge.

use std::collections::BTreeMap;

use anyhow::{Context, Result};

use super::cluster::Cluster;

/// A job, by Slurm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Job {
    /// Its own number, of which its cgroup is made.
    pub(super) id: String,
    /// Number of the array and of the element in it.
    pub(super) element: Option<(String, u64)>,
    pub(super) name: String,
    pub(super) user: String,
    pub(super) state: String,
    /// Status, and the signal that ended it or 0.
    pub(super) exit: (i64, i64),
    /// True if it has had a node.
    pub(super) ran: bool,
}

impl Job {
    /// True if it has ended, and its node is free again.
    pub(super) fn is_over(&self) -> bool {
        ["COMPLETED", "FAILED", "CANCELLED", "NODE_FAIL", "TIMEOUT"].contains(&self.state.as_str())
    }

    /// The number by which users know it.
    pub(super) fn shown_id(&self) -> String {
        match &self.element {
            Some((array, element)) => format!("{array}_{element}"),
            None => self.id.clone(),
        }
    }

    /// Its status as a shell has it.
    pub(super) fn exit_code(&self) -> i64 {
        if self.exit.1 > 0 { 128 + self.exit.1 } else { self.exit.0 }
    }
}

/// All jobs, by their numbers. An array of which no element has begun is one job.
pub(super) fn jobs(cluster: &Cluster<'_>) -> Result<Vec<Job>> {
    let text = cluster.output(&["scontrol", "--oneliner", "show", "job"])?;
    text.lines().filter(|line| line.starts_with("JobId=")).map(job).collect()
}

/// Job from `JobId=7 ArrayJobId=4 ArrayTaskId=2 JobName=a name UserId=nobody(65534) …`: a value ends where the next
/// key begins.
fn job(line: &str) -> Result<Job> {
    let mut fields: BTreeMap<&str, String> = BTreeMap::new();
    let mut last = None;
    for word in line.split(' ') {
        match word.split_once('=') {
            Some((key, value)) => {
                // A user's text may look like a key; what Slurm says of a job comes before such text.
                last = (!fields.contains_key(key)).then_some(key);
                fields.entry(key).or_insert_with(|| value.to_owned());
            }
            None => {
                if let Some(value) = last.and_then(|key| fields.get_mut(key)) {
                    value.push(' ');
                    value.push_str(word);
                }
            }
        }
    }
    let of = |key: &str| fields.get(key).with_context(|| format!("no {key} in {line}"));
    let (status, signal) = of("ExitCode")?.split_once(':').context("no signal in ExitCode")?;
    let element = fields.get("ArrayJobId").zip(fields.get("ArrayTaskId"));
    // Of several elements that have not begun: `0-4`.
    let element = element.and_then(|(array, number)| Some((array.clone(), number.parse().ok()?)));
    Ok(Job {
        id: of("JobId")?.clone(),
        element,
        name: of("JobName")?.clone(),
        user: of("UserId")?.split('(').next().unwrap_or_default().to_owned(),
        state: of("JobState")?.clone(),
        exit: (status.parse()?, signal.parse()?),
        ran: fields.contains_key("BatchHost"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_spaces() {
        let line = "JobId=6 ArrayJobId=4 ArrayTaskId=2 JobName=two at once UserId=nobody(65534) \
                    GroupId=nogroup(65534) JobState=FAILED Reason=NonZeroExitCode ExitCode=3:0 NodeList=n1 \
                    BatchHost=n1 Command=/jobs/two at once.sh JobName=other ";
        let found = job(line).unwrap();
        assert_eq!((found.name.as_str(), found.shown_id().as_str()), ("two at once", "4_2"));
        assert_eq!((found.exit_code(), found.is_over(), found.ran), (3, true, true));
        let killed = line.replace("3:0", "0:15").replace("ArrayTaskId=2", "ArrayTaskId=0-4");
        let killed = job(&killed).unwrap();
        assert_eq!((killed.exit_code(), killed.element), (143, None));
        assert!(job("JobId=6").is_err());
    }
}
