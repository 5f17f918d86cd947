/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which calls separate jobs, on what object, and when the next job should come. A call that cannot
 * block is not a separator. */
#ifndef PUNCTUAL_CALLS_H
#define PUNCTUAL_CALLS_H

/* A call by its arguments. */
struct call_info {
	__u64 object;
	__u64 arrival;
	__u64 until; /* of an absolute sleep, on its clock */
	__s32 number;
	__s32 system_call;
	__u8 call; /* CALL_NONE: no separator */
	__u8 object_class;
};

/* The arguments of a call, as the ABI of the program passes them. */
struct arguments {
	__u64 a, b, c, d, e, f;
};

/* A time of user space, of which the call says whether its fields have 32 bits; false if it cannot
 * be read. */
static __always_inline bool read_fields(
	struct call_info *info, struct timespec *time, const void *user)
{
	struct timespec32 narrow;

	if (!is_of_32_bits(info->system_call))
		return !bpf_probe_read_user(time, sizeof(*time), user);
	if (has_64_bit_times(info->system_call)) {
		if (bpf_probe_read_user(time, sizeof(*time), user))
			return false;
		time->tv_nsec = (__u32)time->tv_nsec; /* the rest is padding */
		return true;
	}
	if (bpf_probe_read_user(&narrow, sizeof(narrow), user))
		return false;
	time->tv_sec = narrow.tv_sec;
	time->tv_nsec = narrow.tv_nsec;
	return true;
}

/* A time of user space in nanoseconds, given the length of its smaller unit; negative if it cannot
 * be read or is not a time. */
static __noinline __s64 read_time(struct call_info *info, __u64 user, __s64 unit)
{
	struct timespec time;

	if (!info || !read_fields(info, &time, (void *)user) || time.tv_sec < 0 || time.tv_nsec < 0)
		return -1;
	if (time.tv_sec > 9000000000LL)
		return 9000000000000000000LL;
	return time.tv_sec * 1000000000LL + time.tv_nsec * unit;
}

/* Timeouts in nanoseconds; negative: without end. */
static __always_inline __s64 timespec_at(struct call_info *info, __u64 address)
{
	return address ? read_time(info, address, 1) : -1;
}

/* A timeval has the same layout, and microseconds. */
static __always_inline __s64 timeval_at(struct call_info *info, __u64 address)
{
	return address ? read_time(info, address, 1000) : -1;
}

static __always_inline __s64 milliseconds(int timeout)
{
	return timeout < 0 ? -1 : timeout * 1000000LL;
}

static __always_inline __u8 class_of_anonymous(struct file *file)
{
	char name[12] = {};
	const unsigned char *from = BPF_CORE_READ(file, f_path.dentry, d_name.name);

	bpf_probe_read_kernel(name, sizeof(name) - 1, from);
	if (name[0] == '[') {
		switch (name[1]) {
		case 't':
			return OBJECT_TIMERFD; /* [timerfd] */
		case 's':
			return OBJECT_SIGNALFD; /* [signalfd] */
		case 'e':
			return name[6] == 'f' ? OBJECT_EVENTFD
					      : OBJECT_EPOLL; /* [eventfd], [eventpoll] */
		case 'i':
			return OBJECT_IO_URING; /* [io_uring] */
		}
		return OBJECT_NEVER_BLOCKS;
	}
	return name[0] == 'i' && name[1] == 'n' && name[2] == 'o' ? OBJECT_INOTIFY
								  : OBJECT_NEVER_BLOCKS;
}

/* The file behind descriptor `fd` of the current thread. */
static __always_inline struct file *file_of(int fd)
{
	struct fdtable *table = BPF_CORE_READ(bpf_get_current_task_btf(), files, fdt);
	struct file *file = NULL;

	if (fd >= 0 && table && (unsigned int)fd < BPF_CORE_READ(table, max_fds))
		bpf_probe_read_kernel(&file, sizeof(file), BPF_CORE_READ(table, fd) + fd);
	return file;
}

/*
 * Looks at descriptor `fd` of the current thread and sets the object; returns its flags, negative
 * if there is none. The last file is remembered: a thread mostly waits on the same one.
 */
