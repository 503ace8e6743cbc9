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

static __always_inline int write_sample(struct seq_file *seq, struct task_struct *task,
					struct mm_struct *mm, __u32 serial, __u32 process,
					char letter, bool final, bool hidden)
{
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
	write_io(&s, task);
	if (hidden)
		write_seen_io(&s, state);
	else if (restricted)
		keep_seen_io(state, &s);
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
	bool changed, ended, hidden;
	char letter;

	if (empty_programs)
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
	/* the address space is gone, so its visibility cannot be checked again */
	hidden = restricted && (ended ? state->exit_bits & PT_EXIT_WITHHELD : !may_see(task));
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
