//! An O2 simulation workflow: a runner, task shells that monitor their programs, drivers that
//! execute themselves again for each device, and the start-up work of these programs.

use std::ops::Range;

use serde::Deserialize;
use toml::Spanned;

use crate::error::PlanError;
use crate::field::{Arguments, Count, Name, O2Program, Work};
use crate::plan::{Libraries, Nodes, Phase, Plan, Request, bounded, own};
use crate::step::{Exec, NodeId, Program, Started, Step, WORK};

/// The shell functions for supervision "poll".
const POLL: &str = include_str!("jobutils-poll.sh");

/// The shell functions for supervision "follow".
const FOLLOW: &str = include_str!("jobutils-follow.sh");

/// The programs that one tick of POLL starts; keep in sync with that file.
const TICK: [(&str, u64); 6] =
    [("awk", 2), ("grep", 3), ("pgrep", 2), ("ps", 2), ("sed", 2), ("sleep", 1)];

/// The programs that a task's shell starts with FOLLOW.
const FOLLOWERS: [(&str, u64); 2] = [("grep", 1), ("tail", 1)];

/// Command by which ROOT determines the loader's search path: it runs a program that cannot be
/// started.
const PROBE: &str = "LD_DEBUG=libs LD_PRELOAD=DOESNOTEXIST ls /tmp/DOESNOTEXIST 2>&1 | \
                     grep 'search path' | sed 's/^.*search path=//' | \
                     awk 'END { print NR }' >/dev/null";

/// The programs that PROBE starts.
const PROBERS: [&str; 4] = ["ls", "grep", "sed", "awk"];

