/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The registers at the entry of a system call, read when it returns: they are still saved, so no
 * program at entry is needed. Number and first arguments, per architecture.
 */
#ifndef PROCTRACE_REGS_BPF_H
#define PROCTRACE_REGS_BPF_H

#if defined(__TARGET_ARCH_x86)

#define REG_NR(regs) ((int)(regs)->orig_ax)
#define REG_ARG1(regs) ((regs)->di)
#define REG_ARG2(regs) ((regs)->si)
#define REG_ARG3(regs) ((regs)->dx)
#define REG_ARG4(regs) ((regs)->r10)
#define REG_ARG5(regs) ((regs)->r8)

#define NR_open 2
#define NR_close 3
#define NR_stat 4
#define NR_lstat 6
#define NR_access 21
#define NR_clone 56
#define NR_fork 57
#define NR_vfork 58
#define NR_execve 59
#define NR_chdir 80
#define NR_rename 82
#define NR_creat 85
#define NR_unlink 87
#define NR_readlink 89
#define NR_openat 257
#define NR_newfstatat 262
#define NR_unlinkat 263
#define NR_readlinkat 267
#define NR_faccessat 269
#define NR_renameat2 316
#define NR_execveat 322
#define NR_statx 332
#define NR_clone3 435
#define NR_openat2 437
#define NR_faccessat2 439

#elif defined(__TARGET_ARCH_arm64)

/* x0 is overwritten by the result; orig_x0 keeps the first argument. */
#define REG_NR(regs) ((regs)->syscallno)
#define REG_ARG1(regs) ((regs)->orig_x0)
#define REG_ARG2(regs) ((regs)->user_regs.regs[1])
#define REG_ARG3(regs) ((regs)->user_regs.regs[2])
#define REG_ARG4(regs) ((regs)->user_regs.regs[3])
#define REG_ARG5(regs) ((regs)->user_regs.regs[4])

/* not on this architecture */
#define NR_open -2
#define NR_fork -3
#define NR_vfork -4
#define NR_creat -5
#define NR_stat -6
#define NR_lstat -7
#define NR_access -8
#define NR_readlink -9
#define NR_rename -10
#define NR_unlink -11
#define NR_unlinkat 35
#define NR_faccessat 48
#define NR_close 57
#define NR_chdir 49
#define NR_openat 56
#define NR_readlinkat 78
#define NR_newfstatat 79
#define NR_clone 220
#define NR_execve 221
#define NR_execveat 281
#define NR_renameat2 276
#define NR_statx 291
#define NR_clone3 435
#define NR_openat2 437
#define NR_faccessat2 439

#endif

static __always_inline __u16 call_of(int nr)
{
	switch (nr) {
	case NR_open:
		return PT_CALL_OPEN;
	case NR_openat:
		return PT_CALL_OPENAT;
	case NR_openat2:
		return PT_CALL_OPENAT2;
	case NR_creat:
		return PT_CALL_CREAT;
	case NR_stat:
		return PT_CALL_STAT;
	case NR_lstat:
		return PT_CALL_LSTAT;
	case NR_newfstatat:
		return PT_CALL_NEWFSTATAT;
	case NR_statx:
		return PT_CALL_STATX;
	case NR_access:
		return PT_CALL_ACCESS;
	case NR_faccessat:
		return PT_CALL_FACCESSAT;
	case NR_faccessat2:
		return PT_CALL_FACCESSAT2;
	case NR_readlink:
		return PT_CALL_READLINK;
	case NR_readlinkat:
		return PT_CALL_READLINKAT;
	case NR_chdir:
		return PT_CALL_CHDIR;
	case NR_execve:
		return PT_CALL_EXECVE;
	case NR_execveat:
		return PT_CALL_EXECVEAT;
	case NR_fork:
		return PT_CALL_FORK;
	case NR_vfork:
		return PT_CALL_VFORK;
	case NR_clone:
		return PT_CALL_CLONE;
	case NR_clone3:
		return PT_CALL_CLONE3;
	}
	return PT_CALL_UNKNOWN;
}

static __always_inline struct pt_regs *current_regs(struct task_struct *task)
{
	return (struct pt_regs *)bpf_task_pt_regs(task);
}

#endif
