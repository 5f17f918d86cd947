// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * One record per separation of jobs, of every watched thread.
 *
 * Nothing here relies on seeing every event: some virtual machines lose a few wake-ups and
 * switches. The state of a thread is repaired at its next event, and a release that was not seen
 * becomes a window. Processor time is the kernel's account (sum_exec_runtime) and never less, so a
 * lost event never falsifies a cost.
 *
 * Not for assigning jobs to streams: user space does that from these records.
 */
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
#include "cpu_of.h"
#include "interface.h"
#include "emit.h"
#include "moments.h"
#include "numbers.h"
#include "task.h"
#include "bystander.h"
#include "clock.h"
#include "calls.h"
#include "ends.h"
#include "ready.h"
#include "steal.h"
#include "thread.h"
#include "interrupt.h"
#include "blocked.h"
#include "taken.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/*
 * Whether this is the call that the thread left for a signal: the kernel or the program resumes it.
 * A sleep until another time is another sleep; one for the remaining time ends at most as much
 * later as has passed since the signal.
 */
static __always_inline bool is_same(struct thread *thread, struct call_info *info, __u64 now)
{
	if (thread->call != info->call || thread->number != info->number ||
		thread->object != info->object || thread->until != info->until)
		return false;
	return info->object_class != OBJECT_CLOCK ||
	       info->arrival - thread->arrival <= now - thread->latest;
}

/* Whether the thread left a sleep for a signal: seen at its exit, or known since the sleep was
 * until a time that had not come. */
static __always_inline bool was_interrupted(struct thread *thread)
{
	return thread->interrupted ||
	       (thread->object_class == OBJECT_CLOCK_ABSOLUTE && thread->first_stop &&
		       thread->arrival > thread->latest);
}

static __noinline int on_enter(struct pt_regs *regs, __u8 call)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *thread = watched(task->pid);
	struct call_info info = {.call = call};
	__u64 now;

	if (call == CALL_SET_CLOCK)
		begin_to_set_clock();
	if (!thread || call == CALL_SET || call == CALL_SET_CLOCK)
		return 0;
	info.system_call = key_of(task, SYSCALL_NUMBER(regs));
	now = bpf_ktime_get_ns();
	wake_up(thread, task, now);
	if (!thread->command_sent)
		emit_command(thread, task);
	if (call == CALL_RESTART) {
		if (thread->interrupted)
			resume_call(thread, now);
		thread->system_call = info.system_call;
		return 0;
	}
	classify(thread, &info, regs, now);
	if (thread->call != CALL_NONE) {
		if (was_interrupted(thread) && is_same(thread, &info, now)) {
			resume_call(thread, now);
			return 0;
		}
		finish_call(thread, task, task->nvcsw,
			thread->interrupted == INTERRUPTED_FOR_GOOD ? -EINTR : RESULT_UNKNOWN, NULL,
			now);
	}
	thread->interrupted = INTERRUPTED_NOT;
	if (info.call == CALL_NONE)
		return 0;
	begin_call(thread, task, &info, now);
	return 0;
}

/* Whether the call, which returns this, may be restarted after a signal. */
static __always_inline __u8 interruption_of(long result)
{
	switch (result) {
	case -ERESTARTNOHAND:
	case -ERESTART_RESTARTBLOCK:
		return INTERRUPTED_BY_HANDLER;
	case -ERESTARTSYS:
		return INTERRUPTED_BY_CHOICE;
	case -ERESTARTNOINTR:
		return INTERRUPTED_NEVER;
	}
	return INTERRUPTED_NOT;
}

/* Without a handler the call goes on where it was: one call, not two. */
static __always_inline void leave_for_signal(struct thread *thread, __u8 interrupted, __u64 now)
{
	thread->interrupted = interrupted;
	thread->disturbance = DISTURBANCE_SIGNAL;
	thread->left = now;
}

/* Begins to watch the current thread if it is wanted and not watched yet. */
static __noinline int watch_current(bool with_command)
{
	struct task_struct *task = bpf_get_current_task_btf();

	if (!watched(task->pid) && wanted(task))
		watch(task, bpf_ktime_get_ns(), BEGIN_SEEN, with_command);
	return 0;
}

