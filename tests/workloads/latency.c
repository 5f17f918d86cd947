// A real-time thread, `latency`, that sleeps until absolute times, 1,000 of them in a second, and sees how late it wakes.
//
//   latency [--for SECONDS] [--period-us N] [--priority N]
#include "workload.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>

// 100 ns each; the last holds all that is later.
enum { BINS = 100000, BIN_NS = 100 };

static int64_t bins[BINS];
static int64_t samples, greatest, sum, period_ns;
static int priority;
static atomic_bool stopping;

static void *run(void *unused)
{
	become_fifo("latency", priority);
	for (int64_t arrival = now_ns() + period_ns; !stopping; arrival += period_ns) {
		sleep_until(arrival);
		int64_t late = now_ns() - arrival;
		bins[late / BIN_NS < BINS ? late / BIN_NS : BINS - 1]++;
		greatest = late > greatest ? late : greatest;
		sum += late;
		samples++;
	}
	return unused;
}

// The upper edge of the bin that the sample at `share` of all lies in.
static int64_t percentile(double share)
{
	int64_t seen = 0;
	for (int i = 0; i < BINS; i++) {
		seen += bins[i];
		if ((double)seen >= share * (double)samples)
			return i == BINS - 1 ? greatest : (int64_t)(i + 1) * BIN_NS;
	}
	return greatest;
}

int main(int argc, char **argv)
{
	double seconds = number_option(argc, argv, "--for", 10);
	period_ns = (int64_t)number_option(argc, argv, "--period-us", 1000) * US;
	priority = (int)number_option(argc, argv, "--priority", 90);
	block_stop_signals();
	mlockall(MCL_CURRENT | MCL_FUTURE);
	pthread_t thread;
	int error = pthread_create(&thread, NULL, run, NULL);
	if (error)
		die("pthread_create", error);
	wait_for_stop(seconds);
	stopping = true;
	pthread_join(thread, NULL);
	printf("{\"samples\": %lld, \"mean_ns\": %lld, \"p50_ns\": %lld, \"p90_ns\": %lld, \"p99_ns\": %lld, \"p99_9_ns\": %lld, "
	       "\"max_ns\": %lld}\n",
	       (long long)samples, (long long)(samples ? sum / samples : 0), (long long)percentile(0.5), (long long)percentile(0.9),
	       (long long)percentile(0.99), (long long)percentile(0.999), (long long)greatest);
	return 0;
}
