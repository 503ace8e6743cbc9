/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Birth, renaming and death of tasks.
 *
 * Births are recorded at task_newtask: it runs in the forking task, before the child can run, for
 * every way to create a task, including io_uring workers (which bypass sched_process_fork).
 *
 * Exits are recorded in two steps. At sched_process_exit the time and status are known and the
 * address space still exists; but the scheduler has not yet added the last slice to
 * sum_exec_runtime, which for short processes is most of it, and the memory is still to be torn
 * down. The values are final at the task's last context switch: the sched_switch away from a dead
 * task. So the exit hook saves its values in the state, and the last switch writes the record, in
 * the task's own context.
 *
 * sched_process_free would have the same values without a cost to other tasks' switches (50 ns
 * each). But it runs after an RCU grace period, in the context of whatever task a softirq
 * interrupts, and some kernels run no BPF program in some contexts (seen on 6.18: none in the
 * threads of pid 1); one exit record in a thousand was missing.
 */
#ifndef PROCTRACE_LIFECYCLE_BPF_H
#define PROCTRACE_LIFECYCLE_BPF_H

static __always_inline void write_fork(struct task_struct *forker, __u32 serial, __u32 process,
				       struct task_struct *child, __u32 child_serial,
				       __u32 group, __u64 clone_flags, bool hidden,
				       __u64 now)
{
	struct pt_fork *r = reserve(lifecycle, PT_FORK, struct pt_fork);

	if (!r)
		return;
	set_head(&r->head, PT_FORK, sizeof(*r), serial, now);
	r->process = process;
	r->tgid = tgid_of(forker);
	r->tid = tid_of(forker);
	r->child = child_serial;
	r->child_process = clone_flags & CLONE_THREAD ? process : child_serial;
	r->child_tgid = tgid_of(child);
	r->child_tid = tid_of(child);
	r->parent_tgid = parent_tgid_of(child);
	read_ns_pids(child, &r->child_tgid_ns, &r->child_tid_ns);
	r->call = call_of(REG_NR(current_regs(forker)));
	r->exit_signal = child->exit_signal;
	r->group = group;
	r->flags = clone_flags;
	r->start_ns = child->start_boottime;
	if (hidden)
		hide_comm(r->comm);
	else
		copy_comm(r->comm, child);
	submit(lifecycle, r);
}

SEC("tp_btf/task_newtask")
int on_newtask(__u64 *ctx)
{
	struct task_struct *child = (void *)ctx[0];
	__u64 clone_flags = ctx[1];
	bool is_thread = clone_flags & CLONE_THREAD, hidden;
	__u32 serial, process, child_serial, group = 0, origin = 0;
	struct task_struct *forker;
	struct task_state *state;
	__u64 now, place, born_in = 0;

	if (empty_programs)
		return 0;
	forker = bpf_get_current_task_btf();
	state = state_of(forker);
	if (state) {
		now = bpf_ktime_get_boot_ns();
		stamp(state, forker, now);
		serial = state->task;
		process = state->process;
		place = state->place;
		if (scope == SCOPE_CGROUPS)
			group = state->group;
		if (scope == SCOPE_CGROUPS)
			origin = state->origin;
		hidden = !may_see(forker);
		if (!hidden)
			hold_up(&lifecycle);
		if (!is_thread)
			born_in = (__u64)BPF_CORE_READ(child, fs, pwd.dentry);
		child_serial = follow(child, is_thread ? process : 0, group, origin, born_in,
				      place, PT_FORK, hidden, now);
		if (child_serial)
			write_fork(forker, serial, process, child, child_serial, group, clone_flags,
				   hidden, now);
		/* for the forker's job: a child that moves at once */
		if (scope == SCOPE_CGROUPS && clone_flags & CLONE_INTO_CGROUP && !is_thread)
			adopt_for(child, group_of_task(child));
	} else if (is_launch(clone_flags)) {
		child_serial = follow(child, 0, 0, 0, BORN_ELSEWHERE, 0, PT_ATTACH, false, 0);
		if (child_serial)
			write_attach(child, child_serial, child_serial, 0, PT_ATTACH_ROOT, 0);
	} else if (scope_cgroup && !is_thread &&
		   is_in_cgroup(BPF_CORE_READ(child, cgroups, dfl_cgrp))) {
		/* CLONE_INTO_CGROUP, or the child of a member that no pass has found yet */
		adopt(child, 0);
	} else if (scope == SCOPE_CGROUPS && !is_thread) {
		group = group_of_task(child);
		if (group)
			adopt(child, group);
	}
	return 0;
}

