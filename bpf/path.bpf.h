/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Resolves a struct path to the name that the traced task would see (below its own root).
 *
 * bpf_d_path() is allowed in only a few hooks, none of them used here, so names are assembled by
 * walking the dentries upwards and filling a buffer from its end.
 */
#ifndef PROCTRACE_PATH_BPF_H
#define PROCTRACE_PATH_BPF_H

/* Deeper paths lose their first components and are flagged. */
#define PATH_COMPONENTS_MAX 48
#define NAME_MAX 255

/* Text that the kernel appends to the name of a file that has none any more: d_path() in fs/d_path.c. */
#define GONE " (deleted)"
#define GONE_BYTES (sizeof(GONE) - 1)

/* True if the kernel appends it: for a file that was removed, and for one that never had a directory, as by
 * memfd_create(2), whose dentry is its own parent and not the root of its mount (simple_dname()). */
static __always_inline bool is_gone(struct dentry *dentry, struct vfsmount *mnt)
{
	if (BPF_CORE_READ(dentry, d_parent) == dentry)
		return dentry != BPF_CORE_READ(mnt, mnt_root) && BPF_CORE_READ(dentry, d_name.len);
	return !BPF_CORE_READ(dentry, d_hash.pprev);
}

static __always_inline struct mount *mount_of(struct vfsmount *mnt)
{
	return (void *)mnt - bpf_core_field_offset(struct mount, mnt);
}

static __always_inline __u16 *half_word_at(void *bytes)
{
	return bytes;
}

/* Moves up by one path component or one mount point. */
STEP int walk_up(__u32 slot)
{
	struct scratch *w = scratch_at(slot);
	struct dentry *dentry, *parent;
	const unsigned char *name;
	struct vfsmount *mnt;
	__u64 at, end;
	__u32 len;
	__u16 after;
	bool alone;
	long got;

	if (!w)
		return STEP_FAILED;
	dentry = w->dentry;
	mnt = w->mnt;
	if (dentry == w->root_dentry && mnt == w->root_mnt)
		return STEP_DONE;
	if (dentry == BPF_CORE_READ(mnt, mnt_root)) {
		struct mount *m = mount_of(mnt);
		struct mount *up = BPF_CORE_READ(m, mnt_parent);

		if (up == m || !up)
			return STEP_DONE;
		w->dentry = BPF_CORE_READ(m, mnt_mountpoint);
		w->mnt = (void *)up + bpf_core_field_offset(struct mount, mnt);
		return STEP_ON;
	}
	parent = BPF_CORE_READ(dentry, d_parent);
	at = w->walk_at;
	/* the root of a file system; or a file of no directory, which is_gone() has marked */
	alone = parent == dentry;
	if ((alone && at != PT_PATH_MAX - GONE_BYTES) || !parent)
		return STEP_DONE;
	len = BPF_CORE_READ(dentry, d_name.len) & NAME_MAX;
	if (at > PT_PATH_MAX || at < len + 1)
		return STEP_FAILED;
	name = BPF_CORE_READ(dentry, d_name.name);
	end = at;
	at -= len;
	/*
	 * A rename may change length and name between the two reads, so that the length cannot be trusted
	 * (prepend_name() in fs/d_path.c): what follows a short name in memory is the kernel's, or the
	 * name of another file. Names end in NUL, so the string must end just where the length says. Up to
	 * two bytes of what is behind it are overwritten: the end of the string, and a byte of a longer one.
	 */
	after = *half_word_at(&w->walk[end & (2 * PT_PATH_MAX - 1)]);
	got = bpf_probe_read_kernel_str(&w->walk[at & (PT_PATH_MAX - 1)], len + 2, name);
	*half_word_at(&w->walk[end & (2 * PT_PATH_MAX - 1)]) = after;
	if (got != len + 1)
		return STEP_FAILED;
	at -= 1;
	w->walk[at & (PT_PATH_MAX - 1)] = '/';
	w->walk_at = at;
	w->dentry = parent;
	return alone ? STEP_DONE : STEP_ON;
}

STEP int walk_to_root(__u32 slot)
{
	return REPEAT(PATH_COMPONENTS_MAX, walk_up(slot));
}

/* Leaves the name at walk[walk_at .. PT_PATH_MAX); sets *cut if its first components are missing.
 */
static __always_inline void walk_path(const struct path *path, const struct path *root,
				      struct scratch *w, __u32 slot, bool *cut)
{
	int step;

	w->dentry = BPF_CORE_READ(path, dentry);
	w->mnt = BPF_CORE_READ(path, mnt);
	w->root_dentry = BPF_CORE_READ(root, dentry);
	w->root_mnt = BPF_CORE_READ(root, mnt);
	w->walk_at = PT_PATH_MAX;
	if (is_gone(w->dentry, w->mnt)) {
		w->walk_at = PT_PATH_MAX - GONE_BYTES;
		__builtin_memcpy(&w->walk[PT_PATH_MAX - GONE_BYTES], GONE, GONE_BYTES);
	}
	step = walk_to_root(slot);
	if (step != STEP_DONE) {
		*cut = true;
	} else if (w->walk_at == PT_PATH_MAX) {
		w->walk_at = PT_PATH_MAX - 1;
		w->walk[PT_PATH_MAX - 1] = '/';
	}
}

/* Copies the name to the record at offset `to`; returns its length. A separate function, because
 * under on_exec's register pressure clang checks one copy of `to` and uses another, which verifiers
 * before 6.2 do not track through the stack. */
STEP int copy_walk(__u32 slot)
{
	struct scratch *w = scratch_at(slot);
	__u64 at;
	__u32 len, to;

	if (!w)
		return 0;
	at = w->walk_at;
	to = w->to;
	if (at > PT_PATH_MAX || to > PT_RECORD_MAX - PT_PATH_MAX)
		return 0;
	len = PT_PATH_MAX - at;
	bpf_probe_read_kernel(&w->record[to], len, &w->walk[at & (PT_PATH_MAX - 1)]);
	return len;
}

/* Appends the name to the record at offset `to`; returns its length. */
static __always_inline __u16 append_path(const struct path *path, const struct path *root,
					 struct scratch *scratch, __u32 slot, __u32 to,
					 bool *cut)
{
	walk_path(path, root, scratch, slot, cut);
	scratch->to = to;
	return copy_walk(slot);
}

#endif
