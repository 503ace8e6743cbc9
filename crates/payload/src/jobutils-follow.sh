# taskwrapper LOG COMMAND...: runs the command and reads its log as it grows, with two programs in all.
taskwrapper() {
  local log=$1 pid
  shift
  : >"$log"
  "$@" >"$log" 2>&1 &
  pid=$!
  tail -n +1 -f -s "$JOBUTILS_WRAPPER_SLEEP" --pid="$pid" "$log" | grep -q -m 1 -e 'segmentation fault'
  wait "$pid"
}
