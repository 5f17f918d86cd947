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

/* A time of user space in nanoseconds, given the length of its smaller unit; negative if it cannot
 * be read or is not a time. */
static __always_inline __s64 read_time(const void *user, __s64 unit)
{
	struct timespec time;

	if (bpf_probe_read_user(&time, sizeof(time), user) || time.tv_sec < 0 || time.tv_nsec < 0)
		return -1;
	if (time.tv_sec > 9000000000LL)
		return 9000000000000000000LL;
	return time.tv_sec * 1000000000LL + time.tv_nsec * unit;
}

static __always_inline __s64 read_timespec(const void *user)
{
	return read_time(user, 1);
}

/* A timeval has the same layout, and microseconds. */
static __always_inline __s64 read_timeval(const void *user)
{
	return read_time(user, 1000);
}

/* Whether a timeout is given and zero: the call does not wait. */
static __always_inline bool does_not_wait(const void *timeout)
{
	return timeout && read_timespec(timeout) == 0;
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

/*
 * Looks at descriptor `fd` of the current thread and sets the object; returns its flags, negative
 * if there is none. The last file is remembered: a thread mostly waits on the same one.
 */
static __always_inline __s64 look(struct thread *thread, struct call_info *info, int fd)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct fdtable *table = BPF_CORE_READ(task, files, fdt);
	struct file *file = NULL;
	struct inode *inode;

	info->number = fd;
	if (fd < 0 || !table || (unsigned int)fd >= BPF_CORE_READ(table, max_fds))
		return -1;
	bpf_probe_read_kernel(&file, sizeof(file), BPF_CORE_READ(table, fd) + fd);
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

/* A call that reads from `fd`: not a separator where that cannot block. */
static __always_inline void reads(struct thread *thread, struct call_info *info, int fd)
{
	__s64 flags = look(thread, info, fd);

	if (flags < 0 || flags & O_NONBLOCK || info->object_class == OBJECT_NEVER_BLOCKS)
		info->call = CALL_NONE;
}

static __always_inline void futex(struct call_info *info, __u64 address, __u32 operation)
{
	switch (operation & FUTEX_COMMAND) {
	case FUTEX_WAIT:
		info->call = CALL_FUTEX_WAIT;
		break;
	case FUTEX_WAIT_BITSET:
		info->call = CALL_FUTEX_WAIT_BITSET;
		break;
	case FUTEX_LOCK_PI:
	case FUTEX_LOCK_PI2:
		info->call = CALL_FUTEX_LOCK_PI;
		break;
	case FUTEX_WAIT_REQUEUE_PI:
		info->call = CALL_FUTEX_WAIT_REQUEUE_PI;
		break;
	default:
		info->call = CALL_NONE;
		return;
	}
	info->object_class = OBJECT_ADDRESS;
	/* A glibc condition variable waits on two adjacent words in turn. */
	info->object = address & ~7ULL;
}

/* A descriptor by number only: its class follows from the call. */
static __always_inline void numbered(struct call_info *info, __u8 class, int fd)
{
	info->object_class = class;
	info->number = fd;
}

/*
 * How far a clock is ahead of CLOCK_MONOTONIC, as the kernel's timers have it: every thread has
 * one, which is unused but under SCHED_DEADLINE. False for clocks that timers do not run on by
 * themselves.
 */
static __always_inline bool is_ahead(int clock, __s64 *by)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct hrtimer_cpu_base *timers;
	int base;

	*by = 0;
	if (clock == CLOCK_MONOTONIC)
		return true;
	if (clock == CLOCK_REALTIME)
		base = bpf_core_enum_value(enum hrtimer_base_type, HRTIMER_BASE_REALTIME);
	else if (clock == CLOCK_BOOTTIME)
		base = bpf_core_enum_value(enum hrtimer_base_type, HRTIMER_BASE_BOOTTIME);
	else if (clock == CLOCK_TAI)
		base = bpf_core_enum_value(enum hrtimer_base_type, HRTIMER_BASE_TAI);
	else
		return false;
	timers = BPF_CORE_READ(task, dl.dl_timer.base, cpu_base);
	/* Addressed by hand: CO-RE knows the array as having one element. */
	return timers &&
	       !bpf_probe_read_kernel(by, sizeof(*by),
		       (void *)timers + bpf_core_field_offset(struct hrtimer_cpu_base, clock_base) +
			       base * bpf_core_type_size(struct hrtimer_clock_base) +
			       bpf_core_field_offset(struct hrtimer_clock_base, offset));
}

