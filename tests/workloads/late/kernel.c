// What the kernel itself does on the processor of the loop: a thread of its own, and interrupts.
#include "late.h"

#include <errno.h>
#include <linux/io_uring.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

// A thread with which the kernel polls a queue of io_uring. Without work it does so for a given
// time, and then sleeps until it is asked for again. One for each length of time.
struct poller {
	int64_t length;
	int queue;
	pid_t thread;
	clockid_t clock;
	const volatile uint32_t *flags;
};
static struct poller pollers[] = {{.length = LONG}, {.length = SHORT}};

#define POLLER_PRIORITY 70

static pid_t thread_of(int queue)
{
	char path[64], line[64];
	int thread = 0;
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", queue);
	FILE *about = fopen(path, "re");
	while (about && !thread && fgets(line, sizeof(line), about))
		sscanf(line, "SqThread: %d", &thread);
	if (about)
		fclose(about);
	return thread;
}

// The kernel names it after the process.
static bool rename_thread(pid_t thread)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/self/task/%d/comm", thread);
	FILE *comm = fopen(path, "we");
	return comm && fputs("poller", comm) >= 0 && fclose(comm) == 0;
}

static const char *set_up_queue(struct poller *poller)
{
	struct io_uring_params params = {
		.flags = IORING_SETUP_SQPOLL | IORING_SETUP_SQ_AFF,
		.sq_thread_cpu = 0,
		.sq_thread_idle = poller->length / MS,
	};
	poller->queue = syscall(SYS_io_uring_setup, 1, &params);
	if (poller->queue < 0)
		return strerror(errno);
	char *ring = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, poller->queue, IORING_OFF_SQ_RING);
	if (ring == MAP_FAILED)
		return strerror(errno);
	poller->flags = (const volatile uint32_t *)(ring + params.sq_off.flags);
	// Once it sleeps, it has set its name.
	while (!(*poller->flags & IORING_SQ_NEED_WAKEUP))
		sleep_until(now_ns() + MS);
	poller->thread = thread_of(poller->queue);
	if (!poller->thread || !rename_thread(poller->thread))
		return "its thread is not known";
	// The clock of a thread of this process, as pthread_getcpuclockid(3) makes it.
	poller->clock = (clockid_t)(~(unsigned)poller->thread << 3 | 6);
	return NULL;
}

const char *set_up_poller(void)
{
	const char *missing = NULL;
	for (size_t p = 0; p < sizeof(pollers) / sizeof(*pollers) && !missing; p++)
		missing = set_up_queue(&pollers[p]);
	return missing;
}

static void set_policy(pid_t thread, int policy, int priority)
{
	int error = set_attributes(thread, policy, priority);
	if (error)
		die("sched_setattr", error);
}

// The thread is urgent only meanwhile: a signal for the process wakes it, too.
int64_t be_polled(int64_t length)
{
	struct poller *poller = &pollers[length <= SHORT];
	set_policy(poller->thread, SCHED_FIFO, POLLER_PRIORITY);
	int64_t before = now_on(poller->clock);
	must(syscall(SYS_io_uring_enter, poller->queue, 0, 0, IORING_ENTER_SQ_WAKEUP, NULL, 0),
		"io_uring_enter");
	while (!(*poller->flags & IORING_SQ_NEED_WAKEUP))
		;
	int64_t took = now_on(poller->clock) - before;
	set_policy(poller->thread, SCHED_OTHER, 0);
	return took;
}

// Timers that expire together, so that their interrupt lasts for long: each copies the stack of the
// thread.
static int timers[64];
#define TIMERS	    (sizeof(timers) / sizeof(*timers))
#define COPIED	    65528 // the most that there is
#define RING	    ((1 + 64) * PAGE)
#define LEAST_TIMER (10 * US)

// The first one leads the others.
static void set_timers(unsigned long request)
{
	must(ioctl(timers[0], request, 0), "ioctl");
}

static void set_interval(int64_t interval)
{
	uint64_t period = interval;
	for (size_t t = 0; t < TIMERS; t++)
		must(ioctl(timers[t], PERF_EVENT_IOC_PERIOD, &period), "PERF_EVENT_IOC_PERIOD");
}

// Time in which the thread had its processor, and time in which interrupts or something else had
// it.
struct shares {
	int64_t own, interrupts, others;
	long gaps;
};

// Looks at the clock again and again, until interrupts took this long, or for `most` in all.
static struct shares watch_gaps(int64_t interrupts, int64_t most)
{
	// An interrupt takes longer than a look at the clock, and less than another thread.
	const int64_t shortest = 2 * US, longest = MS / 2;
	volatile char room[COPIED + PAGE];
	for (size_t i = 0; i < sizeof(room); i += PAGE)
		room[i] = 1;
	struct shares shares = {0};
	int64_t begin = now_ns(), last = begin;
	while (shares.interrupts < interrupts && last - begin < most) {
		int64_t now = now_ns(), gap = now - last;
		if (gap < shortest)
			shares.own += gap;
		else if (gap < longest)
			shares.interrupts += gap, shares.gaps++;
		else
			shares.others += gap;
		last = now;
	}
	return shares;
}

const char *set_up_interrupts(void)
{
	struct perf_event_attr attributes = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attributes),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = MS,
		.sample_type = PERF_SAMPLE_STACK_USER,
		.sample_stack_user = COPIED,
		.watermark = 1,
		.wakeup_watermark = RING,
	};
	for (size_t t = 0; t < TIMERS; t++) {
		int leader = t ? timers[0] : -1;
		attributes.disabled = t == 0;
		timers[t] = syscall(
			SYS_perf_event_open, &attributes, 0, -1, leader, PERF_FLAG_FD_CLOEXEC);
		if (timers[t] < 0)
			return strerror(errno);
		// All have one ring, which is read-only: new samples take the place of old ones.
		if (t ? ioctl(timers[t], PERF_EVENT_IOC_SET_OUTPUT, leader) < 0
		      : mmap(NULL, RING, PROT_READ, MAP_SHARED, timers[t], 0) == MAP_FAILED)
			return strerror(errno);
	}
	set_timers(PERF_EVENT_IOC_ENABLE);
	struct shares shares = watch_gaps(SECOND, 20 * MS);
	set_timers(PERF_EVENT_IOC_DISABLE);
	int64_t one = shares.interrupts / (shares.gaps ? shares.gaps : 1);
	// Three quarters of the time are theirs.
	int64_t interval = one * 4 / 3;
	if (interval < LEAST_TIMER)
		return "they are too short";
	set_interval(interval);
	return NULL;
}

int64_t be_interrupted(int64_t length, struct job *job)
{
	int64_t cpu = now_on(CLOCK_THREAD_CPUTIME_ID), ready = ready_time();
	set_timers(PERF_EVENT_IOC_ENABLE);
	struct shares shares = watch_gaps(length, 3 * length);
	set_timers(PERF_EVENT_IOC_DISABLE);
	// Some kernels count interrupts as time of the thread.
	int64_t counted = now_on(CLOCK_THREAD_CPUTIME_ID) - cpu;
	job->cpu -= counted > shares.own ? counted - shares.own : 0;
	// Some gaps were other threads.
	ready = ready_time() - ready - shares.others;
	return shares.interrupts - (ready > 0 ? ready : 0);
}
