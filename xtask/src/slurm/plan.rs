//! The jobs that are submitted: what each does, how many processes that makes, and when it runs.

/// Time at which a job runs, relative to the recorders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum When {
    /// While the first one records.
    First,
    /// It begins under the first one, which is killed, and ends under the second one.
    Across,
    /// While there is none.
    Unseen,
    /// It begins while there is none, and ends under the second one.
    BegunUnseen,
    /// While the second one records, after the daemons were started again with a prolog and a step for
    /// what is outside of steps (`PrologFlags=Contain`).
    Second,
}

impl When {
    /// Rows in the lake of a job that ran once, and whether they must be marked as partial.
    pub(super) fn rows(self) -> (usize, bool) {
        match self {
            Self::First | Self::Second => (1, false),
            Self::Across => (2, true),
            Self::Unseen => (0, false),
            Self::BegunUnseen => (1, true),
        }
    }

    /// True if its script waits until it is let go on.
    pub(super) fn waits(self) -> bool {
        matches!(self, Self::Across | Self::BegunUnseen)
    }
}

/// Way in which a job is submitted.
#[derive(Debug, Clone, Copy)]
pub(super) enum How {
    /// By sbatch(1): what follows `#!/bin/sh`, with `BEGUN` where it has begun if that is not at once, and the
    /// arguments.
    Batch(&'static str, &'static [&'static str]),
    /// By srun(1), without a script: the command line.
    Direct(&'static [&'static str]),
}

/// Action on a job from outside.
#[derive(Debug, Clone, Copy)]
pub(super) enum Then {
    Nothing,
    /// scancel(1) with these options, once the job has begun.
    Cancel(&'static [&'static str]),
    /// The same before it may begin.
    CancelBefore,
}

/// A job, or an array of jobs.
#[derive(Debug)]
pub(super) struct Planned {
    /// The name that Slurm is given.
    pub(super) name: &'static str,
    pub(super) when: When,
    pub(super) how: How,
    /// Further options of sbatch(1) or srun(1).
    pub(super) options: &'static [&'static str],
    /// The number of elements of an array.
    pub(super) elements: Option<u32>,
    /// True if the second user submits it.
    pub(super) is_of_second_user: bool,
    pub(super) then: Then,
    /// The status of an earlier run, and its processes other than slurmstepd(8), if the job has Slurm run it again.
    pub(super) earlier: Option<(i64, u64)>,
    /// Steps, and so processes of slurmstepd(8), except for that of `PrologFlags=Contain`.
    pub(super) steps: u64,
    /// All other processes: of an element of an array by its number in it.
    pub(super) others: fn(u64) -> u64,
}

/// srun(1) is two processes: it forks one that cleans up after it.
const SRUN: u64 = 2;

const JOB: Planned = Planned {
    name: "",
    when: When::First,
    how: How::Batch("", &[]),
    options: &[],
    elements: None,
    is_of_second_user: false,
    then: Then::Nothing,
    earlier: None,
    steps: 1,
    others: |_| 1,
};

/// Two steps, of one task and of two.
const STEPS: &str = "srun -n1 /bin/true; srun -n2 /bin/sleep 0.1; exit 0";
const STEPS_OTHERS: u64 = 1 + SRUN + 1 + SRUN + 2;

/// Waits for SIGUSR1 in the shell; its only child must not outlive it.
const HANDLES_USR1: &str = "trap 'kill $sleep; exit 7' USR1
/bin/sleep 60 & sleep=$!
BEGUN; wait; exit 1";

const SLEEPS: &str = "/bin/sleep 60 & BEGUN; wait; exit 0";

/// Some children, and a status, both by the number of the element.
const ELEMENT: &str = "n=0; while [ $n -le $SLURM_ARRAY_TASK_ID ]; do /bin/true; n=$((n + 1)); done
exit $((SLURM_ARRAY_TASK_ID * 3))";

