# taskwrapper LOG COMMAND...: runs the command and checks it JOBUTILS_TICKS times, each time with
# the same twelve programs. A pipe starts one process for each of its commands and $(...) in some
# shells one more, so there is no $(...) here: the started processes can be counted by reading.
taskwrapper() {
  local log=$1 tick pid
  shift
  : >"$log"
  "$@" >"$log" 2>&1 &
  pid=$!
  for ((tick = 0; tick < JOBUTILS_TICKS; tick++)); do
    grep -q -e 'segmentation fault' "$log"
    grep -q -e '\[FATAL\]' "$log"
    pgrep -P "$pid" >/dev/null
    pgrep -P "$$" >/dev/null
    ps -o pid,ppid,rss,time,comm -p "$pid" | grep -v PID | awk '{ print $3 }' >/dev/null
    ps -o command= -p "$pid" | sed -e 's/ .*//' | awk '{ print NF }' >/dev/null
    sed -n -e '$p' "$log" >/dev/null
    sleep "$JOBUTILS_WRAPPER_SLEEP"
  done
  wait "$pid"
}
