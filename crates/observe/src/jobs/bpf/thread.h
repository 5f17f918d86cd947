/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The state machine of one thread: it stops, wakes up, is in a call. Repaired where events were not
 * seen. */
#ifndef PUNCTUAL_THREAD_H
#define PUNCTUAL_THREAD_H

static __always_inline struct thread *watched(__u32 tid)
{
	return active ? bpf_map_lookup_elem(&threads, &tid) : NULL;
}

/* The thread's processor time: the kernel's account, which is exact at a switch, and what earlier
 * readings by the clock were ahead of it. */
static __always_inline __u64 accounted(struct thread *thread, struct task_struct *task)
{
	return task->se.sum_exec_runtime + thread->unaccounted;
}

/*
 * An upper bound of the same, of the running thread now. Between switches the account is as old as
 * the last tick, so the clock is read instead, which also counts what a hypervisor or (under IRQ
 * time accounting) interrupts took from the thread.
 */
static __always_inline __u64 cpu_now(struct thread *thread, struct task_struct *task, __u64 now)
{
	__u64 account = task->se.sum_exec_runtime;
	__u64 own = thread->cpu_then + (now - thread->clock_from);

	return (own > account ? own : account) + thread->unaccounted;
}

/*
 * The thread's turn on a processor is over, and its account is exact again. If a record was sent
 * with a reading by the clock, what that was ahead of the account is kept: otherwise the next
 * difference, the cost of a job, would be too small by as much.
 */
static __always_inline void end_turn(
	struct thread *thread, struct task_struct *task, __u64 now, bool read_by_clock)
{
	__u64 account = task->se.sum_exec_runtime;

	if (read_by_clock) {
		__s64 ahead = (now - thread->clock_from) - (account - thread->cpu_then);

		if (ahead > 0)
			thread->unaccounted += ahead;
		thread->read_by_clock = 0;
	}
	thread->clock_from = now;
	thread->cpu_then = account;
}

/* The key of the system call that a user thread is in, negative outside of them. */
static __always_inline int current_key(struct task_struct *task)
{
	struct pt_regs *regs;

	if (task->flags & (PF_KTHREAD | PF_IO_WORKER | PF_USER_WORKER))
		return -1;
	regs = (struct pt_regs *)bpf_task_pt_regs(task);
	return (int)SYSCALL_NUMBER(regs) < 0 ? -1 : (int)key_of(task, SYSCALL_NUMBER(regs));
}

/* The offset between the clocks is not read at every stop: their drift in this time is within the
 * slack of `from_account`. */
#define CLOCK_FRESH_NS 20000000

/*
 * Remembers the kernel's account of run-queue waiting at a stop. The clock of the run queue is
 * reached through the queue of the task's group, which the kernel maintains for every policy.
 */
static __always_inline void note_account(struct thread *thread, struct task_struct *task, __u64 now)
{
	if (!bpf_core_field_exists(task->sched_info.last_arrival) ||
		!bpf_core_field_exists(task->se.cfs_rq))
		return;
	if (now - thread->clock_read_at > CLOCK_FRESH_NS) {
		thread->clock_offset = now - task->se.cfs_rq->rq->clock;
		thread->clock_read_at = now;
	}
	thread->run_delay = task->sched_info.run_delay;
	thread->arrivals = task->sched_info.pcount;
}

/*
 * When the thread became ready to run, by that account: when it got a processor, less how long it
 * waited for one. In the scheduler's clock, whose offset to ours was taken at a stop: exact to the
 * microseconds between the two readings and to the drift since (500 ppm, the fastest that time is
 * slewed). False where the account does not say.
 */
static __always_inline bool from_account(struct thread *thread, struct task_struct *task, __u64 now,
	__u64 *earliest, __u64 *latest, __u64 *start)
{
	__u64 ready, got, slack;

	if (!bpf_core_field_exists(task->sched_info.last_arrival) || !thread->clock_offset)
		return false;
	if (task->sched_info.pcount == thread->arrivals + 1) {
		/* It has had a processor once since: the switch was not seen. */
		got = task->sched_info.last_arrival;
		ready = got - (task->sched_info.run_delay - thread->run_delay);
	} else if (task->sched_info.pcount == thread->arrivals && task->sched_info.last_queued &&
		   task->sched_info.run_delay == thread->run_delay) {
		/* It is getting one right now. */
		ready = task->sched_info.last_queued;
		got = now - thread->clock_offset;
	} else {
		return false;
	}
	ready += thread->clock_offset;
	got += thread->clock_offset;
	if (ready < thread->stop || ready > now)
		return false;
	slack = 10000 + (now - thread->clock_read_at) / 2000;
	*earliest = ready - slack > *earliest ? ready - slack : *earliest;
	*latest = ready + slack < *latest ? ready + slack : *latest;
	*start = got < *latest ? *latest : got < now ? got : now;
	return true;
}