SEC("tp_btf/task_rename")
int on_rename(__u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0];
	const char *comm = (void *)ctx[1];
	struct task_struct *current;
	struct task_state *state;
	struct pt_rename *r;
	int nr;

	if (empty_programs)
		return 0;
	state = state_of(task);
	if (!state)
		return 0;
	/* execve also renames the task; its own record contains the name */
	current = bpf_get_current_task_btf();
	nr = REG_NR(current_regs(current));
	if (task->pid == current->pid && (nr == NR_execve || nr == NR_execveat))
		return 0;
	if (!may_see(task))
		return 0;

	r = reserve(lifecycle, PT_RENAME, struct pt_rename);
	if (!r)
		return 0;
	set_head(&r->head, PT_RENAME, sizeof(*r), state->task, bpf_ktime_get_boot_ns());
	stamp(state, task, r->head.time_ns);
	r->process = state->process;
	r->tgid = tgid_of(task);
	r->tid = tid_of(task);
	r->pad = 0;
	__builtin_memset(r->comm, 0, sizeof(r->comm));
	bpf_probe_read_kernel_str(r->comm, sizeof(r->comm), comm);
	submit(lifecycle, r);
	return 0;
}

/* The status that wait4 would report: see wait_task_zombie() in kernel/exit.c. */
static __always_inline __u32 process_status(struct task_struct *task)
{
	struct signal_struct *signal = BPF_CORE_READ(task, signal);

	if (BPF_CORE_READ(signal, flags) & SIGNAL_GROUP_EXIT)
		return BPF_CORE_READ(signal, group_exit_code);
	return BPF_CORE_READ(task, group_leader, exit_code);
}

static __always_inline bool ignores_children(struct task_struct *parent)
{
	struct sighand_struct *sighand = BPF_CORE_READ(parent, sighand);

	if (!sighand)
		return false;
	return (__u64)BPF_CORE_READ(sighand, action[SIGCHLD - 1].sa.sa_handler) == SIG_IGN_PTR ||
	       (BPF_CORE_READ(sighand, action[SIGCHLD - 1].sa.sa_flags) & SA_NOCLDWAIT);
}

/* Often only its directory distinguishes a worker that was forked and never called exec. */
static __always_inline void tell_workdir(struct task_struct *task, __u32 serial, __u32 process,
					 __u64 born_in, __u64 now)
{
	struct scratch *scratch;
	struct pt_workdir *r;
	struct fs_struct *fs;
	bool cut = false;
	__u32 size, slot;

	if (!born_in || task->pid != task->tgid)
		return;
	fs = BPF_CORE_READ(task, fs);
	if (!fs || (__u64)BPF_CORE_READ(fs, pwd.dentry) == born_in)
		return;
	scratch = take_scratch(&slot, PT_WORKDIR);
	if (!scratch)
		return;
	r = (void *)scratch->record;
	r->path_bytes = append_path(&fs->pwd, &fs->root, scratch, slot, sizeof(*r), &cut);
	size = sizeof(*r) + r->path_bytes;
	if (size > PT_RECORD_MAX - 8)
		goto out; /* unreachable: a path is shorter */
	*word_at(&scratch->record[size]) = 0;
	size = ROUND_UP_8(size);
	set_head(&r->head, PT_WORKDIR, size, serial, now);
	r->process = process;
	r->tgid = tgid_of(task);
	r->tid = tid_of(task);
	r->bits = cut ? PT_WORKDIR_CUT : 0;
	output(&lifecycle, PT_WORKDIR, r, size);
out:
	give_scratch(scratch);
}

