/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The record layout, from the kernel to the trace file: the only header shared by the BPF programs
 * and (through its mirror in crates/wire) everything that reads a trace.
 *
 * Rules
 *   - little-endian, fixed-width types, all padding explicit, no bool, no enum fields;
 *   - a record is `struct pt_head`, a fixed body, then bytes; its size is a multiple of 8;
 *   - the numbers below are written to disk: never renumber, retire a value by leaving a gap;
 *   - a change of layout increments WIRE_VERSION here and in crates/wire, with the reason.
 *
 * Names
 *   - a *serial* numbers the tasks of one recording from 1 in order of birth. It is attached to
 *     the task itself (BPF task storage), so it survives pid reuse and the exchange of thread
 *     ids in an exec by a non-leader thread. 0 means "not a traced task".
 *   - `process` is the serial of the task that founded the thread group.
 *   - tgid and tid are those of the initial pid namespace.
 *   - every *_ns time stamp is CLOCK_BOOTTIME, like task_struct.start_boottime.
 */
#ifndef PROCTRACE_WIRE_H
#define PROCTRACE_WIRE_H

#ifndef __VMLINUX_H__
#include <linux/types.h>
#endif

/* 1: first layout.
 * 2: failed look-ups become PT_LOOKUP_NAMED and PT_LOOKUP_AGAIN, because most are repeated.
 * 3: PT_WORKDIR, and pt_exit.migrations in former padding: forked workers that never call exec
 *    are identified by their working directory, and pinned ones by staying on their CPU.
 * 4: PT_PLACE and PT_MOUNTS, so that a path belongs to a file system; PT_LOOKUP_TIME; successful
 *    opens (PT_OPENED_NAMED, PT_OPENED_AGAIN); PT_EXEC_SECURE.
 * 5: PT_WAIT and PT_SIGNAL: who waited for whom, and who ended it; PT_EXIT_OOM.
 * 6: pt_memory.vmem_bytes at the end of the record: older ones are shorter.
 * 7: pt_exit.file_rss_pages at the end of the record, likewise: which part of memory may be shared.
 * 8: PT_MOVED: who writes a file beside its name and then renames it.
 * 9: PT_WRITTEN, and PT_MOVED_REMOVED: how much disk space files take, and until when. */
#define WIRE_VERSION 9

enum pt_kind {
	PT_ATTACH = 1,		/* a task traced from now on that has no PT_FORK */
	PT_FORK = 2,		/* fork, vfork, clone, clone3 */
	PT_EXEC = 3,		/* successful execve, execveat */
	PT_EXEC_ARGS = 4,	/* the rest of a long argv */
	PT_EXEC_FAILED = 5,	/* struct pt_miss */
	PT_EXIT = 6,		/* a task's end and its final accounting */
	PT_LOOKUP_FAILED = 7,	/* struct pt_miss; not written any more */
	PT_RENAME = 8,
	PT_SAMPLE = 9,		/* one live task at one tick */
	PT_TICK = 10,		/* ends a pass of samples */
	PT_ENV = 11,		/* the search variables of an environment, once per environment */
	PT_LOSS = 12,		/* cumulative count of lost records */
	PT_BLIND = 13,		/* a task uses an interface that is not traced */
	PT_MEMORY = 14,		/* memory of a process, from /proc/PID/smaps_rollup */
	PT_LOOKUP_NAMED = 15,	/* a failed look-up in full, with a number for repetitions */
	PT_LOOKUP_AGAIN = 16,	/* a repeated failed look-up, by number */
	PT_WORKDIR = 17,	/* final working directory of a process without an exec */
	PT_PLACE = 18,		/* the mount namespace and root of a process */
	PT_MOUNTS = 19,		/* a part of the mount table of a namespace */
	PT_LOOKUP_TIME = 20,	/* how long a failed look-up took: one in many is timed */
	PT_OPENED_NAMED = 21,	/* a successful open: struct pt_named */
	PT_OPENED_AGAIN = 22,	/* a repeated successful open: struct pt_again */
	PT_WAIT = 23,		/* a time off the CPU: asleep, then waiting for a CPU */
	PT_SIGNAL = 24,		/* a signal that usually ends a process, and its sender */
	PT_MOVED = 25,		/* a file or directory was renamed */
	PT_WRITTEN = 26,	/* a descriptor of a file that could be written was closed */
	PT_KINDS = 27,
};