/* The thread stops. A later sleep in the same call is the one that counts, unless it is of a lesser
 * kind or a stop by a signal. */
static __always_inline void fall_asleep(
	struct thread *thread, struct task_struct *task, __u64 now, __u8 kind)
{
	thread->state = THREAD_ASLEEP;
	thread->sleep = kind;
	thread->stop = now;
	end_turn(thread, task, now, thread->read_by_clock);
	note_account(thread, task, now);
	note_stolen(thread, task);
	if (thread->call == CALL_NONE) {
		thread->cpu_at_stop = accounted(thread, task);
	} else if (!thread->first_stop || (kind >= thread->released && !thread->interrupted)) {
		if (!thread->first_stop)
			thread->first_stop = now;
		thread->cpu_at_stop = accounted(thread, task);
	}
}

/* Sets the wake-up that ended the sleep of a call; a later one may replace it. */
static __always_inline void release(
	struct thread *thread, __u64 earliest, __u64 latest, __u64 start)
{
	thread->earliest = earliest;
	thread->latest = latest;
	thread->start = start;
	thread->suspended_after = 0;
}

/*
 * The first event after a sleep. If no wake-up was seen, the release is a window: by the kernel's
 * account where that says, else from the stop, or the known arrival, until now.
 */
static __always_inline void wake_up(struct thread *thread, struct task_struct *task, __u64 now)
{
	__u64 earliest, latest, start = now;

	if (thread->state != THREAD_ASLEEP)
		return;
	thread->state = THREAD_RUNNING;
	if (thread->waking >= thread->stop) {
		earliest = latest = thread->waking;
	} else {
		earliest = thread->stop;
		latest = now;
		if (thread->call != CALL_NONE && thread->arrival > earliest &&
			thread->arrival <= latest)
			earliest = thread->arrival;
		if (thread->call != CALL_SCHED_YIELD)
			from_account(thread, task, now, &earliest, &latest, &start);
	}
	/* The switch to it may be what was not seen: it has not run before. If that is the event at
	 * hand, it says so next. */
	thread->clock_from = earliest;
	if (thread->call == CALL_NONE) {
		__u8 disturbance = thread->sleep == SLEEP_STOPPED ? DISTURBANCE_SIGNAL
				   : is_ending(task)		  ? DISTURBANCE_ENDING
								  : DISTURBANCE_NONE;

		emit_suspension(thread, disturbance, earliest, latest, start);
	} else if (thread->interrupted) {
		/* The thread was stopped on its way out of the call. A timer that has gone off by
		 * now had its effect with the first wake-up since then. */
		if (thread->arrival && thread->latest >= thread->arrival)
			thread->suspended_after += latest - thread->stop;
		else
			release(thread, earliest, latest, start);
	} else if (thread->sleep >= thread->released) {
		thread->released = thread->sleep;
		thread->disturbance = DISTURBANCE_NONE;
		thread->stolen_before_release = stolen_in_sleep(thread, task, earliest, now);
		release(thread, earliest, latest, start);
	} else {
		thread->suspended_after += latest - thread->stop;
	}
}

/*
 * The call is resumed that was left for a signal. It is one call, and the wake-up by the signal
 * released nothing. If it does not sleep again, the timer went off meanwhile, or what it waits for
 * came after it had left.
 */
static __always_inline void resume_call(struct thread *thread, __u64 now)
{
	thread->interrupted = INTERRUPTED_NOT;
	if (!thread->first_stop) {
		thread->disturbance = DISTURBANCE_NONE;
		return;
	}
	thread->restarted = 1;
	thread->disturbance = DISTURBANCE_SIGNAL;
	if (thread->arrival && thread->latest >= thread->arrival) {
		thread->released = SLEEP_OVER;
		return;
	}
	thread->released = SLEEP_NONE;
	if (!thread->arrival)
		release(thread, thread->left, now, now);
	else
		/* Without a further sleep it comes between its time and the end of the call. */
		release(thread, thread->arrival, now >= thread->arrival ? now : 0, now);
}

/*
 * The call slept, or was about to, and the switch was not seen. Its entry was read by the clock,
 * and how much that was ahead is not known: at most everything since the last exact reading.
 */
static __always_inline void make_up_for_sleep(
	struct thread *thread, struct task_struct *task, bool woken, bool slept, __u64 now)
{
	__u64 read = thread->cpu_at_entry - thread->unaccounted;

