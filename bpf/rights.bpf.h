/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Whose data may be recorded.
 *
 * Capabilities on the recorder's file let every user who may run it load these programs, and a
 * program in the kernel sees all tasks. So where the recorder has no CAP_SYS_PTRACE, the
 * programs ask the question that the kernel asks before it shows /proc/PID/environ to somebody:
 * ptrace_may_access(PTRACE_MODE_READ_REALCREDS), __ptrace_may_access() in kernel/ptrace.c and
 * cap_ptrace_access_check() in security/commoncap.c. The answer here is never more than theirs,
 * and in two cases less: a task without memory may not be seen, and in a user namespace of the
 * caller's only tasks with the caller's own ids. Security modules are not asked.
 *
 * A task changes its rights at any time (exec, setuid, prctl), so the question is put at each
 * record that holds something of the task's own. What everybody may read in /proc (times,
 * faults, sizes, switches) is recorded of every task of the tree. The counters of I/O are not
 * public: they tell the length of a password (1d1221f375c9, CVE-2011-2495).
 */
#ifndef PROCTRACE_RIGHTS_BPF_H
#define PROCTRACE_RIGHTS_BPF_H

/* Whether the recorder is somebody who may not trace everybody; all below is about that. A
 * constant, so that a recording by root has none of this code. */
const volatile __u32 restricted = 0;
/* Its real ids, as the kernel counts them: BPF is only for the initial user namespace. */
const volatile __u32 caller_uid = 0;
const volatile __u32 caller_gid = 0;
/* The permitted capabilities that are its own: not those that its file gave it. */
const volatile __u64 caller_caps = 0;

/* Deeper ones are taken for foreign; the kernel allows 33. */
#define USER_NS_DEPTH_MAX 8

/* Whether this user namespace, which is not the initial one, lies below one that the caller made: whoever
 * made a namespace has all capabilities in it and below (cap_capable()). */
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

/* Whether all ids of these credentials are the caller's, and the capabilities no more than the caller's. */
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
	/* by a helper, so that it is the number that a global function takes */
	return are_own_credentials((__u64)BPF_CORE_READ(task, real_cred));
}

/*
 * Whether the caller could trace the task now.
 *
 * The ids come first, as in the kernel: commit_creds() makes a task undumpable before it gets
 * its new ids. Of another task than the current one the answer is about one moment; whoever reads
 * something of it asks again afterwards.
 */
static __always_inline bool may_see(struct task_struct *task)
{
	if (!restricted)
		return true;
	return has_own_credentials(task) && is_dumpable(task);
}

/*
 * What may be told of a task that exits. Before 6.16 its memory is gone by then, and with it
 * whether it was dumpable (up to 7.1): then its program must have been visible when it began.
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

/* Those of a task that may not be seen stand still: what they were when it last could be. After
 * write_io(), not instead of it: clang makes one load through two kinds of pointer of that. */
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