/* The system call of a pt_miss or a fork; the same numbers on every architecture. */
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
/* argv bytes in the exec record itself, in each continuation record, and in total. */
#define PT_ARGV_FIRST 16384
#define PT_ARGV_CHUNK 32768
#define PT_ARGV_CHUNKS 63
#define PT_ARGV_MAX (PT_ARGV_FIRST + PT_ARGV_CHUNKS * PT_ARGV_CHUNK)
/* bytes of one recorded environment variable, and of all together. */
#define PT_ENV_VALUE_MAX 16384
#define PT_ENV_MAX 49152
/* No record is larger; pt_head.size is 16 bits. */
#define PT_RECORD_MAX 65528

struct pt_head {
	__u16 kind;
	__u16 size;		/* of the whole record, a multiple of 8 */
	__u32 task;		/* serial of the task concerned; 0: none */
	__u64 time_ns;
};

/*
 * A recording of many jobs: each job is a cgroup, and its number is the low half of that cgroup's id.
 * A task that moves from one job to another is attached a second time, with the same serial: the
 * values from there on are the other job's.
 */
#define PT_ATTACH_ROOT 1	/* the launched command */
#define PT_ATTACH_ZOMBIE 2	/* a leader that exited before its threads: has no exit record */

struct pt_attach {
	struct pt_head head;
	__u32 process;
	__s32 tgid;
	__s32 tid;
	__s32 parent_tgid;
	__u32 bits;		/* PT_ATTACH_* */
	__s32 tgid_ns;		/* in the task's own pid namespace */
	__s32 tid_ns;
	__u32 group;		/* the job that the task belongs to, see below; 0: none */
	__u64 start_ns;
	/* usage before it was attached: later values include it */
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
	__u32 group;		/* of the child, as in pt_attach */
	__u64 flags;		/* CLONE_* without the exit signal */
	__u64 start_ns;		/* of the child */
	char comm[PT_COMM_BYTES];
};

#define PT_EXEC_ARGV_CAPPED 1	/* argv is longer than PT_ARGV_MAX: the rest is missing */
#define PT_EXEC_ARGV_FAULT 2	/* argv could not be read to its end */
#define PT_EXEC_PATH_CUT 4	/* exe or cwd has too many components: the first are missing */
#define PT_EXEC_ENV_CUT 8	/* the environment is larger than the part scanned */
#define PT_EXEC_COMPAT 16	/* a 32-bit program: its system calls are not traced */
#define PT_EXEC_BEFORE 32	/* before the task was attached: read from /proc */
#define PT_EXEC_WITHHELD 64	/* the recorder's user may not trace the program: no details */
#define PT_EXEC_SECURE 128	/* AT_SECURE: the dynamic linker ignores LD_LIBRARY_PATH */

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
	__u32 argv_here;	/* of it in this record; the rest is in PT_EXEC_ARGS */
	__u16 path_bytes;	/* as given to execve */
	__u16 interp_bytes;	/* the #! interpreter, else 0 */
	__u16 exe_bytes;	/* the executable, symlinks resolved, below the task's root */
	__u16 cwd_bytes;
	__u64 env_id;		/* refers to a PT_ENV record; 0: none recorded */
	__u64 run_ns;		/* the task's CPU time before this program, as far as accounted */
	__u64 utime_ns;
	__u64 stime_ns;
	__u64 maxrss_before_pages;	/* signal->maxrss: peak RSS of the process so far */
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

#define PT_MISS_PATH_FAULT 1	/* the path could not be read (EFAULT, or unmapped since) */
#define PT_MISS_PATH_CUT 2
#define PT_MISS_LOST 4		/* set by readers: the record in full is missing */