/* When an absolute sleep is over, on CLOCK_MONOTONIC; 0: not known. */
static __always_inline __u64 end_of_sleep(int clock, __s64 until)
{
	__s64 ahead;

	return is_ahead(clock, &ahead) && until > ahead ? until - ahead : 0;
}

static __always_inline void sleep_on_clock(
	struct call_info *info, __u64 now, int clock, bool absolute, const void *time)
{
	__s64 when = read_timespec(time);

	info->object_class = absolute ? OBJECT_CLOCK_ABSOLUTE : OBJECT_CLOCK;
	info->number = clock;
	/* A sleep until a time that has passed is a separator all the same: late threads ask for
	 * it, and may sleep until the timer has gone off. */
	if (when < 0) {
		info->call = CALL_NONE;
		return;
	}
	if (absolute) {
		info->until = when;
		info->arrival = end_of_sleep(clock, when);
	}
	/* A relative sleep on CLOCK_REALTIME is timed on CLOCK_MONOTONIC. */
	if (!absolute && (clock == CLOCK_MONOTONIC || clock == CLOCK_REALTIME))
		info->arrival = now + when;
}

/* A wait for one of several descriptors, or for none of them: a sleep. `when` < 0: without end. */
static __always_inline void wait_for_any(
	struct call_info *info, __u64 now, __u64 descriptors, __s64 when)
{
	if (when == 0)
		info->call = CALL_NONE;
	else if (descriptors == 0 && when > 0)
		info->arrival = now + when;
}

/* A poll of one descriptor has that as its object. An array of several does not distinguish one
 * wait from another. */
static __always_inline void poll_object(
	struct thread *thread, struct call_info *info, __u64 array, __u64 length)
{
	int fd;

	if (length != 1 || bpf_probe_read_user(&fd, sizeof(fd), (void *)array))
		return;
	/* O_NONBLOCK does not matter: descriptors that are polled mostly have it. */
	if (look(thread, info, fd) >= 0 && info->object_class == OBJECT_NEVER_BLOCKS)
		info->object_class = OBJECT_OTHER;
}

static __always_inline __s64 milliseconds(int timeout)
{
	return timeout < 0 ? -1 : timeout * 1000000LL;
}

static __always_inline void classify(
	struct thread *thread, struct call_info *info, struct pt_regs *regs, __u64 now)
{
	__u64 a = ARGUMENT_1(regs);
	__u64 b = ARGUMENT_2(regs);
	__u64 c = ARGUMENT_3(regs);
	__u64 d = ARGUMENT_4(regs);
	__u64 e = ARGUMENT_5(regs);
	__s64 flags;

