/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The record layout, from the kernel to the trace file: the only header shared by the
 * BPF programs and (through its mirror in crates/wire) everything that reads a trace.
 *
 * Rules
 *   - little-endian, fixed-width types, every hole spelled out, no bool, no enum fields;
 *   - a record is `struct pt_head`, a fixed body, then bytes; its size is a multiple of 8;
 *   - numbers below are written to disk: never renumber, retire a value by leaving a hole;
 *   - a change of layout bumps WIRE_VERSION here and in crates/wire, with a line why.
 *
 * Names
 *   - a *serial* numbers the tasks of one recording from 1 in order of birth. It hangs on
 *     the task itself (BPF task storage), so it survives pid reuse and the swap of thread
 *     ids in an exec by a non-leader thread. 0 means "not of the traced tree".
 *   - `process` is the serial of the task that founded the thread group.
 *   - tgid and tid are those of the initial pid namespace.
 *   - every *_ns time stamp is CLOCK_BOOTTIME, as task_struct.start_boottime is.
 */
#ifndef PROCTRACE_WIRE_H
#define PROCTRACE_WIRE_H

#ifndef __VMLINUX_H__
#include <linux/types.h>
#endif

/* 1: first layout.
 * 2: failed look-ups come as PT_LOOKUP_NAMED and PT_LOOKUP_AGAIN, because most are repeated.
 * 3: PT_WORKDIR, and pt_exit.migrations in what was padding: workers that are forked and never
 *    call exec are known by where they work, and pinned ones by staying on their CPU. */
#define WIRE_VERSION 3

enum pt_kind {
	PT_ATTACH = 1,		/* a task followed from here on that no fork announces */
	PT_FORK = 2,		/* fork, vfork, clone, clone3 */
	PT_EXEC = 3,		/* successful execve, execveat */
	PT_EXEC_ARGS = 4,	/* the rest of a long argv */
	PT_EXEC_FAILED = 5,	/* struct pt_miss */
	PT_EXIT = 6,		/* a task's end and its final accounting */
	PT_LOOKUP_FAILED = 7,	/* struct pt_miss; not written any more */
	PT_RENAME = 8,
	PT_SAMPLE = 9,		/* one live task, at one tick */
	PT_TICK = 10,		/* closes a pass of samples */
	PT_ENV = 11,		/* the search variables of an environment, once per environment */
	PT_LOSS = 12,		/* cumulative count of records that did not make it */
	PT_BLIND = 13,		/* a task does something that we cannot see */
	PT_MEMORY = 14,		/* memory of a process, as /proc/PID/smaps_rollup says */
	PT_LOOKUP_NAMED = 15,	/* a failed look-up, and the number by which it can be told again */
	PT_LOOKUP_AGAIN = 16,	/* a failed look-up that was told before, by its number */
	PT_WORKDIR = 17,	/* where a process worked in the end that never called exec */
	PT_KINDS = 18,
};

/* Which system call a pt_miss or a fork came from; the same on every architecture. */
enum pt_call {
	PT_CALL_UNKNOWN = 0,
	PT_CALL_OPEN = 1,
	PT_CALL_OPENAT = 2,
	PT_CALL_OPENAT2 = 3,
	PT_CALL_CREAT = 4,
	PT_CALL_EXECVE = 5,
	PT_CALL_EXECVEAT = 6,
	PT_CALL_STAT = 7,
	PT_CALL_LSTAT = 8,
	PT_CALL_NEWFSTATAT = 9,
	PT_CALL_STATX = 10,
	PT_CALL_ACCESS = 11,
	PT_CALL_FACCESSAT = 12,
	PT_CALL_FACCESSAT2 = 13,
	PT_CALL_READLINK = 14,
	PT_CALL_READLINKAT = 15,
	PT_CALL_FORK = 16,
	PT_CALL_VFORK = 17,
	PT_CALL_CLONE = 18,
	PT_CALL_CLONE3 = 19,
	PT_CALL_CHDIR = 20,
	PT_CALLS = 21,
};

#define PT_COMM_BYTES 16
#define PT_PATH_MAX 4096
/* argv bytes in the exec record itself, in each record that continues it, and in all. */
#define PT_ARGV_FIRST 16384
#define PT_ARGV_CHUNK 32768
#define PT_ARGV_CHUNKS 63
#define PT_ARGV_MAX (PT_ARGV_FIRST + PT_ARGV_CHUNKS * PT_ARGV_CHUNK)
/* bytes of one recorded environment variable, and of all of them together. */
#define PT_ENV_VALUE_MAX 16384
#define PT_ENV_MAX 49152
/* No record is larger; pt_head.size is 16 bits. */
#define PT_RECORD_MAX 65528