/* Slots for repeatable look-ups, which bounds the number that a reader must remember. */
#define PT_NAMED_SLOTS 32768
/* Look-ups of longer paths are recorded in full each time. */
#define PT_NAMED_PATH_MAX 512

/* A failed path look-up or exec, followed by the path without NUL. */
struct pt_miss {
	struct pt_head head;
	__u16 call;		/* enum pt_call */
	__u16 error;		/* errno */
	__s32 dirfd;
	__u32 flags;		/* of the call; for access the requested mode */
	__u16 path_bytes;
	__u16 bits;		/* PT_MISS_* */
};

/*
 * A failed look-up, followed by the path.
 *
 * Its time is that of the task's last event or of the last clock tick, whichever is later: reading
 * the clock for each would cost a tenth of the look-up itself.
 */
struct pt_named {
	struct pt_head head;	/* as in pt_miss, */
	__u16 call;
	__u16 error;
	__s32 dirfd;
	__u32 flags;
	__u16 path_bytes;
	__u16 bits;		/* up to here */
	__u32 number;		/* for references by PT_LOOKUP_AGAIN; 0: none */
	__u32 slot;		/* replaces the look-up that had this slot */
};

/* The same call with the same arguments failed with the same error. */
struct pt_again {
	struct pt_head head;
	__u32 number;		/* of the PT_LOOKUP_NAMED record */
	__u32 pad;
};

/*
 * Duration of a failed look-up, from entry to return of the system call: one of several look-ups
 * is timed, chosen by its position, not by its duration. It refers to the PT_LOOKUP_NAMED record.
 */
struct pt_lookup_time {
	struct pt_head head;	/* of the look-up */
	__u32 number;
	__u32 duration_ns;	/* 4.29 s or more: 0xffffffff */
};

/*
 * PT_OPENED_NAMED and PT_OPENED_AGAIN have the layouts of pt_named and pt_again. error is 0, and the
 * path is that of the file which was opened: symbolic links resolved, below the task's root.
 */

#define PT_MOVED_UNKNOWN 1		/* the paths are not known: both are empty; of the other bits, only PT_MOVED_REMOVED */
#define PT_MOVED_EXCHANGED 2		/* RENAME_EXCHANGE: what had the new path has the old one now */
#define PT_MOVED_FROM_IS_RELATIVE 4	/* the path before is relative to a directory, which is before it */
#define PT_MOVED_PATH_IS_RELATIVE 8	/* the path since is */
#define PT_MOVED_REMOVED 16		/* unlink: the path since is empty; only by eBPF */
#define PT_MOVED_FROM_HERE "/./"	/* between a directory and a path that is relative to it */

/*
 * rename, renameat or renameat2 has succeeded, or unlink or unlinkat has removed a file, recorded along with successful opens. Followed by the path of the file
 * before and its path since, as given to the call. In front of one that is relative are the path of its directory,
 * which is like those of opens, and PT_MOVED_FROM_HERE. In what was given, symbolic links are not resolved; so ".." is not
 * either.
 */
struct pt_moved {
	struct pt_head head;	/* .time_ns: as in pt_named */
	__u16 from_bytes;
	__u16 path_bytes;
	__u32 bits;		/* PT_MOVED_* */
};

#define PT_WRITTEN_PATH_CUT 1	/* the path has too many components: the first are missing */

/*
 * A task closes a descriptor through which a regular file could be written, recorded along with successful opens if
 * the file still has a name. An empty one only if it was not before. Followed by the path of the file, which is like those of opens.
 */
struct pt_written {
	struct pt_head head;	/* .time_ns: as in pt_named */
	__u64 size_bytes;	/* of the file */
	__u32 path_bytes;
	__u32 bits;		/* PT_WRITTEN_* */
};

#define PT_PLACE_CUT 1		/* the root has too many components: the first are missing */

/*
 * Place to which the paths of a process lead: written at the first exec of a recording, and at each exec
 * after which the mount namespace or the root differs from those of the parent. Precedes the
 * exec's record. Followed by the path of the root in the mount namespace.
 */
