/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Successful opens, if they are wanted: the file that was opened, once in full and then by number.
 *
 * The path is that of the file, not the one given to open(2): so a relative path needs no working
 * directory, and all names of a file by symbolic links are one. A repetition is recognised by the
 * file's identity, without reading any path: inode, device, generation, and the hash of its name,
 * which the kernel computes with the parent directory as salt. A file whose directory is renamed
 * keeps the path at its first open: readers take the rename from PT_MOVED.
 */
#ifndef PROCTRACE_OPENED_BPF_H
#define PROCTRACE_OPENED_BPF_H

const volatile __u32 record_opens = 0;

/* The file of a descriptor of the current task; NULL if it has none. Behind the table there may be that of another task. */
static __always_inline struct file *file_of(struct task_struct *task, __u32 fd)
{
	struct fdtable *table = BPF_CORE_READ(task, files, fdt);
	struct file **files, *file = NULL;

	if (!table || fd >= BPF_CORE_READ(table, max_fds))
		return NULL;
	files = BPF_CORE_READ(table, fd);
	bpf_probe_read_kernel(&file, sizeof(file), files + fd);
	return file;
}

static __always_inline __u64 hash_file(struct file *file, __u64 call_and_flags, __u64 seed)
{
	struct inode *inode = BPF_CORE_READ(file, f_inode);
	__u64 device = BPF_CORE_READ(inode, i_sb, s_dev);
	__u64 hash = mix(seed, call_and_flags);

	hash = mix(hash, BPF_CORE_READ(inode, i_ino));
	hash = mix(hash, device << 32 | BPF_CORE_READ(inode, i_generation));
	return mix(hash, BPF_CORE_READ(file, f_path.dentry, d_name.hash_len));
}

/* Writes a record with the path of the file; call_and_flags is call << 32 | flags. */
static __always_inline void write_opened_named(struct scratch *scratch, __u32 slot, __u32 serial,
					       __u64 now, __u64 call_and_flags, struct file *file,
					       __u32 fd, struct task_struct *task)
{
	struct pt_named *r = (void *)scratch->record;
	struct named_lookup *named = NULL;
	struct fs_struct *fs = BPF_CORE_READ(task, fs);
	__u64 hash = scratch->hash, old = OWNED;
	__u32 at = scratch->done, len = 0;
	bool cut = false;

	if (file)
		len = append_path(&file->f_path, &fs->root, scratch, slot, sizeof(*r), &cut);
	/* If another thread has closed it meanwhile, its memory may have become a file that somebody else has opened
	 * (SLAB_TYPESAFE_BY_RCU). */
	if (file && file_of(task, fd) != file) {
		file = NULL;
		len = 0;
	}
	if (len > PT_PATH_MAX)
		return;
	*word_at(&scratch->record[sizeof(*r) + len]) = 0;
	set_head(&r->head, PT_OPENED_NAMED, ROUND_UP_8(sizeof(*r) + len), serial, now);
	r->call = call_and_flags >> 32;
	r->error = 0;
	r->dirfd = AT_FDCWD;
	r->flags = call_and_flags;
	r->path_bytes = len;
	r->bits = (cut ? PT_MISS_PATH_CUT : 0) | (file ? 0 : PT_MISS_PATH_FAULT);
	r->number = 0;
	r->slot = 0;
	if (len <= PT_NAMED_PATH_MAX && !r->bits) {
		named = place(at);
		old = named ? own(named) : OWNED;
		if (old != OWNED) {
			r->number = __sync_fetch_and_add(&lookups_numbered, 1) + 1;
			r->slot = at;
		}
	}
	if (bpf_ringbuf_output(&lookups, r, ROUND_UP_8(sizeof(*r) + len), wake_flags(&lookups))) {
		count_loss(PT_OPENED_NAMED, PT_LOSS_RING_FULL);
		if (named && old != OWNED)
			named->hash = old;
		return;
	}
	if (named && old != OWNED) {
		scratch->last_number = r->number;
		let_go(named, old, hash, r->number);
	}
}

/* Records an open by the current task. A function of its own, so that the verifier checks it once
 * and apart from failed look-ups. */
STEP int write_opened(__u32 slot, __u32 serial, __u64 now, __u64 call_and_flags, __u32 fd)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct scratch *scratch = scratch_at(slot);
	struct named_lookup *named;
	struct file *file;
	__u32 number, at;

	if (!scratch)
		return 0;
	/* NULL if another thread has closed it already */
	file = file_of(task, fd);
	if (file) {
		scratch->hash = hash_file(file, call_and_flags, seed_for(scratch));
		number = find_number(scratch, scratch->hash, &at, &named);
		if (number) {
			write_again(PT_OPENED_AGAIN, serial, number, now,
				    seldom_wake_flags(&lookups, scratch->total));
			return 0;
		}
		scratch->done = at;
	}
	write_opened_named(scratch, slot, serial, now, call_and_flags, file, fd, task);
	return 0;
}

#endif
