/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Failed path look-ups, failed execs and successful opens, recorded when the system call returns.
 *
 * The path and arguments come from the saved registers: by then the kernel's own getname() has
 * faulted the path in (at entry one read in five fails). There are three hooks for this:
 *   fexit/__x64_sys_X                costs other system calls nothing; needs kernel trampolines
 *   tracepoint/syscalls/sys_exit_X   costs every other system call of the machine 55 ns
 *   tp_btf/sys_exit                  costs 92 ns, but needs neither tracefs nor perf events
 */
#ifndef PROCTRACE_LOOKUP_BPF_H
#define PROCTRACE_LOOKUP_BPF_H

/* A failed call, decoded from its registers. */
struct failed_call {
	__u16 call;
	__u16 error;
	__s32 dirfd;
	__u32 flags;
	__u64 path;
};

#define CREAT_FLAGS 01101 /* O_CREAT|O_WRONLY|O_TRUNC */

static __always_inline bool is_open(__u16 call)
{
	return call == PT_CALL_OPEN || call == PT_CALL_OPENAT || call == PT_CALL_OPENAT2 ||
	       call == PT_CALL_CREAT;
}

static __always_inline bool is_exec(__u16 call)
{
	return call == PT_CALL_EXECVE || call == PT_CALL_EXECVEAT;
}

/* Decodes the arguments of a call. */
static __always_inline void read_arguments(struct failed_call *f, struct pt_regs *regs)
{
	__u64 how_flags = 0;

	f->dirfd = REG_ARG1(regs);
	f->path = REG_ARG2(regs);
	f->flags = 0;
	switch (f->call) {
	case PT_CALL_OPENAT:
	case PT_CALL_STATX:
	case PT_CALL_FACCESSAT:
	case PT_CALL_FACCESSAT2:
		f->flags = REG_ARG3(regs);
		return;
	case PT_CALL_NEWFSTATAT:
		f->flags = REG_ARG4(regs);
		return;
	case PT_CALL_EXECVEAT:
		f->flags = REG_ARG5(regs);
		return;
	case PT_CALL_OPENAT2: /* open_how.flags comes first */
		bpf_probe_read_user(&how_flags, sizeof(how_flags), (void *)REG_ARG3(regs));
		f->flags = how_flags;
		return;
	case PT_CALL_READLINKAT:
		return;
	case PT_CALL_OPEN:
	case PT_CALL_ACCESS:
		f->flags = REG_ARG2(regs);
		break;
	case PT_CALL_CREAT:
		f->flags = CREAT_FLAGS;
		break;
	}
	/* calls without a directory argument */
	f->dirfd = AT_FDCWD;
	f->path = REG_ARG1(regs);
}

/* Assembles the record in the scratch buffer, except its time, with the path at `to`; returns its
 * size. */
static __always_inline __u32 gather_miss(struct scratch *scratch, const struct failed_call *f,
					 __u16 kind, __u32 task, __u32 to)
{
	struct pt_miss *r = (void *)scratch->record;
	__u16 bits = 0;
	long len;

	len = bpf_probe_read_user_str(&scratch->record[to], PT_PATH_MAX, (void *)f->path);
	if (len <= 0) {
		bits = PT_MISS_PATH_FAULT;
		len = 1;
	} else if (len == PT_PATH_MAX) {
		bits = PT_MISS_PATH_CUT;
	}
	len = (len - 1) & (PT_PATH_MAX - 1);
	to += len;
	/* padding of the record, and zeros for the last words read by hash_miss() */
	*word_at(&scratch->record[to]) = 0;
	*word_at(&scratch->record[to + 8]) = 0;
	set_head(&r->head, kind, ROUND_UP_8(to), task, 0);
	r->call = f->call;
	r->error = f->error;
	r->dirfd = f->dirfd;
	r->flags = f->flags;
	r->path_bytes = len;
	r->bits = bits;
	return ROUND_UP_8(to);
}

/* ---- failed execs: rare, so each is recorded in full ---- */

