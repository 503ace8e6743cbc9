/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * One pass over all tasks: a sample of each live traced task whose CPU time or state changed since
 * its last one, then a tick with the totals. Unchanged tasks are skipped, so a thousand sleeping
 * threads add nothing to the trace.
 *
 * The program writes records to the iterator's own buffer, which the recorder reads like a file.
 */
#ifndef PROCTRACE_SAMPLE_BPF_H
#define PROCTRACE_SAMPLE_BPF_H

/* Global, because a single reader runs one pass at a time. */
static struct pt_tick tick;

static __always_inline void count_state(char letter)
{
	tick.tasks++;
	switch (letter) {
	case 'R':
		tick.running++;
		break;
	case 'S':
	case 'I':
		tick.sleeping++;
		break;
	case 'D':
		tick.uninterruptible++;
		break;
	case 'T':
	case 't':
		tick.stopped++;
		break;
	default:
		tick.dead++;
	}
}

static __always_inline int write_tick(struct seq_file *seq)
{
	set_head(&tick.head, PT_TICK, sizeof(tick), 0, bpf_ktime_get_boot_ns());
	bpf_seq_write(seq, &tick, sizeof(tick));
	return 0;
}

/* True if a task is hidden from the caller. Of one that has ended the address space is gone, so that its exit has
 * decided. */
static __always_inline bool is_hidden(struct task_struct *task, struct task_state *state)
{
	bool ended = state->exit_ns;

	full_barrier();
	return ended ? state->exit_bits & PT_EXIT_WITHHELD : !may_still_see(task);
}

static __always_inline int write_sample(struct seq_file *seq, struct task_struct *task,
					struct mm_struct *mm, __u32 serial, __u32 process,
					char letter, bool final, bool hidden)
{
	struct io_counters io;
	struct task_state *state;
	struct pt_sample s = {};

	set_head(&s.head, PT_SAMPLE, sizeof(s), serial, bpf_ktime_get_boot_ns());
	s.process = process;
	s.tgid = tgid_of(task);
	s.tid = tid_of(task);
	s.state = letter;
	s.bits = (final ? PT_SAMPLE_FINAL : 0) | (hidden ? PT_SAMPLE_WITHHELD : 0);
	s.run_ns = task->se.sum_exec_runtime;
	s.utime_ns = task->utime;
	s.stime_ns = task->stime;
	s.nvcsw = task->nvcsw;
	s.nivcsw = task->nivcsw;
	s.minflt = task->min_flt;
	s.majflt = task->maj_flt;
	s.run_delay_ns = task->sched_info.run_delay;
	s.rss_pages = mm_rss_pages(mm);
	/* the slot of a thread that has ended meanwhile may have been reused */
	state = state_of(task);
	if (!state || state->task != serial)
		return 0;
	state->sampled_run_ns = s.run_ns;
	state->sampled_state = letter;
	io = read_io(task);
	/* checked again: it may have executed another program, or ended, since the check in on_sample() */
	if (restricted && !hidden && is_hidden(task, state)) {
		hidden = true;
		s.bits |= PT_SAMPLE_WITHHELD;
	}
	if (hidden)
		io = seen_io_of(state);
	else if (restricted)
		state->seen_io = io;
	put_io(&s, &io);
	/* when the buffer is full, the kernel drains it and calls this again for the same task */
	if (bpf_seq_write(seq, &s, sizeof(s))) {
		state->sampled_run_ns = ~0ULL;
		return 1;
	}
	tick.sampled++;
	return 0;
}

SEC("iter/task")
int on_sample(struct bpf_iter__task *ctx)
{
	struct seq_file *seq = ctx->meta->seq;
	struct task_struct *task = ctx->task;
	struct task_state *state;
	struct orders *orders;
	struct mm_struct *mm;
	__u32 pass, serial, process;
	bool changed, ended, hidden = false;
	char letter;

	if (empty_programs || is_run_by_another(bpf_get_current_task_btf()))
		return 0;
	if (ctx->meta->seq_num == 0) {
		__builtin_memset(&tick, 0, sizeof(tick));
		tick.begin_ns = bpf_ktime_get_boot_ns();
	}
	if (!task)
		return write_tick(seq);
	mm = BPF_CORE_READ(task, mm);
	letter = state_letter(task);
	state = state_of(task);
	if (!state)
		return 0;
	serial = state->task;
	process = state->process;
	/* its exit record is already written, or will be at its last switch */
	ended = state->exit_ns;
	changed = state->sampled_state != letter ||
		  state->sampled_run_ns != task->se.sum_exec_runtime;
	if (restricted)
		hidden = is_hidden(task, state);
	orders = get_orders();
	pass = orders ? orders->pass : PASS_CHANGED;

	if (changed || (pass != PASS_CHANGED && !ended)) {
		if (write_sample(seq, task, mm, serial, process, letter,
				 pass == PASS_FINAL && !ended, hidden))
			return 0;
	}
	count_state(letter);
	return 0;
}

#endif