/* The end of a call that may change the task of a thread. */
static __noinline int on_set(void)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *thread = watched(task->pid);

	if (thread)
		check_task(thread, task, bpf_ktime_get_ns());
	return 0;
}

/* The end of a call that can separate jobs. */
static __noinline int on_return(__u8 call, long result)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *thread = watched(task->pid);
	struct timer_report timer = {};
	struct ready ready = {};
	__u8 interrupted;
	__u64 now;

	if (!thread || thread->call == CALL_NONE)
		return 0;
	if (thread->interrupted) {
		/* Either this is not that call, or its restart was not seen. */
		if (call != CALL_CLOCK_NANOSLEEP || thread->call != call || result)
			return 0;
		resume_call(thread, bpf_ktime_get_ns());
	}
	interrupted = interruption_of(result);
	/* The time of the exit matters only where the end of a sleep was not seen, and where the
	 * call is resumed. */
	now = thread->first_stop && thread->state != THREAD_ASLEEP && !thread->restarted &&
			      !interrupted && thread->arrival <= thread->latest
		      ? thread->latest
		      : bpf_ktime_get_ns();
	wake_up(thread, task, now);
	if (interrupted) {
		leave_for_signal(thread, interrupted, now);
		return 0;
	}
	report_timer(thread, task, result, &timer);
	if (timer.expirations)
		note_timer(thread, task, &timer);
	if (thread->object_class == OBJECT_EPOLL || polls(thread->call))
		note_ready(thread, task, result, &ready);
	finish_call(thread, task, task->nvcsw, result, &ready, now);
	return 0;
}

static __always_inline int on_exit(__u8 call, long result)
{
	if (call == CALL_SET_CLOCK)
		return end_of_setting_clock();
	if (call != CALL_SET)
		return on_return(call, result);
	on_set();
	return watch_current(false);
}

SEC("tp_btf/sys_enter")
int BPF_PROG(enter_any, struct pt_regs *regs, long number)
{
	__u8 call;

	if (!is_watched_number(number))
		return 0;
	call = call_of(key_of(bpf_get_current_task_btf(), number));
	return call == CALL_NONE ? 0 : on_enter(regs, call);
}

static __always_inline int on_any_exit(unsigned long number, long result)
{
	__u32 key;
	__u8 call;

	if (!is_watched_number(number))
		return 0;
	key = key_of(bpf_get_current_task_btf(), number);
	call = call_of(key);
	return call == CALL_NONE ? 0 : on_exit(call, result_of(key, result));
}

SEC("tp_btf/sys_exit")
int BPF_PROG(exit_any, struct pt_regs *regs, long result)
{
	return on_any_exit(SYSCALL_NUMBER(regs), result);
}

/*
 * The same on perf's side of the tracepoints, which is slower, but where no kernel preempts a
 * program. The layout of the fields differs between kernels; the registers hold the same.
 */
SEC("tp/raw_syscalls/sys_enter")
int enter_unpreempted(void *fields)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	__u8 call = call_of(key_of(task, SYSCALL_NUMBER(regs)));

	return call == CALL_NONE ? 0 : on_enter(regs, call);
}

SEC("tp/raw_syscalls/sys_exit")
int exit_unpreempted(void *fields)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(bpf_get_current_task_btf());

	return on_any_exit(SYSCALL_NUMBER(regs), SYSCALL_RESULT(regs));
}

/* A wake-up; for timelines also the waker. The thread that runs when a timer fires is not one. */
static __always_inline int woken(struct task_struct *task, bool by_interrupt)
{
	struct thread *thread = watched(task->pid);
	__u64 now;

	if (!thread) {
		if (is_bystander(task)) {
			struct task_struct *current = bpf_get_current_task_btf();

			bystander_step(task, STEP_WOKEN,
				by_interrupt ? 0 : seen_number(current, current->pid),
				bpf_ktime_get_ns());
		}
		return 0;
	}
	now = bpf_ktime_get_ns();
	if (task->__state != TASK_RTLOCK_WAIT)
		thread->waking = now;
	if (with_switches) {
		struct task_struct *current = bpf_get_current_task_btf();
		bool by_timer =
			thread->call != CALL_NONE && thread->arrival && thread->arrival <= now;

		emit_switch(thread, STEP_WOKEN,
			by_interrupt || by_timer ? 0 : seen_number(current, current->pid), now);
	}
	return 0;
}

