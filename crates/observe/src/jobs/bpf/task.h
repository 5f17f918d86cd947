/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which threads are watched, and what makes a task: policy, priority, affinity. */
#ifndef PUNCTUAL_TASK_H
#define PUNCTUAL_TASK_H

static __always_inline bool is_real_time(__u32 policy)
{
	return policy == SCHED_FIFO || policy == SCHED_RR || policy == SCHED_DEADLINE;
}

/* Whether thread numbers in a program mean the same to the observer: one PID namespace. */
static __always_inline bool shares_numbers(struct task_struct *task)
{
	struct pid *pid = BPF_CORE_READ(task, thread_pid);
	__u32 level = pid ? BPF_CORE_READ(pid, level) : 8;
	void *at = (void *)pid + bpf_core_field_offset(struct pid, numbers) +
		   level * bpf_core_type_size(struct upid);

	if (!pid_namespace || level >= 8)
		return !level;
	return BPF_CORE_READ((struct upid *)at, ns, ns.inum) == pid_namespace;
}

/* The number that `pid` has in the observer's namespace, 0 if it is not there. */
static __always_inline __u32 seen_number(struct task_struct *task, __u32 global)
{
	struct pid *pid;
	__u32 level;

	if (!pid_namespace)
		return global;
	pid = BPF_CORE_READ(task, thread_pid);
	if (!pid)
		return 0;
	level = BPF_CORE_READ(pid, level);
	for (__u32 i = 0; i < 8; i++) {
		/* Addressed by hand: CO-RE knows the array as having one element. */
		void *at = (void *)pid + bpf_core_field_offset(struct pid, numbers) +
			   i * bpf_core_type_size(struct upid);

		if (i > level)
			break;
		if (BPF_CORE_READ((struct upid *)at, ns, ns.inum) == pid_namespace)
			return BPF_CORE_READ((struct upid *)at, nr);
	}
	return 0;
}

/* Whether the task's cgroup, or one that it lies in, is the one to watch. */
static __always_inline bool in_cgroup(struct task_struct *task)
{
	struct cgroup *cgroup = BPF_CORE_READ(task, cgroups, dfl_cgrp);
	int level;

	if (!cgroup)
		return false;
	level = BPF_CORE_READ(cgroup, level);
	for (int i = 0; i < CGROUP_LEVELS; i++) {
		__u64 id = 0;

		if (i > level)
			break;
		if (bpf_core_field_exists(struct cgroup, ancestors)) {
			struct cgroup *ancestor = NULL;

			bpf_probe_read_kernel(&ancestor, sizeof(ancestor),
				(void *)cgroup + bpf_core_field_offset(struct cgroup, ancestors) +
					i * sizeof(void *));
			id = BPF_CORE_READ(ancestor, kn, id);
		} else {
			bpf_probe_read_kernel(&id, sizeof(id),
				(void *)cgroup +
					bpf_core_field_offset(struct cgroup___ids, ancestor_ids) +
					i * sizeof(id));
		}
		if (id == cgroup_id)
			return true;
	}
	return false;
}

/* Whether a thread is one to watch. */
static __always_inline bool is_in_target(struct task_struct *task)
{
	__u32 seen;

	if (!active)
		return false;
	if (!is_real_time(task->policy) && !(best_effort_too && target != TARGET_ALL_REAL_TIME))
		return false;
	if (task->pid == 0)
		return false;
	seen = pid_namespace ? seen_number(BPF_CORE_READ(task, group_leader), task->tgid)
			     : (__u32)task->tgid;
	if (seen == own_tgid)
		return false;
	if (target == TARGET_PROCESSES)
		return bpf_map_lookup_elem(&processes, &seen) != NULL;
	if (target == TARGET_CGROUP)
		return in_cgroup(task);
	return true;
}

/* Whether a thread that is not watched yet should be. One that has ended still runs for a while,
 * and may be preempted: do not watch it again. */
static __always_inline bool wanted(struct task_struct *task)
{
	return !(task->flags & PF_EXITING) && is_in_target(task);
}

static __always_inline __u64 affinity_key(struct task_struct *task)
{
	__u64 key = (__u32)task->nr_cpus_allowed;

	for (__u32 i = 0; i < AFFINITY_WORDS; i++) {
		__u64 word = 0;

		if (i >= affinity_words)
			break;
		if (i == 0)
			word = task->cpus_mask.bits[0];
		else
			bpf_probe_read_kernel(
				&word, sizeof(word), (void *)&task->cpus_mask + i * sizeof(word));
		key = (key ^ word) * 0x9e3779b97f4a7c15ULL;
		key ^= key >> 29;
	}
	return key;
}

static __always_inline __u64 reservation_key(struct task_struct *task)
{
	return task->dl.dl_runtime ^ (task->dl.dl_deadline << 21 | task->dl.dl_deadline >> 43) ^
	       (task->dl.dl_period << 42 | task->dl.dl_period >> 22);
}

