/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The few kernel types that the programs access, with only the fields they use.
 *
 * preserve_access_index makes every access a CO-RE relocation by name, so neither order nor size
 * matters here: the loader fills in the running kernel's offsets. A full vmlinux.h would be 130,000
 * lines that no one reviews.
 */
#ifndef __VMLINUX_H__
#define __VMLINUX_H__

typedef unsigned char __u8;
typedef short __s16;
typedef unsigned short __u16;
typedef int __s32;
typedef unsigned int __u32;
typedef long long __s64;
typedef unsigned long long __u64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef _Bool bool;

#define true 1
#define false 0
#define NULL ((void *)0)

/* include/uapi/linux/bpf.h */
enum bpf_map_type {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_RINGBUF = 27,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
};
#define BPF_ANY 0
#define BPF_NOEXIST 1
#define BPF_EXIST 2
#define BPF_F_NO_PREALLOC 1
#define BPF_F_MMAPABLE 1024
#define BPF_LOCAL_STORAGE_GET_F_CREATE 1
#define BPF_RB_NO_WAKEUP 1
#define BPF_RB_FORCE_WAKEUP 2
#define BPF_RB_AVAIL_DATA 0

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

typedef struct {
	int counter;
} atomic_t;

typedef struct {
	long counter;
} atomic_long_t;

struct percpu_counter {
	__s64 count;
};

struct vfsmount {
	struct dentry *mnt_root;
};

struct qstr {
	__u64 hash_len;
	__u32 len;
	const unsigned char *name;
};

struct super_block {
	__u32 s_dev;
};

struct inode {
	unsigned short i_mode;
	long long i_size;
	struct super_block *i_sb;
	unsigned long i_ino;
	__u32 i_generation;
};

struct hlist_bl_node {
	struct hlist_bl_node *next, **pprev;
};

struct dentry {
	struct hlist_bl_node d_hash;
	struct dentry *d_parent;
	struct qstr d_name;
	struct inode *d_inode;
};

struct path {
	struct vfsmount *mnt;
	struct dentry *dentry;
};

struct mount {
	struct mount *mnt_parent;
	struct dentry *mnt_mountpoint;
	struct vfsmount mnt;
};

struct file {
	unsigned int f_mode;
	struct path f_path;
	struct inode *f_inode;
};

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
	unsigned long *open_fds;
};

struct files_struct {
	struct fdtable *fdt;
};

struct ns_common {
	unsigned int inum;
};

struct mnt_namespace {
	struct ns_common ns;
};

struct nsproxy {
	struct mnt_namespace *mnt_ns;
};

struct fs_struct {
	struct path root;
	struct path pwd;
};

typedef struct {
	__u32 val;
} kuid_t;

typedef struct {
	__u32 val;
} kgid_t;

/* Before 6.3 two 32-bit words, the same bytes: read as a whole, never by field. */
typedef struct {
	__u64 val;
} kernel_cap_t;

struct uid_gid_extent {
	__u32 first;
	__u32 lower_first;
	__u32 count;
};

/* In the kernel a union with pointers, for maps of more ranges. */
struct uid_gid_map {
	struct uid_gid_extent extent[5];
	__u32 nr_extents;
};

struct user_namespace {
	struct uid_gid_map uid_map;
	struct uid_gid_map gid_map;
	struct user_namespace *parent;
	int level;
	kuid_t owner;
};

struct cred {
	kuid_t uid;
	kgid_t gid;
	kuid_t suid;
	kgid_t sgid;
	kuid_t euid;
	kgid_t egid;
	kernel_cap_t cap_permitted;
	kernel_cap_t cap_effective;
	kernel_cap_t cap_ambient;
	struct user_namespace *user_ns;
};

struct mm_struct {
	unsigned long task_size;
	unsigned long hiwater_rss;
	unsigned long arg_start;
	unsigned long arg_end;
	unsigned long env_start;
	unsigned long env_end;
	struct percpu_counter rss_stat[4];
	struct user_namespace *user_ns;
	struct file *exe_file;
};

