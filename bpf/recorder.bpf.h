/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What every program shares: the options, the maps, who is traced, how a record leaves and how
 * a lost one is counted.
 */
#ifndef PROCTRACE_RECORDER_BPF_H
#define PROCTRACE_RECORDER_BPF_H

/* ---- options: constants when the programs are verified, so unused branches cost nothing ---- */

/* The recorder's pid as it sees itself, and the pid namespace it sees it in: the recorder may
 * itself run in a container, where getpid() is not the tgid the kernel hooks see. */
const volatile __u32 recorder_pid = 0;
const volatile __u64 recorder_pidns_dev = 0;
const volatile __u64 recorder_pidns_ino = 0;
/* A ring this full wakes the recorder before its next tick. */
const volatile __u64 wake_bytes = 1 << 20;
const volatile __u64 ring_bytes = 1 << 20;
/* Whether whoever writes into a ring that is half full is held up; see hold_up(). */
const volatile __u32 block_when_full = 0;

/* Programs return at once: what is left is what the hooks themselves cost. */
const volatile __u32 empty_programs = 0;

/* Bit n: failures of call n (enum pt_call) are recorded. Where each call has a hook of its own,
 * only those are attached; the hook that sees all calls looks here. */
const volatile __u32 wanted_calls = 0;

#define ENV_NAMES_MAX 32
#define ENV_NAME_WORDS 4
/* "NAME=" zero-padded to 32 bytes, and a mask of the bytes that count. */
struct env_name {
	__u64 want[ENV_NAME_WORDS];
	__u64 mask[ENV_NAME_WORDS];
};
const volatile struct env_name env_names[ENV_NAMES_MAX] = {};
const volatile __u32 env_names_len = 0;

/* ---- maps ---- */

/* Lifecycle records have a ring of their own, so that a storm of look-ups can never push out
 * a fork or an exit. Sizes are set by the loader. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} lifecycle SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} lookups SEC(".maps");

struct io_counters {
	__u64 rchar;
	__u64 wchar;
	__u64 read_bytes;
	__u64 write_bytes;
};

/* What we know of a traced task. A task without it is not of the tree. */
struct task_state {
	__u32 task;
	__u32 process;
	/* set at exit, used when the task has left its CPU for good */
	__u64 exit_ns;
	__u64 run_at_exit_ns;
	__u64 maxrss_pages;
	__u32 status;
	__u32 exit_bits;
	__s32 parent_tgid;
	/* running totals */
	__u32 opens;
	__u32 lookups_failed;
	__u32 execs_failed;
	/* what the last sample said, so that an idle task costs nothing */
	__u64 sampled_run_ns;
	__u32 sampled_state;
	/* its id when it began to exit: a leader that another thread's exec ends gives its own id
	 * to that thread before its last switch (de_thread, exchange_tids) */
	__s32 exit_tid;
	/* signal->maxrss when the process ran its program; kept by its leader */
	__u64 maxrss_before_pages;
	/* task->start_boottime, to tell it from a later task at the same address */
	__u64 born_ns;
	/* where it worked when it was forked; 0 once it has called exec, whose record tells */
	__u64 born_in;
	/* the time of its last record, and what se.exec_start was then: see coarse_now() */
	__u64 stamp_ns;
	__u64 stamp_key;
	/* whether its program might not be seen when it began, and its I/O when it last could be; only
	 * for those who may not trace everybody: see rights.bpf.h */
	__u64 hidden;
	struct io_counters seen_io;
};

/* task_state.born_in of a task that was not followed from its birth. */
#define BORN_ELSEWHERE 1

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct task_state);
} tasks SEC(".maps");

