/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A successful exec: what runs now, with which arguments, where, under which search variables.
 *
 * Everything is read at sched_process_exec. The kernel has just written argv and environment to
 * the new stack, so those pages are present and one read of arg_start..arg_end gets them all;
 * reading at syscall entry instead misses every path that is not paged in yet.
 */
#ifndef PROCTRACE_EXEC_BPF_H
#define PROCTRACE_EXEC_BPF_H

/* ---- the environment ----
 *
 * Only the wanted variables may leave the kernel: an environment holds secrets. Scanning one
 * string by string costs a helper call per variable, and nearly every exec of a job has an
 * environment that was seen before. So its bytes are hashed, and scanned only when new. */

#define HASH_CHUNK 4096
#define HASH_CHUNKS_MAX 64
#define ENV_STRINGS_A_STEP 32
#define ENV_STEPS_MAX 128

/* Hashes up to HASH_CHUNK bytes at user_at. */
STEP int hash_chunk(void)
{
	struct scratch *w = get_scratch();
	__u64 *words, hash, left;
	__u32 len;
	int i;

	if (!w)
		return STEP_FAILED;
	left = w->user_end - w->user_at;
	len = left > HASH_CHUNK ? HASH_CHUNK : left;
	if (!len)
		return STEP_DONE;
	/* the tail of the last word counts as zero */
	*(__u64 *)&w->record[(len - 1) & (HASH_CHUNK - 8)] = 0;
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

static __always_inline bool env_wanted(const __u64 *word)
{
	__u32 k;

	for (k = 0; k < ENV_NAMES_MAX; k++) {
		const volatile struct env_name *n = &env_names[k];

		if (k >= env_names_len)
			break;
		if ((word[0] & n->mask[0]) == n->want[0] && (word[1] & n->mask[1]) == n->want[1] &&
		    (word[2] & n->mask[2]) == n->want[2] && (word[3] & n->mask[3]) == n->want[3])
			return true;
	}
	return false;
}

/* Looks at one string at user_at and keeps it in the record if it is wanted. */
STEP int scan_string(void)
{
	struct scratch *w = get_scratch();
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
	if (env_wanted((__u64 *)&w->record[to]))
		w->to = to + len;
	w->user_at += len;
	/* A longer string goes on behind what was read, as if it were another: a value that holds
	 * "NAME=" exactly PT_ENV_VALUE_MAX - 1 bytes in would be taken for one. */
	if (len == PT_ENV_VALUE_MAX)
		w->user_at -= 1;
	return STEP_ON;
}

STEP int scan_strings(void)
{
	int i, step = STEP_ON;

	for (i = 0; i < ENV_STRINGS_A_STEP && step == STEP_ON; i++)
		step = scan_string();
	return step;
}

/* Writes the wanted ones of the strings between start and end. */
static __always_inline void write_environment(struct scratch *w, __u32 task, __u64 env_id,
					      __u64 start, __u64 end, __u32 *bits, __u64 now)
{
	struct pt_env *r = (void *)w->record;
	int i, step = STEP_ON;
	__u32 to;

	w->user_at = start;
	w->user_end = end;
	w->to = sizeof(*r);
	for (i = 0; i < ENV_STEPS_MAX && step == STEP_ON; i++)
		step = scan_strings();
	if (step != STEP_DONE)
		*bits |= PT_EXEC_ENV_CUT;
	to = w->to;
	if (to < sizeof(*r))
		return;
	/* else clang makes one comparison of a shifted copy out of the two, and verifiers before
	 * 6.13 do not carry what they learn of the copy back to the value */
	barrier_var(to);
	if (to > PT_RECORD_MAX - 8)
		return;
	*(__u64 *)&w->record[to] = 0;
	set_head(&r->head, PT_ENV, ROUND_UP_8(to), task, now);
	r->env_id = env_id;
	r->bytes = to - sizeof(*r);
	r->bits = *bits & PT_EXEC_ENV_CUT;
	output(&lifecycle, PT_ENV, r, ROUND_UP_8(to));
}

/* Returns the id under which the search variables stand in the trace. */
static __always_inline __u64 note_environment(struct mm_struct *mm, struct scratch *w, __u32 task,
					      __u32 *bits, __u64 now)
{
	__u64 start = mm->env_start, end = mm->env_end, env_id;
	int i, step = STEP_ON;
	__u8 one = 1;

	if (!env_names_len || end <= start)
		return 0;
	if (end - start > HASH_CHUNK * HASH_CHUNKS_MAX) {
		end = start + HASH_CHUNK * HASH_CHUNKS_MAX;
		*bits |= PT_EXEC_ENV_CUT;
	}
	w->user_at = start;
	w->user_end = end;
	w->hash = end - start;
	for (i = 0; i < HASH_CHUNKS_MAX && step == STEP_ON; i++)
		step = hash_chunk();
	if (step == STEP_FAILED) {
		*bits |= PT_EXEC_ENV_CUT;
		return 0;
	}
	env_id = w->hash | 1; /* never 0 */
	if (bpf_map_lookup_elem(&environments, &env_id))
		return env_id;
	bpf_map_update_elem(&environments, &env_id, &one, BPF_ANY);
	write_environment(w, task, env_id, start, end, bits, now);
	return env_id;
}

/* ---- argv beyond the first record ---- */

/* Writes the argv bytes from `done` on, up to PT_ARGV_CHUNK of them. */
STEP int write_args(void)
{
	struct scratch *w = get_scratch();
	struct pt_exec_args *r;
	__u32 len, size;

	if (!w)
		return STEP_FAILED;
	r = (void *)w->record;
	len = w->total - w->done;
	if (len > PT_ARGV_CHUNK)
		len = PT_ARGV_CHUNK;
	if (bpf_probe_read_user(w->record + sizeof(*r), len, (void *)(w->user_at + w->done)))
		return STEP_FAILED; /* readers see that the argv is shorter than announced */
	*(__u64 *)&w->record[sizeof(*r) + len] = 0;
	size = ROUND_UP_8(sizeof(*r) + len);
	set_head(&r->head, PT_EXEC_ARGS, size, w->task, w->now);
	r->offset = w->done;
	r->bytes = len;
	output(&lifecycle, PT_EXEC_ARGS, r, size);
	w->done += len;
	return w->done >= w->total ? STEP_DONE : STEP_ON;
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

SEC("tp_btf/sched_process_exec")
int on_exec(__u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0];
	struct linux_binprm *bprm = (void *)ctx[2];
	__u32 to = sizeof(struct pt_exec), argv_bytes, argv_here, bits = 0;
	const struct path *root;
	struct scratch *scratch;
	struct signal_struct *signal;
	struct task_state *state;
	struct file *exe_file;
	struct fs_struct *fs;
	struct mm_struct *mm;
	struct pt_exec *r;
	__u64 arg_start, env_id, now;
	bool cut = false;

	if (empty_programs)
		return 0;
	state = state_of(task);
	if (!state)
		return 0;
	mm = task->mm;
	LOADED_HERE(mm);
	fs = task->fs;
	LOADED_HERE(fs);
	signal = task->signal;
	LOADED_HERE(signal);
	scratch = get_scratch();
	if (!scratch || !mm)
		return 0;
	exe_file = mm->exe_file;
	LOADED_HERE(exe_file);
	hold_up(&lifecycle);
	now = bpf_ktime_get_boot_ns();
	env_id = note_environment(mm, scratch, state->task, &bits, now);

	r = (void *)scratch->record;
	r->path_bytes = append_kernel_string(scratch, to, bprm->filename);
	to += r->path_bytes;
	r->interp_bytes = 0;
	if (bprm->interp != bprm->filename) {
		r->interp_bytes = append_kernel_string(scratch, to, bprm->interp);
		to += r->interp_bytes;
	}
	root = &fs->root;
	r->exe_bytes = append_path(&exe_file->f_path, root, scratch, to, &cut);
	to += r->exe_bytes;
	r->cwd_bytes = append_path(&fs->pwd, root, scratch, to, &cut);
	to += r->cwd_bytes;
	if (cut)
		bits |= PT_EXEC_PATH_CUT;
	if (is_compat(mm))
		bits |= PT_EXEC_COMPAT;

	arg_start = mm->arg_start;
	argv_bytes = mm->arg_end - arg_start;
	r->argv_bytes = argv_bytes;
	if (argv_bytes > PT_ARGV_MAX) {
		argv_bytes = PT_ARGV_MAX;
		bits |= PT_EXEC_ARGV_CAPPED;
	}
	argv_here = argv_bytes > PT_ARGV_FIRST ? PT_ARGV_FIRST : argv_bytes;
	if (to > PT_RECORD_MAX - PT_ARGV_FIRST)
		return 0; /* cannot be: four paths and the body are less */
	if (bpf_probe_read_user(&scratch->record[to], argv_here, (void *)arg_start)) {
		bits |= PT_EXEC_ARGV_FAULT;
		argv_here = 0;
		argv_bytes = 0;
	}
	r->argv_here = argv_here;
	to += argv_here;
	if (to > PT_RECORD_MAX - 8)
		return 0;
	*(__u64 *)&scratch->record[to] = 0;

	set_head(&r->head, PT_EXEC, ROUND_UP_8(to), state->task, now);
	r->process = state->process;
	r->tgid = task->tgid;
	r->tid = task->pid;
	r->old_tid = ctx[1];
	r->bits = bits;
	r->argc = bprm->argc;
	r->env_id = env_id;
	r->run_ns = task->se.sum_exec_runtime;
	r->utime_ns = task->utime;
	r->stime_ns = task->stime;
	r->maxrss_before_pages = signal->maxrss;
	state->maxrss_before_pages = r->maxrss_before_pages;
	state->born_in = 0;
	stamp(state, task, now);
	copy_comm(r->comm, task);
	output(&lifecycle, PT_EXEC, r, ROUND_UP_8(to));

	if (argv_bytes > argv_here) {
		int i, step = STEP_ON;

		scratch->user_at = arg_start;
		scratch->done = argv_here;
		scratch->total = argv_bytes;
		scratch->task = state->task;
		scratch->now = now;
		for (i = 0; i < PT_ARGV_CHUNKS && step == STEP_ON; i++)
			step = write_args();
	}
	return 0;
}

#endif
