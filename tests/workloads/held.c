// A thread whose jobs the kernel holds.
//
//   held [--jobs N] [--offset-us N]
//
// SCHED_DEADLINE with 3 ms until 4 ms of every 10 ms. A new period begins when the thread wakes up
// after a long sleep; OFFSET (5 ms) later, between its deadline and the next period, a job of 0.5
// ms comes. Prints how many jobs came there for certain, and the least, the median and the greatest
// response time of those in ns. Where the thread itself was late, the period may have begun late,
// too: such a job is not one of them.
#include "workload.h"

#include <stdio.h>
#include <stdlib.h>

enum { MOST = 10000 };

#define DEADLINE (4 * MS)
#define PERIOD	 (10 * MS)

static int compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	static int64_t responses[MOST];
	int jobs = (int)number_option(argc, argv, "--jobs", 60);
	int64_t offset_ns = (int64_t)number_option(argc, argv, "--offset-us", 5000) * US;
	if (jobs < 1 || jobs > MOST)
		return fprintf(stderr, "held: from 1 to %d jobs\n", MOST), 2;
	int refused = become_deadline("held", 3 * MS, DEADLINE, PERIOD);
	if (refused) {
		fprintf(stderr, "held: the kernel refuses the reservation\n");
		return EXIT_SKIPPED;
	}
	int held = 0;
	for (int job = 0; job < jobs; job++) {
		// Whatever period there is, it is over by then.
		int64_t begin = now_ns() + 2 * PERIOD;
		sleep_until(begin);
		int64_t begun = now_ns(), release = begin + offset_ns;
		sleep_until(release);
		burn(MS / 2);
		// The period began from `begin` to `begun`.
		if (begun + DEADLINE < release && release < begin + PERIOD)
			responses[held++] = now_ns() - release;
	}
	qsort(responses, (size_t)held, sizeof *responses, compare);
	printf("%d", held);
	if (held)
		printf(" %lld %lld %lld", (long long)responses[0], (long long)responses[held / 2],
			(long long)responses[held - 1]);
	putchar('\n');
	return 0;
}
