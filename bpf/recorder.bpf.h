/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Shared by all programs: the options, the maps, the set of traced tasks, how records are submitted
 * and how losses are counted.
 */
#ifndef PROCTRACE_RECORDER_BPF_H
#define PROCTRACE_RECORDER_BPF_H

/* ---- options: constants at verification time, so disabled branches cost nothing ---- */

/* The recorder's pid in its own pid namespace, and that namespace: if the recorder runs in a
 * container, getpid() differs from the tgid that the kernel hooks see. */
const volatile __u32 recorder_pid = 0;
const volatile __u64 recorder_pidns_dev = 0;
const volatile __u64 recorder_pidns_ino = 0;
/* Instead, its tgid in the initial pid namespace: a broker loads the programs for the recorder, and knows
 * it by that. 0: use recorder_pid. */
const volatile __u32 recorder_tgid = 0;
/* Start time of that process: task->start_boottime. */
const volatile __u64 recorder_started_ns = 0;
/* A ring filled to this level wakes the recorder before its next tick. */
const volatile __u64 wake_bytes = 1 << 20;
const volatile __u64 ring_bytes = 1 << 20;
/* True if tasks that write to a ring at least half full are delayed; see hold_up(). */
const volatile __u32 block_when_full = 0;

/* All programs return at once: measures the cost of the hooks alone. */
const volatile __u32 empty_programs = 0;

/* Bit n: failures of call n (enum pt_call) are recorded. */
const volatile __u32 wanted_calls = 0;

/* The same, and calls whose successes are recorded. If each call has its own hook, only the wanted
 * hooks are attached; the hook shared by all calls checks this mask. */
const volatile __u32 hooked_calls = 0;

#define ENV_NAMES_MAX 32
#define ENV_NAME_WORDS 4
/* "NAME=" zero-padded to 32 bytes, and a mask of the significant bytes. */
struct env_name {
	__u64 want[ENV_NAME_WORDS];
	__u64 mask[ENV_NAME_WORDS];
};
const volatile struct env_name env_names[ENV_NAMES_MAX] = {};
const volatile __u32 env_names_len = 0;

/* ---- maps ---- */

/* Lifecycle records have a separate ring, so that a burst of look-ups can never displace a fork or
 * an exit. The loader sets the sizes. */
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

/* in place of a number of a system call */
#define NO_SYSCALL -1

/* State of a traced task. A task without one is not traced. */
struct task_state {
	__u32 task;
	__u32 process;
	/* set at exit, used at the task's last context switch */
	__u64 exit_ns;
	__u64 run_at_exit_ns;
	__u64 maxrss_pages;
	__u64 file_rss_pages;
	__u32 status;
	__u32 exit_bits;
	__s32 parent_tgid;
	/* running totals */
	__u32 opens;
	__u32 lookups_failed;
	__u32 execs_failed;
	/* values of the last sample: an idle task is not sampled again */
	__u64 sampled_run_ns;
	__u32 sampled_state;
	/* tid at the start of its exit: when another thread's exec terminates the leader, the
	 * leader's tid passes to that thread before the leader's last switch (de_thread,
	 * exchange_tids) */
	__s32 exit_tid;
	/* the same for its process; only if pid_level is not 0 */
	__s32 exit_tgid;
	/* the job it belongs to, and the first task of that job's recording which it descends from; see
	 * scope.bpf.h */
	__u32 group;
	__u32 origin;
	/* the system call that it was in when it left its CPU last, and 16 empty bits; see wait.bpf.h */
	__s16 off_in;
	__u16 pad;
	/* signal->maxrss at the last exec; kept in the leader's state */
	__u64 maxrss_before_pages;
	/* task->start_boottime, distinguishes it from a later task at the same address */
	__u64 born_ns;
	/* working directory at fork; 0 after an exec, whose record contains the directory */
	__u64 born_in;
	/* time of the last event, and the value of se.exec_start at that time: see coarse_now() */
	__u64 stamp_ns;
	__u64 stamp_key;
	/* identifies the mount namespace and root at the last exec, or at birth; 0: not known */
	__u64 place;
	/* when the system call in progress began, if it is timed; see time.bpf.h */
	__u64 entered_ns;
	/* when it left its CPU, 0 while it is on one, and its state then; when it was woken since, and
	 * by whom; see wait.bpf.h */
	__u64 off_ns;
	__u64 woken_ns;
	__u32 waker;
	__s32 waker_tgid;
	__u32 waker_bits;
	__s16 waker_syscall;
	__u16 off_state;
	char waker_comm[PT_COMM_BYTES];
	/* whether the program was hidden from the caller at exec, and the I/O counters when last
	 * visible; used only if restricted, see rights.bpf.h */
	__u64 hidden;
	struct io_counters seen_io;
};

