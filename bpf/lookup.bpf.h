/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Failed opens and failed execs, at the return of the system call.
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

static __always_inline int note_open(__u16 call, long ret)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct task_state *state = state_of(task);
	struct pt_regs *regs;
	__u64 path, flags;
	__s32 dirfd = AT_FDCWD;

	if (!state)
		return 0;
	if (ret >= 0) {
		state->opens++;
		return 0;
	}
	state->lookups_failed++;
	regs = current_regs(task);
	if (call == PT_CALL_OPEN || call == PT_CALL_CREAT) {
		path = REG_ARG1(regs);
		flags = call == PT_CALL_OPEN ? REG_ARG2(regs) : 01101; /* O_CREAT|O_WRONLY|O_TRUNC */
	} else {
		dirfd = REG_ARG1(regs);
		path = REG_ARG2(regs);
		flags = REG_ARG3(regs);
		if (call == PT_CALL_OPENAT2) {
			__u64 how_flags = 0; /* open_how.flags comes first */

			bpf_probe_read_user(&how_flags, sizeof(how_flags), (void *)flags);
			flags = how_flags;
		}
	}
	write_miss(&lookups, PT_LOOKUP_FAILED, state, call, ret, dirfd, flags, path);
	return 0;
}

static __always_inline int note_exec_failed(__u16 call, long ret)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct task_state *state;
	struct pt_regs *regs;

	if (ret >= 0)
		return 0;
	state = state_of(task);
	if (!state)
		return 0;
	state->execs_failed++;
	regs = current_regs(task);
	if (call == PT_CALL_EXECVE)
		write_miss(&lifecycle, PT_EXEC_FAILED, state, call, ret, AT_FDCWD, 0, REG_ARG1(regs));
	else
		write_miss(&lifecycle, PT_EXEC_FAILED, state, call, ret, REG_ARG1(regs),
			   REG_ARG5(regs), REG_ARG2(regs));
	return 0;
}

SEC("tracepoint/syscalls/sys_exit_open")
int on_open(struct sys_exit_ctx *ctx)
{
	return note_open(PT_CALL_OPEN, ctx->ret);
}

SEC("tracepoint/syscalls/sys_exit_openat")
int on_openat(struct sys_exit_ctx *ctx)
{
	return note_open(PT_CALL_OPENAT, ctx->ret);
}

SEC("tracepoint/syscalls/sys_exit_openat2")
int on_openat2(struct sys_exit_ctx *ctx)
{
	return note_open(PT_CALL_OPENAT2, ctx->ret);
}

SEC("tracepoint/syscalls/sys_exit_creat")
int on_creat(struct sys_exit_ctx *ctx)
{
	return note_open(PT_CALL_CREAT, ctx->ret);
}

SEC("tracepoint/syscalls/sys_exit_execve")
int on_execve(struct sys_exit_ctx *ctx)
{
	return note_exec_failed(PT_CALL_EXECVE, ctx->ret);
}

SEC("tracepoint/syscalls/sys_exit_execveat")
int on_execveat(struct sys_exit_ctx *ctx)
{
	return note_exec_failed(PT_CALL_EXECVEAT, ctx->ret);
}

SEC("tp_btf/sys_exit")
int on_sys_exit(__u64 *ctx)
{
	struct pt_regs *regs = (void *)ctx[0];
	long ret = ctx[1];

	switch (REG_NR(regs)) {
	case NR_open:
		return note_open(PT_CALL_OPEN, ret);
	case NR_openat:
		return note_open(PT_CALL_OPENAT, ret);
	case NR_openat2:
		return note_open(PT_CALL_OPENAT2, ret);
	case NR_creat:
		return note_open(PT_CALL_CREAT, ret);
	case NR_execve:
		return note_exec_failed(PT_CALL_EXECVE, ret);
	case NR_execveat:
		return note_exec_failed(PT_CALL_EXECVEAT, ret);
	}
	return 0;
}

#endif
