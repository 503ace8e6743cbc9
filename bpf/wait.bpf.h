/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Times of tasks off the CPU, and the tasks that wake them.
 *
 * A task's state keeps when it left its CPU and who woke it; the record is written when it gets a
 * CPU again, if it was off long enough. So a context switch costs a search for both states and a
 * reading of the clock, and only few of them write a record: a task that is off the CPU for at least
 * a millisecond cannot write more than a thousand a second.
 *
 * Waits for the end of another task are written however short they are. There are about as many as
 * tasks, and without them the path from a shell to the commands that it waits for would be unknown
 * where these take less than the threshold, as most do.
 */
#ifndef PROCTRACE_WAIT_BPF_H
#define PROCTRACE_WAIT_BPF_H

/* Shortest time off the CPU that is recorded; 0: none is. */
const volatile __u64 waits_min_ns = 0;
/* As wake_bytes, for their ring. */
const volatile __u64 waits_wake_bytes = 1 << 18;
/* Size of a task's kernel stack (THREAD_SIZE), which is not in the kernel's types. */
const volatile __u64 stack_bytes = 16384;

/* Smaller than the others: its records are few. The loader sets the size. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} waits SEC(".maps");

/*
 * True if the current program runs on the stack of the current task, and so not in an interrupt of
 * kernel code: an interrupt wakes tasks, too, and then `current` is any task.
 *
 * No helper tells this; the kernel's own preemption count is in a variable of each CPU that programs
 * cannot refer to on every kernel. But an interrupt of kernel code is served on a separate stack
 * (irq_stack_union on x86, call_on_irq_stack on arm64), and a program runs on the stack of whoever
 * called it, as long as the frame of its function is below 64 bytes (BPF_PRIV_STACK_MIN_SIZE). An interrupt of
 * user code is served on the task's own stack on x86, but then no system call is in progress.
 *
 * The address of the program's stack is a pointer, which must not become a number. The difference of
 * two pointers is one.
 */
static __always_inline bool is_on_stack_of(struct task_struct *current, __u64 address)
{
	__u64 stack = (__u64)current->stack, at;

	asm volatile("%0 = r10\n\t%0 -= %1" : "=&r"(at) : "r"(current));
	at += address;
	return at - stack < stack_bytes;
}

/* Flags of task_struct. Workers of the kernel have no system call of their own. */
#define PF_EXITING 0x4
#define PF_IO_WORKER 0x10
#define PF_USER_WORKER 0x4000
#define NO_PROGRAM_OF_ITS_OWN (PF_KTHREAD | PF_IO_WORKER | PF_USER_WORKER)

/* The number of the system call that a task is in. */
static __always_inline __s16 number_in(struct task_struct *task)
{
	int nr = REG_NR(current_regs(task));

	return nr < 0 || nr > 0x7fff ? NO_SYSCALL : nr;
}

/* The number if it counts: 32-bit programs number their calls differently. `nr` is of number_in(). */
static __always_inline __s16 syscall_of(struct task_struct *task, __s16 nr)
{
	struct mm_struct *mm;

	if (task->flags & NO_PROGRAM_OF_ITS_OWN)
		return NO_SYSCALL;
	/* as is_compat(), for a pointer that was read by a helper */
	mm = BPF_CORE_READ(task, mm);
	if (mm && BPF_CORE_READ(mm, task_size) <= 1ULL << 32)
		return NO_SYSCALL;
	return nr;
}

/*
 * True if the current task acts itself: it is in a system call, ending, or a thread of the kernel.
 * If not, it was only interrupted.
 *
 * A function of its own, because each function has or has not a private stack: this one's frame
 * remains small, whatever its callers need.
 */
STEP int acts_itself(void)
{
	struct task_struct *current = bpf_get_current_task_btf();

	if (!current->pid || !is_on_stack_of(current, bpf_get_current_task()))
		return 0;
	if (current->flags & (PF_EXITING | PF_KTHREAD))
		return 1;
	return REG_NR(current_regs(current)) >= 0;
}

/* ---- being woken ---- */

static __always_inline __u32 serial_of(struct task_struct *task)
{
	struct task_state *state = state_of(task);

	return state ? state->task : 0;
}

/*
 * Runs in the waker, before the task becomes runnable. At that moment it may not have left its CPU
 * yet, so this is also noted for tasks that are on one.
 */
