#!/bin/sh
# Epilog of slurmd (slurm.conf: Epilog=): ends what slurm-prolog.sh has begun. The recorder completes the trace and
# writes the summary before it ends.
spool=${PROCTRACE_SPOOL:-/var/lib/proctrace/spool}
[ -n "$SLURM_JOB_ID" ] || exit 0
systemctl stop "proctrace-job-$SLURM_JOB_ID.service" ||
    logger -t proctrace "the recorder of job $SLURM_JOB_ID cannot be stopped"
# Empty, unless a trace could not be summarized: that one is kept.
rmdir "$spool/$SLURM_JOB_ID" 2> /dev/null
exit 0
