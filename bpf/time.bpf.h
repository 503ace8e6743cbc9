/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Duration of look-ups, from entry to return of the system call.
 *
 * Only one call in time_one_in is timed, because both readings of the clock, the search for the
 * state and the record cost as much as half of a failed open. The choice is made at entry by
 * counting down the calls on each CPU, so that it does not depend on the duration: the mean of the
 * timed calls is that of all. The counts are random, because searches repeat: every 16th call of a
 * search of 16 directories would always be one in the same directory.
 *
 * The time for which a task waits for a CPU in the middle of a call is not the call's: with more tasks
 * than CPUs, a mean of 2 us became 424. It is subtracted where switches are recorded (note_on()), by
 * moving the entry; sleeping, as for a disk, remains.
 */
#ifndef PROCTRACE_TIME_BPF_H
#define PROCTRACE_TIME_BPF_H

/* On average; 0: none is timed. */
const volatile __u32 time_one_in = 0;

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} calls_untimed SEC(".maps");

/* The number of timed calls in progress: while it is 0, calls whose success is not recorded need
 * not look for their state when they return. */
static __u64 timed_now;

static __always_inline int note_entry(void)
{
	struct task_state *state;
	__u64 *left, begin;
	__u32 zero = 0;

	if (empty_programs)
		return 0;
	left = bpf_map_lookup_elem(&calls_untimed, &zero);
	if (!left)
		return 0;
	if (*left) {
		*left -= 1;
		return 0;
	}
	if (!time_one_in)
		return 0;
	/* on average time_one_in - 1 */
	*left = bpf_get_prandom_u32() % (2 * time_one_in - 1);
	state = state_of(bpf_get_current_task_btf());
	if (!state)
		return 0;
	begin = state->entered_ns;
	state->entered_ns = bpf_ktime_get_ns();
	if (!begin)
		__sync_fetch_and_add(&timed_now, 1);
	return 0;
}

/* Ends the timing of a call; returns its duration, or 0 if it is not timed. */
static __always_inline __u64 end_timing(struct task_state *state)
{
	__u64 begin = state->entered_ns;

	if (!begin)
		return 0;
	state->entered_ns = 0;
	__sync_fetch_and_add(&timed_now, -1);
	return bpf_ktime_get_ns() - begin;
}

/* Ends the timing of a call that is not recorded. */
static __always_inline void drop_timing(void)
{
	struct task_state *state;

	if (!timed_now)
		return;
	state = state_of(bpf_get_current_task_btf());
	if (state)
		end_timing(state);
}

static __always_inline void write_lookup_time(__u32 serial, __u64 time_ns, __u32 number,
					      __u64 duration_ns)
{
	struct pt_lookup_time *r = bpf_ringbuf_reserve(&lookups, sizeof(*r), 0);

	if (!r) {
		count_loss(PT_LOOKUP_TIME, PT_LOSS_RING_FULL);
		return;
	}
	set_head(&r->head, PT_LOOKUP_TIME, sizeof(*r), serial, time_ns);
	r->number = number;
	r->duration_ns = duration_ns > 0xffffffff ? 0xffffffff : duration_ns;
	bpf_ringbuf_submit(r, BPF_RB_NO_WAKEUP);
}

/* Attached to syscalls/sys_enter_X for each X below. */
SEC("tracepoint/syscalls/sys_enter")
int on_entry(void *ctx)
{
	return note_entry();
}

/* Attached to the function that implements the call, like the programs of lookup.bpf.h, and only to
 * those that most searches use. */
#define ENTRY_OF(name)                                                      \
	SEC("fentry")                                                       \
	int on_entry_of_##name(__u64 *ctx)                                  \
	{                                                                   \
		return note_entry();                                        \
	}

ENTRY_OF(open)
ENTRY_OF(openat)
ENTRY_OF(stat)
ENTRY_OF(newfstatat)
ENTRY_OF(statx)
ENTRY_OF(access)
ENTRY_OF(readlink)

#endif
