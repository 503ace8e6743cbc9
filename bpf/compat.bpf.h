/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Differences between kernels: each function hides one and names the commit behind it.
 */
#ifndef PROCTRACE_COMPAT_BPF_H
#define PROCTRACE_COMPAT_BPF_H

#define SIGNAL_GROUP_EXIT 4
#define SIGCHLD 17
#define SIG_IGN_PTR 1UL
#define SA_NOCLDWAIT 2UL

/* task_struct.state became __state in 5.14 (2f064a59a11f). */
struct task_struct___before_5_14 {
	volatile long state;
} __attribute__((preserve_access_index));

/* Stable since 2.6; /proc/PID/stat and crash tools rely on them. */
#define TASK_INTERRUPTIBLE 0x1
#define TASK_UNINTERRUPTIBLE 0x2
#define TASK_STOPPED 0x4
#define TASK_TRACED 0x8
#define EXIT_DEAD 0x10
#define EXIT_ZOMBIE 0x20
#define TASK_DEAD 0x80
#define TASK_NOLOAD 0x400

static __always_inline __u32 task_state_of(struct task_struct *task)
{
	if (bpf_core_field_exists(struct task_struct, __state))
		return task->__state;
	return ((struct task_struct___before_5_14 *)task)->state;
}

/* About to leave its CPU for the last time: do_task_dead(). */
static __always_inline bool is_dead(struct task_struct *task)
{
	return task_state_of(task) & TASK_DEAD;
}

/* mm->flags was a word before it became a bitmap in 6.18 (bb6525f2f8c4); the first two bits did not
 * change. 7.2 moved them to the task (6b1c66c9cca9), where they outlive the address space. */
struct mm_struct___before_6_18 {
	unsigned long flags;
} __attribute__((preserve_access_index));

typedef struct {
	unsigned long __mm_flags[1];
} __attribute__((preserve_access_index)) mm_flags_t;

struct mm_struct___before_7_2 {
	mm_flags_t flags;
} __attribute__((preserve_access_index));

enum task_dumpable {
	TASK_DUMPABLE_OFF = 0,
	TASK_DUMPABLE_OWNER = 1,
	TASK_DUMPABLE_ROOT = 2,
};

struct task_exec_state {
	enum task_dumpable dumpable;
	struct user_namespace *user_ns;
} __attribute__((preserve_access_index));

struct task_struct___since_7_2 {
	struct task_exec_state *exec_state;
} __attribute__((preserve_access_index));

#define MMF_DUMPABLE_MASK 3
#define SUID_DUMP_USER 1

/* True if this kernel keeps the dumpable flag after the address space is gone. */
static __always_inline bool keeps_dumpable(void)
{
	return bpf_core_field_exists(struct task_struct___since_7_2, exec_state);
}

/* get_dumpable() == SUID_DUMP_USER: other processes of its user may trace the task. False for a
 * task without an address space, and for all tasks if the kernel keeps the flag in an unknown
 * place. */
static __always_inline bool is_dumpable(struct task_struct *task)
{
	struct mm_struct *mm, *again;
	unsigned long flags = 0;

	if (keeps_dumpable())
		return BPF_CORE_READ((struct task_struct___since_7_2 *)task, exec_state,
				     dumpable) == TASK_DUMPABLE_OWNER;
	mm = BPF_CORE_READ(task, mm);
	if (!mm)
		return false;
	if (bpf_core_field_exists(struct mm_struct___before_6_18, flags))
		bpf_core_read(&flags, sizeof(flags), &((struct mm_struct___before_6_18 *)mm)->flags);
	else if (bpf_core_field_exists(struct mm_struct___before_7_2, flags))
		bpf_core_read(&flags, sizeof(flags), &((struct mm_struct___before_7_2 *)mm)->flags);
	/* the task may have changed its address space meanwhile, and the old one may have been
	 * reused */
	again = BPF_CORE_READ(task, mm);
	return again == mm && (flags & MMF_DUMPABLE_MASK) == SUID_DUMP_USER;
}

/* The user namespace in which the task's program was executed, or one above it if the task may not read that
 * program (would_dump()); 0 if it is in an unknown place. It moved along with the flag. */
static __always_inline __u64 user_ns_of_program(struct task_struct *task)
{
	struct mm_struct *mm;

	if (keeps_dumpable()) {
		if (!bpf_core_field_exists(struct task_exec_state, user_ns))
			return 0;
		return (__u64)BPF_CORE_READ((struct task_struct___since_7_2 *)task, exec_state,
					    user_ns);
	}
	mm = BPF_CORE_READ(task, mm);
	if (!mm || !bpf_core_field_exists(struct mm_struct, user_ns))
		return 0;
	return (__u64)BPF_CORE_READ(mm, user_ns);
}

/* The kernel's struct with PREEMPT_RT. */
struct rwbase_rt {
	atomic_t readers;
} __attribute__((preserve_access_index));

struct rw_semaphore___rt {
	struct rwbase_rt rwbase;
} __attribute__((preserve_access_index));