SEC("tp_btf/sched_waking")
int BPF_PROG(waking, struct task_struct *task)
{
	return woken(task, false);
}

/* Instead of `waking` where wakers are recorded and the kernel shows whether an interrupt is being
 * served. */
SEC("tp_btf/sched_waking")
int BPF_PROG(waking_of_current, struct task_struct *task)
{
	return woken(task, in_interrupt(bpf_get_current_task_btf()));
}

/* The same where the kernel does not show that. */
SEC("tp_btf/sched_waking")
int BPF_PROG(waking_by_stack, struct task_struct *task)
{
	return woken(task, is_beside(ctx, bpf_get_current_task_btf()));
}

static __always_inline bool yields(struct thread *thread, struct task_struct *task, __u64 now)
{
	repair_call(thread, task, now, true);
	return thread->call == CALL_SCHED_YIELD;
}

static __always_inline __u8 kind_of_sleep(unsigned int state)
{
	if (state & TASK_INTERRUPTIBLE)
		return SLEEP_INTERRUPTIBLE;
	return state & STOPPED_STATES ? SLEEP_STOPPED : SLEEP_UNINTERRUPTIBLE;
}

static __always_inline void switched_out(struct thread *thread, struct task_struct *task,
	bool preempted, unsigned int state, __u64 now)
{
	wake_up(thread, task, now);
	if (state & (TASK_DEAD | EXIT_STATES))
		return;
	if (!preempted && state && state != TASK_RTLOCK_WAIT) {
		emit_switch(thread, step_of_sleep(state), 0, now);
		repair_call(thread, task, now, state & TASK_INTERRUPTIBLE);
		fall_asleep(thread, task, now, kind_of_sleep(state));
	} else if (!preempted && task->policy == SCHED_DEADLINE &&
		   task->dl.dl_timer.node.expires > (__s64)now && yields(thread, task, now)) {
		/* Gave up its budget: stopped until the timer replenishes it, without a wake-up. */
		emit_switch(thread, STEP_ASLEEP, 0, now);
		thread->arrival = task->dl.dl_timer.node.expires;
		fall_asleep(thread, task, now, SLEEP_INTERRUPTIBLE);
	} else {
		/* A wait for a kernel lock is part of the job: other kernels would spin here. */
		emit_switch(thread,
			preempted || !state ? step_of_ready(task) : step_of_sleep(state), 0, now);
		thread->state = THREAD_PREEMPTED;
		if (!preempted && state)
			thread->voluntary_switches++; /* none of the call's own */
		/* The entry of a call that does not sleep was read by the clock, too. */
		end_turn(thread, task, now,
			thread->read_by_clock ||
				(thread->call != CALL_NONE && !thread->first_stop));
	}
}

/* A call whose exit is not seen ends when the thread runs again; one that only a signal ends has
 * been left for that. */
static __always_inline void end_unhooked_call(
	struct thread *thread, struct task_struct *task, __u64 now)
{
	if (!waits_for_handler(thread->call))
		finish_call(thread, task, task->nvcsw, RESULT_UNKNOWN, NULL, now);
	else if (!thread->interrupted)
		leave_for_signal(thread, INTERRUPTED_BY_HANDLER, now);
}

static __always_inline void switched_in(struct thread *thread, struct task_struct *task, __u64 now)
{
	wake_up(thread, task, now);
	if (thread->call != CALL_NONE && thread->unhooked && thread->first_stop)
		end_unhooked_call(thread, task, now);
	thread->state = THREAD_RUNNING;
	end_turn(thread, task, now, thread->read_by_clock);
	check_task(thread, task, now);
}

/* How a thread leaves its processor, as far as `switched` says so, too. */
static __always_inline __u8 step_of_leaving(struct thread *thread, struct task_struct *task,
	bool preempted, unsigned int state, __u64 now)
{
	if (state & (TASK_DEAD | EXIT_STATES))
		return STEP_ENDED;
	if (!preempted && state)
		return step_of_sleep(state);
	if (!preempted && thread && thread->call == CALL_SCHED_YIELD &&
		task->policy == SCHED_DEADLINE && task->dl.dl_timer.node.expires > (__s64)now)
		return STEP_ASLEEP;
	return step_of_ready(task);
}