static __always_inline __s64 look(struct thread *thread, struct call_info *info, int fd)
{
	struct file *file = file_of(fd);
	struct inode *inode;

	info->number = fd;
	if (!file)
		return -1;
	inode = BPF_CORE_READ(file, f_inode);
	if (thread->known_file != (__u64)file || thread->known_inode != (__u64)inode) {
		__u64 identity = BPF_CORE_READ(inode, i_ino);
		__u8 class = OBJECT_NEVER_BLOCKS;

		switch (BPF_CORE_READ(inode, i_mode) & S_IFMT) {
		case S_IFIFO:
			class = OBJECT_PIPE;
			break;
		case S_IFSOCK:
			class = OBJECT_SOCKET;
			break;
		case S_IFCHR:
			class = OBJECT_CHARACTER_DEVICE;
			identity = BPF_CORE_READ(inode, i_rdev);
			break;
		case S_IFBLK:
			class = OBJECT_BLOCK_DEVICE;
			identity = BPF_CORE_READ(inode, i_rdev);
			break;
		default:
			if (BPF_CORE_READ(inode, i_sb, s_magic) == ANON_INODE_MAGIC) {
				class = class_of_anonymous(file);
				identity = 0;
			}
		}
		thread->known_file = (__u64)file;
		thread->known_inode = (__u64)inode;
		thread->known_identity = identity;
		thread->known_class = class;
	}
	info->object = thread->known_identity;
	info->object_class = thread->known_class;
	return BPF_CORE_READ(file, f_flags);
}

/* Whether a call on this file can block. */
static __always_inline bool wait_on_file(struct thread *thread, struct call_info *info, int fd)
{
	__s64 flags = look(thread, info, fd);

	return flags >= 0 && !(flags & O_NONBLOCK) && info->object_class != OBJECT_NEVER_BLOCKS;
}

static __always_inline bool wait_on_message_queue(
	struct thread *thread, struct call_info *info, int fd)
{
	__s64 flags = look(thread, info, fd);

	info->object_class = OBJECT_MESSAGE_QUEUE;
	return flags >= 0 && !(flags & O_NONBLOCK);
}

/* A descriptor or identifier by its number only: its class follows from the call. */
static __always_inline bool wait_on_number(struct call_info *info, __u8 class, int number)
{
	info->object_class = class;
	info->number = number;
	return true;
}

/* Of a futex, the address without its last bits: a glibc condition variable waits on two adjacent
 * words in turn. */
static __always_inline bool wait_on_address(struct call_info *info, __u64 address)
{
	info->object_class = OBJECT_ADDRESS;
	info->object = address;
	return true;
}

/* Several futexes do not distinguish one wait from another. */
static __always_inline bool wait_on_futexes(struct call_info *info, __u64 array, __u64 length)
{
	struct futex_waitv first;

	if (length == 1 && !bpf_probe_read_user(&first, sizeof(first), (void *)array))
		wait_on_address(info, first.uaddr & ~7ULL);
	return true;
}

/* Whether the only operation can block; of several, one may. */
static __always_inline bool wait_on_semaphores(
	struct call_info *info, int set, __u64 array, __u64 length)
{
	struct sembuf first;

	wait_on_number(info, OBJECT_ID, set);
	return length != 1 || bpf_probe_read_user(&first, sizeof(first), (void *)array) ||
	       (first.sem_op <= 0 && !(first.sem_flg & IPC_NOWAIT));
}

/* Only a SCHED_DEADLINE thread that yields waits: for its next budget. */
static __always_inline bool wait_for_budget(void)
{
	return bpf_get_current_task_btf()->policy == SCHED_DEADLINE;
}

static __always_inline bool wait_on_clock(
	struct call_info *info, __u64 now, int clock, bool absolute, __u64 time)
{
	__s64 when = read_time(info, time, 1);

	info->object_class = absolute ? OBJECT_CLOCK_ABSOLUTE : OBJECT_CLOCK;
	info->number = clock;
	/* A sleep until a time that has passed is a separator all the same: late threads ask for
	 * it, and may sleep until the timer has gone off. */
	if (when < 0)
		return false;
	if (absolute) {
		info->until = when;
		info->arrival = end_of_sleep(clock, when);
	}
	/* A relative sleep on CLOCK_REALTIME is timed on CLOCK_MONOTONIC. */
	if (!absolute && (clock == CLOCK_MONOTONIC || clock == CLOCK_REALTIME))
		info->arrival = now + when;
	return true;
}

