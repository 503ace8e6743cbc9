# taskwrapper LOG COMMAND...: runs the command and follows its log, with two programs in total.
taskwrapper() {
  local log=$1 pid
  shift
  : >"$log"
  "$@" >"$log" 2>&1 &
  pid=$!
  tail -n +1 -f -s "$JOBUTILS_WRAPPER_SLEEP" --pid="$pid" "$log" | grep -q -m 1 -e 'segmentation fault'
  wait "$pid"
}