/*
 * Threads have theirs in a hash map, by their address: making storage costs 1.2 us, a twentieth of
 * a short thread's life, and an entry here half of that, its end included. What storage does by itself is done by
 * hand for it: the last switch deletes the entry, and should that ever fail, the time of birth
 * tells the dead from a later task at the same address. Processes stay with storage, because they
 * can be zombies for long after their last switch, and are asked for as leaders and as parents.
 * Where there are more threads than places, the rest have storage, too.
 *
 * To the verifier the two are pointers of different kinds, and it follows both for as long as one is
 * in use. So programs read what they need of a state first, and let go of it before the long part.
 */
#define THREADS_MAX 4096

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, THREADS_MAX);
	__type(key, __u64);
	__type(value, struct task_state);
} threads SEC(".maps");

/* What has become of the tree; only the programs write here. */
struct counts {
	__u64 born;	/* tasks ever followed; also the last serial given */
	__u64 ended;	/* of them, those whose exit record has been written */
	__u64 lost;	/* records lost: the sum of all losses, so that they are read only if there are any */
};

/* The last number given to a look-up. */
static __u64 lookups_numbered;

/* The recorder looks at them without a system call: while one reads or writes a map, the kernel skips
 * all programs on tracepoints of that CPU (bpf_disable_instrumentation()), and it can be preempted. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct counts);
} counts SEC(".maps");

/* What the recorder asks for; apart from the counts, because it writes the value as a whole. */
enum pass {
	PASS_CHANGED = 0,	/* tasks whose state and CPU time are what they were */
	PASS_FINAL = 1,		/* nothing, and this is the last one */
	PASS_EVERY = 2,		/* nothing */
};

struct orders {
	__u32 launch_armed;	/* the recorder's next child process is the root of the tree */
	__u32 pass;		/* enum pass: what the next pass of samples leaves out */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct orders);
} orders SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, PT_KINDS * PT_LOSS_REASONS);
	__type(key, __u32);
	__type(value, __u64);
} losses SEC(".maps");

/* Environments already written, by their hash. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, __u64);
	__type(value, __u8);
} environments SEC(".maps");

/*
 * Where variable-size records are put together: for each CPU two (their number is set by the loader),
 * because a record of up to 64 KiB fits neither the stack nor a per-CPU map (PCPU_MIN_UNIT_SIZE).
 *
 * A program stays on its CPU, but another may run there before it is done: trampolines (fexit) only
 * disable migration, and from 7.0 on tracepoints do so, too, where the kernel is preemptible. So a
 * scratch is taken and given back, and there is a second one for who comes in between.
 */
#define SCRATCHES_A_CPU 2

struct scratch {
	__u64 taken;
	__u64 last_number;	/* of the look-up told last on this CPU; see lookups_in_order */
	__u8 record[PT_RECORD_MAX + 8];
	__u8 walk[2 * PT_PATH_MAX];
	/* What the steps below work on; see STEP. */
	struct dentry *dentry;
	struct dentry *root_dentry;
	struct vfsmount *mnt;
	struct vfsmount *root_mnt;
	__u64 walk_at;
	__u64 user_at;
	__u64 user_end;
	__u64 hash;
	__u64 now;
	__u32 to;
	__u32 done;
	__u32 total;
	__u32 task;
};

/*
 * The body of a long loop. The verifier follows every path through a loop, and a loop with a
 * few branches and live registers takes it past a million instructions. A global function is
 * verified once, on its own, and is a single step to its caller; it can take no pointers, so
 * its state is in scratch, and it is told which. (bpf_loop would do, too, from 5.17 on.) A loop of
 * many steps is two loops of few, one within the other, for the same reason.
 */
#define STEP __attribute__((noinline))
enum step { STEP_ON, STEP_DONE, STEP_FAILED };

/* Takes a step up to so many times, as long as there is more to do. */
#define REPEAT(times, take_step)                                            \
	({                                                                  \
		int i_, step_ = STEP_ON;                                    \
		for (i_ = 0; i_ < (times) && step_ == STEP_ON; i_++)        \
			step_ = take_step;                                  \
		step_;                                                      \
	})

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct scratch);
} scratches SEC(".maps");

