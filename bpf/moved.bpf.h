/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Renames and removals of files, if opens are recorded: many programs write a file beside its name and then rename it.
 *
 * The paths are those given to the call, behind the kernel's own path of the directory that they are relative to.
 */
#ifndef PROCTRACE_MOVED_BPF_H
#define PROCTRACE_MOVED_BPF_H

#define RENAME_EXCHANGE 2
#define AT_REMOVEDIR 0x200

/* Longest path as given, behind that of a directory. */
#define MOVED_PATH_MAX (2 * PT_PATH_MAX + 8)
/* Of offsets in a record: two such paths are less. */
#define MOVED_MASK (8 * PT_PATH_MAX - 1)

/* Renames and removals so far: since then, what has the identity of a file may be another one. */
static __u64 names_changed;

#define FROM_HERE_BYTES (sizeof(PT_MOVED_FROM_HERE) - 1)

/* Writes the record with the paths that are in it, of these lengths; none if one of them is 0. A function of its own,
 * because verifiers before 6.2 do not track bounds through the stack. */
STEP int output_moved(__u32 slot, __u64 serial_and_bits, __u64 now, __u32 from, __u32 len)
{
	struct scratch *scratch = scratch_at(slot);
	__u32 bits = serial_and_bits;
	struct pt_moved *r;
	__u64 end;

	if (!scratch)
		return 0;
	if (!from || (!len && !(bits & PT_MOVED_REMOVED)) || from > MOVED_PATH_MAX ||
	    len > MOVED_PATH_MAX) {
		from = len = 0;
		bits = (bits & PT_MOVED_REMOVED) | PT_MOVED_UNKNOWN;
	}
	end = sizeof(*r) + from + len;
	/* clang knows that the mask changes nothing, an old verifier does not */
	asm volatile("" : "+r"(end));
	end &= MOVED_MASK;
	*word_at(&scratch->record[end]) = 0;
	end = ROUND_UP_8(end);
	r = (void *)scratch->record;
	set_head(&r->head, PT_MOVED, end, serial_and_bits >> 32, now);
	r->from_bytes = from;
	r->path_bytes = len;
	r->bits = bits;
	output(&lookups, PT_MOVED, r, end);
	return 0;
}

/* Copies a string of the current task to the record at `to`, behind PT_MOVED_FROM_HERE if `relative` is 1; returns the
 * length of both, 0 if it is not known. */
STEP __u32 copy_given(__u32 slot, __u32 to, __u32 relative, __u64 given)
{
	struct scratch *scratch = scratch_at(slot);
	__u64 at = to & MOVED_MASK;
	long got;

	if (!scratch)
		return 0;
	relative &= 1;
	__builtin_memcpy(&scratch->record[at], PT_MOVED_FROM_HERE, FROM_HERE_BYTES);
	at += FROM_HERE_BYTES * relative;
	got = bpf_probe_read_user_str(&scratch->record[at], PT_PATH_MAX, (void *)given);
	return got > 1 && got < PT_PATH_MAX ?
		       got - 1 + FROM_HERE_BYTES * relative : 0;
}

/* True if a path is relative. */
static __always_inline bool is_relative(__u64 given)
{
	char first = 0;

	return !bpf_probe_read_user(&first, 1, (void *)given) && first != '/';
}

/* Appends to the record, at `to`, a path as given to a system call, behind that of its directory if `relative`; returns
 * its length, 0 if it is not known. */
STEP __u32 append_given(__u32 slot, __u32 to, __s32 dirfd, __u64 given, __u32 relative)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct fs_struct *fs = BPF_CORE_READ(task, fs);
	struct scratch *scratch = scratch_at(slot);
	const struct path *directory = &fs->pwd;
	struct file *file = NULL;
	bool cut = false;
	__u32 len = 0, rest;

	if (!scratch)
		return 0;
	if (!relative)
		return copy_given(slot, to, 0, given);
	if (dirfd != AT_FDCWD) {
		file = file_of(task, dirfd);
		if (!file)
			return 0;
		directory = &file->f_path;
	}
	len = append_path(directory, &fs->root, scratch, slot, to, &cut);
	/* as in write_opened_named(): another thread may have closed it meanwhile */
	if (file && file_of(task, dirfd) != file)
		return 0;
	if (cut || !len || len > PT_PATH_MAX)
		return 0;
	rest = copy_given(slot, to + len, 1, given);
	return rest ? len + rest : 0;
}