/// The parameters of an O2 workflow.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Alice {
    /// Timeframes at scale 1; all tasks are run for each.
    timeframes: Count<1, 10_000>,
    /// Way in which task shells monitor their programs.
    supervision: Supervision,
    /// Time that a shell sleeps between two polls, in ms.
    tick_ms: Count<1, 10_000>,
    /// True if drivers probe the loader's search path, as ROOT does.
    probes: bool,
    /// Directories in LD_LIBRARY_PATH; the last contains the libraries.
    library_directories: Count<1, 500>,
    /// True if LD_LIBRARY_PATH is a single directory of links instead.
    link_directory: bool,
    /// Libraries that each O2 program loads, without "lib" and ".so".
    libraries: Vec<Name>,
    /// Start-up work of each O2 program, in units.
    start_work: Work,
    /// The same for work in the kernel.
    start_kernel_work: Work,
    /// Threads of each driver.
    driver_threads: Count<0, 256>,
    /// Memory of each device, in MiB.
    device_mib: Count<0, 4096>,
    task: Spanned<Vec<WorkflowTask>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Supervision {
    /// A fixed number of polls with ps, pgrep, grep, awk, sed and sleep.
    Poll,
    /// tail -f | grep -m 1.
    Follow,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct WorkflowTask {
    name: Name,
    program: O2Program,
    #[serde(default)]
    arguments: Vec<Arguments>,
    /// Polls by the task's shell; only with supervision "poll".
    #[serde(default)]
    ticks: Option<Spanned<Count<1, 10_000>>>,
    /// Work of all devices together, in units.
    work: Work,
    /// The same for work in the kernel.
    #[serde(default)]
    kernel_work: Work,
    /// Size of the file that the last device writes.
    output_kib: Count<0, 1_048_576>,
    devices: Vec<Device>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Device {
    id: Name,
    /// Program of the device, if different from the driver's.
    program: Option<O2Program>,
    threads: Count<0, 512>,
    /// Its children that do not exec.
    #[serde(default = "none")]
    forks: Count<0, 256>,
    /// True if its parent exits immediately, so that no process of the payload waits for it.
    #[serde(default)]
    detached: bool,
}

fn none() -> Count<0, 256> {
    Count(0)
}

impl Alice {
    /// Checks that involve several fields; an error consists of an offset in the file and a
    /// message.
    pub(crate) fn check(&self) -> Result<(), (usize, String)> {
        let at = |range: Range<usize>, message: &str| Err((range.start, message.to_owned()));
        if self.task.get_ref().is_empty() {
            return at(self.task.span(), "there must be at least one task");
        }
        for task in self.task.get_ref() {
            match (&task.ticks, self.supervision) {
                (None, Supervision::Poll) => {
                    let message =
                        format!("task {} needs ticks, because supervision is poll", task.name.0);
                    return at(self.task.span(), &message);
                }
                (Some(ticks), Supervision::Follow) => {
                    return at(ticks.span(), "no ticks allowed, because supervision is follow");
                }
                _ => {}
            }
        }
        Ok(())
    }

    pub(crate) fn plan(&self, name: &str, request: Request) -> Result<Plan, PlanError> {
        let timeframes = request.scaled("timeframes", self.timeframes.0)?;
        let tasks = self.task.get_ref();
        self.bound(timeframes)?;
        let mut nodes = Nodes::default();
        let shells: Vec<Exec> =
            tasks.iter().map(|task| self.shell(task, request, &mut nodes)).collect();

        let mut steps = vec![Step::Jobs(u64::from(request.workers))];
        // Stage by stage for as many timeframes as there are workers, like the runner when the
        // tasks of one timeframe depend on each other.
        let frames: Vec<u64> = (1..=timeframes).collect();
        for batch in frames.chunks(request.workers as usize) {
            for (task, shell) in tasks.iter().zip(&shells) {
                for frame in batch {
                    if let Some(ticks) = &task.ticks {
                        let ticks = ticks.get_ref().0.to_string();
                        steps.push(Step::Environment("JOBUTILS_TICKS".into(), ticks));
                    }
                    let mut shell = shell.clone();
                    for argument in &mut shell.arguments {
                        *argument = argument.replace("@frame@", &frame.to_string());
                    }
                    steps.push(Step::Spawn(shell));
                }
            }
        }
        let runner = nodes.add(steps);
        let arguments = ["-f", "workflow.json", "--cpu-limit", &request.workers.to_string()];
        let (utilities, text) = match self.supervision {
            Supervision::Poll => ("share/scripts/jobutils.sh", POLL),
            Supervision::Follow => ("share/scripts/jobutils2.sh", FOLLOW),
        };
        let seconds = format!("{:.3}", self.tick_ms.0 as f64 / 1000.0);
        let mut environment = vec![("JOBUTILS_WRAPPER_SLEEP".into(), seconds)];
        if !self.probes {
            // With this variable, ROOT skips the probe.
            environment.push(("ROOT_LDSYSPATH".into(), "/lib:/usr/lib".into()));
        }
        Ok(Plan {
            name: name.to_owned(),
            request,
            root: own("o2_dpg_workflow_runner.py", arguments, runner),
            nodes: nodes.0,
            files: vec![(utilities.into(), text.into())],
            directories: vec!["share/scripts".into()],
            libraries: Some(self.search()),
            environment,
            events: None,
            phases: vec![Phase {
                name: "workflow",
                from: "the start of o2_dpg_workflow_runner.py",
                to: "its exit",
            }],
        })
    }

    /// Rejects plans that need too much memory before allocating any of it.
    fn bound(&self, timeframes: u64) -> Result<(), PlanError> {
        let (mut steps, mut bytes) = (0_u64, 0_u64);
        for task in self.task.get_ref() {
            let programs = task.devices.len() as u64 + 1;
            let text: u64 = task.arguments.iter().map(|line| line.0.len() as u64).sum();
            let forks: u64 = task.devices.iter().map(|device| device.forks.0).sum();
            let each = programs.saturating_mul(self.libraries.len() as u64 + 8);
            steps = steps.saturating_add(each).saturating_add(forks).saturating_add(timeframes);
            let times = programs.saturating_add(timeframes);
            bytes = bytes.saturating_add((text + 200).saturating_mul(times));
        }
        bounded("steps", Some(steps))?;
        // In units of 100; the limit is a million units.
        bounded("bytes of arguments, in hundreds", Some(bytes / 100)).map(|_| ())
    }

    fn search(&self) -> Libraries {
        let all: Vec<String> =
            (0..self.library_directories.0).map(|n| format!("lib/{n:02}")).collect();
        Libraries {
            directory: all.last().cloned().unwrap_or_default(),
            links: self.link_directory.then(|| "lib/all".into()),
            search: if self.link_directory { vec!["lib/all".into()] } else { all },
            names: self.libraries.iter().map(|name| format!("lib{}.so", name.0)).collect(),
        }
    }

    /// The shell of a task, with all its descendants.
    fn shell(&self, task: &WorkflowTask, request: Request, nodes: &mut Nodes) -> Exec {
        let driver = self.driver(task, request, nodes);
        let (utilities, watchers) = match self.supervision {
            Supervision::Poll => ("jobutils.sh", &TICK[..]),
            Supervision::Follow => ("jobutils2.sh", &FOLLOWERS[..]),
        };
        let times = task.ticks.as_ref().map_or(1, |ticks| ticks.get_ref().0);
        let arguments = joined(&task.arguments);
        let (name, program) = (&task.name.0, &task.program.0);
        let mut starts: Vec<Started> =
            watchers.iter().map(|(name, count)| system(name, count * times)).collect();
        let own = Program::Own(program.clone());
        starts.push(Started { program: own, times: 1, node: Some(driver) });
        Exec {
            program: Program::System("bash".into()),
            arguments: vec![
                "-c".into(),
                format!(
                    ". {WORK}/share/scripts/{utilities}; \
                     taskwrapper {name}_@frame@.log {program} {arguments}"
                ),
            ],
            node: Some(driver),
            starts,
        }
    }

    fn driver(&self, task: &WorkflowTask, request: Request, nodes: &mut Nodes) -> NodeId {
        let mut steps = self.start(request);
        if self.probes {
            let starts = PROBERS.iter().map(|name| system(name, 1)).collect();
            steps.push(Step::Spawn(Exec {
                program: Program::System("sh".into()),
                arguments: vec!["-c".into(), PROBE.into()],
                node: None,
                starts,
            }));
            steps.push(Step::Wait);
        }
        let share = 1.0 / task.devices.len().max(1) as f64;
        for device in &task.devices {
            let node = self.device(task, device, share, request, nodes);
            let program = device.program.as_ref().unwrap_or(&task.program);
            let all = joined(&task.arguments);
            let own_ones = ["--id", &device.id.0, "--control", "static"];
            let arguments = own_ones.into_iter().chain(all.split_whitespace());
            let exec = own(&program.0, arguments, node);
            steps.push(if device.detached { Step::Detach(exec) } else { Step::Spawn(exec) });
        }
        steps.push(Step::Threads(self.driver_threads.0, self.driver_threads.0, 0));
        nodes.add(steps)
    }

    fn device(
        &self,
        task: &WorkflowTask,
        device: &Device,
        share: f64,
        request: Request,
        nodes: &mut Nodes,
    ) -> NodeId {
        let mut steps = self.start(request);
        steps.push(Step::Memory(self.device_mib.0));
        // Children without exec share their device's memory and work.
        let parts = share / (device.forks.0 + 1) as f64;
        if device.forks.0 > 0 {
            let child = nodes.add(vec![Step::User(request.rounds(task.work.0 * parts))]);
            steps.extend((0..device.forks.0).map(|_| Step::Fork(child)));
        }
        let (threads, work) = (device.threads.0, task.work.0 * parts);
        if threads > 0 {
            steps.push(Step::Threads(threads, threads, request.rounds(work / threads as f64)));
        } else {
            steps.push(Step::User(request.rounds(work)));
        }
        steps.push(Step::Kernel(request.reads(task.kernel_work.0 * share)));
        if task.devices.last() == Some(device) {
            steps.push(Step::Write(format!("{}.root", task.name.0), task.output_kib.0));
        }
        nodes.add(steps)
    }

    /// The start-up steps of each O2 program.
    fn start(&self, request: Request) -> Vec<Step> {
        let library = |name: &Name| Step::Load(format!("lib{}.so", name.0));
        let mut steps: Vec<Step> = self.libraries.iter().map(library).collect();
        steps.push(Step::User(request.rounds(self.start_work.0)));
        steps.push(Step::Kernel(request.reads(self.start_kernel_work.0)));
        steps
    }
}

fn joined(arguments: &[Arguments]) -> String {
    arguments.iter().map(|text| text.0.as_str()).collect::<Vec<_>>().join(" ")
}

fn system(name: &str, times: u64) -> Started {
    Started { program: Program::System(name.into()), times, node: None }
}