pub(super) const JOBS: &[Planned] = &[
    Planned { name: "quick", how: How::Batch("exit 0", &[]), ..JOB },
    Planned {
        name: "plain",
        how: How::Batch("/bin/true; /bin/sleep 0.2; /bin/true; exit 0", &["--events", "17"]),
        others: |_| 4,
        ..JOB
    },
    Planned {
        name: "fails",
        how: How::Batch("/bin/false; exit 3", &[]),
        is_of_second_user: true,
        others: |_| 2,
        ..JOB
    },
    Planned {
        name: "steps",
        how: How::Batch(STEPS, &[]),
        options: &["-n2"],
        steps: 3,
        others: |_| STEPS_OTHERS,
        ..JOB
    },
    Planned {
        name: "two at once",
        how: How::Batch("srun --exact -n1 /bin/sleep 0.3 & srun --exact -n1 /bin/sleep 0.3 & wait; exit 0", &[]),
        options: &["-n2"],
        is_of_second_user: true,
        steps: 3,
        others: |_| 1 + 2 * (SRUN + 1),
        ..JOB
    },
    Planned {
        name: "step-fails",
        how: How::Batch("srun -n1 /bin/sh -c 'exit 5'; exit $?", &[]),
        steps: 2,
        others: |_| 1 + SRUN + 1,
        ..JOB
    },
    Planned {
        name: "handles-USR1",
        how: How::Batch(HANDLES_USR1, &[]),
        then: Then::Cancel(&["--batch", "--signal=USR1"]),
        others: |_| 2,
        ..JOB
    },
    Planned {
        name: "dies-of-USR1",
        how: How::Batch("read never < never; exit 0", &[]),
        then: Then::Cancel(&["--batch", "--signal=USR1"]),
        ..JOB
    },
    Planned {
        name: "cancelled",
        how: How::Batch(SLEEPS, &[]),
        is_of_second_user: true,
        then: Then::Cancel(&[]),
        others: |_| 2,
        ..JOB
    },
    Planned {
        name: "killed",
        how: How::Batch(SLEEPS, &[]),
        then: Then::Cancel(&["--full", "--signal=KILL"]),
        others: |_| 2,
        ..JOB
    },
    Planned {
        name: "array",
        how: How::Batch(ELEMENT, &[]),
        elements: Some(5),
        others: |element| 1 + element + 1,
        ..JOB
    },
    Planned {
        name: "many",
        how: How::Batch("n=0; while [ $n -lt 300 ]; do /bin/true; n=$((n + 1)); done; exit 0", &[]),
        others: |_| 301,
        ..JOB
    },
    Planned {
        name: "liar",
        how: How::Batch(
            "SLURM_JOB_ID=1 SLURM_ARRAY_JOB_ID=1 SLURM_ARRAY_TASK_ID=9 SLURM_JOB_NAME=other USER=root SLURM_JOB_USER=root
export SLURM_JOB_ID SLURM_ARRAY_JOB_ID SLURM_ARRAY_TASK_ID SLURM_JOB_NAME USER SLURM_JOB_USER
/bin/sleep 0.3; /bin/sh -c 'exit 1'; exit 0",
            &[],
        ),
        is_of_second_user: true,
        others: |_| 3,
        ..JOB
    },
    Planned {
        // Slurm kills what is left when the script has ended.
        name: "leaves-one",
        how: How::Batch("setsid /bin/sleep 60 & exit 0", &[]),
        others: |_| 2,
        ..JOB
    },
    Planned {
        // The same number, and the same cgroup, twice. What of Slurm ends the first run sends SIGTERM.
        name: "runs-again",
        how: How::Batch(
            "[ -n \"$SLURM_RESTART_COUNT\" ] && exit 8; scontrol requeue $SLURM_JOB_ID; read -r never < never; exit 0",
            &[],
        ),
        earlier: Some((128 + 15, 2)),
        ..JOB
    },
    Planned {
        name: "direct",
        how: How::Direct(&["/bin/sleep", "0.2"]),
        options: &["-n2"],
        others: |_| 2,
        ..JOB
    },
    Planned {
        // To Slurm, the highest status of a task is that of the step, and of the job.
        name: "direct-fails",
        how: How::Direct(&["/bin/sh", "-c", "exit $((SLURM_PROCID * 4))"]),
        options: &["-n2"],
        is_of_second_user: true,
        others: |_| 2,
        ..JOB
    },
    Planned {
        name: "never-runs",
        options: &["--hold"],
        then: Then::CancelBefore,
        ..JOB
    },
    Planned {
        name: "across",
        when: When::Across,
        how: How::Batch("/bin/true; exit 4", &["--seed", "1"]),
        others: |_| 2,
        ..JOB
    },
    Planned {
        name: "steps-across",
        when: When::Across,
        how: How::Batch(STEPS, &[]),
        options: &["-n2"],
        is_of_second_user: true,
        steps: 3,
        others: |_| STEPS_OTHERS,
        ..JOB
    },
    Planned {
        name: "array-across",
        when: When::Across,
        how: How::Batch(ELEMENT, &[]),
        elements: Some(2),
        others: |element| 1 + element + 1,
        ..JOB
    },
    Planned { name: "unseen", when: When::Unseen, ..JOB },
    Planned {
        name: "begun-unseen",
        when: When::BegunUnseen,
        how: How::Batch("/bin/true; exit 0", &[]),
        others: |_| 2,
        ..JOB
    },
    Planned {
        name: "plain-2",
        when: When::Second,
        how: How::Batch("/bin/true; /bin/true; exit 2", &[]),
        others: |_| 3,
        ..JOB
    },
    Planned {
        name: "steps-2",
        when: When::Second,
        how: How::Batch(STEPS, &[]),
        options: &["-n2"],
        steps: 3,
        others: |_| STEPS_OTHERS,
        ..JOB
    },
    Planned {
        name: "array-2",
        when: When::Second,
        how: How::Batch(ELEMENT, &[]),
        elements: Some(2),
        is_of_second_user: true,
        others: |element| 1 + element + 1,
        ..JOB
    },
    Planned {
        name: "direct-2",
        when: When::Second,
        how: How::Direct(&["/bin/sh", "-c", "/bin/sleep 0.1; exit 6"]),
        others: |_| 2,
        ..JOB
    },
];