static __always_inline int note_exit(struct task_struct *task, bool group_dead)
{
	struct task_struct *leader = task->group_leader, *parent;
	struct task_state *state, *leader_state;
	struct mm_struct *mm = task->mm;
	__u32 bits = 0, serial, process;
	__u64 now, born_in;
	bool visible;

	LOADED_HERE(leader);
	LOADED_HERE(mm);
	state = state_of(task);
	if (!state)
		return 0;
	parent = BPF_CORE_READ(leader, real_parent);
	visible = may_see_exiting(task, mm, state);

	/* for the exit record: it is written at the last switch, with the run queue locked */
	if (visible)
		hold_up(&lifecycle);
	now = bpf_ktime_get_boot_ns();
	state->run_at_exit_ns = task->se.sum_exec_runtime;
	state->exit_tid = tid_of(task);
	if (pid_level)
		state->exit_tgid = tgid_of(task);
	state->parent_tgid = pid_level ? parent_tgid_of(leader) :
					 BPF_CORE_READ(parent, tgid);
	state->status = task->exit_code;
	if (group_dead) {
		bits |= PT_EXIT_PROCESS;
		if (BPF_CORE_READ(task, signal, oom_mm))
			bits |= PT_EXIT_OOM;
		state->status = process_status(task);
		if (ignores_children(parent))
			bits |= PT_EXIT_AUTOREAP;
	}
	/* 6.16 moved the tracepoint before exit_mm() (3e816361e94a); earlier, only the process-wide
	 * peak is left, which includes the time before the last exec: if it has not grown since, it
	 * is only an upper bound of the program's own peak. */
	if (mm) {
		state->maxrss_pages = mm_peak_rss_pages(mm);
		if (group_dead)
			state->file_rss_pages = mm_count(mm, MM_FILEPAGES);
	} else {
		leader_state = state_of(leader);
		state->maxrss_pages = BPF_CORE_READ(task, signal, maxrss);
		if (!leader_state || state->maxrss_pages <= leader_state->maxrss_before_pages)
			bits |= PT_EXIT_RSS_BOUND;
	}
	if (visible) {
		born_in = state->born_in;
	} else {
		bits |= PT_EXIT_WITHHELD;
		born_in = 0;
	}
	state->exit_bits = bits;
	/* after the bits: a pass on another CPU that sees the time looks for them. An exchange is a barrier. */
	__sync_lock_test_and_set(&state->exit_ns, now);
	serial = state->task;
	process = state->process;
	tell_workdir(task, serial, process, born_in, now);
	return 0;
}

/* Since 6.16 the tracepoint reports whether the thread group is dead, the only race-free source of
 * this. The loader uses this program where the kernel accepts it. */
SEC("tp_btf/sched_process_exit")
int on_exit_told(__u64 *ctx)
{
	if (empty_programs)
		return 0;
	return note_exit((void *)ctx[0], ctx[1] & 1);
}

/* Earlier, several threads that exit at once may all see live == 0; readers use the last record.
 */
SEC("tp_btf/sched_process_exit")
int on_exit_guessed(__u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0];

	if (empty_programs)
		return 0;
	return note_exit(task, task->signal->live.counter == 0);
}

/* A reaper on another CPU can release a task before its last switch, and a thread releases itself.
 * Both add up the CPU time of a task whose last slice is not yet included (thread_group_cputime()
 * updates only current), so the kernel's total lacks it. wait_task_zombie() leaves EXIT_ZOMBIE
 * before it reads the time: a task that is still a zombie at its last switch is counted in full. */
