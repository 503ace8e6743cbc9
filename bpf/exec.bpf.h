/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A successful exec: the program, its arguments, working directory and search variables.
 *
 * Everything is read at sched_process_exec. The kernel has just written argv and environment to the
 * new stack, so those pages are present and one read of arg_start..arg_end returns all of them;
 * reading at syscall entry instead misses every path that is not yet paged in.
 */
#ifndef PROCTRACE_EXEC_BPF_H
#define PROCTRACE_EXEC_BPF_H

/* ---- the environment ----
 *
 * Only the wanted variables may leave the kernel: an environment contains secrets. Scanning it
 * string by string costs a helper call per variable, and nearly every exec of a job has an
 * environment that was seen before. So its bytes are hashed, and scanned only if the hash is new.
 */

#define HASH_CHUNK 1024
/* at each of two levels */
#define HASH_CHUNKS 16
#define ENV_BYTES_MAX (HASH_CHUNK * HASH_CHUNKS * HASH_CHUNKS)
/* at each of three levels */
#define ENV_STRINGS 16

/* Hashes up to HASH_CHUNK bytes at user_at. */
STEP int hash_chunk(__u32 slot)
{
	struct scratch *w = scratch_at(slot);
	__u64 *words, hash, left;
	__u32 len;
	int i;

	if (!w)
		return STEP_FAILED;
	left = w->user_end - w->user_at;
	len = left > HASH_CHUNK ? HASH_CHUNK : left;
	if (!len)
		return STEP_DONE;
	/* the unused bytes of the last word are zero */
	*word_at(&w->record[(len - 1) & (HASH_CHUNK - 8)]) = 0;
	if (bpf_probe_read_user(w->record, len, (void *)w->user_at))
		return STEP_FAILED;
	words = (__u64 *)w->record;
	hash = w->hash;
	for (i = 0; i < HASH_CHUNK / 8 && i * 8 < len; i++)
		hash = mix(hash, words[i]);
	w->hash = hash;
	w->user_at += len;
	return w->user_at >= w->user_end ? STEP_DONE : STEP_ON;
}

STEP int hash_chunks(__u32 slot)
{
	return REPEAT(HASH_CHUNKS, hash_chunk(slot));
}

/* True if the string at `at` in the record sets the kth wanted variable. */
STEP int env_matches(__u32 slot, __u32 at, __u32 k)
{
	const volatile struct env_name *n;
	struct scratch *w = scratch_at(slot);
	const __u64 *word;

	if (!w || at > PT_ENV_MAX || k >= ENV_NAMES_MAX)
		return false;
	word = (__u64 *)&w->record[at];
	n = &env_names[k];
	return !((n->want[0] ^ (word[0] & n->mask[0])) | (n->want[1] ^ (word[1] & n->mask[1])) |
		 (n->want[2] ^ (word[2] & n->mask[2])) | (n->want[3] ^ (word[3] & n->mask[3])));
}

STEP int env_wanted(__u32 slot, __u32 at)
{
	__u32 k;

	for (k = 0; k < ENV_NAMES_MAX; k++) {
		if (k >= env_names_len)
			break;
		if (env_matches(slot, at, k))
			return true;
	}
	return false;
}

/* Reads one string at user_at and keeps it in the record if it is wanted. */
STEP int scan_string(__u32 slot)
{
	struct scratch *w = scratch_at(slot);
	__u32 to;
	long len;

	if (!w)
		return STEP_FAILED;
	if (w->user_at >= w->user_end)
		return STEP_DONE;
	to = w->to;
	if (to > PT_ENV_MAX)
		return STEP_FAILED;
	len = bpf_probe_read_user_str(&w->record[to], PT_ENV_VALUE_MAX, (void *)w->user_at);
	if (len <= 0)
		return STEP_FAILED;
	if (env_wanted(slot, to))
		w->to = to + len;
	w->user_at += len;
	/* The rest of a longer string is scanned as if it were another string: a value that
	 * contains a wanted "NAME=" exactly PT_ENV_VALUE_MAX - 1 bytes in would be mistaken for
	 * that variable. */
	if (len == PT_ENV_VALUE_MAX)
		w->user_at -= 1;
	return STEP_ON;
}