/*
 * Pins the load of a pointer to where it is written. Newer verifiers (seen on 6.18:
 * type_is_trusted() and its like) search all types of the kernel, for half a millisecond, each
 * time they meet the load of a pointer to a struct, on every path that leads there; and clang
 * likes to move a load behind the branches. So such loads come before the first branch, or are
 * reads by a helper (BPF_CORE_READ), which take 10 ns more each time they run and nothing to verify.
 */
#define LOADED_HERE(pointer) barrier_var(pointer)

#define CLONE_THREAD 0x00010000ULL

/* ---- helpers ---- */

static __always_inline struct counts *get_counts(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&counts, &zero);
}

static __always_inline struct orders *get_orders(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&orders, &zero);
}

static __always_inline struct task_state *state_of_thread(struct task_struct *task)
{
	__u64 key = (__u64)task;
	struct task_state *state = bpf_map_lookup_elem(&threads, &key);

	/* A thread that calls exec takes over the earlier time of its leader. */
	return state && task->start_boottime <= state->born_ns ? state : NULL;
}

static __always_inline struct task_state *state_of_process(struct task_struct *task)
{
	return bpf_task_storage_get(&tasks, task, NULL, 0);
}

static __always_inline struct task_state *state_of(struct task_struct *task)
{
	struct task_state *state = state_of_process(task);

	return state ? state : state_of_thread(task);
}

static __always_inline void count_loss(__u32 kind, __u32 reason)
{
	__u32 key = kind * PT_LOSS_REASONS + reason;
	__u64 *count = bpf_map_lookup_elem(&losses, &key);
	struct counts *counts = get_counts();

	if (count)
		*count += 1;
	if (counts)
		__sync_fetch_and_add(&counts->lost, 1);
}

/* The scratch with this number; steps are told it, for they can take no pointers. */
static __always_inline struct scratch *scratch_at(__u32 slot)
{
	return bpf_map_lookup_elem(&scratches, &slot);
}

/* A scratch for this program alone, and its number; NULL and a counted loss if there is none. */
static __always_inline struct scratch *take_scratch(__u32 *slot, __u32 kind)
{
	struct scratch *scratch;

	*slot = bpf_get_smp_processor_id() * SCRATCHES_A_CPU;
	scratch = scratch_at(*slot);
	if (scratch && !__sync_lock_test_and_set(&scratch->taken, 1))
		return scratch;
	*slot += 1;
	scratch = scratch_at(*slot);
	if (scratch && !__sync_lock_test_and_set(&scratch->taken, 1))
		return scratch;
	count_loss(kind, PT_LOSS_RECURSION);
	return NULL;
}

static __always_inline void give_scratch(struct scratch *scratch)
{
	scratch->taken = 0;
}

/* The recorder comes at its ticks; it is woken only while a ring is above its mark: a wake-up for
 * every record costs 3 us, several times the record itself. */
static __always_inline __u64 wake_flags(void *ring)
{
	return bpf_ringbuf_query(ring, BPF_RB_AVAIL_DATA) >= wake_bytes ?
		BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP;
}

/* The same where records are small and many: every sixteenth of a task looks. */
static __always_inline __u64 seldom_wake_flags(void *ring, __u32 nth)
{
	return nth % 16 == 1 ? wake_flags(ring) : BPF_RB_NO_WAKEUP;
}

static __always_inline void set_head(struct pt_head *head, __u16 kind, __u16 size, __u32 task,
				     __u64 time_ns)
{
	head->kind = kind;
	head->size = size;
	head->task = task;
	head->time_ns = time_ns;
}

/* A fixed-size record in place in the ring, or NULL and a counted loss. */
#define reserve(ring, kind, type)                                           \
	({                                                                  \
		type *r_ = bpf_ringbuf_reserve(&(ring), sizeof(type), 0);   \
		if (!r_)                                                    \
			count_loss(kind, PT_LOSS_RING_FULL);                \
		r_;                                                         \
	})

