//! Event loops in processes: workers forked by an initialised mother process, or independent jobs,
//! with a shared writer process or a final merge.

use serde::Deserialize;

use crate::error::PlanError;
use crate::field::{Count, Work};
use crate::plan::{Events, Nodes, Phase, Plan, Request, bounded, own};
use crate::random::Random;
use crate::step::{EventBody, NodeId, Step};

/// The output file of a worker, in its own directory.
const OUTPUT: &str = "AOD.pool.root";

/// The parameters of an event loop in processes.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Athena {
    mode: Mode,
    /// Events at scale 1, for all workers together.
    events: Count<1, 1_000_000>,
    /// Work and memory of the initialisation, in units and MiB.
    initialise_work: Work,
    initialise_mib: Count<0, 16_384>,
    /// Mean work of an event, in units; events vary.
    event_work: Work,
    /// The same for work in the kernel, identical for each event.
    #[serde(default)]
    event_kernel_work: Work,
    /// Size of the initialised memory that an event writes to.
    event_dirty_kib: Count<0, 1_048_576>,
    /// Size of an event's output in its worker's file.
    event_output_kib: Count<0, 1_048_576>,
    /// Size of the initialised memory that a worker writes to at its end.
    finalise_dirty_mib: Count<0, 16_384>,
    /// True if one process merges the workers' files at the end.
    merge: bool,
    writer: Option<Writer>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
enum Mode {
    /// Workers are forked after the initialisation.
    MultiProcess {
        /// Fork after the first event instead of before it.
        late_fork: bool,
        distribution: Distribution,
    },
    /// Each job initialises separately.
    MultiJob {},
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Distribution {
    /// A free worker takes the next event.
    SharedQueue,
    /// Event n goes to worker n modulo the number of workers.
    RoundRobin,
}

/// A process that writes the output of all workers.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Writer {
    /// The process that compresses the output.
    compressed_by: Compressor,
    /// Data that an event sends to the writer, before compression.
    event_kib: Count<1, 262_144>,
    /// The zstd level.
    level: Count<1, 19>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Compressor {
    Writer,
    Workers,
}

/// Rounds of each event, for the mother process and for each worker.
struct Shares {
    mother: Vec<u64>,
    workers: Vec<Vec<u64>>,
}

impl Athena {
    pub(crate) fn plan(&self, name: &str, request: Request) -> Result<Plan, PlanError> {
        let count = bounded("events", Some(request.scaled("events", self.events.0)?))?;
        let mut random = Random::new(request.seed);
        let rounds: Vec<u64> =
            (0..count).map(|_| request.rounds(self.event_work.0 * random.uneven())).collect();
        let shares = self.share(&rounds, request.workers as usize);
        let mut nodes = Nodes::default();
        let mut steps = vec![Step::Jobs(u64::from(request.workers) + 1)];
        let workers = u64::from(request.workers);
        let (directory, log) = match self.mode {
            Mode::MultiProcess { .. } => ("worker_", "AthenaMP.log"),
            Mode::MultiJob {} => ("job_", "athena.log"),
        };
        match self.mode {
            Mode::MultiProcess { distribution, .. } => {
                let mother = self.mother(&shares, distribution, request, &mut nodes);
                let processes = format!("--nprocs={}", request.workers);
                let events = format!("--evtMax={count}");
                let arguments = [&processes, &events, "RecJobOptions.py"];
                steps.push(Step::Spawn(own("athena.py", arguments, mother)));
            }
            Mode::MultiJob {} => {
                for (rank, rounds) in shares.workers.iter().enumerate() {
                    let mut own_steps = enter(&format!("{directory}{rank}"));
                    own_steps.extend(self.initialise(request));
                    own_steps.extend(self.worker(Step::OwnEvents(rounds.clone()), log));
                    let node = nodes.add(own_steps);
                    let events = format!("--evtMax={}", rounds.len());
                    let arguments = [&events, "RecJobOptions.py"];
                    steps.push(Step::Spawn(own("athena.py", arguments, node)));
                }
            }
        }
        steps.push(Step::Wait);
        if self.merge {
            let (node, inputs) = self.merger(directory, workers, count, &mut nodes);
            let input = format!("--inputAODFile={inputs}");
            let arguments = [&input, "--outputAOD_MRGFile=merged.pool.root"];
            steps.push(Step::Spawn(own("Merge_tf.py", arguments, node)));
        }
        let transform = nodes.add(steps);
        let determined = !matches!(
            self.mode,
            Mode::MultiProcess { distribution: Distribution::SharedQueue, .. }
        );
        let per_worker = || shares.workers.iter().map(|rounds| rounds.len() as u64).collect();
        Ok(Plan {
            name: name.to_owned(),
            request,
            nodes: nodes.0,
            root: own("Reco_tf.py", ["--maxEvents", &count.to_string()], transform),
            files: Vec::new(),
            directories: Vec::new(),
            libraries: None,
            environment: vec![("ATHENA_CORE_NUMBER".into(), request.workers.to_string())],
            events: Some(Events {
                total: count,
                per_worker: determined.then(per_worker),
                logs: (0..workers).map(|rank| format!("{directory}{rank}/{log}")).collect(),
            }),
            phases: self.phases(),
        })
    }

