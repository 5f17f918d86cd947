/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The programs as a program of user space: events of one thread on standard input, its records on
 * standard output, each behind its length. An event is a line: its name, TIME, ACCOUNT and an
 * ARGUMENT.
 *
 *   in      the thread gets a processor
 *   out     it loses it; ARGUMENT is the state of sched_switch, 0: preempted
 *   sleep   it stops, and no program sees that
 *   wake    it is woken
 *   enter   it calls read on a pipe
 *   timer   it calls read on a timerfd
 *   signal  it calls rt_sigtimedwait for the signal of a POSIX timer
 *   next    both timers, which expire each millisecond, expire next at ARGUMENT, of their clock
 *   ahead   their clock, and that of sleeps, is CLOCK_REALTIME, ahead of ours by ARGUMENT
 *   set     somebody calls clock_settime, and the clock is ARGUMENT ahead from now on
 *   isset   that call returns
 *   stolen  a hypervisor has taken ARGUMENT in all from the processor
 *   taken   the call, which returns next, takes as many expirations of its timer as ARGUMENT
 *   until   it calls clock_nanosleep; ARGUMENT is the absolute time
 *   loop    it calls epoll_pwait
 *   data    the next event that this call returns, with ARGUMENT as its data
 *   poll    it calls ppoll on the descriptors 5 to 24
 *   revents the next of these that are ready, by bits
 *   exit    the call returns ARGUMENT
 *   leave   the call returns ARGUMENT, and no program sees that
 *   again   the kernel restarts the call
 *
 * ACCOUNT is what sum_exec_runtime says at the time.
 */
#include "../../src/jobs/bpf/jobs.bpf.c"

int scanf(const char *format, ...);
int strcmp(const char *a, const char *b);
void *memcpy(void *to, const void *from, unsigned long size);
long write(int file, const void *from, unsigned long size);

static struct thread watched_thread;
static bool is_watched;
static __u64 now;
static struct rq queue;
static struct cfs_rq group = {.rq = &queue};
static struct inode inode = {.i_mode = S_IFIFO, .i_ino = 7};
static struct file pipe_file = {.f_inode = &inode};
/* The bases of all clocks, one behind the other. */
static struct {
	struct hrtimer_cpu_base first;
	struct hrtimer_clock_base others[3];
} bases = {.first.clock_base[0].cpu_base = &bases.first};
static struct timerfd_ctx timer = {
	.t.tmr.base = &bases.first.clock_base[0], .tintv = 1000000, .clockid = CLOCK_MONOTONIC};
static struct k_itimer posix_timer = {.it_id = 3,
	.it_interval = 1000000,
	.it_clock = CLOCK_MONOTONIC,
	.it.real.timer.base = &bases.first.clock_base[0]};
static struct k_itimer other_timer = {.list.next = &posix_timer.list, .it_id = 4};
static struct super_block anonymous = {.s_magic = ANON_INODE_MAGIC};
static struct inode timer_inode = {.i_sb = &anonymous};
static struct dentry timer_name = {.d_name.name = (const unsigned char *)"[timerfd]  "};
static struct file timer_file = {
	.f_inode = &timer_inode, .f_path.dentry = &timer_name, .private_data = &timer};
static struct file *descriptors[4] = {0, 0, &timer_file, &pipe_file};
static struct fdtable table = {.max_fds = 4, .fd = descriptors};
static struct files_struct files = {.fdt = &table};
static struct signal_struct signals = {.posix_timers.next = &other_timer.list};
static struct task_struct task = {.pid = 9,
	.tgid = 9,
	.policy = SCHED_FIFO,
	.rt_priority = 50,
	.nr_cpus_allowed = 1,
	.files = &files,
	.signal = &signals,
	.dl.dl_timer.base = &bases.first.clock_base[0]};
static struct task_struct idle;
static struct pt_regs registers;
static __u64 buffer[128];
static __u32 size_of_record;

void *bpf_map_lookup_elem(void *map, const void *key)
{
	return map == (void *)&threads && is_watched && *(__u32 *)key == 9 ? &watched_thread : NULL;
}

long bpf_map_update_elem(void *map, const void *key, const void *value, __u64 flags)
{
	memcpy(&watched_thread, value, sizeof watched_thread);
	is_watched = true;
	return 0;
}

