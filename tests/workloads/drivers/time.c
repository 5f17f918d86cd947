// Waiting for a time.
#include "drivers.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/select.h>

int64_t next_arrival(const struct run *run)
{
	return run->beginning_ns + (run->done + run->skipped) * run->period_ns;
}

int64_t time_left(const struct run *run)
{
	int64_t left = next_arrival(run) - now_ns();
	return left > 0 ? left : 1;
}

void sleep_to_arrival(struct run *run)
{
	struct timespec t = timespec_of(next_arrival(run));
	must(syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL),
		"clock_nanosleep");
}

static int64_t ahead; // of CLOCK_MONOTONIC

static void read_realtime(struct run *run)
{
	(void)run;
	ahead = now_on(CLOCK_REALTIME) - now_ns();
}

static void read_boottime(struct run *run)
{
	(void)run;
	ahead = now_on(CLOCK_BOOTTIME) - now_ns();
}

static void sleep_to_arrival_on(struct run *run, clockid_t clock)
{
	struct timespec t = timespec_of(next_arrival(run) + ahead);
	must(syscall(SYS_clock_nanosleep, clock, TIMER_ABSTIME, &t, NULL), "clock_nanosleep");
}

static void sleep_to_arrival_realtime(struct run *run)
{
	sleep_to_arrival_on(run, CLOCK_REALTIME);
}

static void sleep_to_arrival_boottime(struct run *run)
{
	sleep_to_arrival_on(run, CLOCK_BOOTTIME);
}

static void sleep_relative_on(struct run *run, clockid_t clock)
{
	struct timespec t = timespec_of(time_left(run));
	must(syscall(SYS_clock_nanosleep, clock, 0, &t, NULL), "clock_nanosleep");
}

static void sleep_relative_monotonic(struct run *run)
{
	sleep_relative_on(run, CLOCK_MONOTONIC);
}

static void sleep_relative_realtime(struct run *run)
{
	sleep_relative_on(run, CLOCK_REALTIME);
}

static void sleep_nanosleep(struct run *run)
{
	struct timespec t = timespec_of(time_left(run));
	must(syscall(SYS_nanosleep, &t, NULL), "nanosleep");
}

static void sleep_drifting(struct run *run)
{
	struct timespec t = timespec_of(run->period_ns);
	must(syscall(SYS_nanosleep, &t, NULL), "nanosleep");
}

#ifdef SYS_select
static void sleep_select(struct run *run)
{
	struct timeval t = {.tv_usec = time_left(run) / US + 1};
	must(syscall(SYS_select, 0, NULL, NULL, NULL, &t), "select");
}
#endif

static void sleep_ppoll(struct run *run)
{
	struct timespec t = timespec_of(time_left(run));
	must(syscall(SYS_ppoll, NULL, 0, &t, NULL, 0), "ppoll");
}

static void yield(struct run *run)
{
	(void)run;
	must(syscall(SYS_sched_yield), "sched_yield");
}

// Signals come in the middle of every sleep: `src` is half a period behind.
static void ignore(int signal)
{
	(void)signal;
}

static void catch_signal(struct run *run)
{
	(void)run;
	struct sigaction action = {.sa_handler = ignore};
	must(sigaction(SIGUSR1, &action, NULL), "sigaction");
}

static void interrupt(struct run *run)
{
	if (run->events++ % 5 == 4)
		pthread_kill(run->drv, SIGUSR1);
}

static void sleep_in_spite_of_signals(struct run *run)
{
	struct timespec t = timespec_of(next_arrival(run));
	while (syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) < 0) {
		if (errno != EINTR)
			die("clock_nanosleep", errno);
		run->interruptions++;
	}
}

// A stop and a continuation: the kernel itself restarts the call.
static void stop_and_continue(struct run *run)
{
	if (run->events++ % 5 == 4)
		kill(run->child, SIGUSR1);
}

// A stopped process cannot continue itself, so a child does. It ends by a signal that it waits for:
// killed between the two, it would leave this process stopped forever.
static const char *make_continuer(struct run *run)
{
	pid_t parent = getpid();
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGUSR2);
	sigprocmask(SIG_BLOCK, &set, NULL);
	run->ends_child = SIGUSR2;
	run->child = must(fork(), "fork");
	if (run->child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		while (sigwaitinfo(&set, NULL) == SIGUSR1) {
			kill(parent, SIGSTOP);
			kill(parent, SIGCONT);
		}
		_exit(0);
	}
	return NULL;
}

const struct driver time_drivers[] = {
	{.name = "sleep_absolute",
		.call = "clock_nanosleep",
		.object = "clock",
		.wait = sleep_to_arrival,
		.own_time = true},
	{.name = "sleep_absolute_realtime",
		.call = "clock_nanosleep",
		.object = "clock",
		.begin = read_realtime,
		.wait = sleep_to_arrival_realtime,
		.own_time = true},
	{.name = "sleep_absolute_boottime",
		.call = "clock_nanosleep",
		.object = "clock",
		.begin = read_boottime,
		.wait = sleep_to_arrival_boottime,
		.own_time = true},
	{.name = "sleep_relative",
		.call = "clock_nanosleep",
		.object = "clock",
		.wait = sleep_relative_monotonic,
		.own_time = true},
	{.name = "sleep_relative_realtime",
		.call = "clock_nanosleep",
		.object = "clock",
		.wait = sleep_relative_realtime,
		.own_time = true},
	{.name = "nanosleep",
		.call = "nanosleep",
		.object = "clock",
		.wait = sleep_nanosleep,
		.own_time = true},
	{.name = "nanosleep_drifting",
		.call = "nanosleep",
		.object = "clock",
		.wait = sleep_drifting,
		.drifts = true},
#ifdef SYS_select
	{.name = "select_timeout", .call = "select", .wait = sleep_select, .own_time = true},
#endif
	{.name = "ppoll_timeout", .call = "ppoll", .wait = sleep_ppoll, .own_time = true},
	{.name = "yield", .call = "sched_yield", .wait = yield, .deadline = true},
	{.name = "sleep_interrupted",
		.call = "clock_nanosleep",
		.object = "clock",
		.begin = catch_signal,
		.wait = sleep_in_spite_of_signals,
		.event = interrupt,
		.half_behind = true,
		.own_time = true},
	{.name = "sleep_stopped",
		.call = "clock_nanosleep",
		.object = "clock",
		.setup = make_continuer,
		.wait = sleep_in_spite_of_signals,
		.event = stop_and_continue,
		.half_behind = true,
		.own_time = true},
	{0},
};
