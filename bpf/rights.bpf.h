/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Tasks whose data the caller may see.
 *
 * If the recorder's file has capabilities, everyone who may execute it can load these programs, and a
 * broker loads them for everyone; and BPF programs see all tasks. So if the recorder has no
 * CAP_SYS_PTRACE in the initial user namespace, the programs make the same checks as the kernel does
 * when the caller opens /proc/PID/environ:
 *
 *  - the task has a number in the caller's pid namespace, otherwise it is not in its /proc;
 *  - ptrace_may_access(PTRACE_MODE_READ_REALCREDS), that is __ptrace_may_access() in kernel/ptrace.c
 *    and cap_ptrace_access_check() in security/commoncap.c, with the real ids and the capabilities
 *    that the caller had when the recording was set up;
 *  - the file may be read by its owner only, or with a capability: task_dump_owner() in fs/proc/base.c
 *    and capable_wrt_inode_uidgid() in kernel/capability.c.
 *
 * They never allow more. They allow less for tasks without an address space, and where a user
 * namespace has more than five ranges of ids. They do not know the rules of security modules.
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
/* The caller's own permitted capabilities, without those of the recorder's file; whether it has
 * CAP_SYS_PTRACE in effect in its own user namespace, and whether CAP_DAC_READ_SEARCH or
 * CAP_DAC_OVERRIDE. */
const volatile __u64 caller_caps = 0;
const volatile __u32 caller_may_trace = 0;
const volatile __u32 caller_may_read = 0;
/*
 * The address and the level of the caller's user namespace; 0 as address: the initial one, the only one at
 * its level. The address is that of no other namespace as long as the caller's credentials exist. A
 * recorder that is served by a broker does not outlive them: its programs are detached before the
 * connection is closed, which refers to them (sk_peer_cred).
 */
const volatile __u64 caller_user_ns = 0;
const volatile __u32 caller_user_ns_level = 0;

/* create_user_ns() refuses levels above 32. */
#define USER_NS_LEVELS 33

static __always_inline bool is_callers_namespace(struct user_namespace *ns, __u32 level)
{
	return caller_user_ns ? (__u64)ns == caller_user_ns : level == 0;
}

/* True if the caller has CAP_SYS_PTRACE over a user namespace, as cap_capable() decides: in its own one if it
 * has the capability there, in those that it has created below it and in all below these, and never in
 * one above or beside its own. */
STEP int is_capable_over(__u64 address)
{
	struct user_namespace *ns = (void *)address, *parent;
	__u32 level;
	int i;

	for (i = 0; i < USER_NS_LEVELS && ns; i++) {
		level = BPF_CORE_READ(ns, level);
		if (is_callers_namespace(ns, level))
			return caller_may_trace;
		if (level <= caller_user_ns_level)
			return false;
		parent = BPF_CORE_READ(ns, parent);
		if (is_callers_namespace(parent, level - 1) &&
		    BPF_CORE_READ(ns, owner.val) == caller_uid)
			return true;
		ns = parent;
	}
	return false;
}

/* True if all ids of these credentials are the caller's, and the caller has all their capabilities, in the same user
 * namespace: then no capability is needed to trace their task. */
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
	if (!ns || !is_callers_namespace(ns, BPF_CORE_READ(ns, level)))
		return false;
	bpf_core_read(&permitted, sizeof(permitted), &cred->cap_permitted);
	return !(permitted & ~caller_caps);
}

/* UID_GID_MAP_MAX_BASE_EXTENTS: maps of more ranges are in a place of their own. */
#define RANGES_MAX 5

/* True if a kernel's id has another one by this map. */
STEP int has_mapping(__u64 address, __u32 id)
{
	struct uid_gid_map *map = (void *)address;
	__u32 first, count, len = BPF_CORE_READ(map, nr_extents);
	int i;

	if (len > RANGES_MAX)
		return false;
	for (i = 0; i < RANGES_MAX; i++) {
		first = BPF_CORE_READ(map, extent[i].lower_first);
		count = BPF_CORE_READ(map, extent[i].count);
		if (i < len && id - first < count)
			return true;
	}
	return false;
}