	thread->first_stop = thread->entry;
	thread->cpu_at_stop = thread->cpu_at_entry;
	thread->earliest = woken ? thread->waking : thread->entry;
	thread->latest = woken ? thread->waking : now;
	if (!woken && thread->arrival > thread->entry && thread->arrival <= now)
		thread->earliest = thread->arrival;
	thread->start = woken ? thread->waking : now;
	thread->read_by_clock = !slept;
	if (!slept)
		return;
	if ((__s64)(read - thread->cpu_then) > 0)
		thread->unaccounted += read - thread->cpu_then;
	thread->clock_from = thread->earliest;
	thread->cpu_then = task->se.sum_exec_runtime;
}

/* Of a call whose end was not seen: assume that what it waited for came. */
#define RESULT_UNKNOWN 1

/*
 * Whether the call slept until its time. Its wake-up may have come before that all the same: from a
 * signal, with the timer going off before the thread had a processor. The kernel shows one wake-up.
 */
static __always_inline bool timed_out(struct thread *thread, long result, __u64 now)
{
	return !result && thread->arrival <= now && may_sleep(thread->call);
}

/* The timer went off when the thread had been woken already, before it had a processor or after. */
static __always_inline void release_at_arrival(struct thread *thread, __u64 now)
{
	__u64 start = thread->start >= thread->arrival ? thread->start : now;

	release(thread, thread->arrival, start, start);
}

/* The call is over, and the wake-up that was seen came before its time. */
static __always_inline void settle_arrival(struct thread *thread, long result, __u64 now)
{
	if (timed_out(thread, result, now)) {
		release_at_arrival(thread, now);
	} else if (thread->restarted && thread->released == SLEEP_NONE && thread->arrival <= now) {
		thread->latest = thread->start = now;
	} else {
		thread->arrival = 0; /* ended before its time, by a signal */
		if (!thread->latest)
			release(thread, thread->left, now, now);
	}
}

/* Looks whether the call that is over slept, where its switch was not seen. */
static __always_inline void settle_sleep(
	struct thread *thread, struct task_struct *task, __u64 voluntary_switches, __u64 now)
{
	bool voluntary = voluntary_switches != thread->voluntary_switches;
	bool woken = thread->waking > thread->entry;

	if (!thread->first_stop && (woken || voluntary))
		make_up_for_sleep(thread, task, woken, voluntary, now);
}

/*
 * The call returned expirations of a timer, which knows when they were. A call that slept was woken
 * by the first of them; one that did not wait finds the last. A time that cannot be is of a timer
 * that another thread has set anew since.
 */
static __always_inline void note_timer(
	struct thread *thread, struct task_struct *task, struct timer_report *timer)
{
	__u64 now = bpf_ktime_get_ns();
	__u64 span = timer->expirations * timer->interval;
	__u64 first = timer->next - span;
	__u64 last = timer->next - timer->interval;

	thread->expirations = timer->expirations;
	if (timer->next <= span || last > now)
		return;
	first = due_with_steps(timer->clock, first);
	last = due_with_steps(timer->clock, last);
	settle_sleep(thread, task, task->nvcsw, now);
	if (!thread->first_stop && last <= thread->entry) {
		thread->arrival = last;
		return;
	}
	thread->arrival = first;
	if (!thread->first_stop) {
		/* The timer expired inside of the call, which did not have to sleep. */
		__u64 at = first > thread->entry ? first : thread->entry;

		thread->first_stop = thread->entry;
		thread->cpu_at_stop = thread->cpu_at_entry;
		thread->read_by_clock = 1;
		release(thread, at, at, at);
	} else if (first > thread->latest) {
		release_at_arrival(thread, now);
	} else if (thread->earliest < first) {
		thread->earliest = first;
	}
}

/* The call is over, or is known to be: sends its record, unless it separated nothing. */
static __always_inline void finish_call(struct thread *thread, struct task_struct *task,
	__u64 voluntary_switches, long result, const struct ready *ready, __u64 now)
{
	settle_sleep(thread, task, voluntary_switches, now);
	/* A clock that was set meanwhile has moved the end of the sleep. */
	if (thread->object_class == OBJECT_CLOCK_ABSOLUTE && thread->number != CLOCK_MONOTONIC)
		thread->arrival = end_of_sleep(thread->number, thread->until);
	if (thread->first_stop) {
		if (thread->arrival > thread->latest)
			settle_arrival(thread, result, now);
		thread->disturbance = disturbance_of(thread, task, result);
		if (!thread->disturbance && is_stalled(thread))
			thread->disturbance = DISTURBANCE_STALL;
		emit_call(thread, ACTIVATION_SLEPT | ACTIVATION_RESUMED, ready);
	} else if (result >= 0 || result == -EAGAIN || result == -ETIMEDOUT ||
		   waits_for_handler(thread->call)) {
		if (thread->arrival > now)
			thread->arrival = 0;
		emit_call(thread, ACTIVATION_RESUMED, ready);
	}
	thread->call = CALL_NONE;
}

