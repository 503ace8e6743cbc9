/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Tasks that are recorded: the launched command, given processes, the members of a cgroup, or all;
 * and always their descendants.
 */
#ifndef PROCTRACE_SCOPE_BPF_H
#define PROCTRACE_SCOPE_BPF_H

enum scope {
	SCOPE_LAUNCHED = 0,
	SCOPE_PIDS = 1,
	SCOPE_ALL = 2,
	SCOPE_CGROUPS = 3,	/* many jobs: the cgroups directly below those in scope_parents */
};

const volatile __u32 scope = SCOPE_LAUNCHED;
/* Id of a cgroup whose members are also recorded; 0: none. */
const volatile __u64 scope_cgroup = 0;

/* Random: nobody can construct two look-ups with the same hash. */
const volatile __u64 hash_seed = 0;

#define SCOPE_PIDS_MAX 1024

/* The requested processes, by their pids as the recorder sees them. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, SCOPE_PIDS_MAX);
	__type(key, __u32);
	__type(value, __u8);
} scope_pids SEC(".maps");

#define SCOPE_PARENTS_MAX 1024
#define JOB_NAME_WORDS 4

/* Beginning of the names of those cgroups that are jobs: word by word, under a mask. */
struct job_names {
	__u64 want[JOB_NAME_WORDS];
	__u64 mask[JOB_NAME_WORDS];
};

/* The ids of cgroups that have jobs directly below them. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, SCOPE_PARENTS_MAX);
	__type(key, __u64);
	__type(value, struct job_names);
} scope_parents SEC(".maps");

#define PF_KTHREAD 0x00200000
#ifndef CLONE_INTO_CGROUP
#define CLONE_INTO_CGROUP 0x200000000ULL
#endif

/* ---- pids in namespaces ---- */

/* A task's ids in its own pid namespace. */
static __always_inline void read_ns_pids(struct task_struct *task, __s32 *tgid_ns, __s32 *tid_ns)
{
	__u64 pid = (__u64)BPF_CORE_READ(task, thread_pid), tgid_pid;
	__u32 level = BPF_CORE_READ((struct pid *)pid, level);

	*tid_ns = task->pid;
	*tgid_ns = task->tgid;
	if (level == 0)
		return;
	tgid_pid = (__u64)BPF_CORE_READ(task, group_leader, thread_pid);
	bpf_probe_read_kernel(tid_ns, 4, (void *)upid_at(pid, level));
	if (tgid_pid)
		bpf_probe_read_kernel(tgid_ns, 4, (void *)upid_at(tgid_pid, level));
}

/* A task's tgid as seen by the current task, the recorder; 0 if it is not visible there. */
static __always_inline __u32 tgid_as_recorder_sees(struct task_struct *task)
{
	struct task_struct *recorder = bpf_get_current_task_btf();
	struct upid mine = {}, theirs = {};
	__u64 my_pid = 0, its_pid = 0;
	__u32 level = 0;

	if (recorder->thread_pid)
		level = recorder->thread_pid->level;
	if (level == 0) {
		__u32 tgid = task->tgid;

		/* otherwise clang merges this load with that of theirs.nr, through different
		 * pointers */
		barrier_var(tgid);
		return tgid;
	}
	bpf_core_read(&my_pid, sizeof(my_pid), &recorder->thread_pid);
	bpf_core_read(&its_pid, sizeof(its_pid), &task->group_leader->thread_pid);
	if (!my_pid || !its_pid || !task->thread_pid || task->thread_pid->level < level)
		return 0;
	bpf_probe_read_kernel(&mine, sizeof(mine), (void *)upid_at(my_pid, level));
	bpf_probe_read_kernel(&theirs, sizeof(theirs), (void *)upid_at(its_pid, level));
	return mine.ns == theirs.ns ? theirs.nr : 0;
}

/* ---- membership ---- */

/* Deeper than the nesting of systemd or any other manager. */
#define CGROUP_DEPTH_MAX 32

static __always_inline bool is_in_cgroup(struct cgroup *cgroup)
{
	struct cgroup_subsys_state *parent;
	int i;

	for (i = 0; i < CGROUP_DEPTH_MAX && cgroup; i++) {
		if (BPF_CORE_READ(cgroup, kn, id) == scope_cgroup)
			return true;
		parent = BPF_CORE_READ(cgroup, self.parent);
		if (!parent)
			break;
		cgroup = (void *)parent - bpf_core_field_offset(struct cgroup, self);
	}
	return false;
}

/* True if a cgroup below one with jobs is itself a job. */
static __always_inline bool is_job(struct cgroup *cgroup, const struct job_names *jobs)
{
	__u64 name[JOB_NAME_WORDS] = {}, differ = 0;
	int i;

	bpf_probe_read_kernel_str(name, sizeof(name), BPF_CORE_READ(cgroup, kn, name));
	for (i = 0; i < JOB_NAME_WORDS; i++)
		differ |= (name[i] & jobs->mask[i]) ^ jobs->want[i];
	return !differ;
}