#define RWSEM_WRITER_LOCKED 1UL
#define RT_WRITER_BIAS (1U << 30)

/* True if a task is just getting the address space, the name and the credentials of another program,
 * one after the other. In between it has the new name and still the old credentials, and its dumpable
 * flag is that of the old ones. Whoever in the kernel asks for rights to a task therefore takes this
 * lock, which is a semaphore since 5.11 (f7cfd871ae0c). */
static __always_inline bool is_between_programs(struct task_struct *task)
{
	struct signal_struct *signal = BPF_CORE_READ(task, signal);
	__u32 readers = 0;
	long count = 0;

	if (bpf_core_field_exists(struct rw_semaphore, count)) {
		bpf_core_read(&count, sizeof(count), &signal->exec_update_lock.count.counter);
		return count & RWSEM_WRITER_LOCKED;
	}
	bpf_core_read(&readers, sizeof(readers),
		      &((struct rw_semaphore___rt *)&signal->exec_update_lock)->rwbase.readers.counter);
	return readers & RT_WRITER_BIAS;
}

/* True if an address space belongs to a 32-bit program. The flag for this differs by architecture
 * and version (TS_COMPAT, TIF_32BIT); the size of the address space does not. */
static __always_inline bool is_compat(struct mm_struct *mm)
{
	return mm && mm->task_size <= 1ULL << 32;
}

/* The letter of /proc/PID/stat. 0 is running or runnable; TASK_IDLE (D without load) is I. */
static __always_inline char state_letter(struct task_struct *task)
{
	__u32 state = task_state_of(task), exit_state = task->exit_state;

	if (exit_state & EXIT_ZOMBIE)
		return 'Z';
	if (exit_state & EXIT_DEAD)
		return 'X';
	if (state & TASK_NOLOAD)
		return 'I';
	if (state & TASK_INTERRUPTIBLE)
		return 'S';
	if (state & TASK_UNINTERRUPTIBLE)
		return 'D';
	if (state & TASK_STOPPED)
		return 'T';
	if (state & TASK_TRACED)
		return 't';
	return 'R';
}

/* mm->rss_stat was a struct of atomics before f1a7941243c1 (6.2) made it percpu counters;
 * reading .count alone is what the kernel does for maxrss (get_mm_counter). */
struct mm_rss_stat {
	atomic_long_t count[4];
} __attribute__((preserve_access_index));

struct mm_struct___before_6_2 {
	struct mm_rss_stat rss_stat;
} __attribute__((preserve_access_index));

#define MM_FILEPAGES 0
#define MM_ANONPAGES 1
#define MM_SHMEMPAGES 3

static __always_inline __u64 positive(__s64 n)
{
	return n > 0 ? n : 0;
}

/* Into four numbers. Read by a helper, not loaded: verifiers of that time do not know arrays of typedefs. */
static __always_inline void old_counts(struct mm_struct *mm, __s64 *count)
{
	struct mm_struct___before_6_2 *old = (void *)mm;

	bpf_core_read(count, 4 * sizeof(*count), &old->rss_stat.count);
}

static __always_inline __u64 old_count(struct mm_struct *mm, int kind)
{
	__s64 count[4] = {};

	old_counts(mm, count);
	return positive(count[kind]);
}

static __always_inline __u64 old_rss_pages(struct mm_struct *mm)
{
	__s64 count[4] = {};

	old_counts(mm, count);
	return positive(count[MM_FILEPAGES]) + positive(count[MM_ANONPAGES]) +
	       positive(count[MM_SHMEMPAGES]);
}

/* For a pointer to an address space that the verifier treats as a plain number. */
static __always_inline __u64 mm_rss_pages(struct mm_struct *mm)
{
	if (!mm)
		return 0;
	if (bpf_core_type_exists(struct mm_rss_stat))
		return old_rss_pages(mm);
	return positive(BPF_CORE_READ(mm, rss_stat[MM_FILEPAGES].count)) +
	       positive(BPF_CORE_READ(mm, rss_stat[MM_ANONPAGES].count)) +
	       positive(BPF_CORE_READ(mm, rss_stat[MM_SHMEMPAGES].count));
}

/* Pages of a kind, for a pointer that was loaded directly. Since 6.2 (f1a7941243c1) they are a percpu_counter, of which
 * .count lacks what a CPU has not added up yet: less than its batch, which is 32 or twice the number of CPUs. A macro:
 * CO-RE wants the index as a constant. */
#define mm_count(mm, kind)                                                                         \
	(bpf_core_type_exists(struct mm_rss_stat) ? old_count(mm, kind) :                          \
						    positive((mm)->rss_stat[kind].count))

/* get_mm_hiwater_rss(), likewise */
static __always_inline __u64 mm_peak_rss_pages(struct mm_struct *mm)
{
	__u64 peak = mm->hiwater_rss;
	__u64 now = mm_count(mm, MM_FILEPAGES) + mm_count(mm, MM_ANONPAGES) +
		    mm_count(mm, MM_SHMEMPAGES);

	return peak > now ? peak : now;
}

#endif
