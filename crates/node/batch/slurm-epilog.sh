#!/bin/sh
# Epilog of slurmd (slurm.conf: Epilog=): ends what slurm-prolog.sh has begun. The recorder completes the trace and
# writes the summary before it ends.
[ -n "$SLURM_JOB_ID" ] || exit 0
systemctl stop "proctrace-job-$SLURM_JOB_ID.service" ||
    logger -t proctrace "the recorder of job $SLURM_JOB_ID cannot be stopped"
exit 0