long bpf_map_delete_elem(void *map, const void *key)
{
	is_watched = false;
	return 0;
}

void *bpf_ringbuf_reserve(void *ring, __u64 size, __u64 flags)
{
	size_of_record = size;
	return buffer;
}

void bpf_ringbuf_submit(void *data, __u64 flags)
{
	write(1, &size_of_record, sizeof size_of_record);
	write(1, data, size_of_record);
}

__u64 bpf_ktime_get_ns(void)
{
	return now;
}

__u32 bpf_get_smp_processor_id(void)
{
	return 0;
}

struct task_struct *bpf_get_current_task_btf(void)
{
	return &task;
}

long bpf_task_pt_regs(struct task_struct *of)
{
	return (long)&registers;
}

static long copy(void *to, __u32 size, const void *from)
{
	memcpy(to, from, size);
	return 0;
}

long bpf_probe_read_kernel(void *to, __u32 size, const void *from)
{
	return copy(to, size, from);
}

long bpf_probe_read_kernel_str(void *to, __u32 size, const void *from)
{
	return copy(to, 1, from);
}

/* All that user space has in memory. */
static struct timespec sleep_until;
static __u64 expirations;
static struct timer_siginfo siginfo = {.si_code = SI_TIMER, .si_tid = 3};
static char events[8 * EPOLL_EVENT_SIZE];
static int event_count;
static struct pollfd polled[20];

static bool is_in(const void *from, const void *memory, unsigned long size)
{
	return from >= memory && from < memory + size;
}

long bpf_probe_read_user(void *to, __u32 size, const void *from)
{
	return from == &sleep_until || from == &expirations || from == &siginfo ||
			       is_in(from, events, sizeof events) ||
			       is_in(from, polled, sizeof polled)
		       ? copy(to, size, from)
		       : -1;
}

void *bpf_this_cpu_ptr(const void *variable)
{
	return (void *)variable;
}

#if defined(__TARGET_ARCH_x86)
enum { READ = 0, RT_SIGTIMEDWAIT = 128, CLOCK_NANOSLEEP = 230, PPOLL = 271, EPOLL_PWAIT = 281 };
#define SET_CALL(number, a, b, c) \
	(registers.orig_ax = (number), registers.di = (a), registers.si = (b), registers.dx = (c), \
		registers.ax = (unsigned long)-ENOSYS)
#define SET_FOURTH(d)	   (registers.r10 = (d))
#define SET_RESULT(result) (registers.ax = (result))
#else
enum { EPOLL_PWAIT = 22, READ = 63, PPOLL = 73, CLOCK_NANOSLEEP = 115, RT_SIGTIMEDWAIT = 137 };
#define SET_CALL(number, a, b, c) \
	(registers.syscallno = (number), registers.orig_x0 = (a), registers.regs[1] = (b), \
		registers.regs[2] = (c))
#define SET_FOURTH(d)	   (registers.regs[3] = (d))
#define SET_RESULT(result) (registers.regs[0] = (result))
#endif

static __u8 current_call;
static int descriptor; /* that it reads */

static void read_from(int of)
{
	current_call = CALL_READ;
	descriptor = of;
	SET_CALL(READ, of, (unsigned long)&expirations, 0);
	on_enter(&registers, current_call);
}

static int clock_of_sleeps = CLOCK_MONOTONIC;

static void begin_to_sleep(void)
{
	current_call = CALL_CLOCK_NANOSLEEP;
	SET_CALL(CLOCK_NANOSLEEP, clock_of_sleeps, TIMER_ABSTIME, (unsigned long)&sleep_until);
	on_enter(&registers, current_call);
}

static void wait_for_signal(void)
{
	current_call = CALL_RT_SIGTIMEDWAIT;
	SET_CALL(RT_SIGTIMEDWAIT, 0, (unsigned long)&siginfo, 0);
	on_enter(&registers, current_call);
}

static void wait_for_events(void)
{
	event_count = 0;
	current_call = CALL_EPOLL_PWAIT;
	SET_CALL(EPOLL_PWAIT, 4, (unsigned long)events, 8);
	SET_FOURTH(-1);
	on_enter(&registers, current_call);
}