SEC("tp_btf/sched_waking")
int on_waking(__u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0], *waker;
	struct task_state *state;
	__u32 serial, bits;
	bool visible;

	if (empty_programs || !waits_min_ns)
		return 0;
	state = state_of(task);
	if (!state)
		return 0;
	waker = bpf_get_current_task_btf();
	serial = serial_of(waker);
	bits = acts_itself() ? PT_WAIT_BY_TASK : PT_WAIT_BY_INTERRUPT;
	if (bits == PT_WAIT_BY_TASK && waker->flags & PF_EXITING)
		bits |= PT_WAIT_BY_END;
	/* which it is in is for those who may trace it, as its name, which everyone else's record has by its serial */
	visible = may_see(waker);
	/* that of a 32-bit program has another meaning, but this matters only for senders of data */
	state->waker_syscall = serial && visible && !(waker->flags & NO_PROGRAM_OF_ITS_OWN) ?
				       REG_NR(current_regs(waker)) :
				       NO_SYSCALL;
	state->waker = serial;
	state->waker_tgid = tgid_of(waker);
	if (!serial && visible) {
		copy_comm(state->waker_comm, waker);
	} else {
		hide_comm(state->waker_comm);
		if (!serial)
			bits |= PT_WAIT_WITHHELD;
	}
	state->waker_bits = bits;
	state->woken_ns = bpf_ktime_get_boot_ns();
	return 0;
}

/* ---- leaving a CPU, and getting one ---- */

/* The type of the file behind a descriptor; 0 if there is none. */
static __always_inline __u16 file_type_of(struct task_struct *task, __u64 descriptor)
{
	struct fdtable *table = BPF_CORE_READ(task, files, fdt);
	struct file **files, *file = NULL;

	if (!table || descriptor >= BPF_CORE_READ(table, max_fds))
		return 0;
	files = BPF_CORE_READ(table, fd);
	bpf_probe_read_kernel(&file, sizeof(file), files + descriptor);
	return file ? BPF_CORE_READ(file, f_inode, i_mode) >> 12 : 0;
}

static __always_inline void write_wait(struct task_struct *task, struct task_state *state,
				       __u64 off_ns, __u64 now, bool missed)
{
	struct pt_wait *r = reserve(waits, PT_WAIT, struct pt_wait);
	struct pt_regs *regs;
	__s16 syscall;

	if (!r)
		return;
	set_head(&r->head, PT_WAIT, sizeof(*r), state->task, now);
	r->process = state->process;
	r->since_ns = off_ns;
	r->state = state->off_state;
	r->pad = 0;
	if (state->off_state == 'R') {
		r->woken_ns = off_ns;
		r->waker = 0;
		r->waker_tgid = 0;
		r->waker_syscall = NO_SYSCALL;
		r->bits = 0;
		hide_comm(r->waker_comm);
	} else {
		/* woken before it had left its CPU */
		r->woken_ns = state->woken_ns && state->woken_ns < off_ns ? off_ns :
									    state->woken_ns;
		r->waker = state->waker;
		r->waker_tgid = state->waker_tgid;
		r->waker_syscall = state->waker_syscall;
		r->bits = state->waker_bits;
		((__u64 *)r->waker_comm)[0] = ((__u64 *)state->waker_comm)[0];
		((__u64 *)r->waker_comm)[1] = ((__u64 *)state->waker_comm)[1];
	}
	/* /proc/PID/syscall is only for those who may trace the task */
	syscall = may_see(task) ? syscall_of(task, missed ? state->off_in : number_in(task)) :
				  NO_SYSCALL;
	r->syscall = syscall;
	regs = current_regs(task);
	/* the arguments are those of another call by now */
	r->file_type = syscall < 0 || missed ? 0 : file_type_of(task, REG_ARG1(regs));
	bpf_ringbuf_submit(r, bpf_ringbuf_query(&waits, BPF_RB_AVAIL_DATA) >= waits_wake_bytes ?
				      BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP);
}

static __always_inline void got_cpu(struct task_struct *task, struct task_state *state,
				    __u64 off_ns, __u64 now, bool missed)
{
	bool was_asleep = state->off_state != 'R';

	/* a look-up takes no longer because somebody else had the CPU: see time.bpf.h */
	if (state->entered_ns)
		state->entered_ns += now - (was_asleep && state->woken_ns > off_ns ? state->woken_ns :
					    was_asleep ? now : off_ns);
	if (now - off_ns >= waits_min_ns || (was_asleep && state->waker_bits & PT_WAIT_BY_END))
		write_wait(task, state, off_ns, now, missed);
	state->off_ns = 0;
	if (was_asleep) {
		state->woken_ns = 0;
		state->waker_bits = 0;
	}
}

/* `now` is 0 if the time has not been read yet. */
static __always_inline void note_on(struct task_struct *task, __u64 now)
{
	struct task_state *state = state_of(task);
	__u64 off_ns;

	if (!state)
		return;
	off_ns = state->off_ns;
	if (!off_ns)
		return;
	got_cpu(task, state, off_ns, now ? now : bpf_ktime_get_boot_ns(), false);
}