/* Sends the end of the job before the call: what follows belongs to another task, or is not seen.
 */
static __always_inline void emit_stop(struct thread *thread)
{
	if (thread->call != CALL_NONE && thread->first_stop)
		emit_call(thread, ACTIVATION_SLEPT, NULL);
}

/* The thread's task is over: says so if it never waited, since then it has no jobs. */
static __always_inline void emit_busy(struct thread *thread, struct task_struct *task, __u64 now)
{
	__u64 cpu = cpu_now(thread, task, now);
	struct busy_record *record;

	if (!thread->waited && thread->state != THREAD_ASLEEP) {
		record = reserve(thread, sizeof(*record));
		if (record) {
			fill_header(&record->header, thread, RECORD_BUSY, 0);
			record->cpu = cpu - thread->cpu_at_begin;
			submit(thread, record);
		}
	}
	thread->waited = 0;
	thread->cpu_at_begin = cpu;
}

/* Ends the task if policy, priority or affinity differ from what they were. */
static __always_inline void check_task(struct thread *thread, struct task_struct *task, __u64 now)
{
	__u8 what = changed(thread, task);

	if (what == BEGIN_SEEN)
		return;
	emit_stop(thread);
	emit_busy(thread, task, now);
	emit_task(thread, task, what, now, false);
}

static __always_inline void begin_call(
	struct thread *thread, struct task_struct *task, struct call_info *info, __u64 now)
{
	thread->entry = now;
	thread->cpu_at_entry = cpu_now(thread, task, now);
	thread->voluntary_switches = task->nvcsw;
	thread->first_stop = 0;
	thread->released = SLEEP_NONE;
	thread->suspended_after = 0;
	thread->arrival = info->arrival;
	thread->until = info->until;
	thread->object = info->object;
	thread->number = info->number;
	thread->object_class = info->object_class;
	thread->call = info->call;
	thread->system_call = info->system_call;
	thread->interrupted = INTERRUPTED_NOT;
	thread->restarted = 0;
	thread->disturbance = DISTURBANCE_NONE;
	thread->latest = 0;
	thread->expirations = 0;
	thread->stolen_before_release = 0;
	thread->unhooked = unhooked[info->system_call & (SYSTEM_CALL_KEYS - 1)];
}

/*
 * A thread stops, and the programs at the entry or the exit of its call may not have run: the
 * kernel skips one that another thread was preempted in on the same processor, and calls without
 * arguments have no function that can be traced. Its registers say which call the thread is in.
 */
static __noinline int repair_call(
	struct thread *thread, struct task_struct *task, __u64 now, bool interruptible)
{
	struct call_info info = {.call = CALL_NONE};
	struct pt_regs *regs;
	int key = current_key(task);

	if (thread->call != CALL_NONE) {
		bool restarts = thread->interrupted && key >= 0 && call_of(key) == CALL_RESTART;

		if (thread->system_call == key || restarts) {
			/* On its way out, where it stops for the signal, or back in the call? */
			regs = (struct pt_regs *)bpf_task_pt_regs(task);
			if (restarts ||
				(thread->interrupted && interruptible && !HAS_RETURNED(regs)))
				resume_call(thread, now);
			thread->system_call = key;
			return 0;
		}
		/* The kernel has counted the switch that is going on already. */
		finish_call(thread, task, task->nvcsw - 1, RESULT_UNKNOWN, NULL, now);
	}
	if (key < 0)
		return 0;
	info.call = call_of(key);
	if (info.call == CALL_NONE || info.call == CALL_RESTART || info.call == CALL_SET)
		return 0;
	/*
	 * What a thread may still stop for on its way out of a call, the kernel's own locks on
	 * PREEMPT_RT, is no other such call. A call whose end is not seen ends when the thread runs
	 * again.
	 */
	regs = (struct pt_regs *)bpf_task_pt_regs(task);
	if (HAS_RETURNED(regs) ||
		(!interruptible && (!KNOWS_RETURN || unhooked[key & (SYSTEM_CALL_KEYS - 1)])))
		return 0;
	info.system_call = key;
	classify(thread, &info, regs, now);
	if (info.call != CALL_NONE)
		begin_call(thread, task, &info, now);
	return 0;
}

#endif