/* task_state.born_in of a task whose birth was not recorded. */
#define BORN_ELSEWHERE 1

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct task_state);
} tasks SEC(".maps");

/*
 * The states of threads are in a hash map, keyed by task address: creating task storage takes 1.2
 * us, a twentieth of a short thread's life; an entry here costs half of that, including its
 * deletion. The cleanup that task storage does automatically is explicit here: the last switch
 * deletes the entry, and should that ever fail, the start time distinguishes the dead task from a
 * later one at the same address. Processes remain in task storage, because they can be zombies long
 * after their last switch and are looked up as leaders and as parents. When this map is full,
 * further threads use task storage too.
 *
 *
 * To the verifier these are two kinds of pointer, and it follows both for as long as one is live.
 * So programs read what they need from a state first, and no longer use the pointer in the long
 * part.
 */
#define THREADS_MAX 4096

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, THREADS_MAX);
	__type(key, __u64);
	__type(value, struct task_state);
} threads SEC(".maps");

/* The number of entries: while it is 0, as in most jobs most of the time, nothing is searched. */
static __u64 threads_live;

/* Progress of the traced tree; written only by the programs. */
struct counts {
	__u64 born;	/* tasks ever traced; also the last serial assigned */
	__u64 ended;	/* of these, tasks whose exit record is written */
	__u64 lost;	/* sum of all losses; the details are read only if it is not zero */
	__u64 held_up;	/* how often a task has waited for the recorder, see hold_up(), and how long */
	__u64 held_up_ns;
};

/* The last number assigned to a look-up. */
static __u64 lookups_numbered;

/* The recorder reads these through mmap, not by system call: while a system call accesses a map,
 * the kernel skips all tracing programs on that CPU (bpf_disable_instrumentation()), and the caller
 * can be preempted meanwhile. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct counts);
} counts SEC(".maps");

/* Requests of the recorder; separate from the counts, because it overwrites the whole value. */
enum pass {
	PASS_CHANGED = 0,	/* skip tasks whose state and CPU time are unchanged */
	PASS_FINAL = 1,		/* skip none; the last pass */
	PASS_EVERY = 2,		/* skip none */
};

struct orders {
	__u32 launch_armed;	/* the recorder's next child process is the root of the tree */
	__u32 pass;		/* enum pass: which tasks the next sampling pass skips */
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

/* Hashes of the environments already recorded. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, __u64);
	__type(value, __u8);
} environments SEC(".maps");

/*
 * Buffers for assembling variable-size records, two for each CPU (the loader sets their number): a
 * record of up to 64 KiB fits neither the stack nor a per-CPU map (PCPU_MIN_UNIT_SIZE).
 *
 * A program stays on its CPU, but another can preempt it there: trampolines (fexit) only disable
 * migration, and from 7.0 on, so do tracepoints on preemptible kernels. So buffers are acquired and
 * released; a second one serves a preempting program.
 */
#define SCRATCHES_A_CPU 2

struct scratch {
	__u64 taken;
	__u64 last_number;	/* of the last look-up recorded on this CPU; see lookups_in_order */
	__u8 record[PT_RECORD_MAX + 8];
	__u8 walk[2 * PT_PATH_MAX + 8];
	/* Working state of the steps below; see STEP. */
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
	__u32 origin;	/* of the task; only in a recording of many jobs */
};

/*
 * The body of a long loop. The verifier follows every path through a loop, and a few branches and
 * live registers in one exceed its limit of a million instructions. A global function is verified
 * once, on its own, and counts as a single step in its caller; its arguments cannot be pointers, so
 * its state is in a scratch buffer whose number it is passed. (bpf_loop would also do, from 5.17
 * on.) A loop of many steps is split into two nested loops of few, for the same reason.
 */
#define STEP __attribute__((noinline))
enum step { STEP_ON, STEP_DONE, STEP_FAILED };

/* Repeats a step up to `times` times, until it returns something other than STEP_ON. */
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
 * Keeps a pointer load where it is written. Newer verifiers (seen on 6.18: type_is_trusted() and
 * similar) search all kernel types, for half a millisecond, each time they encounter the load of a
 * pointer to a struct, on every path that leads there; and clang tends to move loads behind
 * branches. So such loads either precede the first branch or use a helper (BPF_CORE_READ), which
 * costs 10 ns more per execution and no verification time.
 */
#define LOADED_HERE(pointer) barrier_var(pointer)

#define CLONE_THREAD 0x00010000ULL

/* ---- helpers ---- */

/* An atomic operation that returns a value is a full barrier. One whose value is not used does not return any, which is
 * why this is an exchange: clang makes no other of it. */
static __always_inline void full_barrier(void)
{
	static __u64 nothing;

	__sync_lock_test_and_set(&nothing, 0);
}

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
	struct task_state *state;