/*
 * A task that leaves its CPU, and that nobody has said to have got it: on a busy machine, the kernel
 * does not announce every switch, neither to programs nor to ftrace (seen on 6.18, a few in a thousand
 * of those to a task that was woken while another one ran). It has had the CPU for as long as its CPU time
 * has grown since it was chosen.
 */
static __always_inline void note_missed(struct task_struct *task, struct task_state *state,
					__u64 now)
{
	__u64 off_ns = state->off_ns, ran_ns, on_ns;

	if (!off_ns)
		return;
	ran_ns = task->se.sum_exec_runtime - task->se.prev_sum_exec_runtime;
	on_ns = ran_ns < now - off_ns ? now - ran_ns : off_ns;
	got_cpu(task, state, off_ns, on_ns, true);
}

static __always_inline void note_missed_by_dead(struct task_struct *task)
{
	struct task_state *state = state_of(task);

	if (state)
		note_missed(task, state, bpf_ktime_get_boot_ns());
}

/* Returns the time, 0 if the task is not traced. */
static __always_inline __u64 note_off(struct task_struct *task, bool preempted)
{
	struct task_state *state = state_of(task);
	__u64 now;

	if (!state)
		return 0;
	now = bpf_ktime_get_boot_ns();
	note_missed(task, state, now);
	state->off_state = preempted ? 'R' : state_letter(task);
	/* noted now: who is not seen to get a CPU is in another call by the time it is found */
	state->off_in = number_in(task);
	return state->off_ns = now;
}

/* A switch from one task, which is not dead, to another. The idle task has the id 0. */
static __always_inline void note_switch(struct task_struct *from, struct task_struct *to,
					bool preempted)
{
	__u64 now = 0;

	if (from && from->pid)
		now = note_off(from, preempted);
	if (to->pid)
		note_on(to, now);
}

/* ---- signals ---- */

/* Those that end a process by default and are not used as ordinary messages: HUP INT QUIT ILL ABRT
 * BUS FPE KILL SEGV PIPE ALRM TERM STKFLT XCPU XFSZ PWR SYS. */
#define ENDING_SIGNALS                                                                      \
	(1U << 1 | 1U << 2 | 1U << 3 | 1U << 4 | 1U << 6 | 1U << 7 | 1U << 8 | 1U << 9 |    \
	 1U << 11 | 1U << 13 | 1U << 14 | 1U << 15 | 1U << 16 | 1U << 24 | 1U << 25 |       \
	 1U << 30 | 1U << 31)

#define SI_KERNEL 0x80
/* Offset of si_code in every siginfo, which is ABI. */
#define SI_CODE_AT 8
/* TRACE_SIGNAL_DELIVERED: neither ignored nor pending already. */
#define SIGNAL_DELIVERED 0

/* Instead of a siginfo, the sender may pass SEND_SIG_NOINFO (0) or SEND_SIG_PRIV (1). */
static __always_inline __s32 si_code_of(__u64 info)
{
	__s32 code = 0;

	if (info == 1)
		return SI_KERNEL;
	if (info)
		bpf_probe_read_kernel(&code, sizeof(code), (void *)(info + SI_CODE_AT));
	return code;
}

SEC("tp_btf/signal_generate")
int on_signal(__u64 *ctx)
{
	struct task_struct *task = (void *)ctx[2], *sender;
	int signal = ctx[0], result = ctx[4];
	struct task_state *state;
	struct pt_signal *r;
	__u32 serial;

	if (empty_programs || result != SIGNAL_DELIVERED || signal < 0 || signal > 31 ||
	    !(ENDING_SIGNALS >> signal & 1))
		return 0;
	state = state_of(task);
	if (!state)
		return 0;
	sender = bpf_get_current_task_btf();
	serial = serial_of(sender);
	r = reserve(lifecycle, PT_SIGNAL, struct pt_signal);
	if (!r)
		return 0;
	set_head(&r->head, PT_SIGNAL, sizeof(*r), state->task, bpf_ktime_get_boot_ns());
	r->process = state->process;
	r->tgid = tgid_of(task);
	r->sender = serial;
	r->sender_tgid = tgid_of(sender);
	r->signal = signal;
	r->bits = acts_itself() || sender == task ? 0 : PT_SIGNAL_BY_INTERRUPT;
	r->code = si_code_of(ctx[1]);
	if (may_see(sender)) {
		copy_comm(r->sender_comm, sender);
	} else {
		r->bits |= PT_SIGNAL_WITHHELD;
		hide_comm(r->sender_comm);
	}
	submit(lifecycle, r);
	return 0;
}

#endif
