// SPDX-License-Identifier: MIT OR Apache-2.0
// How punctuald holds threads to their runtimes: how far a thread gets beyond it before it is
// stopped, how many deadlines another one misses beside it, and what the daemon takes for that.
//
//   cc -O2 -o enforcement bench/c/enforcement.c
//   enforcement SOCKET hog PRIORITY RUNTIME_US PERIOD_US SECONDS        never sleeps
//   enforcement SOCKET job PRIORITY RUNTIME_US PERIOD_US JOBS COST_US   works for COST in each
//   period
#define _GNU_SOURCE
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static uint64_t read_clock(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * 1000000000ull + now.tv_nsec;
}

static void ask(int socket, const char *message, char *reply, size_t size)
{
	size_t length = 0;

	if (write(socket, message, strlen(message) + 1) < 0)
		exit(1);
	do {
		ssize_t count = read(socket, reply + length, size - length - 1);

		if (count <= 0)
			exit(1);
		length += count;
	} while (reply[length - 1] != 0);
	if (strstr(reply, "\"error\"")) {
		fprintf(stderr, "%s\n", reply);
		exit(1);
	}
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void hog(uint64_t runtime, double seconds)
{
	static double beyond[100000];
	uint64_t end = read_clock(CLOCK_MONOTONIC) + seconds * 1e9;
	uint64_t time = read_clock(CLOCK_MONOTONIC), cpu = read_clock(CLOCK_THREAD_CPUTIME_ID);
	uint64_t from = cpu, taken = 0;
	int was_fifo = 1, count = 0;

	while (time < end) {
		int is_fifo = (sched_getscheduler(0) & ~SCHED_RESET_ON_FORK) == SCHED_FIFO;
		uint64_t later = read_clock(CLOCK_MONOTONIC);
		uint64_t now = read_clock(CLOCK_THREAD_CPUTIME_ID);
		// On a busy processor it may be demoted and promoted again without running between.
		int was_stopped = later - time > now - cpu + 1000000;

		if (was_fifo && (!is_fifo || was_stopped)) {
			taken += cpu - from;
			if (count++ > 0 && count < 100000)
				beyond[count - 2] = (double)(cpu - from) - (double)runtime;
			from = now;
		} else if (!was_fifo && is_fifo) {
			from = now;
		}
		was_fifo = is_fifo;
		time = later;
		cpu = now;
	}
	if (was_fifo)
		taken += cpu - from;
	// What it got too much is taken off the next budget, so these are differences of two
	// overshoots.
	printf("%.3f s under SCHED_FIFO of %.1f s, %d times stopped\n", taken / 1e9, seconds,
		count);
	if (count > 1) {
		qsort(beyond, count - 1, sizeof(double), by_size);
		printf("beyond the runtime: p50 %.1f, p99 %.1f, greatest %.1f us\n",
			beyond[(count - 1) / 2] / 1e3, beyond[(count - 1) * 99 / 100] / 1e3,
			beyond[count - 2] / 1e3);
	}
}

static void job(uint64_t period, int jobs, uint64_t cost)
{
	uint64_t release = read_clock(CLOCK_MONOTONIC) + period, worst = 0;
	int misses = 0;

	for (int i = 0; i < jobs; i++, release += period) {
		struct timespec until = {release / 1000000000, release % 1000000000};
		uint64_t begin, response;

		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
		begin = read_clock(CLOCK_THREAD_CPUTIME_ID);
		while (read_clock(CLOCK_THREAD_CPUTIME_ID) - begin < cost)
			;
		response = read_clock(CLOCK_MONOTONIC) - release;
		misses += response > period;
		worst = response > worst ? response : worst;
	}
	printf("%d of %d deadlines missed, worst response %.2f ms\n", misses, jobs, worst / 1e6);
}

int main(int argc, char **argv)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int peer = socket(AF_UNIX, SOCK_STREAM, 0);
	char message[512];
	static char reply[65536];
	uint64_t runtime, period;

	if (argc < 7) {
		fprintf(stderr, "usage: see the head of the source\n");
		return 2;
	}
	strncpy(address.sun_path, argv[1], sizeof(address.sun_path) - 1);
	if (connect(peer, (struct sockaddr *)&address, sizeof(address))) {
		perror(argv[1]);
		return 1;
	}
	runtime = strtoull(argv[4], NULL, 10) * 1000;
	period = strtoull(argv[5], NULL, 10) * 1000;
	snprintf(message, sizeof(message),
		"{\"method\":\"io.punctual.Scheduler1.CreateSpec\",\"parameters\":{\"parameters\":"
		"{\"priority\":%s,\"runtime_ns\":%llu,\"period_ns\":%llu}}}",
		argv[3], (unsigned long long)runtime, (unsigned long long)period);
	ask(peer, message, reply, sizeof(reply));
	unsigned long spec = strtoul(strstr(reply, "\"spec\":") + 7, NULL, 10);

	snprintf(message, sizeof(message),
		"{\"method\":\"io.punctual.Scheduler1.AttachThread\",\"parameters\":"
		"{\"spec\":%lu,\"thread\":%d}}",
		spec, getpid());
	ask(peer, message, reply, sizeof(reply));
	if (!strcmp(argv[2], "hog"))
		hog(runtime, atof(argv[6]));
	else
		job(period, atoi(argv[6]),
			argc > 7 ? strtoull(argv[7], NULL, 10) * 1000 : runtime / 2);
	snprintf(message, sizeof(message),
		"{\"method\":\"io.punctual.Scheduler1.GetSpec\",\"parameters\":{\"spec\":%lu}}",
		spec);
	ask(peer, message, reply, sizeof(reply));
	char *enforced = strstr(reply, "\"enforced\"");

	printf("%s\n", enforced ? enforced : "not measured");
	return 0;
}