static __always_inline void write_exec_failed(__u32 serial, __u64 now, const struct failed_call *f)
{
	struct scratch *scratch;
	struct pt_miss *r;
	__u32 size, slot;

	hold_up(&lifecycle);
	scratch = take_scratch(&slot, PT_EXEC_FAILED);
	if (!scratch)
		return;
	size = gather_miss(scratch, f, PT_EXEC_FAILED, serial, sizeof(*r));
	r = (void *)scratch->record;
	r->head.time_ns = now;
	output(&lifecycle, PT_EXEC_FAILED, r, size);
	give_scratch(scratch);
}

/* ---- failed look-ups: frequent and repetitive ---- */

/* Records a look-up, the nth of its task; returns its number, or 0 if it has none or is lost. */
static __always_inline __u32 write_lookup(struct scratch *scratch, __u32 mine, __u32 serial,
					  __u64 now, __u32 nth, const struct failed_call *f)
{
	struct named_lookup *named = NULL;
	__u32 size, len, slot, number;
	__u64 hash = 0, old = OWNED, flags;
	struct pt_named *r;

	size = gather_miss(scratch, f, PT_LOOKUP_NAMED, serial, sizeof(*r));
	r = (void *)scratch->record;
	r->number = 0;
	r->slot = 0;
	flags = seldom_wake_flags(&lookups, nth);
	len = r->path_bytes;
	if (len <= PT_NAMED_PATH_MAX && !r->bits) {
		hash = hash_miss(mine, len);
		number = find_number(scratch, hash, &slot, &named);
		if (number) {
			return write_again(PT_LOOKUP_AGAIN, serial, number, now, flags) ? number : 0;
		}
		old = named ? own(named) : OWNED;
		if (old != OWNED) {
			r->number = __sync_fetch_and_add(&lookups_numbered, 1) + 1;
			r->slot = slot;
		}
	}
	r->head.time_ns = now;
	if (bpf_ringbuf_output(&lookups, r, size, flags)) {
		count_loss(PT_LOOKUP_FAILED, PT_LOSS_RING_FULL);
		if (named && old != OWNED)
			named->hash = old;
		return 0;
	}
	/* only after the record is in the ring, so that records that use the number come later */
	if (named && old != OWNED) {
		scratch->last_number = r->number;
		let_go(named, old, hash, r->number);
	}
	return r->number;
}

/* True if a recorded call needs processing: successful opens are counted. */
static __always_inline bool matters(__u16 call, long ret)
{
	return ret < 0 || is_open(call);
}

/* True if a signal has interrupted the call, which the kernel will repeat or fail: ERESTARTSYS and its kin are for the
 * kernel itself (include/linux/errno.h), and who made the call never sees them. */
static __always_inline bool is_interrupted(long ret)
{
	return ret <= -512 && ret >= -516;
}

/* Handles the return of a call that matters. */
static __always_inline int note_return(struct task_struct *task, __u16 call, long ret)
{
	struct failed_call f = { .call = call, .error = -ret };
	__u32 serial, nth, slot, number, origin = 0;
	struct scratch *scratch;
	struct task_state *state;
	__u64 now, duration_ns;

	state = state_of(task);
	if (!state)
		return 0;
	duration_ns = end_timing(state);
	if (is_interrupted(ret))
		return 0;
	if (scope == SCOPE_CGROUPS)
		origin = state->origin;
	/* neither recorded nor counted, so that counts and records agree */
	if (!may_see(task))
		return 0;
	if (ret >= 0) {
		nth = ++state->opens;
		if (!record_opens)
			return 0;
		serial = state->task;
		now = coarse_now(state, task);
		read_arguments(&f, current_regs(task));
		hold_up(&lookups);
		scratch = take_scratch(&slot, PT_OPENED_NAMED);
		if (!scratch)
			return 0;
		if (scope == SCOPE_CGROUPS)
			scratch->origin = origin;
		scratch->total = nth;
		write_opened(slot, serial, now, (__u64)call << 32 | f.flags, ret);
		give_scratch(scratch);
		return 0;
	}
	if (!(wanted_calls & 1U << call))
		return 0;
	serial = state->task;
	if (is_exec(call)) {
		state->execs_failed++;
		now = bpf_ktime_get_boot_ns();
		stamp(state, task, now);
		read_arguments(&f, current_regs(task));
		write_exec_failed(serial, now, &f);
	} else {
		nth = ++state->lookups_failed;
		now = coarse_now(state, task);
		read_arguments(&f, current_regs(task));
		hold_up(&lookups);
		scratch = take_scratch(&slot, PT_LOOKUP_FAILED);
		if (!scratch)
			return 0;
		if (scope == SCOPE_CGROUPS)
			scratch->origin = origin;
		number = write_lookup(scratch, slot, serial, now, nth, &f);
		if (duration_ns && number)
			write_lookup_time(serial, now, number, duration_ns);
		give_scratch(scratch);
	}
	return 0;
}