STEP int scan_strings(__u32 slot)
{
	return REPEAT(ENV_STRINGS, scan_string(slot));
}

STEP int scan_more_strings(__u32 slot)
{
	return REPEAT(ENV_STRINGS, scan_strings(slot));
}

/* Records the wanted strings between start and end; returns whether there was room. */
static __always_inline bool write_environment(struct scratch *w, __u32 slot, __u32 task, __u64 env_id,
					      __u64 start, __u64 end, __u32 *bits, __u64 now)
{
	struct pt_env *r = (void *)w->record;
	__u32 to;

	w->user_at = start;
	w->user_end = end;
	w->to = sizeof(*r);
	if (REPEAT(ENV_STRINGS, scan_more_strings(slot)) != STEP_DONE)
		*bits |= PT_EXEC_ENV_CUT;
	to = w->to;
	if (to < sizeof(*r))
		return false;
	/* otherwise clang merges the two comparisons into one of a shifted copy, and verifiers
	 * before 6.13 do not apply the bounds of the copy to the value */
	barrier_var(to);
	if (to > PT_RECORD_MAX - 8)
		return false;
	*word_at(&w->record[to]) = 0;
	set_head(&r->head, PT_ENV, ROUND_UP_8(to), task, now);
	r->env_id = env_id;
	r->bytes = to - sizeof(*r);
	r->bits = *bits & PT_EXEC_ENV_CUT;
	return output(&lifecycle, PT_ENV, r, ROUND_UP_8(to));
}

/* Returns the id of the search variables in the trace. */
static __always_inline __u64 note_environment(struct mm_struct *mm, struct scratch *w, __u32 slot,
					      __u32 task, __u32 *bits, __u64 now)
{
	__u64 start = mm->env_start, end = mm->env_end, env_id;
	__u8 one = 1;

	if (!env_names_len || end <= start)
		return 0;
	if (end - start > ENV_BYTES_MAX) {
		end = start + ENV_BYTES_MAX;
		*bits |= PT_EXEC_ENV_CUT;
	}
	w->user_at = start;
	w->user_end = end;
	/* With a random number before and after, the hash tells nothing of the variables that are not wanted. */
	w->hash = mix(seed_for(w), end - start);
	if (REPEAT(HASH_CHUNKS, hash_chunks(slot)) == STEP_FAILED) {
		*bits |= PT_EXEC_ENV_CUT;
		return 0;
	}
	env_id = mix(w->hash, seed_for(w)) | 1; /* never 0 */
	if (bpf_map_lookup_elem(&environments, &env_id))
		return env_id;
	/* In this order: whoever finds it in the map refers to a record that is already in the ring. Two
	 * CPUs may both write it, which readers tolerate. One that did not fit is written at the next exec. */
	if (write_environment(w, slot, task, env_id, start, end, bits, now))
		bpf_map_update_elem(&environments, &env_id, &one, BPF_ANY);
	return env_id;
}

/* ---- argv beyond the first record ---- */

/* Writes up to PT_ARGV_CHUNK argv bytes, starting at `done`. */
STEP int write_args(__u32 slot)
{
	struct scratch *w = scratch_at(slot);
	struct pt_exec_args *r;
	__u32 len, size;

	if (!w)
		return STEP_FAILED;
	r = (void *)w->record;
	len = w->total - w->done;
	if (len > PT_ARGV_CHUNK)
		len = PT_ARGV_CHUNK;
	if (bpf_probe_read_user(w->record + sizeof(*r), len, (void *)(w->user_at + w->done)))
		return STEP_FAILED; /* readers detect that argv is shorter than announced */
	*word_at(&w->record[sizeof(*r) + len]) = 0;
	size = ROUND_UP_8(sizeof(*r) + len);
	set_head(&r->head, PT_EXEC_ARGS, size, w->task, w->now);
	r->offset = w->done;
	r->bytes = len;
	output(&lifecycle, PT_EXEC_ARGS, r, size);
	w->done += len;
	return w->done >= w->total ? STEP_DONE : STEP_ON;
}

/* ---- where the paths lead ---- */

