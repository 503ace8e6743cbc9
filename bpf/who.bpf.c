// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Identity of a process, by the kernel's own records: what a broker must know of a client, and no file of /proc tells it
 * without rights over the client.
 *
 * Loaded once, when a broker starts. Its maps are not handed to anybody.
 */
#include "vmlinux_min.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#include "who.h"

#define OWNED_LEVEL 1
/* create_user_ns() refuses levels above 32. */
#define USER_NS_LEVELS 33

/* The question, written by the broker. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct who_asked);
} asked SEC(".maps");

/* The answer, written by the programs. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct who_told);
} told SEC(".maps");

/* The user of the initial user namespace to whom a namespace belongs: the owner of its outermost ancestor. */
static __always_inline __u32 owner_of(struct user_namespace *ns, __u32 uid)
{
	int i;

	for (i = 0; i < USER_NS_LEVELS && ns; i++) {
		int level = BPF_CORE_READ(ns, level);

		if (level < OWNED_LEVEL)
			return uid;
		if (level == OWNED_LEVEL)
			return BPF_CORE_READ(ns, owner.val);
		ns = BPF_CORE_READ(ns, parent);
	}
	return uid;
}

/* Tells the credentials and the namespaces of the process that was asked for. */
SEC("iter/task")
int on_who(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct who_asked *question;
	struct user_namespace *ns;
	const struct cred *cred;
	struct who_told *answer;
	__u32 zero = 0, level;
	struct pid *pid;

	if (!task)
		return 0;
	question = bpf_map_lookup_elem(&asked, &zero);
	answer = bpf_map_lookup_elem(&told, &zero);
	if (!question || !answer || (__u32)task->pid != question->tgid || task->tgid != task->pid)
		return 0;
	cred = BPF_CORE_READ(task, real_cred);
	pid = BPF_CORE_READ(task, thread_pid);
	if (!cred || !pid)
		return 0;
	ns = BPF_CORE_READ(cred, user_ns);
	answer->ids[0] = BPF_CORE_READ(cred, uid.val);
	answer->ids[1] = BPF_CORE_READ(cred, euid.val);
	answer->ids[2] = BPF_CORE_READ(cred, suid.val);
	answer->ids[3] = BPF_CORE_READ(cred, gid.val);
	answer->ids[4] = BPF_CORE_READ(cred, egid.val);
	answer->ids[5] = BPF_CORE_READ(cred, sgid.val);
	bpf_core_read(&answer->permitted, sizeof(answer->permitted), &cred->cap_permitted);
	bpf_core_read(&answer->effective, sizeof(answer->effective), &cred->cap_effective);
	bpf_core_read(&answer->ambient, sizeof(answer->ambient), &cred->cap_ambient);
	answer->user_ns = (__u64)ns;
	answer->user_ns_level = BPF_CORE_READ(ns, level);
	answer->owner = owner_of(ns, answer->ids[0]);
	level = BPF_CORE_READ(pid, level);
	answer->pid_level = level;
	bpf_probe_read_kernel(&answer->pid_ns, sizeof(answer->pid_ns),
			      (void *)((__u64)pid + bpf_core_field_offset(struct pid, numbers) +
				       level * bpf_core_type_size(struct upid) +
				       bpf_core_field_offset(struct upid, ns)));
	answer->cgroup = BPF_CORE_READ(task, cgroups, dfl_cgrp, kn, id);
	answer->started_ns = task->start_boottime;
	answer->found = 1;
	return 0;
}

/* Counts which maps of a recording there are still: one exists as long as a descriptor, a mapping, a pin or a program
 * refers to it. */
SEC("iter/bpf_map")
int on_map(struct bpf_iter__bpf_map *ctx)
{
	struct bpf_map *map = ctx->map;
	struct who_asked *question;
	struct who_told *answer;
	__u32 zero = 0, id;
	int i;

	if (!map)
		return 0;
	question = bpf_map_lookup_elem(&asked, &zero);
	answer = bpf_map_lookup_elem(&told, &zero);
	if (!question || !answer)
		return 0;
	id = map->id;
	for (i = 0; i < WHO_MAPS_MAX; i++)
		if (question->maps[i] && question->maps[i] == id)
			answer->maps_found++;
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
