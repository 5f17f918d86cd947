/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Threads that are not watched: for timelines, who they are and when they ran, so that one sees who
 * preempted a watched thread. They make no activations and no models.
 */
#ifndef PUNCTUAL_BYSTANDER_H
#define PUNCTUAL_BYSTANDER_H

/* Whether steps of a thread that is not watched are recorded. One that is about to be watched is
 * introduced as such. */
static __always_inline bool is_bystander(struct task_struct *task)
{
	return with_bystanders && active && task->pid && !wanted(task);
}

/* Whether a thread that is not watched has a record that says who it is. */
static __always_inline bool is_introduced(struct task_struct *task)
{
	__u32 tid = task->pid;

	return is_bystander(task) && bpf_map_lookup_elem(&bystanders, &tid);
}

/* Introduces a thread that was not seen before, or that is not what it was. */
static __always_inline void introduce(struct task_struct *task, __u64 now)
{
	struct bystander fresh = {
		.started = task->start_time,
		.policy = task->policy,
		.rt_priority = task->rt_priority,
		.static_priority = task->static_prio,
	};
	__u32 tid = task->pid;
	struct task_record *record;
	struct bystander *known;

	bpf_probe_read_kernel(fresh.comm, sizeof(fresh.comm), task->comm);
	known = bpf_map_lookup_elem(&bystanders, &tid);
	if (known && known->started == fresh.started && known->policy == fresh.policy &&
		known->rt_priority == fresh.rt_priority &&
		known->static_priority == fresh.static_priority &&
		*(__u64 *)known->comm == *(__u64 *)fresh.comm &&
		*(__u64 *)(known->comm + 8) == *(__u64 *)(fresh.comm + 8))
		return;
	record = reserve_plain(sizeof(*record));
	if (!record)
		return;
	fill_plain_header(&record->header, tid, 0, RECORD_BYSTANDER, BEGIN_SEEN);
	fill_task(record, task, now);
	bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
	bpf_map_update_elem(&bystanders, &tid, &fresh, BPF_ANY);
}

static __always_inline void bystander_step(struct task_struct *task, __u8 step, __u32 by, __u64 now)
{
	/* Of a thread that is kept to be asked about later, when it runs. */
	if (!keeps_moments || step != STEP_WOKEN)
		introduce(task, now);
	emit_step(task->pid, 0, step, by, now);
}

static __always_inline void bystander_out(
	struct task_struct *task, bool preempted, unsigned int state, __u64 now)
{
	__u32 tid = task->pid;
	struct exit_record *record;

	if (!(state & (TASK_DEAD | EXIT_STATES))) {
		bystander_step(task,
			preempted || !state ? step_of_ready(task) : step_of_sleep(state), 0, now);
		return;
	}
	if (bpf_map_delete_elem(&bystanders, &tid))
		return;
	record = reserve_plain(sizeof(*record));
	if (!record)
		return;
	fill_plain_header(&record->header, tid, 0, RECORD_BYSTANDER_EXIT, 0);
	record->at = now;
	bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
}

#endif
