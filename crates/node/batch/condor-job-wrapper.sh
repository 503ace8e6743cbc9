#!/bin/sh
# Wrapper of HTCondor (USER_JOB_WRAPPER=): records each job as its user, for nodes without a recorder that runs as root.
# By the site's broker if there is one; with --misses none, ptrace costs little where there is none.
#
# HTCondor replaces the wrapper by the job: so must this one, also if nothing can be recorded.
lake=${PROCTRACE_LAKE:-$_CONDOR_SCRATCH_DIR/proctrace}
if command -v proctrace > /dev/null 2>&1 && [ -n "$_CONDOR_SCRATCH_DIR" ]; then
    exec proctrace record --quiet --misses none --output "$_CONDOR_SCRATCH_DIR/.job.ptrace" \
        --summary "$lake" --discard-trace -- "$@"
fi
exec "$@"
