// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The programs that record a process tree. README.md beside this file lists the hooks, the cost of
 * each and why it was chosen.
 *
 * A single translation unit, because the programs share maps and constants; one header per concern.
 */
#include "vmlinux_min.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#include "wire.h"
#include "recorder.bpf.h"
#include "regs.bpf.h"
#include "compat.bpf.h"
#include "pids.bpf.h"
#include "rights.bpf.h"
#include "scope.bpf.h"
#include "path.bpf.h"
#include "wait.bpf.h"
#include "lifecycle.bpf.h"
#include "exec.bpf.h"
#include "named.bpf.h"
#include "time.bpf.h"
#include "opened.bpf.h"
#include "moved.bpf.h"
#include "written.bpf.h"
#include "lookup.bpf.h"
#include "sample.bpf.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";