/* Identifies a mount namespace and a root; never 0. */
static __always_inline __u64 place_of(struct task_struct *task)
{
	__u64 place = BPF_CORE_READ(task, nsproxy, mnt_ns, ns.inum);

	place = mix(place, (__u64)BPF_CORE_READ(task, fs, root.dentry));
	return mix(place, (__u64)BPF_CORE_READ(task, fs, root.mnt)) | 1;
}

/* Records the current task's mount namespace and root; returns whether there was room. */
STEP int write_place(__u32 slot, __u32 serial, __u32 process, __u64 now)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct scratch *w = scratch_at(slot);
	/* no path is that of the root of all mounts, so the walk ends there */
	struct path none = {};
	struct pt_place *r;
	struct fs_struct *fs;
	bool cut = false;
	__u32 len;

	if (!w)
		return 0;
	r = (void *)w->record;
	fs = BPF_CORE_READ(task, fs);
	len = append_path(&fs->root, &none, w, slot, sizeof(*r), &cut);
	if (len > PT_PATH_MAX)
		return 0;
	*word_at(&w->record[sizeof(*r) + len]) = 0;
	set_head(&r->head, PT_PLACE, ROUND_UP_8(sizeof(*r) + len), serial, now);
	r->process = process;
	r->tgid = tgid_of(task);
	r->mount_namespace = BPF_CORE_READ(task, nsproxy, mnt_ns, ns.inum);
	r->path_bytes = len;
	r->bits = cut ? PT_PLACE_CUT : 0;
	return output(&lifecycle, PT_PLACE, r, ROUND_UP_8(sizeof(*r) + len));
}

/* ---- the record ---- */

static __always_inline __u32 append_kernel_string(struct scratch *scratch, __u32 to, const char *s)
{
	long len;

	if (to > PT_RECORD_MAX - PT_PATH_MAX)
		return 0;
	len = bpf_probe_read_kernel_str(&scratch->record[to], PT_PATH_MAX, s);
	return len > 0 ? len - 1 : 0;
}

/* Values common to all exec records. */
struct exec_told {
	__u32 serial;
	__u32 process;
	__u64 now;
	__u64 maxrss_before_pages;
	__u32 old_tid;
};

static __always_inline void write_exec(struct scratch *scratch, __u32 slot,
				       struct task_struct *task, struct mm_struct *mm,
				       struct linux_binprm *bprm, const struct exec_told *told)
{
	__u32 to = sizeof(struct pt_exec), argv_bytes, argv_here, bits = 0;
	const struct path *root;
	struct fs_struct *fs;
	__u64 arg_start, env_id;
	struct pt_exec *r;
	bool cut = false;

	env_id = note_environment(mm, scratch, slot, told->serial, &bits, told->now);

	r = (void *)scratch->record;
	r->path_bytes = append_kernel_string(scratch, to, bprm->filename);
	to += r->path_bytes;
	r->interp_bytes = 0;
	if (bprm->interp != bprm->filename) {
		r->interp_bytes = append_kernel_string(scratch, to, bprm->interp);
		to += r->interp_bytes;
	}
	fs = BPF_CORE_READ(task, fs);
	root = &fs->root;
	r->exe_bytes = append_path(&BPF_CORE_READ(mm, exe_file)->f_path, root, scratch, slot, to,
				   &cut);
	to += r->exe_bytes;
	r->cwd_bytes = append_path(&fs->pwd, root, scratch, slot, to, &cut);
	to += r->cwd_bytes;
	if (cut)
		bits |= PT_EXEC_PATH_CUT;
	if (is_compat(mm))
		bits |= PT_EXEC_COMPAT;
	if (BPF_CORE_READ_BITFIELD_PROBED(bprm, secureexec))
		bits |= PT_EXEC_SECURE;

	arg_start = mm->arg_start;
	argv_bytes = mm->arg_end - arg_start;
	r->argv_bytes = argv_bytes;
	if (argv_bytes > PT_ARGV_MAX) {
		argv_bytes = PT_ARGV_MAX;
		bits |= PT_EXEC_ARGV_CAPPED;
	}
	argv_here = argv_bytes > PT_ARGV_FIRST ? PT_ARGV_FIRST : argv_bytes;
	if (to > PT_RECORD_MAX - PT_ARGV_FIRST)
		return; /* unreachable: four paths and the body are shorter */
	if (bpf_probe_read_user(&scratch->record[to], argv_here, (void *)arg_start)) {
		bits |= PT_EXEC_ARGV_FAULT;
		argv_here = 0;
		argv_bytes = 0;
	}
	r->argv_here = argv_here;
	to += argv_here;
	if (to > PT_RECORD_MAX - 8)
		return;
	*word_at(&scratch->record[to]) = 0;