static void poll_all(void)
{
	for (int i = 0; i < 20; i++)
		polled[i] = (struct pollfd){.fd = 5 + i};
	current_call = CALL_PPOLL;
	SET_CALL(PPOLL, (unsigned long)polled, 20, 0);
	on_enter(&registers, current_call);
}

/* What the call returns in the program's memory. */
static bool set_memory(const char *what, long long argument)
{
	__u64 data = argument;

	if (strcmp(what, "data") == 0) {
		memcpy(events + event_count++ * EPOLL_EVENT_SIZE + EPOLL_EVENT_DATA, &data,
			sizeof data);
	} else if (strcmp(what, "revents") == 0) {
		for (int i = 0; i < 20; i++)
			polled[i].revents = argument >> i & 1;
	} else {
		return false;
	}
	return true;
}

/* What the kernel says; both kinds of timer say the same. */
static void set_kernel(const char *what, long long argument)
{
	if (strcmp(what, "next") == 0) {
		timer.t.tmr.node.expires = posix_timer.it.real.timer.node.expires = argument;
	} else if (strcmp(what, "ahead") == 0) {
		timer.clockid = posix_timer.it_clock = clock_of_sleeps = CLOCK_REALTIME;
		timer.t.tmr.base = posix_timer.it.real.timer.base =
			&bases.others[HRTIMER_BASE_REALTIME - 1];
		bases.others[HRTIMER_BASE_REALTIME - 1].offset = argument;
	} else if (strcmp(what, "set") == 0) {
		on_enter(&registers, CALL_SET_CLOCK);
		bases.others[HRTIMER_BASE_REALTIME - 1].offset = argument;
	} else if (strcmp(what, "isset") == 0) {
		on_exit(CALL_SET_CLOCK, 0);
	} else if (strcmp(what, "taken") == 0) {
		expirations = argument;
		siginfo.si_overrun = argument - 1;
	} else if (strcmp(what, "stolen") == 0) {
		queue.prev_steal_time_rq = argument;
	}
}

int main(void)
{
	char event[16];
	long long account, last;

	*(volatile bool *)&active = true;
	task.se.cfs_rq = &group;
	task.group_leader = &task;
	SET_CALL(-1, 0, 0, 0);
	while (scanf("%15s %lld %lld %lld", event, (long long *)&now, &account, &last) == 4) {
		__u64 state[4] = {0, 0, 0, (__u64)last};

		task.se.sum_exec_runtime = account;
		queue.clock = now;
		if (strcmp(event, "in") == 0) {
			task.__state = 0;
			switched(state, false, &idle, &task);
		} else if (strcmp(event, "out") == 0) {
			if (last)
				task.nvcsw++;
			task.__state = last;
			switched(state, last == 0, &task, &idle);
		} else if (strcmp(event, "wake") == 0) {
			waking(state, &task);
		} else if (strcmp(event, "enter") == 0) {
			read_from(3);
		} else if (strcmp(event, "timer") == 0) {
			read_from(2);
		} else if (strcmp(event, "signal") == 0) {
			wait_for_signal();
		} else if (strcmp(event, "loop") == 0) {
			wait_for_events();
		} else if (strcmp(event, "poll") == 0) {
			poll_all();
		} else if (strcmp(event, "until") == 0) {
			sleep_until.tv_sec = last / 1000000000;
			sleep_until.tv_nsec = last % 1000000000;
			begin_to_sleep();
		} else if (strcmp(event, "again") == 0) {
			if (current_call == CALL_CLOCK_NANOSLEEP)
				begin_to_sleep();
			else
				read_from(descriptor);
		} else if (strcmp(event, "exit") == 0 || strcmp(event, "leave") == 0) {
			SET_RESULT(last);
			if (strcmp(event, "exit") == 0)
				on_exit(current_call, last);
			/* A call that is to be restarted stays in the registers. */
			if (interruption_of(last) == INTERRUPTED_NOT)
				SET_CALL(-1, 0, 0, 0);
		} else if (strcmp(event, "sleep") == 0) {
			/* A stop that no program sees. */
			task.nvcsw++;
		} else if (!set_memory(event, last)) {
			set_kernel(event, last);
		}
	}
	return 0;
}
