/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Which tasks' data the caller may see.
 *
 * If the recorder's file has capabilities, everyone who may execute it can load these programs, and
 * BPF programs see all tasks. So if the recorder has no CAP_SYS_PTRACE, the programs make the same
 * check as the kernel does for reading /proc/PID/environ:
 * ptrace_may_access(PTRACE_MODE_READ_REALCREDS), that is __ptrace_may_access() in kernel/ptrace.c
 * and cap_ptrace_access_check() in security/commoncap.c. The check here never allows more. It
 * allows less in two cases: tasks without an address space, and tasks in a user namespace created
 * by the caller whose ids differ from the caller's. It does not know the rules of security modules.
 *
 * A task can change its rights at any time (exec, setuid, prctl), so the check precedes every
 * record that contains data of the task. Values that everyone can read in /proc (times, faults,
 * sizes, switches) are recorded for every traced task. I/O counters are not public: they reveal the
 * length of a password (1d1221f375c9, CVE-2011-2495).
 */
#ifndef PROCTRACE_RIGHTS_BPF_H
#define PROCTRACE_RIGHTS_BPF_H

/* The caller may not trace all tasks. Constant for the verifier, which drops all of this code when
 * root records. */
const volatile __u32 restricted = 0;
/* The caller's real ids. They are kernel ids, because BPF needs the initial user namespace. */
const volatile __u32 caller_uid = 0;
const volatile __u32 caller_gid = 0;
/* The caller's own permitted capabilities, without those of the recorder's file. */
const volatile __u64 caller_caps = 0;

/* Deeper namespaces are treated as foreign; the kernel allows 33 levels. */
#define USER_NS_DEPTH_MAX 8

/* Whether the caller owns this user namespace, or its ancestor at level 1: the owner of a namespace
 * has all capabilities in it and below (cap_capable()). */
STEP int is_own_namespace(__u64 address)
{
	struct user_namespace *ns = (void *)address;
	int i;

	for (i = 0; i < USER_NS_DEPTH_MAX && ns; i++) {
		if (BPF_CORE_READ(ns, level) == 1)
			return BPF_CORE_READ(ns, owner.val) == caller_uid;
		ns = BPF_CORE_READ(ns, parent);
	}
	return false;
}

/* Whether all ids of these credentials are the caller's, and the caller has all their capabilities. */
STEP int are_own_credentials(__u64 address)
{
	const struct cred *cred = (void *)address;
	struct user_namespace *ns;
	__u64 permitted = ~0ULL;

	if (!cred || BPF_CORE_READ(cred, uid.val) != caller_uid ||
	    BPF_CORE_READ(cred, euid.val) != caller_uid ||
	    BPF_CORE_READ(cred, suid.val) != caller_uid ||
	    BPF_CORE_READ(cred, gid.val) != caller_gid ||
	    BPF_CORE_READ(cred, egid.val) != caller_gid ||
	    BPF_CORE_READ(cred, sgid.val) != caller_gid)
		return false;
	ns = BPF_CORE_READ(cred, user_ns);
	if (!ns)
		return false;
	if (BPF_CORE_READ(ns, level))
		return is_own_namespace((__u64)ns);
	bpf_core_read(&permitted, sizeof(permitted), &cred->cap_permitted);
	return !(permitted & ~caller_caps);
}

static __always_inline bool has_own_credentials(struct task_struct *task)
{
	/* read by a helper: global functions take numbers, not pointers */
	return are_own_credentials((__u64)BPF_CORE_READ(task, real_cred));
}

/*
 * Whether the caller could trace the task now.
 *
 * The ids are checked before the dumpable flag, as in the kernel: commit_creds() clears it before it
 * sets new ids. For a task other than the current one the result may be outdated at once, so check
 * again after reading its data: see may_still_see().
 */
static __always_inline bool may_see(struct task_struct *task)
{
	if (!restricted)
		return true;
	return !is_between_programs(task) && has_own_credentials(task) && is_dumpable(task);
}

/*
 * The same after data of a task that runs on another CPU was read: the caller could trace it then. The
 * data is of an earlier time than the check, also on a CPU that reorders loads.
 */
static __always_inline bool may_still_see(struct task_struct *task)
{
	bool between;

	if (!restricted)
		return true;
	full_barrier();
	between = is_between_programs(task);
	full_barrier();
	if (between || !has_own_credentials(task))
		return false;
	/* pairs with the write barrier in commit_creds() */
	full_barrier();
	return is_dumpable(task);
}

/*
 * The same at a task's exit. Before 6.16 its address space, and with it the dumpable flag, is gone
 * by then; in that case its program must have been visible at its exec.
 */
static __always_inline bool may_see_exiting(struct task_struct *task, struct mm_struct *mm,
					    struct task_state *state)
{
	if (!restricted)
		return true;
	if (mm || keeps_dumpable())
		return may_see(task);
	return has_own_credentials(task) && !state->hidden;
}

/*
 * What is written to a record that is reserved in a ring can be read at once by who has mapped the ring,
 * also before the record is submitted. So what may not be seen is never written there: it is decided
 * first, and the record gets what was decided.
 */

/* A task's I/O counters. */
static __always_inline struct io_counters read_io(struct task_struct *task)
{
	struct io_counters io = {
		.rchar = task->ioac.rchar,
		.wchar = task->ioac.wchar,
		.read_bytes = task->ioac.read_bytes,
		.write_bytes = task->ioac.write_bytes,
	};

	/* clang would merge these loads with those of another source, and the verifier refuses one load
	 * through two kinds of pointer */
	barrier_var(io.rchar);
	barrier_var(io.wchar);
	barrier_var(io.read_bytes);
	barrier_var(io.write_bytes);
	return io;
}

/* For a hidden task: the counters from when it was last visible. */
static __always_inline struct io_counters seen_io_of(struct task_state *state)
{
	struct io_counters *seen = &state->seen_io;

	barrier_var(seen);
	return *seen;
}

/* Copies I/O counters to any struct that has these fields. */
#define put_io(to, io)                                                      \
	do {                                                                \
		(to)->rchar = (io)->rchar;                                  \
		(to)->wchar = (io)->wchar;                                  \
		(to)->read_bytes = (io)->read_bytes;                        \
		(to)->write_bytes = (io)->write_bytes;                      \
	} while (0)

#endif