/* Attached to syscalls/sys_exit_X of the calls that rename. */
SEC("tracepoint/syscalls/sys_exit")
int on_moved(struct sys_exit_ctx *ctx)
{
	__s32 from_fd = AT_FDCWD, to_fd = AT_FDCWD;
	__u64 from, to, now;
	__s32 nr = ctx->nr;
	struct task_struct *task;
	struct task_state *state;
	struct scratch *scratch;
	__u32 serial, slot, from_len, len, bits = 0;
	struct pt_regs *regs;

	if (empty_programs || ctx->ret)
		return 0;
	task = bpf_get_current_task_btf();
	state = state_of(task);
	if (!state || !may_see(task))
		return 0;
	serial = state->task;
	now = coarse_now(state, task);
	regs = current_regs(task);
	from = REG_ARG1(regs);
	to = REG_ARG2(regs);
	if (nr != NR_rename) {
		from_fd = from;
		from = to;
		to_fd = REG_ARG3(regs);
		to = REG_ARG4(regs);
	}
	if (nr == NR_renameat2 && REG_ARG5(regs) & RENAME_EXCHANGE)
		bits |= PT_MOVED_EXCHANGED;
	if (is_relative(from))
		bits |= PT_MOVED_FROM_IS_RELATIVE;
	if (is_relative(to))
		bits |= PT_MOVED_PATH_IS_RELATIVE;
	__sync_fetch_and_add(&names_changed, 1);
	hold_up(&lookups);
	scratch = take_scratch(&slot, PT_MOVED);
	if (!scratch)
		return 0;
	from_len = append_given(slot, sizeof(struct pt_moved), from_fd, from,
				bits & PT_MOVED_FROM_IS_RELATIVE);
	len = 0;
	if (from_len && from_len <= MOVED_PATH_MAX)
		len = append_given(slot, sizeof(struct pt_moved) + from_len, to_fd, to,
				   bits & PT_MOVED_PATH_IS_RELATIVE);
	output_moved(slot, (__u64)serial << 32 | bits, now, from_len, len);
	give_scratch(scratch);
	return 0;
}

/* Attached to syscalls/sys_exit_X of the calls that remove a name of a file. */
SEC("tracepoint/syscalls/sys_exit")
int on_removed(struct sys_exit_ctx *ctx)
{
	__u64 given, now;
	__s32 nr = ctx->nr;
	struct task_struct *task;
	struct task_state *state;
	struct scratch *scratch;
	__u32 serial, slot, len, bits = PT_MOVED_REMOVED;
	struct pt_regs *regs;
	__s32 dirfd = AT_FDCWD;

	if (empty_programs || ctx->ret)
		return 0;
	task = bpf_get_current_task_btf();
	state = state_of(task);
	if (!state || !may_see(task))
		return 0;
	serial = state->task;
	now = coarse_now(state, task);
	regs = current_regs(task);
	given = REG_ARG1(regs);
	if (nr != NR_unlink) {
		if (REG_ARG3(regs) & AT_REMOVEDIR)
			return 0;
		dirfd = given;
		given = REG_ARG2(regs);
	}
	if (is_relative(given))
		bits |= PT_MOVED_FROM_IS_RELATIVE;
	__sync_fetch_and_add(&names_changed, 1);
	hold_up(&lookups);
	scratch = take_scratch(&slot, PT_MOVED);
	if (!scratch)
		return 0;
	len = append_given(slot, sizeof(struct pt_moved), dirfd, given,
			   bits & PT_MOVED_FROM_IS_RELATIVE);
	output_moved(slot, (__u64)serial << 32 | bits, now, len, 0);
	give_scratch(scratch);
	return 0;
}

#endif
