//! An event loop in threads: one process, in which input and output are serialized among the
//! threads.

use serde::Deserialize;

use crate::error::PlanError;
use crate::field::{Count, Work};
use crate::plan::{Events, Nodes, Phase, Plan, Request, bounded, own};
use crate::random::Random;
use crate::step::{EventBody, Step};

/// The parameters of an event loop in threads.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Cmssw {
    /// Events per thread at scale 1: the paper uses weak scaling.
    events_per_thread: Count<1, 100_000>,
    /// Work of the initialisation, in units.
    initialise_work: Work,
    /// Memory of the process, in MiB.
    memory_mib: Count<0, 16_384>,
    /// Memory for each thread, in MiB.
    memory_per_thread_mib: Count<0, 4096>,
    /// Mean work of an event, in units; events vary.
    event_work: Work,
    /// The same for work in the kernel.
    event_kernel_work: Work,
    /// Data that an event reads, one thread at a time.
    input_kib: Count<0, 262_144>,
    /// Data that an event writes, one thread at a time.
    output_kib: Count<0, 262_144>,
    /// Its zstd compression level; 0 for none.
    output_level: Count<0, 19>,
}

impl Cmssw {
    pub(crate) fn plan(&self, name: &str, request: Request) -> Result<Plan, PlanError> {
        let threads = u64::from(request.workers);
        let per_thread = request.scaled("events", self.events_per_thread.0)?;
        let count = bounded("events", per_thread.checked_mul(threads))?;
        let mut random = Random::new(request.seed);
        let rounds =
            (0..count).map(|_| request.rounds(self.event_work.0 * random.uneven())).collect();
        let mut nodes = Nodes::default();
        let mut steps = Vec::new();
        if self.input_kib.0 > 0 {
            // Written once; the loop reads it repeatedly, as if from a cache.
            steps.push(Step::Write("input.root".into(), self.input_kib.0));
        }
        steps.extend([
            Step::Memory(self.memory_mib.0 + threads * self.memory_per_thread_mib.0),
            Step::User(request.rounds(self.initialise_work.0 * request.scale)),
            Step::Event(EventBody {
                kernel_reads: request.reads(self.event_kernel_work.0),
                input_kib: self.input_kib.0,
                output_kib: self.output_kib.0,
                level: self.output_level.0,
                input: "input.root".into(),
                output: "output.root".into(),
                ..EventBody::default()
            }),
            Step::Queue(rounds),
            Step::ThreadEvents(threads),
            Step::FinishEvents("cmsRun.log".into()),
        ]);
        let node = nodes.add(steps);
        let threads = request.workers.to_string();
        Ok(Plan {
            name: name.to_owned(),
            request,
            nodes: nodes.0,
            root: own("cmsRun", ["-n", &threads, "step_cfg.py"], node),
            files: Vec::new(),
            directories: Vec::new(),
            libraries: None,
            environment: Vec::new(),
            events: Some(Events {
                total: count,
                per_worker: None,
                logs: vec!["cmsRun.log".into()],
            }),
            phases: vec![
                Phase {
                    name: "initialise",
                    from: "the exec of cmsRun",
                    to: "the start of its first thread",
                },
                Phase {
                    name: "event loop",
                    from: "the start of its first thread",
                    to: "the exit of its last thread",
                },
            ],
        })
    }
}