	if (!threads_live)
		return NULL;
	state = bpf_map_lookup_elem(&threads, &key);
	/* A thread that calls exec inherits the earlier start time of its leader. */
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

/* The buffer with this number; steps are passed the number, because their arguments cannot be
 * pointers. */
static __always_inline struct scratch *scratch_at(__u32 slot)
{
	return bpf_map_lookup_elem(&scratches, &slot);
}

/* Acquires a buffer and its number for exclusive use; NULL and a counted loss if none is free. */
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

/* The recorder drains the rings at its ticks; it is woken earlier only while a ring is above its
 * mark: a wake-up per record costs 3 us, several times the record itself. */
static __always_inline __u64 wake_flags(void *ring)
{
	return bpf_ringbuf_query(ring, BPF_RB_AVAIL_DATA) >= wake_bytes ?
		BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP;
}

/* The same for small, frequent records: only every 16th look-up of a task queries the fill level.
 */
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

/* Reserves a fixed-size record in the ring; NULL and a counted loss if it is full. */
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
 * read once per scheduler accounting period: se.exec_start changes at every clock tick (1 to 10 ms)
 * and whenever the task gets the CPU. The records of one task stay in order, because each of its
 * events updates the stamp.
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

/* Writes a record assembled in a scratch buffer; `size` is already a multiple of 8. Returns whether there was room. */
static __always_inline bool output(void *ring, __u32 kind, void *record, __u64 size)
{
	if (!bpf_ringbuf_output(ring, record, size, wake_flags(ring)))
		return true;
	count_loss(kind, PT_LOSS_RING_FULL);
	return false;
}

static __always_inline __u64 mix(__u64 hash, __u64 word)
{
	hash = (hash ^ word) * 0x9e3779b97f4a7c15ULL;
	return hash ^ hash >> 29;
}

/*
 * Back-pressure, if enabled: a task that writes to a ring at least half full waits, longer the
 * fuller the ring, so that the recorder has time to drain it. A program cannot sleep, so it spins,
 * with preemption off but no lock held; this counts as the task's own system time. Meanwhile the
 * recorder runs on another CPU; on a single CPU it runs when the task returns from the kernel. Not
 * called where locks are held (the last switch of a task, a rename), nor for a task whose data is
 * withheld.
 *
 * While it spins, not even a task of the highest priority gets this CPU. So one wait is at most a
 * millisecond, each is counted, and only an unrestricted recorder may ask for them: any user could
 * stall the machine otherwise.
 */
#define SPINS_A_STEP 64 /* at each of three levels; a spin reads the clock, 20 ns or more */

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
		return 100000;
	if (avail < ring_bytes / 8 * 7)
		return 500000;
	return 1000000;
}

static __always_inline void hold_up(void *ring)
{
	__u64 patience, begun_ns, until_ns;
	struct counts *counts;
	int i;

	if (!block_when_full)
		return;
	patience = patience_ns(bpf_ringbuf_query(ring, BPF_RB_AVAIL_DATA));
	if (!patience)
		return;
	begun_ns = bpf_ktime_get_boot_ns();
	until_ns = begun_ns + patience;
	for (i = 0; i < SPINS_A_STEP; i++)
		if (spin_on(until_ns) == STEP_DONE ||
		    !patience_ns(bpf_ringbuf_query(ring, BPF_RB_AVAIL_DATA)))
			break;
	counts = get_counts();
	if (counts) {
		__sync_fetch_and_add(&counts->held_up, 1);
		__sync_fetch_and_add(&counts->held_up_ns, bpf_ktime_get_boot_ns() - begun_ns);
	}
}

/*
 * A word of a record, at any alignment. Accessed through a separate pointer: if clang knows that an
 * address lies in an array of bytes, it reads and writes the word byte by byte, 15 instructions
 * instead of one.
 */
static __always_inline __u64 *word_at(void *bytes)
{
	return bytes;
}

#define AT_FDCWD -100
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