/* Where switches are recorded. Attached before `switched`, so that its records come first. */
SEC("tp_btf/sched_switch")
int BPF_PROG(leaving, bool preempted, struct task_struct *prev, struct task_struct *next)
{
	unsigned int state = switch_has_state ? (unsigned int)ctx[3] : prev->__state;
	bool is_over = state & (TASK_DEAD | EXIT_STATES);
	struct thread *thread;
	__u64 now;

	note_theft(prev);
	if (keeps_moments ? !active : !prev->pid || prev->flags & PF_KTHREAD || is_over)
		return 0;
	thread = watched(prev->pid);
	if (!keeps_moments && !thread && !is_introduced(prev))
		return 0;
	now = bpf_ktime_get_ns();
	if (prev->pid && !(prev->flags & PF_KTHREAD) && !is_over) {
		if (thread)
			emit_faulted(thread, prev, now);
		if (!preempted && state && state != TASK_RTLOCK_WAIT && !(state & STOPPED_STATES))
			emit_blocked(prev, thread ? thread->sequence : 0, now);
	}
	if (keeps_moments)
		keep_switch(prev->pid, step_of_leaving(thread, prev, preempted, state, now),
			next->pid, now);
	return 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(switched, bool preempted, struct task_struct *prev, struct task_struct *next)
{
	struct thread *thread;
	__u64 now = 0;

	if (prev->pid) {
		thread = watched(prev->pid);
		if (thread || is_bystander(prev)) {
			unsigned int state =
				switch_has_state ? (unsigned int)ctx[3] : prev->__state;

			now = bpf_ktime_get_ns();
			if (thread)
				switched_out(thread, prev, preempted, state, now);
			else
				bystander_out(prev, preempted, state, now);
		}
	}
	if (next->pid) {
		thread = watched(next->pid);
		if (!thread && !wanted(next)) {
			if (is_bystander(next))
				bystander_step(next, STEP_IN, 0, now ? now : bpf_ktime_get_ns());
			return 0;
		}
		if (!now)
			now = bpf_ktime_get_ns();
		if (!thread)
			thread = watch(next, now, BEGIN_SEEN, false);
		if (thread) {
			switched_in(thread, next, now);
			emit_switch(thread, STEP_IN, 0, now);
		}
	}
	return 0;
}

/* Where switches are recorded: a ready thread waits for another processor from now on. One that is
 * being woken is not in a queue yet. */
SEC("tp_btf/sched_migrate_task")
int BPF_PROG(moving, struct task_struct *task, int to)
{
	struct thread *thread;

	if (!task->on_rq)
		return 0;
	thread = watched(task->pid);
	if (thread || is_introduced(task))
		emit_step_on(cpu_of(task), task->pid, thread ? thread->sequence : 0, STEP_MOVED, to,
			bpf_ktime_get_ns());
	return 0;
}

/*
 * The current thread started another. Not at sched_process_fork, where a thread may be preempted
 * and the program skipped for others: this is under the run queue's lock.
 */
SEC("tp_btf/sched_wakeup_new")
int BPF_PROG(forked, struct task_struct *child)
{
	struct task_struct *parent = bpf_get_current_task_btf();
	__u32 seen = seen_number(parent->group_leader, parent->tgid);
	__u32 *follow;

	if (target != TARGET_PROCESSES || parent->tgid == child->tgid)
		return 0;
	follow = bpf_map_lookup_elem(&processes, &seen);
	if (follow && *follow) {
		__u32 born = seen_number(child, child->pid);
		__u32 value = *follow;

		if (bpf_map_update_elem(&processes, &born, &value, BPF_ANY))
			count(COUNTER_UNTRACKED);
	}
	return 0;
}

/*
 * A signal is about to be delivered to the current thread. If a handler runs, a call that was left
 * for the signal is over, unless it is restarted after the handler.
 */
SEC("tp_btf/signal_deliver")
int BPF_PROG(signalled, int signal, struct kernel_siginfo *info, struct k_sigaction *action)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *thread = watched(task->pid);

	if (!thread || thread->call == CALL_NONE || !thread->interrupted ||
		(unsigned long)action->sa.sa_handler <= LAST_DISPOSITION)
		return 0;
	if (thread->interrupted == INTERRUPTED_NEVER ||
		(thread->interrupted == INTERRUPTED_BY_CHOICE && action->sa.sa_flags & SA_RESTART))
		return 0;
	if (thread->object_class == OBJECT_CLOCK || thread->object_class == OBJECT_CLOCK_ABSOLUTE) {
		thread->interrupted = INTERRUPTED_FOR_GOOD;
		return 0;
	}
	if (waits_for_handler(thread->call)) {
		struct timer_report timer = {};
		struct timer_siginfo as_taken;

		if (!bpf_probe_read_kernel(&as_taken, sizeof(as_taken), info))
			report_signal(task, &as_taken, &timer);
		if (timer.expirations)
			note_timer(thread, task, &timer);
		/* The signal is what it waits for, unless it was stopped before that came. */
		thread->disturbance = thread->first_stop && thread->sleep == SLEEP_STOPPED
					      ? DISTURBANCE_SIGNAL
					      : DISTURBANCE_NONE;
		finish_call(thread, task, task->nvcsw, -ERESTARTNOHAND, NULL, bpf_ktime_get_ns());
	} else {
		finish_call(thread, task, task->nvcsw, -EINTR, NULL, bpf_ktime_get_ns());
	}
	thread->interrupted = INTERRUPTED_NOT;
	return 0;
}