	switch (info->call) {
	case CALL_CLOCK_NANOSLEEP:
		sleep_on_clock(info, now, a, b & TIMER_ABSTIME, (void *)c);
		break;
	case CALL_NANOSLEEP:
		sleep_on_clock(info, now, CLOCK_MONOTONIC, false, (void *)a);
		break;
	case CALL_SELECT:
		wait_for_any(info, now, a, e ? read_timeval((void *)e) : -1);
		break;
	case CALL_PSELECT6:
		wait_for_any(info, now, a, e ? read_timespec((void *)e) : -1);
		break;
	case CALL_POLL:
		wait_for_any(info, now, b, milliseconds(c));
		poll_object(thread, info, a, b);
		break;
	case CALL_PPOLL:
		wait_for_any(info, now, b, c ? read_timespec((void *)c) : -1);
		poll_object(thread, info, a, b);
		break;
	case CALL_EPOLL_WAIT:
	case CALL_EPOLL_PWAIT:
		numbered(info, OBJECT_EPOLL, a);
		if ((int)d == 0)
			info->call = CALL_NONE;
		break;
	case CALL_EPOLL_PWAIT2:
		numbered(info, OBJECT_EPOLL, a);
		if (does_not_wait((void *)d))
			info->call = CALL_NONE;
		break;
	case CALL_READ:
	case CALL_READV:
	case CALL_PREADV:
	case CALL_ACCEPT:
	case CALL_ACCEPT4:
		reads(thread, info, a);
		break;
	case CALL_PREADV2:
		reads(thread, info, a);
		if (ARGUMENT_6(regs) & RWF_NOWAIT)
			info->call = CALL_NONE;
		break;
	case CALL_RECVFROM:
	case CALL_RECVMMSG:
		reads(thread, info, a);
		if (d & MSG_DONTWAIT)
			info->call = CALL_NONE;
		break;
	case CALL_RECVMSG:
		reads(thread, info, a);
		if (c & MSG_DONTWAIT)
			info->call = CALL_NONE;
		break;
	case CALL_FUTEX:
		futex(info, a, b);
		break;
	case CALL_FUTEX_WAIT: /* the call futex_wait(2) */
		info->object_class = OBJECT_ADDRESS;
		info->object = a & ~7ULL;
		break;
	case CALL_FUTEX_WAITV: {
		struct futex_waitv first;

		if (b == 1 && !bpf_probe_read_user(&first, sizeof(first), (void *)a)) {
			info->object_class = OBJECT_ADDRESS;
			info->object = first.uaddr & ~7ULL;
		}
		break;
	}
	case CALL_RT_SIGTIMEDWAIT:
		if (does_not_wait((void *)c))
			info->call = CALL_NONE;
		break;
	case CALL_MQ_TIMEDRECEIVE:
		flags = look(thread, info, a);
		info->object_class = OBJECT_MESSAGE_QUEUE;
		if (flags < 0 || flags & O_NONBLOCK)
			info->call = CALL_NONE;
		break;
	case CALL_MSGRCV:
		numbered(info, OBJECT_ID, a);
		if (e & IPC_NOWAIT)
			info->call = CALL_NONE;
		break;
	case CALL_SEMOP:
	case CALL_SEMTIMEDOP: {
		struct sembuf first;

		numbered(info, OBJECT_ID, a);
		if (c == 1 && !bpf_probe_read_user(&first, sizeof(first), (void *)b) &&
			(first.sem_op > 0 || first.sem_flg & IPC_NOWAIT))
			info->call = CALL_NONE;
		if (info->call == CALL_SEMTIMEDOP && does_not_wait((void *)d))
			info->call = CALL_NONE;
		break;
	}
	case CALL_WAIT4:
		if (c & WNOHANG)
			info->call = CALL_NONE;
		break;
	case CALL_WAITID:
		if (d & WNOHANG)
			info->call = CALL_NONE;
		break;
	case CALL_IO_GETEVENTS:
	case CALL_IO_PGETEVENTS:
		info->object_class = OBJECT_ADDRESS;
		info->object = a;
		if ((long)b <= 0 || does_not_wait((void *)e))
			info->call = CALL_NONE;
		break;
	case CALL_IO_URING_ENTER:
		numbered(info, OBJECT_IO_URING, a);
		if (!(d & IORING_ENTER_GETEVENTS) || (__u32)c == 0)
			info->call = CALL_NONE;
		break;
	case CALL_SCHED_YIELD:
		if (bpf_get_current_task_btf()->policy != SCHED_DEADLINE)
			info->call = CALL_NONE;
		break;
	case CALL_RT_SIGSUSPEND:
	case CALL_PAUSE:
		break;
	default:
		info->call = CALL_NONE;
	}
}

#endif
