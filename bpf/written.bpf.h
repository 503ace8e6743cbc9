/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Sizes of files that were written, if opens are recorded: each time a descriptor is closed through which the file could be
 * written.
 *
 * By tracepoints, where a task is about to close it: a program in a function that all ways to close lead to
 * (locks_remove_posix()) would be skipped on fully preemptible kernels while another task is preempted in it. What is not
 * seen: close_range(2), an io_uring that closes, 32-bit programs, descriptors that an exec closes, and those from the 64th on
 * that a process leaves open.
 */
#ifndef PROCTRACE_WRITTEN_BPF_H
#define PROCTRACE_WRITTEN_BPF_H

#define FMODE_WRITE 2
#define S_IFMT 0170000
#define S_IFREG 0100000

/* Descriptors that are looked at when a process ends. */
#define LEFT_OPEN_MAX 64
/* Two nested loops of this many: see STEP. */
#define LEFT_OPEN_STEPS 8

/* The last size that was recorded of each file, by its identity. Processes that inherit a log close it at each of their
 * ends; of these, one record is made. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, __u64);
	__type(value, __u64);
} sizes SEC(".maps");

/* Stands for a size of an open file. Since a rename or a removal, what has the identity of a file may be another one; and who
 * has opened it again has written it, also if its size is the same. */
static __always_inline __u64 size_mark(struct file *file, __u64 size)
{
	return mix(mix(size, names_changed), size ? (__u64)file : 0);
}

static __always_inline bool has_name(struct file *file)
{
	return !is_gone(BPF_CORE_READ(file, f_path.dentry), BPF_CORE_READ(file, f_path.mnt));
}

/* Records the size of the file of a descriptor of the current task, if it could be written through that. A function of its
 * own, so that the verifier checks it once. */
STEP int write_size(__u32 fd)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct file *file = file_of(task, fd);
	__u64 end, now, size, key, mark, *known;
	struct task_state *state;
	struct scratch *scratch;
	struct pt_written *r;
	struct fs_struct *fs;
	struct inode *inode;
	__u32 slot, len;
	bool cut = false;

	/* most are read */
	if (!file || !(BPF_CORE_READ(file, f_mode) & FMODE_WRITE))
		return 0;
	inode = BPF_CORE_READ(file, f_inode);
	if ((BPF_CORE_READ(inode, i_mode) & S_IFMT) != S_IFREG)
		return 0;
	hold_up(&lookups);
	size = BPF_CORE_READ(inode, i_size);
	if (!has_name(file))
		return 0;
	key = hash_file(file, 0, 0);
	mark = size_mark(file, size);
	known = bpf_map_lookup_elem(&sizes, &key);
	/* An empty file is one that a shell gives to a command before it closes the first descriptor, or has just been emptied. */
	if (known ? *known == mark : !size)
		return 0;
	fs = BPF_CORE_READ(task, fs);
	state = state_of(task);
	if (!fs || !state)
		return 0;
	now = coarse_now(state, task);
	scratch = take_scratch(&slot, PT_WRITTEN);
	if (!scratch)
		return 0;
	len = append_path(&file->f_path, &fs->root, scratch, slot, sizeof(*r), &cut);
	/* as in write_opened_named(): another thread may have closed it meanwhile; or somebody has removed it */
	if (len > PT_PATH_MAX || file_of(task, fd) != file || !has_name(file)) {
		give_scratch(scratch);
		return 0;
	}
	end = sizeof(*r) + len;
	/* as in output_moved() */
	asm volatile("" : "+r"(end));
	end &= MOVED_MASK;
	*word_at(&scratch->record[end]) = 0;
	end = ROUND_UP_8(end);
	r = (void *)scratch->record;
	set_head(&r->head, PT_WRITTEN, end, state->task, now);
	r->size_bytes = size;
	r->path_bytes = len;
	r->bits = cut ? PT_WRITTEN_PATH_CUT : 0;
	if (output(&lookups, PT_WRITTEN, r, end))
		bpf_map_update_elem(&sizes, &key, &mark, BPF_ANY);
	give_scratch(scratch);
	return 0;
}

/* Attached to syscalls/sys_enter_X of the calls that close a descriptor: close(fd), dup2(old, fd), dup3(old, fd, flags). */
SEC("tracepoint/syscalls/sys_enter")
int on_closing(struct sys_enter_ctx *ctx)
{
	struct task_struct *task;
	struct pt_regs *regs;

	if (empty_programs)
		return 0;
	task = bpf_get_current_task_btf();
	if (!state_of(task) || !may_see(task))
		return 0;
	/* not by `ctx`: a program that reads a second argument there is refused for close(2), which has one */
	regs = current_regs(task);
	write_size(ctx->nr == NR_close ? REG_ARG1(regs) : REG_ARG2(regs));
	return 0;
}

STEP int write_left(__u32 begin, __u64 open)
{
	int i;

	for (i = 0; i < LEFT_OPEN_STEPS; i++)
		if (open >> (begin + i) & 1)
			write_size(begin + i);
	return STEP_ON;
}

/* At the end of a process, whose descriptors are still open (exit_files() comes later). Several threads that end at once may
 * all find that they are the last. */
SEC("tp_btf/sched_process_exit")
int on_end_of_writer(__u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0];
	struct task_state *state;
	__u64 open = 0, *bitmap;
	int i;

	if (empty_programs || task->signal->live.counter)
		return 0;
	state = state_of(task);
	if (!state || !may_see_exiting(task, task->mm, state))
		return 0;
	bitmap = (void *)BPF_CORE_READ(task, files, fdt, open_fds);
	bpf_probe_read_kernel(&open, sizeof(open), bitmap);
	for (i = 0; i < LEFT_OPEN_MAX / LEFT_OPEN_STEPS && open; i++)
		write_left(i * LEFT_OPEN_STEPS, open);
	return 0;
}

#endif