struct pt_place {
	struct pt_head head;
	__u32 process;
	__s32 tgid;
	__u32 mount_namespace;	/* inode number of /proc/PID/ns/mnt */
	__u16 path_bytes;
	__u16 bits;		/* PT_PLACE_* */
};

#define PT_MOUNTS_CHUNK 32768

/*
 * A part of a mount table, written by the recorder: lines of /proc/PID/mountinfo
 * (proc_pid_mountinfo(5)) without mount options, which may contain credentials. A table is written
 * again if it has changed.
 */
struct pt_mounts {
	struct pt_head head;	/* .task: of the process that was read; 0: the recorder itself */
	__u32 mount_namespace;
	__u32 offset;		/* of this part */
	__u32 bytes;		/* of this part */
	__u32 total_bytes;
};

#define PT_WAIT_BY_TASK 1	/* woken by a system call or the end of the waker */
#define PT_WAIT_BY_INTERRUPT 2	/* woken while an interrupt was served; the waker was interrupted */
#define PT_WAIT_BY_END 4	/* the waker was ending; recorded whatever the duration */
#define PT_WAIT_WITHHELD 8	/* the recorder's user may not trace the waker: no name */

/*
 * A time that a task spent off the CPU, written when it gets a CPU again: all that are longer than
 * a threshold, and shorter ones that the end of another task ended.
 *
 * It was asleep from since_ns to woken_ns, and waited for a CPU from then on. A task that was
 * preempted, or has just been created, is not asleep: its state is R, and woken_ns is since_ns.
 */
struct pt_wait {
	struct pt_head head;	/* .time_ns: when it got a CPU */
	__u32 process;
	__u32 waker;		/* serial; 0: not of this recording */
	__u64 since_ns;		/* when it left its CPU; for a new task its birth */
	__u64 woken_ns;		/* 0: not known */
	__s32 waker_tgid;	/* 0: none */
	__s16 syscall;		/* number on this architecture; -1: none */
	__s16 waker_syscall;	/* -1: none, or not of this recording */
	__u16 file_type;	/* S_IFMT bits >> 12 of the descriptor that is the first argument, if
				 * it is one */
	__u16 state;		/* letter as in pt_sample */
	__u16 bits;		/* PT_WAIT_* */
	__u16 pad;
	char waker_comm[PT_COMM_BYTES];	/* of a waker that is not of this recording */
};

#define PT_SIGNAL_BY_INTERRUPT 1	/* sent while an interrupt was served, as by a timer: the sender
					 * was interrupted */
#define PT_SIGNAL_WITHHELD 2	/* the recorder's user may not trace the sender: no name */

/* A signal was sent to a task of the recording. */
struct pt_signal {
	struct pt_head head;	/* .task: that receives it; of a process, one of its threads */
	__u32 process;
	__s32 tgid;
	__u32 sender;		/* serial; 0: not of this recording */
	__s32 sender_tgid;
	__u16 signal;
	__u16 bits;		/* PT_SIGNAL_* */
	__s32 code;		/* si_code of sigaction(2); 0x80: by the kernel */
	char sender_comm[PT_COMM_BYTES];
};

#define PT_EXIT_PROCESS 1	/* the last task of its thread group: status and waited_* are the process's */
#define PT_EXIT_AUTOREAP 2	/* parent ignores SIGCHLD: no wait() includes it */
#define PT_EXIT_RSS_BOUND 4	/* maxrss_pages is only an upper bound (kernels before 6.16) */
#define PT_EXIT_RELEASED 8	/* waited for, or self-released, before its last switch: the CPU
				 * time seen by wait() lacks up to run_ns - run_at_exit_ns */
#define PT_EXIT_WITHHELD 16	/* the recorder's user could not trace it at its end: no name; I/O
				 * as last seen; counts only the opens and look-ups while visible */
#define PT_EXIT_OOM 32		/* chosen by the out-of-memory killer */