	set_head(&r->head, PT_EXEC, ROUND_UP_8(to), told->serial, told->now);
	r->process = told->process;
	r->tgid = tgid_of(task);
	r->tid = tid_of(task);
	r->old_tid = told->old_tid;
	r->bits = bits;
	r->argc = bprm->argc;
	r->env_id = env_id;
	r->run_ns = task->se.sum_exec_runtime;
	r->utime_ns = task->utime;
	r->stime_ns = task->stime;
	r->maxrss_before_pages = told->maxrss_before_pages;
	copy_comm(r->comm, task);
	output(&lifecycle, PT_EXEC, r, ROUND_UP_8(to));

	if (argv_bytes > argv_here) {
		scratch->user_at = arg_start;
		scratch->done = argv_here;
		scratch->total = argv_bytes;
		scratch->task = told->serial;
		scratch->now = told->now;
		REPEAT(PT_ARGV_CHUNKS, write_args(slot));
	}
}

/* An exec of a program that the caller may not trace: only the event, and the CPU time before it.
 */
static __always_inline void write_withheld_exec(struct task_struct *task, struct mm_struct *mm,
						const struct exec_told *told)
{
	struct pt_exec *r = reserve(lifecycle, PT_EXEC, struct pt_exec);

	if (!r)
		return;
	__builtin_memset(r, 0, sizeof(*r));
	set_head(&r->head, PT_EXEC, sizeof(*r), told->serial, told->now);
	r->process = told->process;
	r->tgid = tgid_of(task);
	r->tid = tid_of(task);
	r->old_tid = told->old_tid;
	r->bits = PT_EXEC_WITHHELD | (is_compat(mm) ? PT_EXEC_COMPAT : 0);
	r->run_ns = task->se.sum_exec_runtime;
	r->utime_ns = task->utime;
	r->stime_ns = task->stime;
	r->maxrss_before_pages = told->maxrss_before_pages;
	submit(lifecycle, r);
}

SEC("tp_btf/sched_process_exec")
int on_exec(__u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0];
	struct linux_binprm *bprm = (void *)ctx[2];
	struct exec_told told = { .old_tid = ctx[1] };
	struct mm_struct *mm = task->mm;
	struct task_state *state;
	struct scratch *scratch;
	bool hidden, moved;
	__u32 slot, origin = 0;
	__u64 place;

	if (empty_programs)
		return 0;
	LOADED_HERE(mm);
	state = state_of(task);
	if (!state || !mm)
		return 0;
	/* that of a thread which replaces its leader is not visible any more in another namespace */
	if (pid_level && told.old_tid == task->pid)
		told.old_tid = tid_of(task);
	told.serial = state->task;
	told.process = state->process;
	told.now = bpf_ktime_get_boot_ns();
	told.maxrss_before_pages = BPF_CORE_READ(task, signal, maxrss);
	state->maxrss_before_pages = told.maxrss_before_pages;
	state->born_in = 0;
	place = place_of(task);
	moved = state->place != place;
	if (scope == SCOPE_CGROUPS)
		origin = state->origin;
	stamp(state, task, told.now);
	/* The task already has its new credentials. */
	hidden = !may_see(task);
	if (restricted)
		state->hidden = hidden;
	if (hidden) {
		write_withheld_exec(task, mm, &told);
		return 0;
	}
	hold_up(&lifecycle);
	scratch = take_scratch(&slot, PT_EXEC);
	if (!scratch)
		return 0;
	if (scope == SCOPE_CGROUPS)
		scratch->origin = origin;
	/* one that did not fit, and that of a hidden program, is written at the next exec there */
	if (moved && write_place(slot, told.serial, told.process, told.now)) {
		state = state_of(task);
		if (state)
			state->place = place;
	}
	write_exec(scratch, slot, task, mm, bprm, &told);
	give_scratch(scratch);
	return 0;
}

#endif
