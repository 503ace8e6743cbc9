#!/bin/sh
# Prolog of slurmd (slurm.conf: Prolog=): records this job alone, for nodes on which no recorder runs all the time.
# Its epilog is slurm-epilog.sh. The job's cgroup does not exist yet: the recorder waits for it. With Type=notify,
# systemd-run returns when the recorder is ready, and so does the prolog: slurmd starts the job afterwards.
#
# PROCTRACE_LAKE is where summaries go; on a node with many users, a directory that only root can write to.
lake=${PROCTRACE_LAKE:-/var/lib/proctrace/lake}
spool=${PROCTRACE_SPOOL:-/var/lib/proctrace/spool}

[ -n "$SLURM_JOB_ID" ] || exit 0
# The elements of an array are known by their numbers in it.
id=$SLURM_JOB_ID
[ -n "$SLURM_ARRAY_JOB_ID" ] && [ -n "$SLURM_ARRAY_TASK_ID" ] && id=${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID
# A job must not fail, nor wait for long, because it is not recorded.
systemd-run --quiet --collect --unit="proctrace-job-$SLURM_JOB_ID" \
    --property=Type=notify --property=TimeoutStartSec=20 \
    --property=KillSignal=SIGTERM --property=TimeoutStopSec=300 --property=UMask=0077 \
    proctrace record -a "--per-cgroup=system.slice/*slurmstepd.scope/job_$SLURM_JOB_ID" --quiet \
    --output "$spool/$SLURM_JOB_ID" --summary "$lake" --discard-trace \
    --label "batch_system=slurm" --label "batch_id=$id" \
    ${SLURM_CLUSTER_NAME:+--label "site=$SLURM_CLUSTER_NAME"} \
    ${SLURM_JOB_PARTITION:+--label "queue=$SLURM_JOB_PARTITION"} ||
    logger -t proctrace "job $SLURM_JOB_ID is not recorded"
exit 0