#define submit(ring, record) bpf_ringbuf_submit(record, wake_flags(&(ring)))

/*
 * The time of a look-up. Reading the clock costs 25 to 75 ns, a tenth of a failed open, so it is
 * read once for each stretch that the scheduler accounts for: se.exec_start moves at every clock
 * tick (1 to 10 ms) and whenever the task gets the CPU. Records of one task stay in order, because
 * each of its events moves the stamp.
 */
static __always_inline void stamp(struct task_state *state, struct task_struct *task, __u64 now)
{
	state->stamp_ns = now;
	state->stamp_key = task->se.exec_start;
}

static __always_inline __u64 coarse_now(struct task_state *state, struct task_struct *task)
{
	if (state->stamp_key != task->se.exec_start)
		stamp(state, task, bpf_ktime_get_boot_ns());
	return state->stamp_ns;
}

/* A record put together in scratch; `size` is already a multiple of 8. */
static __always_inline void output(void *ring, __u32 kind, void *record, __u64 size)
{
	if (bpf_ringbuf_output(ring, record, size, wake_flags(ring)))
		count_loss(kind, PT_LOSS_RING_FULL);
}

static __always_inline __u64 mix(__u64 hash, __u64 word)
{
	hash = (hash ^ word) * 0x9e3779b97f4a7c15ULL;
	return hash ^ hash >> 29;
}

/*
 * Back-pressure, where it was asked for: who writes into a ring that is half full waits, longer
 * the fuller it is, so that the recorder gets the time to empty it. A program cannot sleep, so it
 * spins, with preemption off but no lock held; the time counts as the task's own system time.
 * Meanwhile the recorder runs on another CPU; where there is only one, it gets its turn when the
 * task returns from the kernel. Not called where locks are held: the last switch of a task, a rename.
 */
#define SPINS_A_STEP 64 /* at each of three levels */

STEP int spin(__u64 until_ns)
{
	int i;

	for (i = 0; i < SPINS_A_STEP; i++)
		if (bpf_ktime_get_boot_ns() >= until_ns)
			return STEP_DONE;
	return STEP_ON;
}

STEP int spin_on(__u64 until_ns)
{
	return REPEAT(SPINS_A_STEP, spin(until_ns));
}

static __always_inline __u64 patience_ns(__u64 avail)
{
	if (avail < ring_bytes / 2)
		return 0;
	if (avail < ring_bytes / 4 * 3)
		return 200000;
	if (avail < ring_bytes / 8 * 7)
		return 2000000;
	return 16000000;
}

static __always_inline void hold_up(void *ring)
{
	__u64 patience, until_ns;
	int i;

	if (!block_when_full)
		return;
	patience = patience_ns(bpf_ringbuf_query(ring, BPF_RB_AVAIL_DATA));
	if (!patience)
		return;
	until_ns = bpf_ktime_get_boot_ns() + patience;
	for (i = 0; i < SPINS_A_STEP; i++)
		if (spin_on(until_ns) == STEP_DONE ||
		    !patience_ns(bpf_ringbuf_query(ring, BPF_RB_AVAIL_DATA)))
			break;
}

/*
 * A word of a record, wherever it begins. Through a pointer of its own: where clang sees that an
 * address lies in an array of bytes, it reads and writes the word byte by byte, 15 instructions
 * instead of one.
 */
static __always_inline __u64 *word_at(void *bytes)
{
	return bytes;
}

#define ROUND_UP_8(n) (((n) + 7) & ~7ULL)

static __always_inline void copy_comm(char *to, struct task_struct *task)
{
	/* two loads; bpf_get_current_comm costs ten times as much */
	((__u64 *)to)[0] = ((__u64 *)task->comm)[0];
	((__u64 *)to)[1] = ((__u64 *)task->comm)[1];
}

static __always_inline void hide_comm(char *comm)
{
	((__u64 *)comm)[0] = 0;
	((__u64 *)comm)[1] = 0;
}

#endif
