/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Renames of files, if opens are recorded: many programs write a file beside its name and then rename it.
 *
 * There are two hooks for this:
 *   fentry, fexit/vfs_rename           the kernel's own paths; needs kernel trampolines
 *   tracepoint/syscalls/sys_exit_X     the paths as given to the call, behind that of the directory they are relative to
 *
 * vfs_rename() is told directory entries, but not the mount through which they were reached, without which they have no
 * path. security_path_rename() is told the mount, but some kernels are built without it, and it does not know the result.
 * So opens note the mount by which each directory was reached; if no file of the directory has been opened yet, that of
 * the working directory is tried. Both are only guesses, and are used if they lead to the entry.
 *
 * The entry that was renamed gets its new name and directory in the call, so its old name is kept meanwhile.
 */
#ifndef PROCTRACE_MOVED_BPF_H
#define PROCTRACE_MOVED_BPF_H

#define RENAME_EXCHANGE 2
#define S_IFMT 0170000
#define S_IFDIR 0040000

#define MOUNTS_SEEN 1024

/* Longest path as given, behind that of a directory. */
#define MOVED_PATH_MAX (2 * PT_PATH_MAX + 8)
/* Of offsets in a record: two such paths are less. */
#define MOVED_MASK (8 * PT_PATH_MAX - 1)

#define FROM_HERE_BYTES (sizeof(PT_MOVED_FROM_HERE) - 1)

/* The file of a descriptor of the current task. */
static __always_inline struct file *file_of(struct task_struct *task, __u32 fd)
{
	struct file **table = BPF_CORE_READ(task, files, fdt, fd), *file = NULL;

	bpf_probe_read_kernel(&file, sizeof(file), table + fd);
	return file;
}

/* Addresses of mounts, by the address of a directory. Either may be freed by now: see is_mount_of(). */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MOUNTS_SEEN);
	__type(key, __u32);
	__type(value, __u64);
} mounts_seen SEC(".maps");

static __always_inline __u64 *mount_seen(struct dentry *directory)
{
	__u32 at = mix(0, (__u64)directory) >> 32 & (MOUNTS_SEEN - 1);

	return bpf_map_lookup_elem(&mounts_seen, &at);
}

/* A file was opened by its path. */
static __always_inline void note_mount(struct file *file)
{
	__u64 *seen = mount_seen(BPF_CORE_READ(file, f_path.dentry, d_parent));

	if (seen)
		*seen = (__u64)BPF_CORE_READ(file, f_path.mnt);
}

/* True if it is a mount of the directory's file system where the task is: one that was unmounted has no namespace. */
static __always_inline bool is_mount_of(struct vfsmount *mnt, struct dentry *directory,
					struct task_struct *task)
{
	return mnt && BPF_CORE_READ(mnt, mnt_sb) == BPF_CORE_READ(directory, d_sb) &&
	       BPF_CORE_READ(mount_of(mnt), mnt_ns) == BPF_CORE_READ(task, nsproxy, mnt_ns);
}

/* A rename in progress. */
struct moving {
	__u64 data;		/* address of what vfs_rename() was told, on the stack of the task; 0: none */
	struct dentry *directory;
	struct vfsmount *mnt;	/* NULL: not known */
	__u32 name_bytes;	/* with its NUL */
	__u8 name[NAME_MAX + 1];
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct moving);
} moves SEC(".maps");

SEC("fentry")
int on_move(__u64 *ctx)
{
	struct renamedata *data = (void *)ctx[0];
	struct task_struct *task;
	struct dentry *entry, *directory;
	struct vfsmount *mnt;
	struct moving *m;
	__u64 *seen;

	if (empty_programs)
		return 0;
	task = bpf_get_current_task_btf();
	if (!state_of(task))
		return 0;
	m = bpf_task_storage_get(&moves, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!m) {
		count_loss(PT_MOVED, PT_LOSS_STORAGE);
		return 0;
	}
	/* A file system on top of another one passes the call on to it, further down the stack; the task knows the upper
	 * one. What is left of a call whose end was skipped is in the way until one begins where that did, or above. */
	if (m->data && (__u64)data < m->data)
		return 0;
	entry = BPF_CORE_READ(data, old_dentry);
	directory = BPF_CORE_READ(entry, d_parent);
	seen = mount_seen(directory);
	mnt = seen ? (void *)*seen : NULL;
	if (!is_mount_of(mnt, directory, task))
		mnt = BPF_CORE_READ(task, fs, pwd.mnt);
	if (!is_mount_of(mnt, directory, task))
		mnt = NULL;
	m->data = (__u64)data;
	m->directory = directory;
	m->mnt = mnt;
	m->name_bytes = bpf_probe_read_kernel_str(m->name, sizeof(m->name),
						  BPF_CORE_READ(entry, d_name.name));
	return 0;
}

