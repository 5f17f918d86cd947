/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the end of a call says: expirations of a timer, and why it ended where nothing came. */
#ifndef PUNCTUAL_ENDS_H
#define PUNCTUAL_ENDS_H

/* Whether the running thread is about to end: by itself, or by SIGKILL. */
static __always_inline bool is_ending(struct task_struct *task)
{
	return task->flags & PF_EXITING || task->pending.signal.sig[0] & SIGKILL_BIT;
}

/* Whether the socket behind a descriptor of the current thread is shut down for reading. */
static __always_inline bool is_shut_down(int fd)
{
	struct file *file = file_of(fd);
	struct socket *socket;

	if (!file)
		return true;
	socket = BPF_CORE_READ(file, private_data);
	return BPF_CORE_READ(socket, sk, sk_shutdown) & RCV_SHUTDOWN;
}

/* What else than the event that the thread waits for made a call that slept return this result. */
static __always_inline __u8 disturbance_of(
	struct thread *thread, struct task_struct *task, long result)
{
	if (result > 0 && thread->object_class == OBJECT_SOCKET && polls(thread->call))
		return is_shut_down(thread->number) ? DISTURBANCE_ENDING : thread->disturbance;
	switch (result) {
	case -EINTR:
		return is_ending(task) ? DISTURBANCE_ENDING : DISTURBANCE_SIGNAL;
	case -EIDRM:
		return DISTURBANCE_ENDING;
	case -EINVAL:
	case -EPIPE:
	case -ECONNABORTED:
	case -ECONNRESET:
	case -ENOTCONN:
	case -ESHUTDOWN:
		return thread->object_class == OBJECT_SOCKET ? DISTURBANCE_ENDING
							     : thread->disturbance;
	case 0:
		/* A read of nothing is the end of a pipe. A datagram may be empty. */
		if (thread->object_class == OBJECT_PIPE &&
			(thread->call == CALL_READ || thread->call == CALL_READV))
			return DISTURBANCE_ENDING;
		if (thread->object_class == OBJECT_SOCKET && reads_file(thread->call) &&
			is_shut_down(thread->number))
			return DISTURBANCE_ENDING;
	}
	return thread->disturbance;
}

/* A timer that a call returned expirations of. */
struct timer_report {
	__u64 expirations; /* 0: the call said nothing of a timer */
	__u64 next;	   /* when it expires next, of CLOCK_MONOTONIC; 0: not known */
	__u64 interval;
	int clock;
};

/* When the timer expires, or did if it is not running. Its clock may be another; a clock that is
 * set moves the offset and so the expiry, too. */
static __always_inline __u64 expiry_of(struct hrtimer *timer)
{
	__s64 expires = BPF_CORE_READ(timer, node.expires);
	__s64 offset = BPF_CORE_READ(timer, base, offset);

	return expires > offset ? expires - offset : 0;
}

static __always_inline bool has_hrtimer(int clock)
{
	return clock == CLOCK_MONOTONIC || clock == CLOCK_REALTIME || clock == CLOCK_BOOTTIME ||
	       clock == CLOCK_TAI;
}

/* A read takes all expirations of a timerfd, and sets the timer to the first one that lies ahead.
 */
static __always_inline void ask_timerfd(struct thread *thread, struct timer_report *report)
{
	struct file *file = (struct file *)thread->known_file;
	struct timerfd_ctx *context;

	if (!bpf_core_field_exists(struct timerfd_ctx, tintv))
		return;
	context = BPF_CORE_READ(file, private_data);
	report->clock = BPF_CORE_READ(context, clockid);
	if (!has_hrtimer(report->clock))
		return;
	report->interval = BPF_CORE_READ(context, tintv);
	report->next = expiry_of(
		(struct hrtimer *)((void *)context + bpf_core_field_offset(struct timerfd_ctx, t)));
}

/* Of the most timers of a process that are looked through. */
#define MOST_TIMERS 16

/* A POSIX timer whose signal is taken is set to its first expiration that lies ahead. */
static __always_inline void ask_posix_timer(
	struct task_struct *task, int id, struct timer_report *report)
{
	struct signal_struct *process = task->signal;
	void *head, *at;

	if (!bpf_core_field_exists(struct signal_struct, posix_timers) ||
		!bpf_core_field_exists(struct k_itimer, it.real.timer))
		return;
	at = head = (void *)process + bpf_core_field_offset(struct signal_struct, posix_timers);
	for (int i = 0; i < MOST_TIMERS; i++) {
		struct k_itimer *timer;

		if (bpf_probe_read_kernel(&at, sizeof(at), at) || !at || at == head)
			return;
		timer = at - bpf_core_field_offset(struct k_itimer, list);
		if (BPF_CORE_READ(timer, it_id) != id)
			continue;
		report->clock = BPF_CORE_READ(timer, it_clock);
		if (!has_hrtimer(report->clock))
			return;
		report->interval = BPF_CORE_READ(timer, it_interval);
		report->next = expiry_of(
			(void *)timer + bpf_core_field_offset(struct k_itimer, it.real.timer));
		return;
	}
}

/* What a signal, as the thread took it, says of a timer. */
static __always_inline void report_signal(
	struct task_struct *task, const struct timer_siginfo *signal, struct timer_report *report)
{
	if (signal->si_code != SI_TIMER || signal->si_overrun < 0)
		return;
	report->expirations = 1 + (__u64)signal->si_overrun;
	ask_posix_timer(task, signal->si_tid, report);
}

/* Reads a signal that a program was given; false if it cannot be read. */
static __always_inline bool read_siginfo(struct timer_siginfo *signal, bool is_narrow, void *user)
{
	struct timer_siginfo32 narrow;

	if (!is_narrow)
		return !bpf_probe_read_user(signal, sizeof(*signal), user);
	if (bpf_probe_read_user(&narrow, sizeof(narrow), user))
		return false;
	signal->si_code = narrow.si_code;
	signal->si_tid = narrow.si_tid;
	signal->si_overrun = narrow.si_overrun;
	return true;
}

/* What a call that returned `result` says of a timer. */
static __always_inline void report_timer(
	struct thread *thread, struct task_struct *task, long result, struct timer_report *report)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	bool is_narrow = is_of_32_bits(thread->system_call);
	void *answer = (void *)(is_narrow ? (__u32)COMPAT_2(regs) : ARGUMENT_2(regs));
	struct timer_siginfo signal = {};

	if (thread->call == CALL_READ && thread->object_class == OBJECT_TIMERFD &&
		result == sizeof(__u64)) {
		__u64 expirations;

		if (bpf_probe_read_user(&expirations, sizeof(expirations), answer))
			return;
		report->expirations = expirations;
		ask_timerfd(thread, report);
	} else if (thread->call == CALL_READ && thread->object_class == OBJECT_SIGNALFD &&
		   result == SIGNALFD_SIGINFO_SIZE) {
		struct signalfd_siginfo info;

		if (bpf_probe_read_user(&info, sizeof(info), answer))
			return;
		signal.si_code = info.ssi_code;
		signal.si_tid = info.ssi_tid;
		signal.si_overrun = info.ssi_overrun;
		report_signal(task, &signal, report);
	} else if (thread->call == CALL_RT_SIGTIMEDWAIT && result > 0 && answer &&
		   read_siginfo(&signal, is_narrow, answer)) {
		report_signal(task, &signal, report);
	}
}

#endif
