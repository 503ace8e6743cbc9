#!/bin/sh
# Wrapper of HTCondor (USER_JOB_WRAPPER=): records each job as its user, for nodes without a recorder that runs as root.
# By the site's broker if there is one; with --misses none, ptrace costs little where there is none.
#
# HTCondor replaces the wrapper by the job: so must this one, also if nothing can be recorded. With --job-first, the job
# runs and its status is passed on whatever becomes of the recording; a loss is said in the job's stderr and in the
# node's log.
scratch=$_CONDOR_SCRATCH_DIR
lake=${PROCTRACE_LAKE:-$scratch/proctrace}
if ! command -v proctrace > /dev/null 2>&1; then
    why="there is no proctrace in $PATH"
elif [ ! -d "$scratch" ] || [ ! -w "$scratch" ]; then
    why="the scratch directory '$scratch' cannot be written"
# A recorder that does not start at all, for lack of memory or of descriptors, must not take the job with it.
elif ! proctrace --version > /dev/null 2>&1; then
    why="proctrace does not start here"
else
    exec proctrace record --quiet --job-first --misses none --output "$scratch/.job.ptrace" \
        --summary "$lake" --discard-trace -- "$@"
fi
echo "proctrace: this job is not recorded, and runs all the same: $why" >&2
logger -t proctrace "job of $(id -un) is not recorded: $why" 2> /dev/null
exec "$@"