/* The job to which the members of a cgroup belong; 0: none. Of nested ones the innermost. */
STEP __u32 group_of(__u64 address)
{
	struct cgroup *cgroup = (void *)address, *above;
	struct cgroup_subsys_state *parent;
	const struct job_names *jobs;
	__u64 id;
	int i;

	for (i = 0; i < CGROUP_DEPTH_MAX && cgroup; i++) {
		parent = BPF_CORE_READ(cgroup, self.parent);
		if (!parent)
			break;
		above = (void *)parent - bpf_core_field_offset(struct cgroup, self);
		id = BPF_CORE_READ(above, kn, id);
		jobs = bpf_map_lookup_elem(&scope_parents, &id);
		if (jobs && is_job(cgroup, jobs))
			return BPF_CORE_READ(cgroup, kn, id);
		cgroup = above;
	}
	return 0;
}

#define JOB_NAME_MAX 96

struct job_name {
	struct pt_workdir r;
	char name[JOB_NAME_MAX];
};

/* Writes the name of a job, found as by group_of(). */
STEP int tell_job(__u64 address, __u32 group, __u32 serial)
{
	struct cgroup *cgroup = (void *)address;
	struct cgroup_subsys_state *parent;
	struct job_name *job;
	long len;
	int i;

	for (i = 0; i < CGROUP_DEPTH_MAX && cgroup; i++) {
		if ((__u32)BPF_CORE_READ(cgroup, kn, id) == group)
			break;
		parent = BPF_CORE_READ(cgroup, self.parent);
		if (!parent)
			return 0;
		cgroup = (void *)parent - bpf_core_field_offset(struct cgroup, self);
	}
	job = reserve(lifecycle, PT_ATTACH, struct job_name);
	if (!job)
		return 0;
	__builtin_memset(job, 0, sizeof(*job));
	set_head(&job->r.head, PT_WORKDIR, sizeof(*job), serial, bpf_ktime_get_boot_ns());
	len = bpf_probe_read_kernel_str(job->name, sizeof(job->name), BPF_CORE_READ(cgroup, kn, name));
	job->r.path_bytes = len > 0 ? len - 1 : 0;
	job->r.bits = PT_WORKDIR_JOB;
	submit(lifecycle, job);
	return 0;
}

static __always_inline __u32 group_of_task(struct task_struct *task)
{
	return group_of((__u64)BPF_CORE_READ(task, cgroups, dfl_cgrp));
}

/* The seed of hashes by which repetitions are found. The descendants of each task that came into a job have
 * their own, since a record of one trace may not refer to a record of another: also not to one of an earlier
 * recording of the same job. */
static __always_inline __u64 seed_for(struct scratch *scratch)
{
	return scope == SCOPE_CGROUPS ? hash_seed ^ (__u64)scratch->origin << 32 : hash_seed;
}

/* Is the current task the recorder, about to fork the command it was asked to run? */
static __always_inline bool is_launch(__u64 clone_flags)
{
	struct orders *orders = get_orders();
	struct bpf_pidns_info self = {};

	if (!orders || !orders->launch_armed || (clone_flags & CLONE_THREAD))
		return false;
	if (recorder_tgid) {
		if (!is_served_recorder(bpf_get_current_task_btf()))
			return false;
		orders->launch_armed = 0;
		return true;
	}
	if (bpf_get_ns_current_pid_tgid(recorder_pidns_dev, recorder_pidns_ino, &self, sizeof(self)))
		return false;
	if (self.tgid != recorder_pid)
		return false;
	orders->launch_armed = 0;
	return true;
}

/* ---- following a task ---- */

/* Starts tracing a task: assigns its serial and returns it; 0 and a counted loss if there is no
 * memory. `process` is the serial of its process, 0 if it founds one; `hidden` is whether its
 * creator is hidden from the caller. `off_ns` is the time of its birth if it has not run yet. */
