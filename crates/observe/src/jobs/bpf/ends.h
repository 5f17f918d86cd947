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
	struct task_struct *task = bpf_get_current_task_btf();
	struct fdtable *table = BPF_CORE_READ(task, files, fdt);
	struct file *file = NULL;
	struct socket *socket;

	if (fd < 0 || !table || (unsigned int)fd >= BPF_CORE_READ(table, max_fds))
		return true;
	bpf_probe_read_kernel(&file, sizeof(file), BPF_CORE_READ(table, fd) + fd);
	if (!file)
		return true;
	socket = BPF_CORE_READ(file, private_data);
	return BPF_CORE_READ(socket, sk, sk_shutdown) & RCV_SHUTDOWN;
}

/* What else than the event that the thread waits for made a call that slept return this result. */
static __always_inline __u8 disturbance_of(
	struct thread *thread, struct task_struct *task, long result)
{
	if (result > 0 && thread->object_class == OBJECT_SOCKET &&
		(thread->call == CALL_POLL || thread->call == CALL_PPOLL))
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
		if (thread->object_class == OBJECT_SOCKET && thread->call >= CALL_READ &&
			thread->call <= CALL_RECVMMSG && is_shut_down(thread->number))
			return DISTURBANCE_ENDING;
	}
	return thread->disturbance;
}

/* How many expirations of a timer a call that returned `result` stands for; 0: not known. */
static __always_inline __u64 expirations_of(
	struct thread *thread, struct task_struct *task, long result)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	void *answer = (void *)ARGUMENT_2(regs);

	if (thread->call == CALL_READ && thread->object_class == OBJECT_TIMERFD &&
		result == sizeof(__u64)) {
		__u64 expirations;

		return bpf_probe_read_user(&expirations, sizeof(expirations), answer) ? 0
										      : expirations;
	}
	if (thread->call == CALL_READ && thread->object_class == OBJECT_SIGNALFD &&
		result == SIGNALFD_SIGINFO_SIZE) {
		struct signalfd_siginfo info;

		if (!bpf_probe_read_user(&info, sizeof(info), answer) && info.ssi_code == SI_TIMER)
			return 1 + (__u64)info.ssi_overrun;
	}
	if (thread->call == CALL_RT_SIGTIMEDWAIT && result > 0 && answer) {
		struct timer_siginfo info;

		if (!bpf_probe_read_user(&info, sizeof(info), answer) && info.si_code == SI_TIMER &&
			info.si_overrun >= 0)
			return 1 + (__u64)info.si_overrun;
	}
	return 0;
}

#endif