struct task_io_accounting {
	__u64 rchar;
	__u64 wchar;
	__u64 read_bytes;
	__u64 write_bytes;
};

struct sigaction {
	void *sa_handler;
	unsigned long sa_flags;
};

struct k_sigaction {
	struct sigaction sa;
};

struct sighand_struct {
	struct k_sigaction action[64];
};

struct rw_semaphore {
	atomic_long_t count;
};

struct signal_struct {
	atomic_t live;
	int group_exit_code;
	unsigned int flags;
	__u64 cutime;
	__u64 cstime;
	unsigned long maxrss;
	struct mm_struct *oom_mm;
	struct rw_semaphore exec_update_lock;
};

struct sched_entity {
	__u64 exec_start;
	__u64 sum_exec_runtime;
	__u64 prev_sum_exec_runtime;
	__u64 nr_migrations;
};

struct sched_info {
	unsigned long long run_delay;
};

struct kernfs_node {
	const char *name;
	__u64 id;
};

struct cgroup_subsys_state {
	struct cgroup_subsys_state *parent;
};

struct cgroup {
	struct cgroup_subsys_state self;
	struct kernfs_node *kn;
};

struct css_set {
	struct cgroup *dfl_cgrp;
};

struct pid_namespace;

struct upid {
	int nr;
	struct pid_namespace *ns;
};

struct pid {
	unsigned int level;
	struct upid numbers[1];
};

struct task_struct {
	unsigned int __state;
	void *stack;
	unsigned int flags;
	struct sched_entity se;
	struct sched_info sched_info;
	struct mm_struct *mm;
	int exit_state;
	int exit_code;
	int exit_signal;
	int pid;
	int tgid;
	struct task_struct *real_parent;
	struct task_struct *group_leader;
	struct pid *thread_pid;
	__u64 utime;
	__u64 stime;
	unsigned long nvcsw;
	unsigned long nivcsw;
	__u64 self_exec_id;
	__u64 start_boottime;
	unsigned long min_flt;
	unsigned long maj_flt;
	const struct cred *real_cred;
	char comm[16];
	struct fs_struct *fs;
	struct files_struct *files;
	struct nsproxy *nsproxy;
	struct signal_struct *signal;
	struct sighand_struct *sighand;
	struct css_set *cgroups;
	struct task_io_accounting ioac;
};

struct linux_binprm {
	int argc;
	const char *filename;
	const char *interp;
	unsigned int secureexec : 1;
};

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
	__u64 session_id;
	__u64 seq_num;
};

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};

struct bpf_map {
	__u32 id;
};

struct bpf_iter__bpf_map {
	struct bpf_iter_meta *meta;
	struct bpf_map *map;
};

#if defined(__TARGET_ARCH_x86)
struct pt_regs {
	unsigned long r10;
	unsigned long r8;
	unsigned long dx;
	unsigned long si;
	unsigned long di;
	unsigned long orig_ax;
};
#elif defined(__TARGET_ARCH_arm64)
struct user_pt_regs {
	__u64 regs[31];
};
struct pt_regs {
	struct user_pt_regs user_regs;
	__u64 orig_x0;
	__s32 syscallno;
};
#else
#error "proctrace's BPF programs know x86 and arm64"
#endif

#pragma clang attribute pop

struct bpf_pidns_info {
	__u32 pid;
	__u32 tgid;
};

/* The contexts of tracepoint/syscalls/sys_enter_* and sys_exit_*: stable ABI, no CO-RE. Since 6.7 the kernel writes only the lower
 * half of the number ("bpf: change syscall_nr type to int in struct syscall_tp_t"); what is above it is of its stack. */
struct sys_enter_ctx {
	__u64 common;
	__s32 nr;
	__s32 undefined;
};

struct sys_exit_ctx {
	__u64 common;
	__s32 nr;
	__s32 undefined;
	__s64 ret;
};

#endif
