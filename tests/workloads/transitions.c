// Threads with task transitions. Prints what they did and when as JSON.
//
//   transitions policy            FIFO, then OTHER, then FIFO
//   transitions priority          by sched_setscheduler, sched_setparam and sched_setattr, in turn
//   transitions affinity          another processor, then all of them
//   transitions same              sets what it already has: no change at all
//   transitions exec              executes itself once more
//   transitions rename            changes its name half-way
//   transitions fork              a child and a grandchild, with a real-time thread each
//   transitions outside           another process changes its priority, then its policy
//   options: [--jobs N] jobs in each phase (20), [--period-us N] (5000)
//
// The thread `trans` sleeps until absolute times. Each phase is a line in `phases`.
#include "workload.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PRIORITY = 50 };

static int64_t jobs, period_ns;
static const char *separator = "";

static void begin_output(const char *mode)
{
	printf("{\"mode\": \"%s\", \"period_ns\": %lld, \"jobs_per_phase\": %lld, \"phases\": [",
		mode, (long long)period_ns, (long long)jobs);
}

static void end_output(void)
{
	puts("]}");
}

// Runs whole jobs from now on, and prints the phase.
static void phase(const char *name, const char *policy, int priority)
{
	int64_t began = now_ns();
	int64_t arrival = began;
	for (int64_t j = 0; j < jobs; j++) {
		arrival += period_ns;
		sleep_until(arrival);
		burn(100 * US);
	}
	printf("%s\n {\"name\": \"%s\", \"pid\": %d, \"tid\": %d, \"policy\": \"%s\", "
	       "\"priority\": %d, \"jobs\": %lld, \"began_ns\": %lld, "
	       "\"ended_ns\": %lld}",
		separator, name, getpid(), gettid(), policy, priority, (long long)jobs,
		(long long)began, (long long)now_ns());
	fflush(stdout);
	separator = ",";
}

static void set_scheduler(int policy, int priority)
{
	struct sched_param param = {.sched_priority = priority};
	must(sched_setscheduler(0, policy, &param), "sched_setscheduler");
}

static void policy(void)
{
	phase("first", "SCHED_FIFO", PRIORITY);
	set_scheduler(SCHED_OTHER, 0);
	phase("best effort", "SCHED_OTHER", 0);
	set_scheduler(SCHED_FIFO, PRIORITY);
	phase("again", "SCHED_FIFO", PRIORITY);
}

static void priority(void)
{
	phase("first", "SCHED_FIFO", PRIORITY);
	set_scheduler(SCHED_FIFO, PRIORITY + 1);
	phase("sched_setscheduler", "SCHED_FIFO", PRIORITY + 1);
	struct sched_param param = {.sched_priority = PRIORITY + 2};
	must(sched_setparam(0, &param), "sched_setparam");
	phase("sched_setparam", "SCHED_FIFO", PRIORITY + 2);
	int error = set_attributes(0, SCHED_FIFO, PRIORITY + 3);
	if (error)
		die("sched_setattr", error);
	phase("sched_setattr", "SCHED_FIFO", PRIORITY + 3);
}

static void affinity(void)
{
	cpu_set_t all, one;
	must(sched_getaffinity(0, sizeof all, &all), "sched_getaffinity");
	if (CPU_COUNT(&all) < 2) {
		fputs("transitions: needs two processors\n", stderr);
		exit(EXIT_SKIPPED);
	}
	int last = 0;
	for (int i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &all))
			last = i;
	phase("all", "SCHED_FIFO", PRIORITY);
	CPU_ZERO(&one);
	CPU_SET(last, &one);
	must(sched_setaffinity(0, sizeof one, &one), "sched_setaffinity");
	phase("one", "SCHED_FIFO", PRIORITY);
	must(sched_setaffinity(0, sizeof all, &all), "sched_setaffinity");
	phase("all again", "SCHED_FIFO", PRIORITY);
}

static void same(void)
{
	cpu_set_t all;
	must(sched_getaffinity(0, sizeof all, &all), "sched_getaffinity");
	phase("first", "SCHED_FIFO", PRIORITY);
	set_scheduler(SCHED_FIFO, PRIORITY);
	struct sched_param param = {.sched_priority = PRIORITY};
	must(sched_setparam(0, &param), "sched_setparam");
	must(sched_setaffinity(0, sizeof all, &all), "sched_setaffinity");
	phase("second", "SCHED_FIFO", PRIORITY);
}

