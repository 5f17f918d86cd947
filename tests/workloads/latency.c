// A real-time thread `latency` that sleeps until absolute times, 1,000 per second, and measures how
// late it wakes up.
//
//   latency [--for SECONDS] [--period-us N] [--priority N] [--cpu N]
//   latency --print-above-us N    prints each greater latency at once, and no summary
#include "workload.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>

// 100 ns each; the last holds everything later.
enum { BINS = 100000, BIN_NS = 100 };

static int64_t bins[BINS];
static int64_t samples, greatest, sum, period_ns, print_above_ns;
static int priority, processor;
static atomic_bool stopping;

static void *run(void *unused)
{
	if (processor >= 0) {
		cpu_set_t one;
		CPU_ZERO(&one);
		CPU_SET(processor, &one);
		must(sched_setaffinity(0, sizeof one, &one), "sched_setaffinity");
	}
	become_fifo("latency", priority);
	for (int64_t arrival = now_ns() + period_ns; !stopping; arrival += period_ns) {
		sleep_until(arrival);
		int64_t late = now_ns() - arrival;
		bins[late / BIN_NS < BINS ? late / BIN_NS : BINS - 1]++;
		greatest = late > greatest ? late : greatest;
		sum += late;
		samples++;
		if (print_above_ns && late > print_above_ns) {
			printf("{\"at_ns\": %lld, \"late_ns\": %lld}\n", (long long)arrival,
				(long long)late);
			fflush(stdout);
			// Report a disturbance once: skip further arrivals that it delayed.
			arrival += late / period_ns * period_ns;
		}
	}
	return unused;
}

// The upper edge of the bin with the sample at this share of all.
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
	processor = (int)number_option(argc, argv, "--cpu", 1e6);
	processor = processor < CPU_SETSIZE ? processor : -1;
	print_above_ns = (int64_t)number_option(argc, argv, "--print-above-us", 0) * US;
	if (print_above_ns) {
		seconds = -1;
		// It never ends by itself, so it must not outlive its parent.
		prctl(PR_SET_PDEATHSIG, SIGTERM);
	}
	block_stop_signals();
	mlockall(MCL_CURRENT | MCL_FUTURE);
	pthread_t thread;
	int error = pthread_create(&thread, NULL, run, NULL);
	if (error)
		die("pthread_create", error);
	wait_for_stop(seconds);
	stopping = true;
	pthread_join(thread, NULL);
	if (print_above_ns)
		return 0;
	printf("{\"samples\": %lld, \"mean_ns\": %lld, \"p50_ns\": %lld, \"p90_ns\": %lld, "
	       "\"p99_ns\": %lld, \"p99_9_ns\": %lld, "
	       "\"max_ns\": %lld}\n",
		(long long)samples, (long long)(samples ? sum / samples : 0),
		(long long)percentile(0.5), (long long)percentile(0.9), (long long)percentile(0.99),
		(long long)percentile(0.999), (long long)greatest);
	return 0;
}