/* A wait for one of several descriptors, or for none of them: a sleep. */
static __always_inline bool wait_for_one_of(
	struct call_info *info, __u64 now, __u64 descriptors, __s64 timeout)
{
	if (descriptors == 0 && timeout > 0)
		info->arrival = now + timeout;
	return timeout != 0;
}

/* A poll of one descriptor has that as its object. An array of several does not distinguish one
 * wait from another. */
static __always_inline bool wait_on_polled(
	struct thread *thread, struct call_info *info, __u64 array, __u64 length)
{
	int fd;

	if (length != 1 || bpf_probe_read_user(&fd, sizeof(fd), (void *)array))
		return true;
	/* O_NONBLOCK does not matter: descriptors that are polled mostly have it. */
	if (look(thread, info, fd) >= 0 && info->object_class == OBJECT_NEVER_BLOCKS)
		info->object_class = OBJECT_OTHER;
	return true;
}

/* waits(): the table of calls. */
#include "waits.gen.h"

static __always_inline void read_arguments(
	struct call_info *info, struct arguments *arguments, struct pt_regs *regs)
{
	if (is_of_32_bits(info->system_call)) {
		arguments->a = (__u32)COMPAT_1(regs);
		arguments->b = (__u32)COMPAT_2(regs);
		arguments->c = (__u32)COMPAT_3(regs);
		arguments->d = (__u32)COMPAT_4(regs);
		arguments->e = (__u32)COMPAT_5(regs);
		arguments->f = (__u32)COMPAT_6(regs);
	} else {
		arguments->a = ARGUMENT_1(regs);
		arguments->b = ARGUMENT_2(regs);
		arguments->c = ARGUMENT_3(regs);
		arguments->d = ARGUMENT_4(regs);
		arguments->e = ARGUMENT_5(regs);
		arguments->f = ARGUMENT_6(regs);
	}
}

/* The calls that socketcall(2) stands for, by its first argument (<linux/net.h>). */
static __always_inline __u8 call_of_socketcall(__u64 which)
{
	switch (which) {
	case 5:
		return CALL_ACCEPT;
	case 10: /* recv, which is recvfrom without an address */
	case 12:
		return CALL_RECVFROM;
	case 17:
		return CALL_RECVMSG;
	case 18:
		return CALL_ACCEPT4;
	case 19:
		return CALL_RECVMMSG;
	}
	return CALL_NONE;
}

/* Its other argument is where those of the call are. None that says whether it waits comes after
 * the fourth. */
static __always_inline void unpack_socketcall(struct call_info *info, struct arguments *arguments)
{
	__u32 packed[4] = {};

	info->call = call_of_socketcall(arguments->a);
	if (bpf_probe_read_user(packed, sizeof(packed), (void *)arguments->b))
		info->call = CALL_NONE;
	arguments->a = packed[0];
	arguments->b = packed[1];
	arguments->c = packed[2];
	arguments->d = packed[3];
}

/* The calls that ipc(2) stands for (<linux/ipc.h>): which, then first, second, third, pointer,
 * fifth; a version is in the upper bits of which. */
static __always_inline void unpack_ipc(struct call_info *info, struct arguments *arguments)
{
	__u16 which = arguments->a;

	arguments->a = arguments->b;
	info->call = which == 1 ? CALL_SEMOP : which == 4 ? CALL_SEMTIMEDOP : CALL_NONE;
	if (which == 12) { /* msgrcv: its flags are the third */
		info->call = CALL_MSGRCV;
		arguments->e = arguments->d;
	} else {
		arguments->b = arguments->e;
		arguments->d = arguments->f;
	}
}

/* Completes what is known of the call by its arguments; CALL_NONE if it does not wait. */
static __always_inline void classify(
	struct thread *thread, struct call_info *info, struct pt_regs *regs, __u64 now)
{
	struct arguments arguments;

	read_arguments(info, &arguments, regs);
	if (info->call == CALL_FUTEX)
		info->call = call_of_futex(arguments.b);
	else if (info->call == CALL_SOCKETCALL)
		unpack_socketcall(info, &arguments);
	else if (info->call == CALL_IPC)
		unpack_ipc(info, &arguments);
	if (!waits(thread, info, &arguments, now))
		info->call = CALL_NONE;
}

#endif