struct pt_head {
	__u16 kind;
	__u16 size;		/* of the whole record, a multiple of 8 */
	__u32 task;		/* serial of the task it is about; 0: of none */
	__u64 time_ns;
};

#define PT_ATTACH_ROOT 1	/* the command that was launched */
#define PT_ATTACH_ZOMBIE 2	/* a leader that exited before its threads: no exit will be told */

struct pt_attach {
	struct pt_head head;
	__u32 process;
	__s32 tgid;
	__s32 tid;
	__s32 parent_tgid;
	__u32 bits;		/* PT_ATTACH_* */
	__s32 tgid_ns;		/* in the task's own pid namespace */
	__s32 tid_ns;
	__u32 pad;
	__u64 start_ns;
	/* what it had used before we looked: later figures include it */
	__u64 run_ns;
	__u64 utime_ns;
	__u64 stime_ns;
	__u64 nvcsw;
	__u64 nivcsw;
	__u64 minflt;
	__u64 majflt;
	__u64 rchar;
	__u64 wchar;
	__u64 read_bytes;
	__u64 write_bytes;
	__u64 run_delay_ns;
	__u64 waited_utime_ns;	/* of the process: cutime, cstime */
	__u64 waited_stime_ns;
	char comm[PT_COMM_BYTES];
};

struct pt_fork {
	struct pt_head head;	/* .task: the task that called fork */
	__u32 process;
	__s32 tgid;
	__s32 tid;
	__u32 child;
	__u32 child_process;	/* == child for a process, == process for a thread */
	__s32 child_tgid;
	__s32 child_tid;
	__s32 parent_tgid;	/* real parent of the child: not the forker under CLONE_PARENT */
	__s32 child_tgid_ns;	/* in the child's own pid namespace */
	__s32 child_tid_ns;
	__u16 call;		/* enum pt_call */
	__s16 exit_signal;
	__u32 pad;
	__u64 flags;		/* CLONE_* without the exit signal */
	__u64 start_ns;		/* of the child */
	char comm[PT_COMM_BYTES];
};

#define PT_EXEC_ARGV_CAPPED 1	/* argv is longer than PT_ARGV_MAX: the rest is not recorded */
#define PT_EXEC_ARGV_FAULT 2	/* argv could not be read to its end */
#define PT_EXEC_PATH_CUT 4	/* exe or cwd lies deeper than we walk: its front is missing */
#define PT_EXEC_ENV_CUT 8	/* the environment is larger than we scan */
#define PT_EXEC_COMPAT 16	/* a 32-bit program: its system calls are not seen */
#define PT_EXEC_BEFORE 32	/* happened before we looked: told by /proc when the task was attached */
#define PT_EXEC_WITHHELD 64	/* the recorder's user may not trace the program: nothing of it is told */

/* Followed by path, interp, exe, cwd and the first argv bytes, in that order, then padding. */
struct pt_exec {
	struct pt_head head;
	__u32 process;
	__s32 tgid;
	__s32 tid;
	__s32 old_tid;		/* differs from tid where a non-leader thread called exec */
	__u32 bits;		/* PT_EXEC_* */
	__u32 argc;
	__u32 argv_bytes;	/* of the whole argv block, each string with its NUL */
	__u32 argv_here;	/* of it in this record; PT_EXEC_ARGS records bring the rest */
	__u16 path_bytes;	/* as given to execve */
	__u16 interp_bytes;	/* the #! interpreter, else 0 */
	__u16 exe_bytes;	/* the file that runs, symlinks resolved, below the task's root */
	__u16 cwd_bytes;
	__u64 env_id;		/* names a PT_ENV record; 0: none kept */
	__u64 run_ns;		/* CPU consumed by the task before this program, so far as folded in */
	__u64 utime_ns;
	__u64 stime_ns;
	__u64 maxrss_before_pages;	/* signal->maxrss: the peak of what the process was before */
	char comm[PT_COMM_BYTES];
};

/* Followed by `bytes` of argv. */
struct pt_exec_args {
	struct pt_head head;
	__u32 offset;		/* in the argv block */
	__u32 bytes;
};

/* Followed by NAME=value strings, each with its NUL. */
struct pt_env {
	struct pt_head head;	/* .task: the first task seen with it */
	__u64 env_id;
	__u32 bytes;
	__u32 bits;		/* PT_EXEC_ENV_CUT */
};

