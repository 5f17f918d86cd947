/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Whether the machine stood still when a timer should have released a thread: the scheduler keeps,
 * for each processor, what a hypervisor has taken from it, where it accounts for that at all.
 */
#ifndef PUNCTUAL_STEAL_H
#define PUNCTUAL_STEAL_H

/* A timer that is less late than this needs no reason. */
#define STALL_NS 100000

/* What had been taken from this processor, which is the thread's, at its last switch. */
static __always_inline __u64 stolen_so_far(struct task_struct *task)
{
	if (!bpf_core_field_exists(struct rq, prev_steal_time_rq) ||
		!bpf_core_field_exists(task->se.cfs_rq))
		return 0;
	return task->se.cfs_rq->rq->prev_steal_time_rq;
}

/* The thread stops. Its timer is on this processor. */
static __always_inline void note_stolen(struct thread *thread, struct task_struct *task)
{
	thread->stolen_cpu = bpf_get_smp_processor_id();
	thread->stolen = stolen_so_far(task);
}

/* What was taken from the processor between the stop and the wake-up, at least: all of the time
 * since the wake-up may have been, too. */
static __always_inline __u64 stolen_in_sleep(
	struct thread *thread, struct task_struct *task, __u64 woken, __u64 now)
{
	__u64 stolen, since = now - woken;

	if (thread->stolen_cpu != bpf_get_smp_processor_id())
		return 0;
	stolen = stolen_so_far(task) - thread->stolen;
	return stolen > since ? stolen - since : 0;
}

/* Whether most of the time that its timer came late had been taken from the processor. */
static __always_inline bool is_stalled(struct thread *thread)
{
	__u64 late = thread->earliest - thread->arrival;

	return thread->arrival && thread->earliest >= thread->arrival + STALL_NS &&
	       thread->stolen_before_release * 2 > late;
}

#endif