struct pt_exit {
	struct pt_head head;	/* .time_ns: when it began to exit */
	__u32 process;
	__s32 tgid;
	__s32 tid;
	__u32 status;		/* as in wait(2): code << 8 | signal | 0x80 core */
	__u32 bits;		/* PT_EXIT_* */
	__s32 parent_tgid;	/* real parent at its exit */
	__u32 opens;		/* successful opens by the task */
	__u32 lookups_failed;	/* expected number of failed look-up records */
	__u32 execs_failed;	/* expected number of PT_EXEC_FAILED records */
	__u32 migrations;	/* moves to another CPU; since version 3 */
	__u64 start_ns;
	__u64 run_ns;		/* sum_exec_runtime after the last switch: exact */
	__u64 run_at_exit_ns;	/* the same at the start of its exit, without the last slice */
	__u64 utime_ns;		/* sampled at ticks; readers scale it to run_ns */
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
	__u64 waited_utime_ns;	/* cutime, cstime: of children reaped by wait() */
	__u64 waited_stime_ns;
	char comm[PT_COMM_BYTES];
	__u32 file_rss_pages;	/* of files, when the process began to end; 0: not known; since version 7 */
	__u32 pad;
};

#define PT_WORKDIR_CUT 1	/* has too many components: the first are missing */
/* No directory, but the name of the cgroup that is the task's job; precedes its PT_ATTACH. It goes no further
 * than to the recorder, for which the cgroup may be gone before it can look. */
#define PT_WORKDIR_JOB 2

/* Followed by the path. Written when a process leader exits that never called exec and has left the
 * directory it was born in: often only this distinguishes such workers. */
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

#define PT_SAMPLE_FINAL 1	/* at the end of the recording: the task was still alive */
#define PT_SAMPLE_WITHHELD 2	/* the recorder's user may not trace it: I/O as last seen */

struct pt_sample {
	struct pt_head head;
	__u32 process;
	__s32 tgid;
	__s32 tid;
	__u16 state;		/* letter of /proc/PID/stat: R S D T t Z X I */
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

/* Counts every live task, including those without a sample because nothing had changed. */
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
	PT_BLIND_IO_URING = 1,	/* created an io_uring: opens through it are not traced */
	PT_BLIND_TRACER = 2,	/* was refused to trace a task that --backend ptrace traces */
	PT_BLIND_LET_GO = 3,	/* was left to another tracer by --backend ptrace */
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
	__u64 vmem_bytes;	/* address space in use; since version 6 */
};

enum pt_loss_reason {
	PT_LOSS_RING_FULL = 1,
	PT_LOSS_STORAGE = 2,	/* no memory to trace a task: it and its descendants are missing */
	PT_LOSS_RECURSION = 3,	/* the kernel skipped a run of the program (recursion_misses) */
	PT_LOSS_UNREADABLE = 4,	/* a line of an imported log was not understood: never by the kernel */
	PT_LOSS_REASONS = 5,
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
_Static_assert(sizeof(struct pt_moved) == 24, "pt_moved");
_Static_assert(sizeof(struct pt_written) == 32, "pt_written");
_Static_assert(sizeof(struct pt_exit) == 224, "pt_exit");
_Static_assert(sizeof(struct pt_workdir) == 32, "pt_workdir");
_Static_assert(sizeof(struct pt_rename) == 48, "pt_rename");
_Static_assert(sizeof(struct pt_sample) == 136, "pt_sample");
_Static_assert(sizeof(struct pt_tick) == 56, "pt_tick");
_Static_assert(sizeof(struct pt_loss) == 32, "pt_loss");
_Static_assert(sizeof(struct pt_blind) == 32, "pt_blind");
_Static_assert(sizeof(struct pt_memory) == 72, "pt_memory");
_Static_assert(sizeof(struct pt_lookup_time) == 24, "pt_lookup_time");
_Static_assert(sizeof(struct pt_place) == 32, "pt_place");
_Static_assert(sizeof(struct pt_wait) == 72, "pt_wait");
_Static_assert(sizeof(struct pt_signal) == 56, "pt_signal");
_Static_assert(sizeof(struct pt_mounts) == 32, "pt_mounts");

#endif
