/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a thread goes to sleep for, and its page faults: read from its registers and memory when it
 * leaves its processor, so that calls themselves cost nothing. Only where switches are recorded; no
 * model depends on it.
 */
#ifndef PUNCTUAL_BLOCKED_H
#define PUNCTUAL_BLOCKED_H

/* The beginning of a mutex of glibc, in 64-bit programs. */
struct glibc_mutex {
	__u32 lock; /* 2: held, and others wait; of robust ones, the owner, too */
	__u32 count;
	__u32 owner;
	__u32 users;
	__u32 kind;
};

/* <linux/futex.h>, and the bits of a mutex's kind. */
enum {
	FUTEX_WAIT = 0,
	FUTEX_LOCK_PI = 6,
	FUTEX_WAIT_BITSET = 9,
	FUTEX_LOCK_PI2 = 13,
	FUTEX_COMMANDS = 0x7f,
	FUTEX_TID_MASK = 0x3fffffff,
	MUTEX_KINDS = 0x3ff,
};

/* Who holds the lock that the current thread is about to wait for; 0: not known. */
static __always_inline __u32 owner_of(__u64 address, int operation)
{
	struct glibc_mutex mutex;

	switch (operation & FUTEX_COMMANDS) {
	case FUTEX_LOCK_PI:
	case FUTEX_LOCK_PI2:
		if (bpf_probe_read_user(&mutex.lock, sizeof(mutex.lock), (void *)address))
			return 0;
		return mutex.lock & FUTEX_TID_MASK;
	case FUTEX_WAIT:
	case FUTEX_WAIT_BITSET:
		/* Semaphores, condition variables and other libraries' locks look otherwise. */
		if (bpf_probe_read_user(&mutex, sizeof(mutex), (void *)address))
			return 0;
		if (!mutex.users || mutex.kind & ~MUTEX_KINDS ||
			(mutex.lock != 2 && (mutex.lock & FUTEX_TID_MASK) != mutex.owner))
			return 0;
		return mutex.owner;
	}
	return 0;
}

static __always_inline void emit_blocked(struct task_struct *task, __u32 sequence, __u64 now)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	bool is_narrow = is_compat(task);
	int number = (int)SYSCALL_NUMBER(regs), operation;
	__u64 argument = is_narrow ? (__u32)COMPAT_1(regs) : ARGUMENT_1(regs);
	__u32 owner = 0, key = key_of(task, number);
	__u8 futex = CALL_NONE;
	struct file *file = NULL;
	struct blocked_record *record;
	struct moment moment;
	char short_name[SHORT_NAME_LENGTH];
	bool has_short_name = false;
	long length;
	__u32 slots;

	/* So that the verifier sees the check of its size. */
	barrier_var(key);
	if (call_of(key) == CALL_FUTEX) {
		operation = is_narrow ? (int)COMPAT_2(regs) : (int)ARGUMENT_2(regs);
		futex = call_of_futex(operation);
		if (!is_narrow && shares_numbers(task))
			owner = owner_of(argument, operation);
	} else if (number >= 0 && argument < 1 << 30) {
		file = file_of((int)argument);
	}
	/* Filled without a branch before: old verifiers lose track of what is reserved. */
	slots = 1;
	if (file && keeps_moments) {
		length = bpf_probe_read_kernel_str(short_name, sizeof(short_name),
			BPF_CORE_READ(file, f_path.dentry, d_name.name));
		has_short_name = length < (long)sizeof(short_name);
		slots = has_short_name ? 1 : SLOTS_WITH_NAME;
	}
	moment = reserve_moment(sizeof(*record), slots);
	record = moment.record;
	if (!record)
		return;
	fill_plain_header(&record->header, task->pid, sequence, RECORD_BLOCKED, is_narrow);
	record->header.call = futex;
	record->header.number = number;
	if (has_short_name) {
		record->header.flags |= BLOCKED_SHORT_NAME;
		__builtin_memcpy(&record->argument, short_name, sizeof(short_name));
		goto filled;
	}
	record->argument = argument;
	record->owner = owner;
	record->cpu = bpf_get_smp_processor_id();
	if (slots == 1 && keeps_moments)
		goto filled;
	record->at = now;
	record->name[0] = 0;
	if (file)
		bpf_probe_read_kernel_str(record->name, sizeof(record->name),
			BPF_CORE_READ(file, f_path.dentry, d_name.name));
filled:
	submit_moment(moment, slots);
}

static __always_inline void emit_faulted(struct thread *thread, struct task_struct *task, __u64 now)
{
	__u64 minor = task->min_flt, major = task->maj_flt;
	bool is_first = !thread->minor_faults && !thread->major_faults;
	__u64 minor_before = thread->minor_faults, major_before = thread->major_faults;
	struct faulted_record *record;
	struct moment moment;

	if (minor == minor_before && major == major_before)
		return;
	thread->minor_faults = minor;
	thread->major_faults = major;
	if (is_first)
		return;
	moment = reserve_moment(sizeof(*record), 1);
	record = moment.record;
	if (!record)
		return;
	fill_plain_header(&record->header, thread->tid, thread->sequence, RECORD_FAULTED, 0);
	record->header.number = major - major_before;
	record->at = now;
	record->cpu = bpf_get_smp_processor_id();
	record->minor = minor - minor_before;
	submit_moment(moment, 1);
}

#endif
