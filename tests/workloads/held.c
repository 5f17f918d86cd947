// A thread whose jobs the kernel holds.
//
//   held [--jobs N] [--offset-us N]
//
// SCHED_DEADLINE with 3 ms until 4 ms of every 10 ms; jobs of 0.5 ms come every 10 ms, the first
// one OFFSET (5 ms) after the reservation began, which is between its deadline and its next period.
// Prints the least, the median and the greatest response time in ns.
#include "workload.h"

#include <stdio.h>
#include <stdlib.h>

enum { MOST = 10000 };

static int compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	static int64_t responses[MOST];
	int jobs = (int)number_option(argc, argv, "--jobs", 100);
	int64_t offset_ns = (int64_t)number_option(argc, argv, "--offset-us", 5000) * US;
	if (jobs < 1 || jobs > MOST)
		return fprintf(stderr, "held: from 1 to %d jobs\n", MOST), 2;
	int refused = become_deadline("held", 3 * MS, 4 * MS, 10 * MS);
	if (refused) {
		fprintf(stderr, "held: the kernel refuses the reservation\n");
		return EXIT_SKIPPED;
	}
	int64_t release = now_ns() + offset_ns;
	for (int job = 0; job < jobs; job++, release += 10 * MS) {
		sleep_until(release);
		burn(MS / 2);
		responses[job] = now_ns() - release;
	}
	qsort(responses, (size_t)jobs, sizeof *responses, compare);
	printf("%lld %lld %lld\n", (long long)responses[0], (long long)responses[jobs / 2],
		(long long)responses[jobs - 1]);
	return 0;
}
