/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Question of a broker to the kernel about a client, and the answer; crates/probe/src/who.rs has the same in Rust.
 */
#ifndef PROCTRACE_WHO_H
#define PROCTRACE_WHO_H

#define WHO_MAPS_MAX 8

struct who_asked {
	__u32 tgid;		/* in the initial pid namespace */
	__u32 maps[WHO_MAPS_MAX];	/* ids; 0: none */
	__u32 pad;
};

struct who_told {
	__u64 permitted;	/* capabilities, in its user namespace */
	__u64 effective;
	__u64 ambient;
	__u64 user_ns;		/* address */
	__u64 pid_ns;		/* address */
	__u64 cgroup;		/* id, in the hierarchy of version 2 */
	__u64 started_ns;	/* CLOCK_BOOTTIME */
	__u32 ids[6];		/* uid, euid, suid, gid, egid, sgid in the initial user namespace */
	__u32 user_ns_level;
	__u32 owner;		/* uid in the initial user namespace; see owner_of() */
	__u32 pid_level;
	__u32 found;
	__u32 maps_found;	/* of those that were asked for */
	__u32 pad;
};

#endif
