/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The numbers of tasks: in the initial pid namespace, or in that of a recorder which a broker serves.
 */
#ifndef PROCTRACE_PIDS_BPF_H
#define PROCTRACE_PIDS_BPF_H

/* Address of a struct pid's number at a level. The address is a plain integer: the array is
 * flexible, and verifiers before 6.2 refuse pointers with such an offset. */
static __always_inline __u64 upid_at(__u64 pid, __u32 level)
{
	return pid + bpf_core_field_offset(struct pid, numbers) +
	       level * bpf_core_type_size(struct upid);
}

/* Level of the pid namespace whose pids are recorded; 0: the initial one. A recorder that a broker serves
 * may live in another one, and knows no other pids. */
const volatile __u32 pid_level = 0;
/* The address of that namespace, since there are others at this level. Its recorder lives in it, so that it is
 * not freed. */
const volatile __u64 pid_home = 0;

/* The number of a struct pid there; 0 if it is not visible there. */
static __always_inline __s32 number_there(__u64 pid)
{
	struct upid there = {};

	if (!pid || BPF_CORE_READ((struct pid *)pid, level) < pid_level)
		return 0;
	bpf_probe_read_kernel(&there, sizeof(there), (void *)upid_at(pid, pid_level));
	return (__u64)there.ns == pid_home ? there.nr : 0;
}

static __always_inline __s32 tid_of(struct task_struct *task)
{
	if (!pid_level)
		return task->pid;
	return number_there((__u64)BPF_CORE_READ(task, thread_pid));
}

/* True if a task has a number where the caller lives: the others are not in its /proc. */
static __always_inline bool is_numbered_there(struct task_struct *task)
{
	return !pid_level || tid_of(task);
}

static __always_inline __s32 tgid_of(struct task_struct *task)
{
	if (!pid_level)
		return task->tgid;
	return number_there((__u64)BPF_CORE_READ(task, group_leader, thread_pid));
}

/* The tgid of its parent. */
static __always_inline __s32 parent_tgid_of(struct task_struct *task)
{
	if (!pid_level)
		return BPF_CORE_READ(task, real_parent, tgid);
	return number_there((__u64)BPF_CORE_READ(task, real_parent, group_leader, thread_pid));
}

/* ---- the recorder that a broker serves ---- */

/* True if this is the process for which a broker has loaded the programs, and not a later one with its number. */
static __always_inline bool is_served_recorder(struct task_struct *current)
{
	return current->tgid == recorder_tgid &&
	       BPF_CORE_READ(current, group_leader, start_boottime) == recorder_started_ns;
}

/*
 * True if an iterator is run by someone to whom the recorder has passed it, or who has found it pinned: what it
 * may see was decided for the recorder, and for as long as that lives.
 */
static __always_inline bool is_run_by_another(struct task_struct *current)
{
	return recorder_tgid && !is_served_recorder(current);
}

#endif
