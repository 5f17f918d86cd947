// What all workloads share; see workload.h.
#include "workload.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SCHED_DEADLINE
#define SCHED_DEADLINE 6
#endif

// The kernel's `struct sched_attr`, first version: newer C libraries declare that name themselves,
// older ones do not.
struct attributes {
	uint32_t size;
	uint32_t policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime;
	uint64_t deadline;
	uint64_t period;
};

int64_t now_on(clockid_t clock)
{
	struct timespec t;
	must(clock_gettime(clock, &t), "clock_gettime");
	return t.tv_sec * SECOND + t.tv_nsec;
}

int64_t now_ns(void)
{
	return now_on(CLOCK_MONOTONIC);
}

struct timespec timespec_of(int64_t ns)
{
	return (struct timespec){.tv_sec = ns / SECOND, .tv_nsec = ns % SECOND};
}

void sleep_until(int64_t ns)
{
	struct timespec t = timespec_of(ns);
	int error;
	do
		error = clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
	while (error == EINTR);
	if (error)
		die("clock_nanosleep", error);
}

void burn(int64_t ns)
{
	int64_t until = now_on(CLOCK_THREAD_CPUTIME_ID) + ns;
	// Reading this clock is a system call; with some microseconds between two readings, most of
	// the work stays in user space.
	while (now_on(CLOCK_THREAD_CPUTIME_ID) < until)
		for (volatile int i = 0; i < 4000; i++)
			;
}

void die(const char *what, int error)
{
	fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, strerror(error));
	exit(1);
}

long must(long result, const char *what)
{
	if (result < 0)
		die(what, errno);
	return result;
}

static void name_thread(const char *name)
{
	int error = pthread_setname_np(pthread_self(), name);
	if (error)
		die(name, error);
}

void become_fifo(const char *name, int priority)
{
	name_thread(name);
	struct sched_param param = {.sched_priority = priority};
	if (sched_setscheduler(0, SCHED_FIFO, &param) < 0) {
		fprintf(stderr,
			"%s: the kernel refused SCHED_FIFO (%s): run it as root or with "
			"CAP_SYS_NICE\n",
			program_invocation_short_name, strerror(errno));
		exit(errno == EPERM ? EXIT_SKIPPED : 1);
	}
}

static int set(int tid, struct attributes attributes)
{
	attributes.size = sizeof attributes;
	return syscall(SYS_sched_setattr, tid, &attributes, 0) < 0 ? errno : 0;
}

int become_deadline(const char *name, int64_t runtime_ns, int64_t deadline_ns, int64_t period_ns)
{
	name_thread(name);
	return set(0, (struct attributes){
			      .policy = SCHED_DEADLINE,
			      .runtime = runtime_ns,
			      .deadline = deadline_ns,
			      .period = period_ns,
		      });
}

int set_attributes(int tid, int policy, int priority)
{
	return set(tid, (struct attributes){.policy = policy, .priority = priority});
}

const char *text_option(int argc, char **argv, const char *name, const char *fallback)
{
	for (int i = 1; i + 1 < argc; i++)
		if (strcmp(argv[i], name) == 0)
			return argv[i + 1];
	return fallback;
}

double number_option(int argc, char **argv, const char *name, double fallback)
{
	const char *text = text_option(argc, argv, name, NULL);
	if (!text)
		return fallback;
	char *end;
	double value = strtod(text, &end);
	if (end == text || *end || !(value >= 0)) {
		fprintf(stderr, "%s: %s needs a number, not '%s'\n", program_invocation_short_name,
			name, text);
		exit(2);
	}
	return value;
}

bool has_flag(int argc, char **argv, const char *name)
{
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], name) == 0)
			return true;
	return false;
}

static sigset_t stop_signals(void)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	return set;
}

void block_stop_signals(void)
{
	sigset_t set = stop_signals();
	pthread_sigmask(SIG_BLOCK, &set, NULL);
}

void wait_for_stop(double seconds)
{
	sigset_t set = stop_signals();
	int64_t until = now_ns() + (int64_t)(seconds * (double)SECOND);
	for (;;) {
		if (seconds < 0) {
			if (sigwaitinfo(&set, NULL) > 0)
				return;
			continue;
		}
		int64_t left = until - now_ns();
		struct timespec t = timespec_of(left > 0 ? left : 0);
		if (sigtimedwait(&set, NULL, &t) > 0 || left <= 0)
			return;
	}
}