/* INVALID_UID: the id of nobody. */
#define NO_ID (~0U)

/* The kernel's id of 0 by this map; 0 if it has none, and nobody's if that is not known. */
STEP __u32 root_by(__u64 address)
{
	struct uid_gid_map *map = (void *)address;
	__u32 len = BPF_CORE_READ(map, nr_extents);
	int i;

	if (len > RANGES_MAX)
		return NO_ID;
	for (i = 0; i < RANGES_MAX; i++)
		if (i < len && !BPF_CORE_READ(map, extent[i].first) &&
		    BPF_CORE_READ(map, extent[i].count))
			return BPF_CORE_READ(map, extent[i].lower_first);
	return 0;
}

/* True if the caller may open a file that only its owner may read. */
STEP int may_open(__u32 uid, __u32 gid)
{
	struct user_namespace *ns = (void *)caller_user_ns;

	if (uid == caller_uid)
		return true;
	if (!caller_may_read)
		return false;
	return !ns || (has_mapping((__u64)&ns->uid_map, uid) && has_mapping((__u64)&ns->gid_map, gid));
}

/* Conditions that are needed where the caller's ids are not enough. */
#define OWN_CREDENTIALS 1U
#define DUMPABLE 2U

/* True if a capability lets the caller see a task with these credentials, `has` being what holds without one;
 * `program_ns` is the user namespace of its program. */
STEP int is_seen_by_capability(__u64 address, __u64 program_ns, __u32 has)
{
	const struct cred *cred = (void *)address;
	struct user_namespace *ns = (void *)program_ns;

	if (!cred)
		return false;
	if (!(has & OWN_CREDENTIALS) && !is_capable_over((__u64)BPF_CORE_READ(cred, user_ns)))
		return false;
	if (has & DUMPABLE)
		return may_open(BPF_CORE_READ(cred, euid.val), BPF_CORE_READ(cred, egid.val));
	/* its files in /proc belong to the root of that namespace */
	return is_capable_over(program_ns) &&
	       may_open(root_by((__u64)&ns->uid_map), root_by((__u64)&ns->gid_map));
}

/* Read by a helper: global functions take numbers, not pointers. */
static __always_inline __u64 credentials_of(struct task_struct *task)
{
	return (__u64)BPF_CORE_READ(task, real_cred);
}

static __always_inline bool is_seen(struct task_struct *task, __u64 credentials, bool own)
{
	bool dumpable = is_dumpable(task);

	return (own && dumpable) ||
	       is_seen_by_capability(credentials, user_ns_of_program(task),
				     (own ? OWN_CREDENTIALS : 0) | (dumpable ? DUMPABLE : 0));
}

/*
 * True if the caller could trace the task now.
 *
 * The ids are checked before the dumpable flag, as in the kernel: commit_creds() clears it before it
 * sets new ids. For a task other than the current one the result may be outdated at once, so check
 * again after reading its data: see may_still_see().
 */
static __always_inline bool may_see(struct task_struct *task)
{
	__u64 credentials;

	if (!restricted)
		return true;
	if (!is_numbered_there(task) || is_between_programs(task))
		return false;
	credentials = credentials_of(task);
	return is_seen(task, credentials, are_own_credentials(credentials));
}

/*
 * The same after data of a task that runs on another CPU was read: the caller could trace it then. The
 * data is of an earlier time than the check, also on a CPU that reorders loads.
 */
static __always_inline bool may_still_see(struct task_struct *task)
{
	bool between, own;
	__u64 credentials;

	if (!restricted)
		return true;
	full_barrier();
	between = is_between_programs(task);
	full_barrier();
	if (between || !is_numbered_there(task))
		return false;
	credentials = credentials_of(task);
	own = are_own_credentials(credentials);
	/* pairs with the write barrier in commit_creds() */
	full_barrier();
	return is_seen(task, credentials, own);
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
	return is_numbered_there(task) && are_own_credentials(credentials_of(task)) && !state->hidden;
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
