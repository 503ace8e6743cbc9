//! The format of a scenario file, and its parser.

use serde::Deserialize;

use crate::alice::Alice;
use crate::athena::Athena;
use crate::cmssw::Cmssw;
use crate::error::{PlanError, ScenarioError};
use crate::field::{Count, Line, Scale};
use crate::plan::{Plan, Request};
use crate::storm::Storm;

/// Maximum size of a scenario file.
pub const MOST_BYTES: usize = 1 << 20;

/// A scenario: a kind of job, and its parameters.
#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    /// The name: that of the file without its extension.
    pub name: String,
    /// Its description.
    pub about: About,
    /// The job.
    pub(crate) job: Job,
}

/// The description of a scenario.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct About {
    /// A short title.
    pub(crate) title: Line,
    /// The source of its parameters.
    pub(crate) paper: Line,
    /// Line on what a recording of it shows.
    pub(crate) look_for: Line,
    /// The default scale.
    pub(crate) default_scale: Scale,
    /// The default number of workers.
    pub(crate) default_workers: Count<1, 1024>,
}

impl About {
    /// The short title.
    pub fn title(&self) -> &str {
        &self.title.0
    }

    /// The paper that its parameters are from.
    pub fn paper(&self) -> &str {
        &self.paper.0
    }

    /// Text on what a recording of it shows.
    pub fn look_for(&self) -> &str {
        &self.look_for.0
    }
}

/// The kinds of jobs.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Job {
    /// An O2 simulation workflow.
    Alice(Alice),
    /// Event loops in processes.
    Athena(Athena),
    /// An event loop in threads.
    Cmssw(Cmssw),
    /// Many events of one kind.
    Storm(Storm),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    scenario: About,
    alice: Option<Alice>,
    athena: Option<Athena>,
    cmssw: Option<Cmssw>,
    storm: Option<Storm>,
}

impl Scenario {
    /// Parses a scenario. Messages refer to it as `file`, whose stem is the scenario's name.
    ///
    /// # Errors
    /// With file, line, column and field, when it is not a valid scenario.
    pub fn parse(file: &str, text: &str) -> Result<Self, ScenarioError> {
        let error = |offset, message: &str| ScenarioError::at(file, text, offset, message);
        if text.len() > MOST_BYTES {
            return Err(ScenarioError::at(file, "", 0, "larger than the limit of 1 MiB"));
        }
        let read: File = toml::from_str(text)
            .map_err(|wrong| error(wrong.span().map_or(0, |span| span.start), wrong.message()))?;
        let jobs = [
            read.alice.map(Job::Alice),
            read.athena.map(Job::Athena),
            read.cmssw.map(Job::Cmssw),
            read.storm.map(Job::Storm),
        ];
        let mut jobs = jobs.into_iter().flatten();
        let (Some(job), None) = (jobs.next(), jobs.next()) else {
            let message = "exactly one of [alice], [athena], [cmssw] and [storm] is required";
            return Err(error(text.len(), message));
        };
        if let Job::Alice(alice) = &job {
            alice.check().map_err(|(offset, message)| error(offset, &message))?;
        }
        let stem = file.rsplit('/').next().unwrap_or(file);
        let name = stem.strip_suffix(".toml").unwrap_or(stem).to_owned();
        Ok(Self { name, about: read.scenario, job })
    }

    /// The plan at this size.
    ///
    /// # Errors
    /// When the size is invalid, or the plan would be too large.
    pub fn plan(&self, request: Request) -> Result<Plan, PlanError> {
        request.check()?;
        match &self.job {
            Job::Alice(alice) => alice.plan(&self.name, request),
            Job::Athena(athena) => athena.plan(&self.name, request),
            Job::Cmssw(cmssw) => cmssw.plan(&self.name, request),
            Job::Storm(storm) => storm.plan(&self.name, request),
        }
    }

    /// The default size.
    pub fn default_request(&self) -> Request {
        let workers = u32::try_from(self.about.default_workers.0).unwrap_or(1);
        Request { scale: self.about.default_scale.0, workers, seed: 1, work: 1.0 }
    }
}