/* Appends to the record the path at which a walk has begun; returns its length, 0 if the walk did not lead to the root. */
static __always_inline __u32 append_walk(struct scratch *w, __u32 slot, __u32 to)
{
	struct vfsmount *mnt;

	if (walk_to_root(slot) != STEP_DONE)
		return 0;
	mnt = w->mnt;
	if (w->dentry != BPF_CORE_READ(mnt, mnt_root) &&
	    (w->dentry != w->root_dentry || w->mnt != w->root_mnt))
		return 0;
	w->to = to;
	return copy_walk(slot);
}

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
	if (!from || !len || from > MOVED_PATH_MAX || len > MOVED_PATH_MAX) {
		from = len = 0;
		bits |= PT_MOVED_UNKNOWN;
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

/* Records what the current task has renamed. */
STEP int write_moved(__u32 slot, __u32 serial, __u64 now)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct fs_struct *fs = BPF_CORE_READ(task, fs);
	struct scratch *scratch = scratch_at(slot);
	struct renamedata *told;
	struct dentry *entry;
	__u32 from = 0, len = 0, name_bytes, bits = 0;
	struct moving *m;

	m = bpf_task_storage_get(&moves, task, NULL, 0);
	if (!m || !scratch)
		return 0;
	/* not passed on: a pointer is no argument */
	told = (void *)m->data;
	m->data = 0;
	entry = BPF_CORE_READ(told, old_dentry);
	name_bytes = (m->name_bytes - 1) & NAME_MAX;
	if (m->mnt && name_bytes) {
		start_walk(m->directory, m->mnt, &fs->root, scratch);
		scratch->walk_at = PT_PATH_MAX - 1 - name_bytes;
		scratch->walk[scratch->walk_at & (PT_PATH_MAX - 1)] = '/';
		bpf_probe_read_kernel(&scratch->walk[(PT_PATH_MAX - name_bytes) & (PT_PATH_MAX - 1)],
				      name_bytes, m->name);
		from = append_walk(scratch, slot, sizeof(struct pt_moved));
		start_walk(entry, m->mnt, &fs->root, scratch);
	}
	if (from > 0 && from <= PT_PATH_MAX)
		len = append_walk(scratch, slot, sizeof(struct pt_moved) + from);
	if ((BPF_CORE_READ(entry, d_inode, i_mode) & S_IFMT) == S_IFDIR)
		bits |= PT_MOVED_DIRECTORY;
	if (BPF_CORE_READ(told, flags) & RENAME_EXCHANGE)
		bits |= PT_MOVED_EXCHANGED;
	output_moved(slot, (__u64)serial << 32 | bits, now, from, len);
	return 0;
}

SEC("fexit")
int on_moved(__u64 *ctx)
{
	__u64 data = ctx[0];
	struct task_struct *task;
	struct task_state *state;
	struct scratch *scratch;
	__u32 serial, slot;
	struct moving *m;
	int ret = ctx[1];
	__u64 now;

	if (empty_programs)
		return 0;
	task = bpf_get_current_task_btf();
	m = bpf_task_storage_get(&moves, task, NULL, 0);
	if (!m || m->data != data)
		return 0;
	state = state_of(task);
	if (ret || !state || !may_see(task))
		goto out;
	serial = state->task;
	now = coarse_now(state, task);
	/* without hold_up(): the task has locked the directories */
	scratch = take_scratch(&slot, PT_MOVED);
	if (scratch) {
		write_moved(slot, serial, now);
		give_scratch(scratch);
		return 0;
	}
out:
	m->data = 0;
	return 0;
}

/* Copies a string of the current task to the record at `to`, behind PT_MOVED_FROM_HERE if `is_relative` is 1; returns the
 * length of both, 0 if it is not known. */
STEP __u32 copy_given(__u32 slot, __u32 to, __u32 is_relative, __u64 given)
{
	struct scratch *scratch = scratch_at(slot);
	__u64 at = to & MOVED_MASK;
	long got;

	if (!scratch)
		return 0;
	is_relative &= 1;
	__builtin_memcpy(&scratch->record[at], PT_MOVED_FROM_HERE, FROM_HERE_BYTES);
	at += FROM_HERE_BYTES * is_relative;
	got = bpf_probe_read_user_str(&scratch->record[at], PT_PATH_MAX, (void *)given);
	return got > 1 && got < PT_PATH_MAX ?
		       got - 1 + FROM_HERE_BYTES * is_relative : 0;
}

/* Appends to the record, at `to`, a path as given to a system call, behind that of its directory if it is relative; returns
 * its length, 0 if it is not known. */
STEP __u32 append_given(__u32 slot, __u32 to, __s32 dirfd, __u64 given)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct fs_struct *fs = BPF_CORE_READ(task, fs);
	struct scratch *scratch = scratch_at(slot);
	const struct path *directory = &fs->pwd;
	struct file *file;
	bool cut = false;
	__u32 len = 0, rest;
	char first = 0;

	if (!scratch || bpf_probe_read_user(&first, 1, (void *)given))
		return 0;
	if (first == '/')
		return copy_given(slot, to, 0, given);
	if (dirfd != AT_FDCWD) {
		file = file_of(task, dirfd);
		if (!file)
			return 0;
		directory = &file->f_path;
	}
	len = append_path(directory, &fs->root, scratch, slot, to, &cut);
	if (cut || !len || len > PT_PATH_MAX)
		return 0;
	rest = copy_given(slot, to + len, 1, given);
	return rest ? len + rest : 0;
}

/* Attached to syscalls/sys_exit_X of the calls that rename. */
SEC("tracepoint/syscalls/sys_exit")
int on_moved_as_given(struct sys_exit_ctx *ctx)
{
	__s32 from_fd = AT_FDCWD, to_fd = AT_FDCWD;
	__u64 from, to, now, nr = ctx->nr;
	struct task_struct *task;
	struct task_state *state;
	struct scratch *scratch;
	__u32 serial, slot, from_len, len, bits = PT_MOVED_AS_GIVEN;
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
	hold_up(&lookups);
	scratch = take_scratch(&slot, PT_MOVED);
	if (!scratch)
		return 0;
	from_len = append_given(slot, sizeof(struct pt_moved), from_fd, from);
	len = 0;
	if (from_len && from_len <= MOVED_PATH_MAX)
		len = append_given(slot, sizeof(struct pt_moved) + from_len, to_fd, to);
	output_moved(slot, (__u64)serial << 32 | bits, now, from_len, len);
	give_scratch(scratch);
	return 0;
}

#endif
