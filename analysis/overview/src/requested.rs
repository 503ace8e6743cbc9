//! What the batch system was asked for, as its variables tell, where that is twice what was used or half of it.

use std::collections::BTreeMap;

use proctrace_findings::{MemoryFrom, Mismatch, Request, Resource};
use proctrace_recording::Recording;
use proctrace_recording::process::ProgramRun;

use crate::requests::job_request;

const MEBIBYTE: u64 = 1 << 20;
const SECOND_NS: u64 = 1_000_000_000;
/// A request is off by this factor or more.
const FACTOR: f64 = 2.0;
/// Jobs that are shorter are tests, and end long before any limit.
const SHORTEST_NS: u64 = 10 * SECOND_NS;

/// A value, and the variable that it is from.
type From = (u64, &'static str);

/// What was asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Asked {
    cores: Option<From>,
    memory_bytes: Option<From>,
    wall_ns: Option<From>,
}

impl Asked {
    fn of(job: &BTreeMap<String, String>) -> Self {
        let number = |name: &'static str| {
            let value = job.get(name)?.parse::<u64>().ok().filter(|value| *value > 0)?;
            Some((value, name))
        };
        let is = |name: &str| job.contains_key(name);
        let mebibytes = |(value, name): From| (value.saturating_mul(MEBIBYTE), name);
        if is("SLURM_JOB_ID") {
            let all = number("SLURM_CPUS_ON_NODE");
            // What is given may be more than was asked for: whole cores of two threads, whole nodes.
            let given = all.filter(|(cores, _)| *cores > THREADS_OF_CORE);
            let cores = number("SLURM_CPUS_PER_TASK").or(given);
            // Megabytes in terms of sbatch(1) are binary ones.
            let per_core = || {
                let (per_core, name) = number("SLURM_MEM_PER_CPU")?;
                Some((per_core.saturating_mul(all?.0), name))
            };
            let wall_ns = || {
                let (end_s, name) = number("SLURM_JOB_END_TIME")?;
                let (start_s, _) = number("SLURM_JOB_START_TIME")?;
                let seconds = end_s.checked_sub(start_s).filter(|seconds| *seconds > 0)?;
                Some((seconds.saturating_mul(SECOND_NS), name))
            };
            let memory = number("SLURM_MEM_PER_NODE").or_else(per_core);
            return Self { cores, memory_bytes: memory.map(mebibytes), wall_ns: wall_ns() };
        }
        if is("PBS_JOBID") {
            return Self { cores: number("NCPUS"), ..Self::default() };
        }
        if is("_CONDOR_SLOT") || is("_CONDOR_JOB_AD") {
            // The starter sets the latter to the CPUs of the slot (HTCondor's STARTER_NUM_THREADS_ENV_VARS).
            let cores = number("CONDOR_REQUEST_CPUS").or_else(|| number("OMP_NUM_THREADS"));
            let memory_bytes = number("CONDOR_REQUEST_MEMORY").map(mebibytes);
            return Self { cores, memory_bytes, wall_ns: None };
        }
        Self::default()
    }
}

/// Variables with the number of tasks and nodes: of several, one is recorded, or none that a launcher starts elsewhere.
const NUMBERS: [&str; 4] =
    ["SLURM_NTASKS", "SLURM_STEP_NUM_TASKS", "SLURM_JOB_NUM_NODES", "SLURM_NNODES"];
/// Programs that have a daemon start what they run, here or on other nodes: it does not descend from the command.
const LAUNCHERS: [&str; 6] = ["srun", "mpirun", "mpiexec", "orterun", "prun", "aprun"];

/// CPUs of a core that a job may be given for one that it asks for.
const THREADS_OF_CORE: u64 = 2;
/// A job has begun with its command if the time between them is less than this part of its limit.
const BEGIN_PART: u64 = 20;

/// True if the recording began with the job: another stage may have had its time before.
fn began_with_job(recording: &Recording, limit_ns: u64) -> bool {
    let header = recording.header();
    let began = header.job.get("SLURM_JOB_START_TIME").and_then(|time| time.parse::<u64>().ok());
    let later_ns =
        began.map(|began| header.started_unix_ns.saturating_sub(began.saturating_mul(SECOND_NS)));
    later_ns.is_some_and(|later_ns| later_ns <= limit_ns / BEGIN_PART)
}

