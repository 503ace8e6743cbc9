/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Failed look-ups of paths and failed execs, at the return of the system call.
 *
 * Path and arguments come from the saved registers: by then the kernel's own getname() has
 * faulted the path in (at entry one read in five fails). Two ways to get there:
 *   tracepoint/syscalls/sys_exit_X   taxes every other system call of the machine by 55 ns
 *   tp_btf/sys_exit                  by 92 ns, but needs neither tracefs nor perf events
 */
#ifndef PROCTRACE_LOOKUP_BPF_H
#define PROCTRACE_LOOKUP_BPF_H

static __always_inline void write_miss(void *ring, __u16 kind, struct task_state *state, __u16 call,
				       long ret, __s32 dirfd, __u32 flags, __u64 path)
{
	struct scratch *scratch = get_scratch();
	struct pt_miss *r;
	__u32 to = sizeof(*r);
	__u16 bits = 0;
	long len;

	if (!scratch)
		return;
	hold_up(ring);
	r = (void *)scratch->record;
	len = bpf_probe_read_user_str(&scratch->record[sizeof(*r)], PT_PATH_MAX, (void *)path);
	if (len <= 0) {
		bits = PT_MISS_PATH_FAULT;
		len = 1;
	} else if (len == PT_PATH_MAX) {
		bits = PT_MISS_PATH_CUT;
	}
	len = (len - 1) & (PT_PATH_MAX - 1);
	to += len;
	*(__u64 *)&scratch->record[to] = 0;
	set_head(&r->head, kind, ROUND_UP_8(to), state->task, bpf_ktime_get_boot_ns());
	r->call = call;
	r->error = -ret;
	r->dirfd = dirfd;
	r->flags = flags;
	r->path_bytes = len;
	r->bits = bits;
	output(ring, kind, r, ROUND_UP_8(to));
}

#define AT_FDCWD -100

static __always_inline bool is_open(__u16 call)
{
	return call == PT_CALL_OPEN || call == PT_CALL_OPENAT || call == PT_CALL_OPENAT2 ||
	       call == PT_CALL_CREAT;
}

static __always_inline bool is_exec(__u16 call)
{
	return call == PT_CALL_EXECVE || call == PT_CALL_EXECVEAT;
}

/* Calls that take a directory before the path. */
static __always_inline bool has_dirfd(__u16 call)
{
	switch (call) {
	case PT_CALL_OPENAT:
	case PT_CALL_OPENAT2:
	case PT_CALL_NEWFSTATAT:
	case PT_CALL_STATX:
	case PT_CALL_FACCESSAT:
	case PT_CALL_FACCESSAT2:
	case PT_CALL_READLINKAT:
	case PT_CALL_EXECVEAT:
		return true;
	}
	return false;
}

static __always_inline __u32 flags_of(__u16 call, struct pt_regs *regs)
{
	__u64 how_flags = 0;

	switch (call) {
	case PT_CALL_OPEN:
	case PT_CALL_ACCESS:
		return REG_ARG2(regs);
	case PT_CALL_CREAT:
		return 01101; /* O_CREAT|O_WRONLY|O_TRUNC */
	case PT_CALL_OPENAT:
	case PT_CALL_STATX:
	case PT_CALL_FACCESSAT:
	case PT_CALL_FACCESSAT2:
		return REG_ARG3(regs);
	case PT_CALL_NEWFSTATAT:
		return REG_ARG4(regs);
	case PT_CALL_EXECVEAT:
		return REG_ARG5(regs);
	case PT_CALL_OPENAT2: /* open_how.flags comes first */
		bpf_probe_read_user(&how_flags, sizeof(how_flags), (void *)REG_ARG3(regs));
		return how_flags;
	}
	return 0;
}

/* A call that was asked for has returned. */
static __always_inline int note_return(__u16 call, long ret)
{
	struct task_struct *task;
	struct task_state *state;
	struct pt_regs *regs;
	__s32 dirfd = AT_FDCWD;
	__u64 path;

	if (ret >= 0 && !is_open(call))
		return 0;
	task = bpf_get_current_task_btf();
	state = state_of(task);
	if (!state)
		return 0;
	if (ret >= 0) {
		state->opens++;
		return 0;
	}
	regs = current_regs(task);
	path = REG_ARG1(regs);
	if (has_dirfd(call)) {
		dirfd = path;
		path = REG_ARG2(regs);
	}
	if (is_exec(call)) {
		state->execs_failed++;
		write_miss(&lifecycle, PT_EXEC_FAILED, state, call, ret, dirfd,
			   flags_of(call, regs), path);
	} else {
		state->lookups_failed++;
		write_miss(&lookups, PT_LOOKUP_FAILED, state, call, ret, dirfd,
			   flags_of(call, regs), path);
	}
	return 0;
}

/* Attached to syscalls/sys_exit_X of each X that was asked for. */
SEC("tracepoint/syscalls/sys_exit")
int on_return(struct sys_exit_ctx *ctx)
{
	return note_return(call_of(ctx->nr), ctx->ret);
}

/* Entered for every system call of the machine. */
SEC("tp_btf/sys_exit")
int on_sys_exit(__u64 *ctx)
{
	struct pt_regs *regs = (void *)ctx[0];
	__u16 call = call_of(REG_NR(regs));

	if (!(wanted_calls & 1U << call) || is_compat(bpf_get_current_task_btf()))
		return 0;
	return note_return(call, ctx[1]);
}

/* What is opened through an io_uring passes no system call. */
SEC("tp_btf/io_uring_create")
int on_io_uring(__u64 *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct task_state *state = state_of(task);
	struct pt_blind *r;

	if (!state)
		return 0;
	r = reserve(lifecycle, PT_BLIND, struct pt_blind);
	if (!r)
		return 0;
	set_head(&r->head, PT_BLIND, sizeof(*r), state->task, bpf_ktime_get_boot_ns());
	r->process = state->process;
	r->tgid = task->tgid;
	r->tid = task->pid;
	r->what = PT_BLIND_IO_URING;
	submit(lifecycle, r);
	return 0;
}

#endif