static __always_inline bool was_released(struct task_struct *task)
{
	return task->exit_state & EXIT_DEAD;
}

static __always_inline void fill_exit(struct pt_exit *r, struct task_struct *task,
				      struct signal_struct *signal, struct task_state *state)
{
	bool withheld = state->exit_bits & PT_EXIT_WITHHELD;
	struct io_counters io;

	set_head(&r->head, PT_EXIT, sizeof(*r), state->task, state->exit_ns);
	r->process = state->process;
	/* a released task has no pid any more in any namespace but the initial one */
	r->tgid = pid_level ? state->exit_tgid : task->tgid;
	r->tid = state->exit_tid;
	r->status = state->status;
	r->bits = state->exit_bits | (was_released(task) ? PT_EXIT_RELEASED : 0);
	r->parent_tgid = state->parent_tgid;
	r->opens = state->opens;
	r->lookups_failed = state->lookups_failed;
	r->execs_failed = state->execs_failed;
	r->migrations = task->se.nr_migrations;
	r->start_ns = task->start_boottime;
	r->run_ns = task->se.sum_exec_runtime;
	r->run_at_exit_ns = state->run_at_exit_ns;
	r->utime_ns = task->utime;
	r->stime_ns = task->stime;
	r->nvcsw = task->nvcsw;
	r->nivcsw = task->nivcsw;
	r->minflt = task->min_flt;
	r->majflt = task->maj_flt;
	io = read_io(task);
	if (restricted && withheld)
		io = seen_io_of(state);
	put_io(r, &io);
	r->run_delay_ns = task->sched_info.run_delay;
	r->maxrss_pages = state->maxrss_pages;
	r->maxrss_ever_pages = signal->maxrss;
	r->waited_utime_ns = signal->cutime;
	r->waited_stime_ns = signal->cstime;
	if (restricted && withheld)
		hide_comm(r->comm);
	else
		copy_comm(r->comm, task);
	r->file_rss_pages = state->file_rss_pages;
	r->pad = 0;
}

static __always_inline void note_last_switch(struct task_struct *task)
{
	struct task_state *state;
	struct counts *counts;
	__u64 key = (__u64)task;
	struct signal_struct *signal;
	bool is_thread = false;
	struct pt_exit *r;

	signal = task->signal;
	LOADED_HERE(signal);
	state = state_of_process(task);
	if (!state) {
		state = state_of_thread(task);
		is_thread = true;
	}
	if (!state)
		return;
	/* Its exit hook was skipped, because the program was already running on this CPU; this is
	 * counted as a loss. Use the present time and id instead. */
	if (!state->exit_ns) {
		state->exit_ns = bpf_ktime_get_boot_ns();
		state->exit_tid = tid_of(task);
		if (pid_level)
			state->exit_tgid = tgid_of(task);
		state->status = task->exit_code;
		/* its visibility is unknown, too */
		if (restricted)
			state->exit_bits = PT_EXIT_WITHHELD;
	}
	r = reserve(lifecycle, PT_EXIT, struct pt_exit);
	if (r) {
		fill_exit(r, task, signal, state);
		submit(lifecycle, r);
	}
	/* after the record: the recorder waits for this count and then drains the ring */
	counts = get_counts();
	if (counts)
		__sync_fetch_and_add(&counts->ended, 1);
	if (is_thread && !bpf_map_delete_elem(&threads, &key))
		__sync_fetch_and_add(&threads_live, -1);
}

SEC("tp_btf/sched_switch")
int on_switch(__u64 *ctx)
{
	struct task_struct *from = (void *)ctx[1], *to = (void *)ctx[2];
	bool ends;

	if (empty_programs)
		return 0;
	ends = is_dead(from);
	if (ends && waits_min_ns)
		note_missed_by_dead(from);
	if (ends)
		note_last_switch(from);
	if (waits_min_ns)
		note_switch(ends ? NULL : from, to, ctx[0] & 1);
	return 0;
}

#endif
