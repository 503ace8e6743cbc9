#!/bin/sh
# Prolog of slurmd (slurm.conf: Prolog=): records this job alone, for nodes on which no recorder runs all the time.
# Its epilog is slurm-epilog.sh. The job's cgroup does not exist yet: the recorder waits for it.
#
# PROCTRACE_LAKE is where summaries go; on a node with many users, a directory that only root can write to.
lake=${PROCTRACE_LAKE:-/var/lib/proctrace/lake}
spool=${PROCTRACE_SPOOL:-/var/lib/proctrace/spool}

[ -n "$SLURM_JOB_ID" ] || exit 0
# A job must not fail because it is not recorded.
systemd-run --quiet --collect --unit="proctrace-job-$SLURM_JOB_ID" \
    --property=KillSignal=SIGTERM --property=TimeoutStopSec=300 --property=UMask=0077 \
    proctrace record -a "--per-cgroup=system.slice/*slurmstepd.scope/job_$SLURM_JOB_ID" --quiet \
    --output "$spool/$SLURM_JOB_ID" --summary "$lake" --discard-trace \
    --label "batch_system=slurm" --label "batch_id=$SLURM_JOB_ID" \
    ${SLURM_CLUSTER_NAME:+--label "site=$SLURM_CLUSTER_NAME"} \
    ${SLURM_JOB_PARTITION:+--label "queue=$SLURM_JOB_PARTITION"} ||
    logger -t proctrace "job $SLURM_JOB_ID is not recorded"
exit 0
