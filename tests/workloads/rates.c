// Threads with several rates, bursts, and rates and phases that change:
//
//   rates [SECONDS]
//
// two: 5 and 7 ms. changes: 5 ms in the first half, then 8 ms. bursts: four jobs 200 µs apart every
// 20 ms. jumps: 10 ms, and 3 ms later from the middle on. one: 10 ms.
#include "workload.h"

#include <pthread.h>
#include <stdlib.h>

static int64_t beginning, span;

// The first point in time after `last`, both since the beginning.
typedef int64_t rule(int64_t last);

static int64_t every(int64_t period, int64_t last)
{
	return (last / period + 1) * period;
}

static int64_t two(int64_t last)
{
	int64_t five = every(5 * MS, last), seven = every(7 * MS, last);
	return five < seven ? five : seven;
}

static int64_t changes(int64_t last)
{
	return last < span / 2 ? every(5 * MS, last) : every(8 * MS, last);
}

static int64_t bursts(int64_t last)
{
	return last % (20 * MS) < 600 * US ? last + 200 * US : every(20 * MS, last);
}

static int64_t jumps(int64_t last)
{
	return last < span / 2 ? every(10 * MS, last) : every(10 * MS, last - 3 * MS) + 3 * MS;
}

static int64_t one(int64_t last)
{
	return every(10 * MS, last);
}

static const struct {
	const char *name;
	rule *next;
} threads[] = {
	{"two", two}, {"changes", changes}, {"bursts", bursts}, {"jumps", jumps}, {"one", one}};

enum { COUNT = sizeof threads / sizeof *threads };

static void *run(void *argument)
{
	int number = (int)(intptr_t)argument;
	become_fifo(threads[number].name, 50);
	for (int64_t at = 0; at < span; at = threads[number].next(at)) {
		sleep_until(beginning + at);
		burn(20 * US);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	span = (argc > 1 ? atoi(argv[1]) : 4) * SECOND;
	beginning = now_ns() + 300 * MS;
	pthread_t all[COUNT];
	for (int i = 0; i < COUNT; i++) {
		int error = pthread_create(all + i, NULL, run, (void *)(intptr_t)i);
		if (error)
			die("pthread_create", error);
	}
	for (int i = 0; i < COUNT; i++)
		pthread_join(all[i], NULL);
	return 0;
}
