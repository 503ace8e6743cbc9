/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Which tasks the caller may see.
 *
 * With capabilities on the recorder's file, everyone who may execute it can load these programs,
 * and BPF programs see all tasks. So if the recorder has no CAP_SYS_PTRACE, the programs make the
 * same check as the kernel does before it shows somebody /proc/PID/environ:
 * ptrace_may_access(PTRACE_MODE_READ_REALCREDS), that is __ptrace_may_access() in kernel/ptrace.c
 * and cap_ptrace_access_check() in security/commoncap.c. The check here never allows more. It allows
 * less in two cases: tasks without an address space, and tasks in a user namespace made by the caller
 * that have other ids than the caller. It does not know the rules of security modules.
 *
 * A task can change its rights at any time (exec, setuid, prctl), so the check comes before every
 * record that holds data of the task. Figures that everyone can read in /proc (times, faults,
 * sizes, switches) are recorded for every task of the tree. I/O counters are not public: they
 * reveal the length of a password (1d1221f375c9, CVE-2011-2495).
 */
#ifndef PROCTRACE_RIGHTS_BPF_H
#define PROCTRACE_RIGHTS_BPF_H

/* The caller may not trace everybody. A constant for the verifier, which drops all of this code where
 * root records. */
const volatile __u32 restricted = 0;
/* The caller's real ids. They are kernel ids, because BPF needs the initial user namespace. */
const volatile __u32 caller_uid = 0;
const volatile __u32 caller_gid = 0;
/* The caller's own permitted capabilities, without those of the recorder's file. */
const volatile __u64 caller_caps = 0;

/* Deeper namespaces count as foreign; the kernel allows 33 levels. */
#define USER_NS_DEPTH_MAX 8

/* Whether the caller owns this user namespace, or the one at level 1 that it lies below: the owner of a
 * namespace has all capabilities in it and below (cap_capable()). */
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
 * The ids are checked first, as in the kernel: commit_creds() clears dumpable before it sets new ids.
 * For a task other than the current one the answer may be outdated at once, so check again after
 * reading its data.
 */
static __always_inline bool may_see(struct task_struct *task)
{
	if (!restricted)
		return true;
	return has_own_credentials(task) && is_dumpable(task);
}

/*
 * The same at a task's exit. Before 6.16 its address space is gone by then, and with it the dumpable
 * flag; in that case its program must have been visible at its exec.
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

/* The counters of I/O of a task, in any struct that has them. */
#define write_io(to, task)                                                  \
	do {                                                                \
		(to)->rchar = (task)->ioac.rchar;                           \
		(to)->wchar = (task)->ioac.wchar;                           \
		(to)->read_bytes = (task)->ioac.read_bytes;                 \
		(to)->write_bytes = (task)->ioac.write_bytes;               \
	} while (0)

/* For a task that may not be seen: the counters from when it last was. To be called after write_io(), not
 * instead of it: clang would merge the loads, and the verifier refuses one load from two kinds of pointer. */
#define write_seen_io(to, state)                                            \
	do {                                                                \
		struct io_counters *seen_ = &(state)->seen_io;              \
		barrier_var(seen_);                                         \
		(to)->rchar = seen_->rchar;                                 \
		(to)->wchar = seen_->wchar;                                 \
		(to)->read_bytes = seen_->read_bytes;                       \
		(to)->write_bytes = seen_->write_bytes;                     \
	} while (0)

static __always_inline void keep_seen_io(struct task_state *state, const struct pt_sample *sample)
{
	state->seen_io.rchar = sample->rchar;
	state->seen_io.wchar = sample->wchar;
	state->seen_io.read_bytes = sample->read_bytes;
	state->seen_io.write_bytes = sample->write_bytes;
}

#endif
