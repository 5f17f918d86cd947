// A disturbance: a real-time thread `burst` on each processor computes for a while, now and then;
// all at the same time, so that no other thread can move to a free processor.
//
//   bursts [--for SECONDS] [--priority N] [--least-us N] [--most-us N] [--gap-us N] [--seed N]
//
// A burst takes from LEAST to MOST; gaps are exponentially distributed with mean GAP. Prints the
// number of bursts and how long they took.
#include "workload.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <signal.h>
#include <unistd.h>

static struct processor {
	pthread_t thread;
	int number;
	uint64_t random;
	int64_t bursts, total_ns;
} processors[CPU_SETSIZE];

static int64_t beginning, least_ns, most_ns, gap_ns;
static int priority;
static atomic_bool stopping;

// SplitMix64, in (0, 1].
static double unit(struct processor *processor)
{
	uint64_t z = processor->random += 0x9e3779b97f4a7c15;
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	z ^= z >> 31;
	return (double)((z >> 11) + 1) / 9007199254740992.0;
}

static void *run(void *argument)
{
	struct processor *processor = argument;
	cpu_set_t one;
	CPU_ZERO(&one);
	CPU_SET(processor->number, &one);
	must(sched_setaffinity(0, sizeof one, &one), "sched_setaffinity");
	become_fifo("burst", priority);
	for (int64_t ends = beginning; !stopping;) {
		int64_t begins = ends - (int64_t)(log(unit(processor)) * (double)gap_ns);
		ends = begins + least_ns +
		       (int64_t)(unit(processor) * (double)(most_ns - least_ns));
		// In steps, so that the end need not wait for a whole gap.
		for (int64_t now = now_ns(); now < begins && !stopping; now = now_ns())
			sleep_until(begins - now < 100 * MS ? begins : now + 100 * MS);
		if (stopping)
			break;
		int64_t began = now_ns();
		while (now_ns() < ends)
			;
		processor->bursts++;
		processor->total_ns += now_ns() - began;
	}
	return NULL;
}

int main(int argc, char **argv)
{
	double seconds = number_option(argc, argv, "--for", 10);
	priority = (int)number_option(argc, argv, "--priority", 70);
	least_ns = (int64_t)number_option(argc, argv, "--least-us", 200) * US;
	most_ns = (int64_t)number_option(argc, argv, "--most-us", 6000) * US;
	gap_ns = (int64_t)number_option(argc, argv, "--gap-us", 20000) * US;
	uint64_t seed = (uint64_t)number_option(argc, argv, "--seed", 1);
	// It must not outlive its parent.
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	block_stop_signals();
	beginning = now_ns() + 10 * MS;
	int count = (int)sysconf(_SC_NPROCESSORS_ONLN);
	for (int i = 0; i < count; i++) {
		processors[i].number = i;
		processors[i].random = seed;
		int error = pthread_create(&processors[i].thread, NULL, run, &processors[i]);
		if (error)
			die("pthread_create", error);
	}
	wait_for_stop(seconds);
	stopping = true;
	int64_t bursts = 0, total_ns = 0;
	for (int i = 0; i < count; i++) {
		pthread_join(processors[i].thread, NULL);
		bursts += processors[i].bursts;
		total_ns += processors[i].total_ns;
	}
	printf("{\"bursts\": %lld, \"total_ns\": %lld}\n", (long long)bursts, (long long)total_ns);
	return 0;
}