static void rename_thread(void)
{
	phase("first", "SCHED_FIFO", PRIORITY);
	must(prctl(PR_SET_NAME, "renamed"), "PR_SET_NAME");
	phase("second", "SCHED_FIFO", PRIORITY);
}

// Done by the process's first thread, so that its TID stays. The new program inherits the policy.
static void execute(int argc, char **argv)
{
	become_fifo("trans", PRIORITY);
	if (!has_flag(argc, argv, "--executed")) {
		begin_output("exec");
		phase("before", "SCHED_FIFO", PRIORITY);
		char *arguments[16];
		int n = 0;
		for (; n < argc && n < 14; n++)
			arguments[n] = argv[n];
		arguments[n++] = "--executed";
		arguments[n] = NULL;
		execv("/proc/self/exe", arguments);
		die("execv", errno);
	}
	separator = ",";
	phase("after", "SCHED_FIFO", PRIORITY);
	end_output();
}

static void *real_time_thread(void *name)
{
	become_fifo(name, PRIORITY);
	phase(name, "SCHED_FIFO", PRIORITY);
	return NULL;
}

static void run_thread(void *(*body)(void *), void *argument)
{
	pthread_t thread;
	int error = pthread_create(&thread, NULL, body, argument);
	if (error)
		die("pthread_create", error);
	pthread_join(thread, NULL);
}

static void wait_for_child(pid_t child)
{
	int status;
	must(waitpid(child, &status, 0), "waitpid");
	if (status)
		die("child", ECHILD);
}

// One after the other, so that their lines do not mix.
static void fork_tree(void)
{
	run_thread(real_time_thread, "parent");
	separator = ",";
	fflush(stdout);
	pid_t child = must(fork(), "fork");
	if (child == 0) {
		run_thread(real_time_thread, "child");
		pid_t grandchild = must(fork(), "fork");
		if (grandchild == 0) {
			run_thread(real_time_thread, "grandchild");
			_exit(0);
		}
		wait_for_child(grandchild);
		_exit(0);
	}
	wait_for_child(child);
}

// The other process acts when it reads a byte, and writes one when it has.
static void outside(void)
{
	int to[2], from[2];
	must(pipe(to), "pipe");
	must(pipe(from), "pipe");
	int target = gettid();
	pid_t other = must(fork(), "fork");
	if (other == 0) {
		char byte;
		close(to[1]);
		for (int step = 0; read(to[0], &byte, 1) == 1; step++) {
			struct sched_param param = {.sched_priority = step == 0 ? PRIORITY + 5 : 0};
			must(sched_setscheduler(
				     target, step == 0 ? SCHED_FIFO : SCHED_OTHER, &param),
				"sched_setscheduler");
			must(write(from[1], &byte, 1), "write");
		}
		_exit(0);
	}
	close(to[0]);
	char byte = 'x';
	phase("first", "SCHED_FIFO", PRIORITY);
	must(write(to[1], &byte, 1), "write");
	must(read(from[0], &byte, 1), "read");
	phase("priority from outside", "SCHED_FIFO", PRIORITY + 5);
	must(write(to[1], &byte, 1), "write");
	must(read(from[0], &byte, 1), "read");
	phase("policy from outside", "SCHED_OTHER", 0);
	close(to[1]);
	wait_for_child(other);
}

static const struct mode {
	const char *name;
	void (*body)(void);
} modes[] = {
	{"policy", policy},
	{"priority", priority},
	{"affinity", affinity},
	{"same", same},
	{"rename", rename_thread},
	{"outside", outside},
};
enum { MODES = sizeof modes / sizeof *modes };

static void *run_mode(void *argument)
{
	const struct mode *mode = argument;
	become_fifo("trans", PRIORITY);
	mode->body();
	return NULL;
}

int main(int argc, char **argv)
{
	jobs = (int64_t)number_option(argc, argv, "--jobs", 20);
	period_ns = (int64_t)number_option(argc, argv, "--period-us", 5000) * US;
	const char *name = argc > 1 ? argv[1] : "";
	if (strcmp(name, "exec") == 0) {
		execute(argc, argv);
		return 0;
	}
	if (strcmp(name, "fork") == 0) {
		begin_output(name);
		fork_tree();
		end_output();
		return 0;
	}
	for (int i = 0; i < MODES; i++) {
		if (strcmp(name, modes[i].name) == 0) {
			begin_output(name);
			run_thread(run_mode, (void *)&modes[i]);
			end_output();
			return 0;
		}
	}
	fputs("usage: transitions policy|priority|affinity|same|exec|rename|fork|outside [--jobs "
	      "N] [--period-us N]\n",
		stderr);
	return 2;
}