static __always_inline __u32 follow(struct task_struct *task, __u32 process, __u32 group,
				    __u32 origin, __u64 born_in, __u64 place, __u16 kind,
				    bool hidden, __u64 off_ns)
{
	struct task_state *state;
	struct counts *counts = get_counts();
	struct task_state fresh = {
		.born_ns = task->start_boottime,
		.born_in = born_in,
		.place = place,
		.hidden = hidden,
		.group = group,
		.off_ns = off_ns,
		.off_state = 'R',
		.off_in = NO_SYSCALL,
		/* no sample can have this value, so the first one is always written */
		.sampled_run_ns = ~0ULL,
	};
	__u64 key = (__u64)task;

	if (!counts)
		return 0;
	if (restricted)
		fresh.seen_io = read_io(task);
	fresh.task = __sync_fetch_and_add(&counts->born, 1) + 1;
	fresh.process = process ? process : fresh.task;
	fresh.origin = origin ? origin : fresh.task;
	if (process) {
		if (!bpf_map_update_elem(&threads, &key, &fresh, BPF_NOEXIST)) {
			__sync_fetch_and_add(&threads_live, 1);
			return fresh.task;
		}
		/* A birth and a pass over all tasks may find a thread at the same time: its birth is told
		 * when it is in the list of tasks already. */
		if (state_of_thread(task)) {
			__sync_fetch_and_add(&counts->ended, 1);
			return 0;
		}
		/* what an earlier task at this address has left */
		if (!bpf_map_update_elem(&threads, &key, &fresh, BPF_EXIST))
			return fresh.task;
	}
	state = bpf_task_storage_get(&tasks, task, &fresh, BPF_LOCAL_STORAGE_GET_F_CREATE);
	/* The first storage of a task may be made by two programs at once, of any maps, also of another recorder; one of
	 * them fails (EAGAIN from bpf_local_storage_alloc()). */
	if (!state)
		state = bpf_task_storage_get(&tasks, task, &fresh, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (state && state->task == fresh.task)
		return fresh.task;
	__sync_fetch_and_add(&counts->ended, 1);
	/* otherwise another program has found it at the same time, as above */
	if (!state)
		count_loss(kind, PT_LOSS_STORAGE);
	return 0;
}

/* The program that a task runs, as far as the kernel counts them: each exec is another one. */
static __always_inline __u64 program_of(struct task_struct *task)
{
	return restricted ? BPF_CORE_READ(task, self_exec_id) : 0;
}

/* True if the caller may see what was read of a task since it might see it, while the task ran that program. */
static __always_inline bool is_still_seen(struct task_struct *task, __u64 program)
{
	return may_still_see(task) && program_of(task) == program;
}

/* Records that a task is traced from now on, and its prior usage. It runs rarely, so pointers are
 * followed by helpers, which avoids the verifier's type searches (see LOADED_HERE). */
static __always_inline void write_attach(struct task_struct *task, __u32 serial, __u32 process,
					 __u32 group, __u32 bits, __u64 program)
{
	struct io_counters io, none = {};
	struct task_state *state;
	struct pt_attach *r;
	__u64 name[2];

	if (scope == SCOPE_CGROUPS)
		tell_job((__u64)BPF_CORE_READ(task, cgroups, dfl_cgrp), group, serial);
	io = read_io(task);
	copy_comm((char *)name, task);
	/* checked again: it may have executed another program since the check in adopt(), and that may have
	 * executed another one. The launched command still has the recorder's name. */
	if (!(bits & PT_ATTACH_ROOT) && !is_still_seen(task, program)) {
		hide_comm((char *)name);
		io = none;
		state = state_of(task);
		if (state)
			state->seen_io = none;
	}
	r = reserve(lifecycle, PT_ATTACH, struct pt_attach);
	if (!r)
		return;
	set_head(&r->head, PT_ATTACH, sizeof(*r), serial, bpf_ktime_get_boot_ns());
	r->process = process;
	r->tgid = tgid_of(task);
	r->tid = tid_of(task);
	r->parent_tgid = pid_level ? parent_tgid_of(BPF_CORE_READ(task, group_leader)) :
				     BPF_CORE_READ(task, group_leader, real_parent, tgid);
	r->bits = bits;
	read_ns_pids(task, &r->tgid_ns, &r->tid_ns);
	r->group = group;
	r->start_ns = task->start_boottime;
	r->run_ns = task->se.sum_exec_runtime;
	r->utime_ns = task->utime;
	r->stime_ns = task->stime;
	r->nvcsw = task->nvcsw;
	r->nivcsw = task->nivcsw;
	r->minflt = task->min_flt;
	r->majflt = task->maj_flt;
	put_io(r, &io);
	r->run_delay_ns = task->sched_info.run_delay;
	r->waited_utime_ns = BPF_CORE_READ(task, signal, cutime);
	r->waited_stime_ns = BPF_CORE_READ(task, signal, cstime);
	((__u64 *)r->comm)[0] = name[0];
	((__u64 *)r->comm)[1] = name[1];
	/* the recorder reads what it needs to know about a job from /proc while it is there */
	if (scope == SCOPE_CGROUPS)
		bpf_ringbuf_submit(r, BPF_RB_FORCE_WAKEUP);
	else
		submit(lifecycle, r);
}

/* Starts tracing an existing task, which belongs to this job if there are many. */
static __always_inline void adopt(struct task_struct *task, __u32 group)
{
	struct task_state *leader_state;
	__u32 process = 0, origin = 0, serial;
	struct counts *counts;
	__u64 program;

	if (task->flags & PF_KTHREAD)
		return;
	program = program_of(task);
	if (!may_still_see(task))
		return;
	/* a zombie's exit cannot be recorded any more; needed only if it leads threads that are
	 * still alive */
	if (task->exit_state && (task->pid != task->tgid || task->signal->live.counter == 0))
		return;
	if (task->pid != task->tgid) {
		/* its leader precedes it in each pass */
		leader_state = state_of(task->group_leader);
		if (!leader_state)
			return;
		process = leader_state->process;
		origin = leader_state->origin;
	}
	serial = follow(task, process, group, origin, BORN_ELSEWHERE, 0, PT_ATTACH, false, 0);
	if (!serial)
		return;
	write_attach(task, serial, process ? process : serial, group,
		     task->exit_state ? PT_ATTACH_ZOMBIE : 0, program);
	counts = get_counts();
	if (task->exit_state && counts)
		__sync_fetch_and_add(&counts->ended, 1);
}

/* True if a relative of a task is traced. `which` differs at each use: it keeps clang from merging
 * the calls, which the verifier refuses because the pointers are of different kinds. */
#define is_followed(task, which)                                            \
	({                                                                  \
		struct task_state *state_ = state_of(task);                 \
		asm volatile("" : "+r"(state_) : "i"(which));               \
		state_ != NULL;                                             \
	})

static __always_inline bool is_asked_for(struct task_struct *task)
{
	__u32 tgid;

	/* threads of a traced process */
	if (task->pid != task->tgid && is_followed(task->group_leader, 1))
		return true;
	if (scope_cgroup && is_in_cgroup(BPF_CORE_READ(task, cgroups, dfl_cgrp)))
		return true;
	switch (scope) {
	case SCOPE_ALL:
		return true;
	case SCOPE_PIDS:
		if (is_followed(task->real_parent, 2))
			return true;
		tgid = tgid_as_recorder_sees(task);
		return tgid && bpf_map_lookup_elem(&scope_pids, &tgid);
	}
	return false;
}

/* Starts tracing a task that belongs to a job, unless it is traced as one of that job. One that leaves its
 * job for none stays with it. */
static __always_inline void adopt_for(struct task_struct *task, __u32 group)
{
	struct task_state *state;
	__u32 serial, process;

	if (!group)
		return;
	state = state_of(task);
	if (!state) {
		adopt(task, group);
		return;
	}
	if (state->group == group || task->exit_state)
		return;
	state->group = group;
	/* where its paths lead is not known to this job, and what it counts is for this one */
	state->place = 0;
	state->opens = 0;
	state->lookups_failed = 0;
	state->execs_failed = 0;
	/* the next pass of samples writes it */
	state->sampled_run_ns = ~0ULL;
	serial = state->task;
	/* not that of its former job's descendants; two threads may have different ones */
	state->origin = serial;
	process = state->process;
	/* what is seen of it was decided when it was followed; jobs are recorded without restriction */
	write_attach(task, serial, process, group, 0, program_of(task));
	/* look-ups that follow have no earlier time than this record: by that they are told from those before */
	state = state_of(task);
	if (state)
		stamp(state, task, bpf_ktime_get_boot_ns());
}

/*
 * One pass over all tasks: starts tracing those that were requested and are not traced yet. The
 * recorder repeats it until a pass finds none: a child may precede its parent, and a task may fork
 * before it is found; once it is traced, so are its later children.
 */
SEC("iter/task")
int on_adopt(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct task_struct *recorder = bpf_get_current_task_btf();

	if (!task || task->tgid == recorder->tgid || is_run_by_another(recorder))
		return 0;
	if (scope == SCOPE_CGROUPS) {
		adopt_for(task, group_of_task(task));
		return 0;
	}
	if (!state_of(task) && is_asked_for(task))
		adopt(task, 0);
	return 0;
}

/* A task is moved into the cgroup. If it has other threads, the next pass finds them. */
SEC("tp_btf/cgroup_attach_task")
int on_cgroup_attach(__u64 *ctx)
{
	struct task_struct *task = (void *)ctx[2];

	if (scope == SCOPE_CGROUPS)
		/* it has been moved already; and a pointer of the hook may not be an argument */
		adopt_for(task, group_of_task(task));
	/* not the cgroup of the hook, which may be one of another hierarchy, with ids of its own; the task has been
	 * moved already */
	else if (scope_cgroup && !state_of(task) &&
		 is_in_cgroup(BPF_CORE_READ(task, cgroups, dfl_cgrp)))
		adopt(task, 0);
	return 0;
}

#endif
