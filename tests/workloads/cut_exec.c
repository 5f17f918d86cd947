// Reads what a dispatcher reads of a thread, while that is cut off at random points of one exec
// after another. Ends once it has read often enough: it would not if reading waited for the exec.
//
//   cut_exec --cpu CPU --rounds ROUNDS
#include "workload.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { READER = 81, READ = 78, FILES = 3, CUTS_OF_ONE = 2000 };

static const char *const names[FILES] = {"wchan", "stat", "schedstat"};

static void enter(int cpu, int priority)
{
	struct sched_param parameters = {.sched_priority = priority};
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		die("sched_setaffinity", errno);
	if (sched_setscheduler(0, SCHED_FIFO, &parameters))
		die("sched_setscheduler", errno);
}

static void *sleep_for_good(void *unused)
{
	for (;;)
		pause();
	return unused;
}

// Two threads, which the next exec has to end, and then that exec.
static void exec_again(const char *program)
{
	pthread_t thread;

	for (int count = 0; count < 2; count++)
		if (pthread_create(&thread, NULL, sleep_for_good, NULL))
			die("pthread_create", EAGAIN);
	execl("/proc/self/exe", program, "again", (char *)NULL);
	die("exec", errno);
}

static void sleep_at_random(unsigned *seed)
{
	*seed = *seed * 1103515245 + 12345;
	usleep(20 + (*seed >> 8) % 900);
}

// Cuts a process off again and again; returns how often it was ready then.
static long cut_off(pid_t pid, long cuts, unsigned *seed)
{
	char text[512];
	int files[FILES];
	long ready = 0;

	for (int file = 0; file < FILES; file++) {
		snprintf(text, sizeof(text), "/proc/%d/task/%d/%s", pid, pid, names[file]);
		files[file] = open(text, O_RDONLY);
		if (files[file] < 0)
			die(text, errno);
	}
	for (long cut = 0; cut < cuts; cut++) {
		// Meanwhile it runs; now it cannot.
		sleep_at_random(seed);
		for (int file = 0; file < FILES; file++) {
			ssize_t length = pread(files[file], text, sizeof(text), 0);

			ready += file == 0 && length == 1 && text[0] == '0';
		}
	}
	for (int file = 0; file < FILES; file++)
		close(files[file]);
	return ready;
}

int main(int argc, char **argv)
{
	unsigned seed = 17;
	long rounds, ready = 0;
	int cpu;

	if (argc == 2 && !strcmp(argv[1], "again"))
		exec_again(argv[0]);
	cpu = (int)number_option(argc, argv, "--cpu", 1);
	rounds = number_option(argc, argv, "--rounds", 4000);
	enter(cpu, READER);
	for (long cuts = 0; cuts < rounds; cuts += CUTS_OF_ONE) {
		pid_t pid = fork();

		if (pid < 0)
			die("fork", errno);
		if (pid == 0) {
			enter(cpu, READ);
			execl("/proc/self/exe", argv[0], "again", (char *)NULL);
			die("exec", errno);
		}
		ready += cut_off(pid, CUTS_OF_ONE, &seed);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	printf("ready %ld\n", ready);
	return 0;
}