/* Updates what makes the task; returns what changed, BEGIN_SEEN for nothing. */
static __always_inline __u8 changed(struct thread *thread, struct task_struct *task)
{
	__u32 policy = task->policy;
	__u32 rt_priority = task->rt_priority;
	__s32 nice = is_real_time(policy) ? 0 : (__s32)task->static_prio - NICE_TO_PRIO;
	__u64 reservation = policy == SCHED_DEADLINE ? reservation_key(task) : 0;
	__u64 affinity = affinity_key(task);
	__u64 parameters = affinity ^ reservation ^
			   ((__u64)policy << 56 | (__u64)rt_priority << 32 | (__u32)nice);
	__u8 what = BEGIN_SEEN;

	/* All at once first: mostly nothing has changed. Affinity and reservation are hashes
	 * themselves. */
	if (thread->parameters == parameters)
		return BEGIN_SEEN;
	thread->parameters = parameters;
	if (thread->affinity != affinity)
		what = BEGIN_AFFINITY;
	if (thread->rt_priority != rt_priority || thread->nice != nice ||
		thread->reservation != reservation)
		what = BEGIN_PRIORITY;
	if (thread->policy != policy)
		what = BEGIN_POLICY;
	if (what != BEGIN_SEEN) {
		thread->policy = policy;
		thread->rt_priority = rt_priority;
		thread->nice = nice;
		thread->reservation = reservation;
		thread->affinity = affinity;
	}
	return what;
}

/* All of a task record but its header and the command line. */
static __always_inline void fill_task(
	struct task_record *record, struct task_struct *task, __u64 now)
{
	record->at = now;
	record->runtime = task->dl.dl_runtime;
	record->deadline = task->dl.dl_deadline;
	record->period = task->dl.dl_period;
	record->tgid = task->tgid;
	record->seen_tid = seen_number(task, task->pid);
	record->seen_tgid = pid_namespace
				    ? seen_number(BPF_CORE_READ(task, group_leader), task->tgid)
				    : (__u32)task->tgid;
	record->policy = task->policy;
	record->rt_priority = task->rt_priority;
	record->nice = is_real_time(task->policy) ? 0 : (__s32)task->static_prio - NICE_TO_PRIO;
	record->kernel_thread = (task->flags & PF_KTHREAD) != 0;
	bpf_probe_read_kernel(record->comm, sizeof(record->comm), task->comm);
	for (__u32 i = 0; i < AFFINITY_WORDS; i++) {
		record->affinity[i] = 0;
		if (i < affinity_words)
			bpf_probe_read_kernel(&record->affinity[i], sizeof(__u64),
				(void *)&task->cpus_mask + i * sizeof(__u64));
	}
	record->command_length = 0;
}

/* Not inlined: it is rare, and large. */
static __noinline int emit_task(
	struct thread *thread, struct task_struct *task, __u8 begin, __u64 now, bool with_command)
{
	struct task_record *record;

	record = thread ? reserve(thread, sizeof(*record)) : NULL;
	if (!record)
		return 0;
	fill_header(&record->header, thread, RECORD_TASK, begin);
	fill_task(record, task, now);
	if (with_command) {
		struct mm_struct *mm = task->mm;
		unsigned long start = BPF_CORE_READ(mm, arg_start);
		unsigned long length = BPF_CORE_READ(mm, arg_end) - start;

		if (length > COMMAND_LENGTH)
			length = COMMAND_LENGTH;
		if (length &&
			!bpf_probe_read_user(record->command,
				length & (2 * COMMAND_LENGTH - 1) ? length : 1, (void *)start))
			record->command_length = length;
	}
	submit(thread, record);
	return 0;
}

/* The command line of the current thread, as it is now: an exec may change it before user space
 * could ask. */
static __always_inline void emit_command(struct thread *thread, struct task_struct *task)
{
	struct mm_struct *mm = task->mm;
	struct command_record *record;
	unsigned long start, length;

	thread->command_sent = 1;
	if (!mm)
		return;
	start = BPF_CORE_READ(mm, arg_start);
	length = BPF_CORE_READ(mm, arg_end) - start;
	if (length > COMMAND_LENGTH)
		length = COMMAND_LENGTH;
	record = reserve(thread, sizeof(*record));
	if (!record)
		return;
	fill_header(&record->header, thread, RECORD_COMMAND, 0);
	record->seen_tgid = seen_number(BPF_CORE_READ(task, group_leader), task->tgid);
	record->length = 0;
	if (length && !bpf_probe_read_user(record->command,
			      length & (2 * COMMAND_LENGTH - 1) ? length : 1, (void *)start))
		record->length = length;
	submit(thread, record);
}

/* A new thread's place in the map. Not inlined: its state takes more than half of the stack, which
 * is for all functions that call each other. */
static __noinline int insert(struct task_struct *task, __u64 now)
{
	struct thread fresh = {};

	fresh.tid = task->pid;
	fresh.call = CALL_NONE;
	fresh.clock_from = now;
	fresh.cpu_then = fresh.cpu_at_begin = task->se.sum_exec_runtime;
	/* Before others see it: a program that interrupts this one would take what is not filled in
	 * yet for a transition. */
	changed(&fresh, task);
	return bpf_map_update_elem(&threads, &fresh.tid, &fresh, BPF_NOEXIST);
}

/* Begins to watch a thread. */
static __always_inline struct thread *watch(
	struct task_struct *task, __u64 now, __u8 begin, bool with_command)
{
	__u32 tid = task->pid;
	struct thread *thread;
	int result = insert(task, now);

	if (result) {
		/*
		 * Short of memory for the moment, or a program that this one interrupted (or that
		 * interrupts this one) has just begun to watch the same thread: there is another
		 * chance at its next switch. Its end counts it if there was none.
		 */
		if (result != -ENOMEM && result != -EEXIST)
			count(COUNTER_UNTRACKED);
		return NULL;
	}
	thread = bpf_map_lookup_elem(&threads, &tid);
	if (!thread)
		return NULL;
	thread->command_sent = with_command;
	emit_task(thread, task, begin, now, with_command);
	return thread;
}

#endif