static __always_inline void end_thread(
	struct thread *thread, struct task_struct *task, __u32 tid, __u64 now)
{
	struct exit_record *record;

	emit_stop(thread);
	emit_busy(thread, task, now);
	record = reserve(thread, sizeof(*record));
	if (record) {
		fill_header(&record->header, thread, RECORD_EXIT, 0);
		record->at = now;
		submit(thread, record);
	}
	bpf_map_delete_elem(&threads, &tid);
}

static __noinline int on_exec(int old_pid)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *thread = watched(task->pid);
	__u64 now = bpf_ktime_get_ns();

	if (old_pid != task->pid) {
		/* A thread other than the leader executed: it takes over the leader's number. */
		struct thread *old = watched(old_pid);

		if (old)
			end_thread(old, task, old_pid, now);
	}
	if (thread) {
		wake_up(thread, task, now);
		emit_stop(thread);
		emit_busy(thread, task, now);
		thread->call = CALL_NONE;
		changed(thread, task);
		thread->command_sent = 1;
		emit_task(thread, task, BEGIN_EXEC, now, true);
	}
	return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(executed_any, struct task_struct *task, int old_pid)
{
	on_exec(old_pid);
	return watch_current(true);
}

SEC("tp/sched/sched_process_exec")
int executed_unpreempted(struct trace_event_raw_sched_process_exec *fields)
{
	on_exec(fields->old_pid);
	return watch_current(true);
}

static __noinline int on_end(void)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *thread = watched(task->pid);

	if (thread)
		end_thread(thread, task, task->pid, bpf_ktime_get_ns());
	else if (is_in_target(task))
		count(COUNTER_UNSEEN);
	if (target == TARGET_PROCESSES && task->signal->live.counter == 0) {
		__u32 seen = seen_number(task->group_leader, task->tgid);

		if (!bpf_map_delete_elem(&processes, &seen))
			count(COUNTER_ENDED);
	}
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(exited_any, struct task_struct *task)
{
	return on_end();
}

SEC("tp/sched/sched_process_exit")
int exited_unpreempted(void *fields)
{
	return on_end();
}

static __always_inline int on_rename(__u32 pid, const char *comm)
{
	struct thread *thread = watched(pid);
	struct renamed *record;

	if (!thread)
		return 0;
	record = reserve(thread, sizeof(*record));
	if (!record)
		return 0;
	fill_header(&record->header, thread, RECORD_RENAMED, 0);
	bpf_probe_read_kernel_str(record->comm, sizeof(record->comm), comm);
	submit(thread, record);
	return 0;
}

SEC("tp_btf/task_rename")
int BPF_PROG(renamed_any, struct task_struct *task, const char *comm)
{
	return on_rename(task->pid, comm);
}

SEC("tp/task/task_rename")
int renamed_unpreempted(struct trace_event_raw_task_rename *fields)
{
	return on_rename(fields->pid, fields->newcomm);
}

#include "attach_fentry.h"