/// True if processes of the job may be missing from the recording.
fn has_other_parts(recording: &Recording) -> bool {
    let job = &recording.header().job;
    let several = |name: &&str| job.get(*name).is_some_and(|number| number.trim() != "1");
    let launches = |run: &ProgramRun| {
        let program = recording.programs().get(run.program as usize);
        program.is_some_and(|program| LAUNCHERS.contains(&&*program.name))
    };
    NUMBERS.iter().any(several) || recording.runs().iter().any(launches)
}

/// Requests that are off by 2 or more. Nothing if the recording is not one of a whole command, or if others did a part of
/// the job.
pub fn mismatches(recording: &Recording) -> Vec<Mismatch> {
    let whole = recording.root().is_some() && recording.trailer().is_some();
    if !whole || recording.wall_ns() < SHORTEST_NS || has_other_parts(recording) {
        return Vec::new();
    }
    let mut asked = Asked::of(&recording.header().job);
    asked.wall_ns = asked.wall_ns.filter(|(limit_ns, _)| began_with_job(recording, *limit_ns));
    if asked == Asked::default() {
        return Vec::new();
    }
    of(&asked, &job_request(recording, None))
}

fn of(asked: &Asked, fits: &Request) -> Vec<Mismatch> {
    let mut all = Vec::new();
    // An upper bound of what was used shows too much, but not too little.
    let is_bound = fits.memory_from == MemoryFrom::PeaksAtOnce;
    let mut add = |resource, asked: Option<From>, used: Option<f64>, fits: Option<u64>| {
        let (Some((asked, variable)), Some(used), Some(fits)) = (asked, used, fits) else { return };
        let is_more = asked as f64 >= FACTOR * fits.max(1) as f64;
        // What exceeds the request was had nevertheless: the batch system does not enforce it, or it is divided further.
        let is_less = used >= FACTOR * asked as f64 && !(resource == Resource::Memory && is_bound);
        if is_more || is_less {
            all.push(Mismatch { resource, asked, variable, used, fits });
        }
    };
    add(Resource::Cores, asked.cores, fits.cores_used, fits.cores);
    let memory = fits.memory_used_bytes.map(|bytes| bytes as f64);
    add(Resource::Memory, asked.memory_bytes, memory, fits.memory_bytes);
    add(Resource::Wall, asked.wall_ns, Some(fits.wall_used_ns as f64), Some(fits.wall_ns));
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use proctrace_scenes::{MS, S, Scene};

    fn job(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn fits() -> Request {
        Request {
            group: None,
            steps: 1,
            cores_used: Some(1.1),
            cores: Some(1),
            memory_used_bytes: Some(500_000_000),
            memory_from: MemoryFrom::Pss,
            memory_bytes: Some(550_000_000),
            disk_used_bytes: None,
            disk_bytes: None,
            wall_used_ns: 600 * SECOND_NS,
            wall_ns: 900 * SECOND_NS,
        }
    }

    fn found(pairs: &[(&str, &str)], cores_used: f64) -> Vec<(Resource, u64, &'static str)> {
        let cores = Some(cores_used.ceil() as u64);
        let fits = Request { cores_used: Some(cores_used), cores, ..fits() };
        let all = of(&Asked::of(&job(pairs)), &fits);
        all.iter().map(|of| (of.resource, of.asked, of.variable)).collect()
    }

    #[test]
    fn requests_of_slurm_are_compared() {
        let slurm = [
            ("SLURM_JOB_ID", "7"),
            ("SLURM_CPUS_ON_NODE", "8"),
            ("SLURM_MEM_PER_CPU", "2000"),
            ("SLURM_JOB_START_TIME", "1000"),
            ("SLURM_JOB_END_TIME", "4600"),
        ];
        assert_eq!(
            found(&slurm, 1.2),
            [
                (Resource::Cores, 8, "SLURM_CPUS_ON_NODE"),
                (Resource::Memory, 16_000 * MEBIBYTE, "SLURM_MEM_PER_CPU"),
                (Resource::Wall, 3600 * SECOND_NS, "SLURM_JOB_END_TIME"),
            ]
        );
        // It needs most of them for a part of the time.
        assert_eq!(found(&slurm[..2], 6.5), []);
        // One CPU, and the other thread of its core; but two if they were asked for.
        let one =
            [("SLURM_JOB_ID", "7"), ("SLURM_CPUS_ON_NODE", "2"), ("SLURM_CPUS_PER_TASK", "1")];
        assert_eq!((found(&one[..2], 1.0), found(&one, 1.0)), (vec![], vec![]));
        let two = [("SLURM_JOB_ID", "7"), ("SLURM_CPUS_PER_TASK", "2")];
        assert_eq!(found(&two, 1.0), [(Resource::Cores, 2, "SLURM_CPUS_PER_TASK")]);
        assert_eq!(found(&[("SLURM_JOB_ID", "7"), ("SLURM_MEM_PER_NODE", "0")], 1.0), []);
        assert_eq!(found(&[("SLURM_JOB_ID", "7"), ("SLURM_CPUS_ON_NODE", "many")], 1.0), []);
    }

    #[test]
    fn less_than_was_used_is_told_as_well() {
        let small = [("SLURM_JOB_ID", "7"), ("SLURM_MEM_PER_NODE", "200")];
        assert_eq!(found(&small, 1.0), [(Resource::Memory, 200 * MEBIBYTE, "SLURM_MEM_PER_NODE")]);
    }

    #[test]
    fn others_tell_the_number_of_cpus() {
        let condor = [("_CONDOR_SLOT", "slot1"), ("OMP_NUM_THREADS", "4")];
        assert_eq!(found(&condor, 1.0), [(Resource::Cores, 4, "OMP_NUM_THREADS")]);
        assert_eq!(found(&condor[1..], 1.0), []);
        let condor = [
            ("_CONDOR_JOB_AD", "/scratch/.job.ad"),
            ("OMP_NUM_THREADS", "8"),
            ("CONDOR_REQUEST_CPUS", "1"),
            ("CONDOR_REQUEST_MEMORY", "4000"),
        ];
        let memory = (Resource::Memory, 4000 * MEBIBYTE, "CONDOR_REQUEST_MEMORY");
        assert_eq!(found(&condor, 1.0), [memory]);
        assert_eq!(found(&[("PBS_JOBID", "1"), ("NCPUS", "2")], 1.0).len(), 1);
    }

    #[test]
    fn what_others_run_of_the_job_is_not_missed() {
        let load = |program: &str, variable: (&str, &str)| {
            let mut scene = Scene::new(1, 100 * MS);
            scene.exec(0, 1, "/bin/sh", (0, 0)).fork(S, 1, 2).exec(S, 2, program, (0, 0));
            scene.exit(19 * S, 2, (0, 0)).exit(20 * S, 1, (0, 0));
            let mut recording = scene.load(Some((20 * S, 0, 0)));
            recording.header_mut().job =
                job(&[("SLURM_JOB_ID", "7"), ("SLURM_CPUS_ON_NODE", "8"), variable]);
            mismatches(&recording).len()
        };
        assert_eq!(load("/bin/sim", ("SLURM_NTASKS", "1")), 1);
        assert_eq!(load("/bin/sim", ("SLURM_NTASKS", "8")), 0);
        assert_eq!(load("/usr/bin/srun", ("SLURM_NTASKS", "1")), 0);
    }

    #[test]
    fn a_stage_of_a_job_is_not_compared_with_the_time_of_all() {
        let found = |after_s: u64| {
            let mut scene = Scene::new(1, 100 * MS);
            scene.exec(0, 1, "/bin/sim", (0, 0)).exit(20 * S, 1, (20 * S, 0));
            let mut recording = scene.load(Some((20 * S, 0, 0)));
            let began_s = 1_700_000_000_u64;
            let (began, end) = (began_s.to_string(), (began_s + 14_400).to_string());
            recording.header_mut().started_unix_ns = (began_s + after_s) * S;
            recording.header_mut().job = job(&[
                ("SLURM_JOB_ID", "7"),
                ("SLURM_JOB_START_TIME", &began),
                ("SLURM_JOB_END_TIME", &end),
            ]);
            mismatches(&recording).len()
        };
        assert_eq!((found(30), found(3600)), (1, 0));
    }
}