    fn share(&self, rounds: &[u64], workers: usize) -> Shares {
        let late = matches!(self.mode, Mode::MultiProcess { late_fork: true, .. });
        let (mother, rest) = rounds.split_at(usize::from(late).min(rounds.len()));
        let mut shares = vec![Vec::new(); workers];
        for (event, rounds) in rest.iter().enumerate() {
            shares[event % workers].push(*rounds);
        }
        Shares { mother: mother.to_vec(), workers: shares }
    }

    fn initialise(&self, request: Request) -> Vec<Step> {
        vec![
            Step::Memory(self.initialise_mib.0),
            // Scaled with the number of events, so that the phases keep their shares of the time.
            Step::User(request.rounds(self.initialise_work.0 * request.scale)),
            Step::Event(EventBody {
                kernel_reads: request.reads(self.event_kernel_work.0),
                dirty_kib: self.event_dirty_kib.0,
                output_kib: self.event_output_kib.0,
                send_kib: self.writer.as_ref().map_or(0, |writer| writer.event_kib.0),
                level: self.level_of(Compressor::Workers),
                output: OUTPUT.into(),
                ..EventBody::default()
            }),
        ]
    }

    /// The compression level used by this process for data sent to the writer; 0 if it does not
    /// compress.
    fn level_of(&self, who: Compressor) -> u64 {
        let writer = self.writer.as_ref().filter(|writer| writer.compressed_by == who);
        writer.map_or(0, |writer| writer.level.0)
    }

    fn mother(
        &self,
        shares: &Shares,
        distribution: Distribution,
        request: Request,
        nodes: &mut Nodes,
    ) -> NodeId {
        let mut steps = self.initialise(request);
        if self.writer.is_some() {
            let mut writer = enter("shared_writer");
            writer.push(Step::Drain(OUTPUT.into(), self.level_of(Compressor::Writer)));
            let writer = nodes.add(writer);
            steps.extend([Step::Channel, Step::Fork(writer)]);
        }
        if !shares.mother.is_empty() {
            steps.push(Step::OwnEvents(shares.mother.clone()));
        }
        if distribution == Distribution::SharedQueue {
            // The order in which the events were distributed: round by round, worker by worker.
            let most = shares.workers.iter().map(Vec::len).max().unwrap_or(0);
            let in_order = (0..most).flat_map(|round| {
                shares.workers.iter().filter_map(move |rounds| rounds.get(round).copied())
            });
            steps.push(Step::Queue(in_order.collect()));
        }
        for (rank, rounds) in shares.workers.iter().enumerate() {
            let mut worker = enter(&format!("worker_{rank}"));
            let events = match distribution {
                Distribution::SharedQueue => Step::TakeEvents,
                Distribution::RoundRobin => Step::OwnEvents(rounds.clone()),
            };
            worker.extend(self.worker(events, "AthenaMP.log"));
            let worker = nodes.add(worker);
            steps.push(Step::Fork(worker));
        }
        if self.writer.is_some() {
            steps.push(Step::HangUp);
        }
        steps.push(Step::Wait);
        nodes.add(steps)
    }

    /// The event loop and the end of a worker, in its directory.
    fn worker(&self, events: Step, log: &str) -> Vec<Step> {
        vec![
            // Created even if the worker gets no event, because the merge reads it.
            Step::Write(OUTPUT.into(), 0),
            events,
            Step::FinishEvents(log.into()),
            // Destructors write to pages that were only read before, and the kernel copies each of
            // them.
            Step::Dirty(self.finalise_dirty_mib.0 << 10),
        ]
    }

    fn merger(
        &self,
        directory: &str,
        workers: u64,
        events: u64,
        nodes: &mut Nodes,
    ) -> (NodeId, String) {
        let files: Vec<String> =
            (0..workers).map(|rank| format!("{directory}{rank}/{OUTPUT}")).collect();
        let mut steps: Vec<Step> = files.iter().cloned().map(Step::Read).collect();
        let kib = events.saturating_mul(self.event_output_kib.0);
        steps.push(Step::Write("merged.pool.root".into(), kib));
        (nodes.add(steps), files.join(","))
    }

    fn phases(&self) -> Vec<Phase> {
        let mut phases = match self.mode {
            Mode::MultiProcess { .. } => vec![
                phase("initialise", "the exec of athena.py", "the first fork of a worker"),
                phase("event loop", "the last fork of a worker", "the first exit of a worker"),
                phase("tail", "the first exit of a worker", "the last exit of a worker"),
            ],
            Mode::MultiJob {} => {
                vec![phase("jobs", "the exec of the first athena.py", "the exit of the last")]
            }
        };
        if self.merge {
            phases.push(phase("merge", "the exec of Merge_tf.py", "its exit"));
        }
        phases
    }
}

fn phase(name: &'static str, from: &'static str, to: &'static str) -> Phase {
    Phase { name, from, to }
}

fn enter(directory: &str) -> Vec<Step> {
    vec![Step::MakeDirectory(directory.into()), Step::Enter(directory.into())]
}
