//! Storms: many events of one kind, to measure a tracer's overhead.

use serde::Deserialize;
use strum::IntoStaticStr;

use crate::error::PlanError;
use crate::field::{Count, Work};
use crate::plan::{Nodes, Phase, Plan, Request, own};
use crate::step::{Exec, Program, Step, WORK};

/// The parameters of a storm.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Storm {
    /// The kind of event.
    of: Of,
    /// Number of events at scale 1.
    count: Count<1, 100_000_000>,
}

#[derive(Debug, Clone, Copy, PartialEq, Deserialize, IntoStaticStr)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[strum(serialize_all = "kebab-case")]
enum Of {
    /// posix_spawn of true(1).
    Spawn {},
    /// fork without exec.
    Fork {},
    /// Threads that exit immediately.
    Thread {},
    /// Opens of nonexistent files, in this many directories.
    FailedOpen { directories: Count<1, 1000> },
    /// getppid(2).
    CheapCall {},
    /// Computing, in units of this much work.
    Compute { work: Work },
}

impl Storm {
    pub(crate) fn plan(&self, name: &str, request: Request) -> Result<Plan, PlanError> {
        let at_once = u64::from(request.workers);
        // Cheap events may be far more numerous than tasks.
        let cheap = || (self.count.0 as f64 * request.scale).round().max(1.0) as u64;
        let mut directories = Vec::new();
        let steps = match self.of {
            Of::Spawn {} => {
                let program = Program::System("true".into());
                let exec = Exec { program, arguments: vec![], node: None, starts: vec![] };
                vec![Step::Spawns(request.scaled("processes", self.count.0)?, at_once, exec)]
            }
            Of::Fork {} => {
                vec![Step::Forks(request.scaled("processes", self.count.0)?, at_once)]
            }
            Of::Thread {} => {
                vec![Step::Threads(request.scaled("threads", self.count.0)?, at_once, 0)]
            }
            Of::FailedOpen { directories: Count(places) } => {
                directories = (0..places).map(|n| format!("missing/{n:03}")).collect();
                let (each, rest) = (cheap() / places, cheap() % places);
                let share = |n: u64| each + u64::from(n < rest);
                (0..places)
                    .zip(&directories)
                    .map(|(n, directory)| Step::Miss(format!("{WORK}/{directory}"), share(n)))
                    .collect()
            }
            Of::CheapCall {} => vec![Step::Calls(cheap())],
            Of::Compute { work } => vec![Step::User(request.rounds(work.0 * cheap() as f64))],
        };
        let mut nodes = Nodes::default();
        let node = nodes.add(steps);
        Ok(Plan {
            name: name.to_owned(),
            request,
            nodes: nodes.0,
            root: own("storm", [<&str>::from(self.of)], node),
            files: Vec::new(),
            directories,
            libraries: None,
            environment: Vec::new(),
            events: None,
            phases: vec![Phase { name: "storm", from: "the exec of storm", to: "its exit" }],
        })
    }
}