#define PT_MISS_PATH_FAULT 1	/* the path could not be read (the call got EFAULT, or it was unmapped since) */
#define PT_MISS_PATH_CUT 2
#define PT_MISS_LOST 4		/* set by readers: the record that told it all is missing */

/* Places for look-ups that may be told again, by number alone: as many as a reader need know. */
#define PT_NAMED_SLOTS 32768
/* Longer paths are told in full each time. */
#define PT_NAMED_PATH_MAX 512

/* A failed path look-up or exec, followed by the path without NUL. */
struct pt_miss {
	struct pt_head head;
	__u16 call;		/* enum pt_call */
	__u16 error;		/* errno */
	__s32 dirfd;
	__u32 flags;		/* of the call; of access the mode asked for */
	__u16 path_bytes;
	__u16 bits;		/* PT_MISS_* */
};

/*
 * A failed look-up, followed by the path.
 *
 * Its time is that of the task's last event or of the clock tick before it, whichever is later:
 * reading the clock for each would cost a tenth of what the look-up does.
 */
struct pt_named {
	struct pt_head head;	/* as in pt_miss, */
	__u16 call;
	__u16 error;
	__s32 dirfd;
	__u32 flags;
	__u16 path_bytes;
	__u16 bits;		/* up to here */
	__u32 number;		/* by which PT_LOOKUP_AGAIN refers to it; 0: it does not */
	__u32 slot;		/* takes the place of whoever had this slot before */
};

/* The same call failed in the same way, with the same arguments. */
struct pt_again {
	struct pt_head head;
	__u32 number;		/* of the PT_LOOKUP_NAMED record that told it */
	__u32 pad;
};

#define PT_EXIT_PROCESS 1	/* the last task of its thread group: status and waited_* are the process's */
#define PT_EXIT_AUTOREAP 2	/* parent ignores SIGCHLD: no wait() will ever count it */
#define PT_EXIT_RSS_BOUND 4	/* maxrss_pages is only an upper bound (kernels before 6.16) */
#define PT_EXIT_RELEASED 8	/* waited for, or released by itself, before its last switch: what wait()
				 * said of it lacks up to run_ns - run_at_exit_ns */
#define PT_EXIT_WITHHELD 16	/* the recorder's user might not trace it in the end: no name, bytes of I/O as
				 * far as they were known, and only such look-ups and opens counted as were told */

struct pt_exit {
	struct pt_head head;	/* .time_ns: when it began to exit */
	__u32 process;
	__s32 tgid;
	__s32 tid;
	__u32 status;		/* as wait(2): code << 8 | signal | 0x80 core */
	__u32 bits;		/* PT_EXIT_* */
	__s32 parent_tgid;	/* real parent when it exited */
	__u32 opens;		/* successful opens of the task */
	__u32 lookups_failed;	/* what this task should have left in PT_LOOKUP_FAILED records */
	__u32 execs_failed;	/* and in PT_EXEC_FAILED records */
	__u32 migrations;	/* times it was moved to another CPU; not told before version 3 */
	__u64 start_ns;
	__u64 run_ns;		/* sum_exec_runtime after the last switch: exact */
	__u64 run_at_exit_ns;	/* the same when it began to exit, short of the last slice */
	__u64 utime_ns;		/* ticks, as the kernel sampled them; scaled to run_ns by readers */
	__u64 stime_ns;
	__u64 nvcsw;
	__u64 nivcsw;
	__u64 minflt;
	__u64 majflt;
	__u64 rchar;
	__u64 wchar;
	__u64 read_bytes;
	__u64 write_bytes;
	__u64 run_delay_ns;	/* runnable, waiting for a CPU */
	__u64 maxrss_pages;	/* of the task's own address space at its end */
	__u64 maxrss_ever_pages;	/* signal->maxrss, as wait4 reports it */
	__u64 waited_utime_ns;	/* cutime, cstime: what wait() brought in from children */
	__u64 waited_stime_ns;
	char comm[PT_COMM_BYTES];
};

#define PT_WORKDIR_CUT 1	/* lies deeper than we walk: its front is missing */

/* Followed by the path. Written when the leader of a process exits that never called exec and has
 * left the directory it was born in: such workers have nothing else to tell them apart. */
struct pt_workdir {
	struct pt_head head;
	__u32 process;
	__s32 tgid;
	__s32 tid;
	__u16 path_bytes;
	__u16 bits;		/* PT_WORKDIR_* */
};

