// Waiting for signals.
#include "drivers.h"

#include <signal.h>
#include <stddef.h>

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

#define KERNEL_SIGNAL_SET_SIZE 8

static timer_t timer;
static _Atomic int64_t handled; // activations

static sigset_t only_event(void)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN);
	return set;
}

static void handle(int signal)
{
	(void)signal;
}

static void block_event(struct run *run)
{
	(void)run;
	sigset_t set = only_event();
	pthread_sigmask(SIG_BLOCK, &set, NULL);
}

static void handle_event(struct run *run)
{
	(void)run;
	struct sigaction action = {.sa_handler = handle};
	must(sigaction(SIGRTMIN, &action, NULL), "sigaction");
}

static void block_and_handle(struct run *run)
{
	handle_event(run);
	block_event(run);
}

static void start_timer(struct run *run)
{
	struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGRTMIN};
	event.sigev_notify_thread_id = gettid();
	must(timer_create(CLOCK_MONOTONIC, &event, &timer), "timer_create");
	struct itimerspec setting = {
		.it_value = timespec_of(run->beginning_ns),
		.it_interval = timespec_of(run->period_ns),
	};
	must(timer_settime(timer, TIMER_ABSTIME, &setting, NULL), "timer_settime");
}

static void block_and_start_timer(struct run *run)
{
	block_event(run);
	start_timer(run);
}

#ifdef SYS_pause
static void count_activations(int signal)
{
	(void)signal;
	handled += 1 + timer_getoverrun(timer);
}

static void count_and_start_timer(struct run *run)
{
	struct sigaction action = {.sa_handler = count_activations};
	must(sigaction(SIGRTMIN, &action, NULL), "sigaction");
	start_timer(run);
}

// A signal that arrives before the call is handled without a wait.
static void wait_pause(struct run *run)
{
	syscall(SYS_pause);
	run->skipped = handled - 1 - run->done;
}
#endif

static void signal_thread(struct run *run)
{
	pthread_kill(run->drv, SIGRTMIN);
}

static void wait_sigwait(struct run *run)
{
	sigset_t set = only_event();
	int signal;
	if (sigwait(&set, &signal) != 0)
		die("sigwait", 0);
	run->taken += timer_getoverrun(timer);
}

static void wait_sigtimedwait(struct run *run)
{
	(void)run;
	sigset_t set = only_event();
	struct timespec limit = {.tv_sec = 5};
	must(syscall(SYS_rt_sigtimedwait, &set, NULL, &limit, KERNEL_SIGNAL_SET_SIZE),
		"rt_sigtimedwait");
}

static void wait_sigsuspend(struct run *run)
{
	(void)run;
	sigset_t others;
	sigfillset(&others);
	sigdelset(&others, SIGRTMIN);
	syscall(SYS_rt_sigsuspend, &others, KERNEL_SIGNAL_SET_SIZE);
}

const struct driver signal_drivers[] = {
	{.name = "sigwait",
		.call = "rt_sigtimedwait",
		.begin = block_and_start_timer,
		.wait = wait_sigwait},
	{.name = "sigtimedwait",
		.call = "rt_sigtimedwait",
		.begin = block_event,
		.wait = wait_sigtimedwait,
		.event = signal_thread},
	{.name = "sigsuspend",
		.call = "rt_sigsuspend",
		.begin = block_and_handle,
		.wait = wait_sigsuspend,
		.event = signal_thread},
#ifdef SYS_pause
	{.name = "pause", .call = "pause", .begin = count_and_start_timer, .wait = wait_pause},
#endif
	{0},
};