/* Attached to syscalls/sys_exit_X for each wanted X. */
SEC("tracepoint/syscalls/sys_exit")
int on_return(struct sys_exit_ctx *ctx)
{
	__u16 call = call_of(ctx->nr);
	long ret = ctx->ret;

	if (empty_programs)
		return 0;
	if (!matters(call, ret)) {
		drop_timing();
		return 0;
	}
	return note_return(bpf_get_current_task_btf(), call, ret);
}

/* Runs for every system call of the machine. */
SEC("tp_btf/sys_exit")
int on_sys_exit(__u64 *ctx)
{
	struct pt_regs *regs = (void *)ctx[0];
	__u16 call = call_of(REG_NR(regs));
	struct task_struct *task;
	long ret = ctx[1];

	if (empty_programs || !(hooked_calls & 1U << call))
		return 0;
	if (!matters(call, ret)) {
		drop_timing();
		return 0;
	}
	task = bpf_get_current_task_btf();
	if (is_compat(task->mm))
		return 0;
	/* not by `regs`: the verifier of 6.2 refuses one load through two kinds of pointer */
	return note_return(task, call, ret);
}

/* Attached to the function that implements the call, one program each: the attach target is part of
 * an fexit program. A result from seccomp is not seen, because the function did not run. */
#define RETURN_OF(name, call)                                               \
	SEC("fexit")                                                        \
	int on_return_of_##name(__u64 *ctx)                                 \
	{                                                                   \
		long ret = ctx[1];                                          \
									    \
		if (empty_programs)                                         \
			return 0;                                           \
		if (!matters(call, ret)) {                                  \
			drop_timing();                                      \
			return 0;                                           \
		}                                                           \
		return note_return(bpf_get_current_task_btf(), call,        \
				   ret);                                    \
	}

RETURN_OF(open, PT_CALL_OPEN)
RETURN_OF(openat, PT_CALL_OPENAT)
RETURN_OF(openat2, PT_CALL_OPENAT2)
RETURN_OF(creat, PT_CALL_CREAT)
RETURN_OF(stat, PT_CALL_STAT)
RETURN_OF(lstat, PT_CALL_LSTAT)
RETURN_OF(newfstatat, PT_CALL_NEWFSTATAT)
RETURN_OF(statx, PT_CALL_STATX)
RETURN_OF(access, PT_CALL_ACCESS)
RETURN_OF(faccessat, PT_CALL_FACCESSAT)
RETURN_OF(faccessat2, PT_CALL_FACCESSAT2)
RETURN_OF(readlink, PT_CALL_READLINK)
RETURN_OF(readlinkat, PT_CALL_READLINKAT)
RETURN_OF(chdir, PT_CALL_CHDIR)
RETURN_OF(execve, PT_CALL_EXECVE)
RETURN_OF(execveat, PT_CALL_EXECVEAT)

/* Files opened through an io_uring involve no system call. */
SEC("tp_btf/io_uring_create")
int on_io_uring(__u64 *ctx)
{
	struct task_struct *task;
	struct task_state *state;
	struct pt_blind *r;

	if (empty_programs)
		return 0;
	task = bpf_get_current_task_btf();
	state = state_of(task);
	/* a hidden task has no look-up records anyway */
	if (!state || !may_see(task))
		return 0;
	r = reserve(lifecycle, PT_BLIND, struct pt_blind);
	if (!r)
		return 0;
	set_head(&r->head, PT_BLIND, sizeof(*r), state->task, bpf_ktime_get_boot_ns());
	r->process = state->process;
	r->tgid = tgid_of(task);
	r->tid = tid_of(task);
	r->what = PT_BLIND_IO_URING;
	submit(lifecycle, r);
	return 0;
}

#endif