struct pt_rename {
	struct pt_head head;
	__u32 process;
	__s32 tgid;
	__s32 tid;
	__u32 pad;
	char comm[PT_COMM_BYTES];	/* the new name */
};

#define PT_SAMPLE_FINAL 1	/* taken when the recording ended: the task was still alive */
#define PT_SAMPLE_WITHHELD 2	/* the recorder's user may not trace it: bytes of I/O are those of before */

struct pt_sample {
	struct pt_head head;
	__u32 process;
	__s32 tgid;
	__s32 tid;
	__u16 state;		/* letter as in /proc/PID/stat: R S D T t Z X I */
	__u16 bits;		/* PT_SAMPLE_* */
	__u64 run_ns;
	__u64 utime_ns;
	__u64 stime_ns;
	__u64 nvcsw;
	__u64 nivcsw;
	__u64 minflt;
	__u64 majflt;
	__u64 rchar;
	__u64 wchar;
	__u64 read_bytes;
	__u64 write_bytes;
	__u64 run_delay_ns;
	__u64 rss_pages;
};

/* Counts every live task, also those whose sample was left out because nothing had changed. */
struct pt_tick {
	struct pt_head head;	/* .task is 0, .time_ns the end of the pass */
	__u64 begin_ns;
	__u32 tasks;
	__u32 running;		/* R: on a CPU or runnable */
	__u32 sleeping;		/* S, I */
	__u32 uninterruptible;	/* D */
	__u32 stopped;		/* T, t */
	__u32 dead;		/* Z, X: waiting to be reaped */
	__u32 sampled;		/* samples written in this pass */
	__u32 lost;
};

enum pt_blind_spot {
	PT_BLIND_IO_URING = 1,	/* made an io_uring: what it opens through that is not seen */
};

struct pt_blind {
	struct pt_head head;
	__u32 process;
	__s32 tgid;
	__s32 tid;
	__u32 what;		/* enum pt_blind_spot */
};

/* Written by the recorder, not by the programs. */
struct pt_memory {
	struct pt_head head;	/* .task: of the process's founder */
	__u32 process;
	__s32 tgid;
	__u64 rss_bytes;
	__u64 pss_bytes;	/* pages shared by n processes count for 1/n */
	__u64 uss_bytes;	/* pages of this process alone: private clean and dirty */
	__u64 shared_bytes;
	__u64 swap_bytes;
};

enum pt_loss_reason {
	PT_LOSS_RING_FULL = 1,
	PT_LOSS_STORAGE = 2,	/* no memory to follow a task: it and its descendants are missing */
	PT_LOSS_RECURSION = 3,	/* the kernel skipped a run of the program (recursion_misses) */
	PT_LOSS_REASONS = 4,
};

struct pt_loss {
	struct pt_head head;	/* .task is 0 */
	__u16 kind;		/* enum pt_kind of what was lost */
	__u16 reason;		/* enum pt_loss_reason */
	__u32 cpu;		/* 0xffffffff: not known per CPU */
	__u64 count;		/* since the start of the recording */
};

_Static_assert(sizeof(struct pt_head) == 16, "pt_head");
_Static_assert(sizeof(struct pt_attach) == 184, "pt_attach");
_Static_assert(sizeof(struct pt_fork) == 96, "pt_fork");
_Static_assert(sizeof(struct pt_exec) == 112, "pt_exec");
_Static_assert(sizeof(struct pt_exec_args) == 24, "pt_exec_args");
_Static_assert(sizeof(struct pt_env) == 32, "pt_env");
_Static_assert(sizeof(struct pt_miss) == 32, "pt_miss");
_Static_assert(sizeof(struct pt_named) == 40, "pt_named");
_Static_assert(sizeof(struct pt_again) == 24, "pt_again");
_Static_assert(sizeof(struct pt_exit) == 216, "pt_exit");
_Static_assert(sizeof(struct pt_workdir) == 32, "pt_workdir");
_Static_assert(sizeof(struct pt_rename) == 48, "pt_rename");
_Static_assert(sizeof(struct pt_sample) == 136, "pt_sample");
_Static_assert(sizeof(struct pt_tick) == 56, "pt_tick");
_Static_assert(sizeof(struct pt_loss) == 32, "pt_loss");
_Static_assert(sizeof(struct pt_blind) == 32, "pt_blind");
_Static_assert(sizeof(struct pt_memory) == 64, "pt_memory");

#endif
