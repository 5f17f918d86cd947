/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which of the descriptors that a call waits for were ready when it returned. */
#ifndef PUNCTUAL_READY_H
#define PUNCTUAL_READY_H

/* Of the descriptors that are polled, the most that are looked through. */
#define MOST_POLLED 16

/* What the program told epoll to return with a descriptor: a number, which stays as it is, or an
 * address. */
static __always_inline __u32 key_of_data(__u64 data)
{
	return (__u32)data ^ (__u32)(data >> 32) * 0x9e3779b1U;
}

/* The keys of the events that epoll returned; their number, 0 if they cannot be read. */
static __always_inline __u8 read_epoll_events(struct ready *ready, const void *events, long count)
{
	if (count > MOST_READY)
		return 0;
	for (int i = 0; i < MOST_READY && i < count; i++) {
		const void *data = events + i * EPOLL_EVENT_SIZE + EPOLL_EVENT_DATA;
		__u64 key;

		if (bpf_probe_read_user(&key, sizeof(key), data))
			return 0;
		ready->keys[i] = key_of_data(key);
	}
	return count;
}

/* The descriptors that poll returned, `count` of `length`; their number, 0 if not all were found.
 */
static __always_inline __u8 read_polled(
	struct ready *ready, const struct pollfd *polled, __u32 length, long count)
{
	__u32 found = 0;

	if (count > MOST_READY)
		return 0;
	for (__u32 i = 0; i < MOST_POLLED && i < length && found < count; i++) {
		struct pollfd one;

		if (bpf_probe_read_user(&one, sizeof(one), polled + i))
			return 0;
		if (one.revents)
			ready->keys[found++ & (MOST_READY - 1)] = one.fd;
	}
	return found == count ? found : 0;
}

/* Notes what was ready when the call returned `result`; nothing if that is not known. */
static __noinline int note_ready(
	struct thread *thread, struct task_struct *task, long result, struct ready *ready)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	bool is_narrow = is_of_32_bits(thread->system_call);

	if (result == 0) {
		ready->keys[0] = READY_TIMEOUT;
		ready->count = 1;
	} else if (result > 0 && polls(thread->call)) {
		void *polled = (void *)(is_narrow ? (__u32)COMPAT_1(regs) : ARGUMENT_1(regs));
		__u32 length = is_narrow ? COMPAT_2(regs) : ARGUMENT_2(regs);

		ready->count = read_polled(ready, polled, length, result);
	} else if (result > 0) {
		void *events = (void *)(is_narrow ? (__u32)COMPAT_2(regs) : ARGUMENT_2(regs));

		ready->count = read_epoll_events(ready, events, result);
	}
	return 0;
}

#endif
