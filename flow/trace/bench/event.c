/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What an event costs, beside the clock alone, which is most of it: nanoseconds, the median and the
 * least of some rounds. Rounds are short enough for the ring, so that no event is discarded;
 * between them the flusher catches up.
 *
 *   event FOLDER
 */
#define _POSIX_C_SOURCE 200809L

#include "punctual/trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define ROUNDS 101
#define EVENTS 100000u

static uint64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void clock_alone(void)
{
	for (uint32_t i = 0; i < EVENTS; i++)
		(void)punctual_trace_port_clock();
}

static void events_of_thread(void)
{
	for (uint32_t i = 0; i < EVENTS; i++)
		punctual_trace_push(1, i);
}

static void events_of_producer(void)
{
	for (uint32_t i = 0; i < EVENTS; i++)
		punctual_trace_push_by(0, 1, i);
}

static int by_size(const void *left, const void *right)
{
	const double a = *(const double *)left;
	const double b = *(const double *)right;

	return (a > b) - (a < b);
}

static void measure(const char *what, void (*run)(void))
{
	double rounds[ROUNDS];

	for (int round = 0; round < ROUNDS; round++) {
		const uint64_t before = now();

		run();
		rounds[round] = (double)(now() - before) / EVENTS;
		(void)punctual_trace_flush();
	}
	qsort(rounds, ROUNDS, sizeof *rounds, by_size);
	printf("%-34s %6.1f %6.1f\n", what, rounds[ROUNDS / 2], rounds[0]);
}

int main(int count, char **arguments)
{
	static const struct punctual_trace_name channels[] = {{1, "data"}};
	struct punctual_trace_config config = {0};
	struct punctual_trace_statistics statistics;

	config.channels = channels;
	config.channel_count = 1;
	config.program = "event";
	config.executors = 1;
	config.producers = 1;
	config.folder = count > 1 ? arguments[1] : NULL;
	if (punctual_trace_begin(&config) != PUNCTUAL_TRACE_OK) {
		fprintf(stderr, "%s\nusage: event FOLDER\n", punctual_trace_message());
		return 2;
	}
	punctual_trace_set_producer(0);
	printf("%-34s %6s %6s\n", "ns", "median", "least");
	measure("clock_gettime(CLOCK_MONOTONIC)", clock_alone);
	measure("event, of the calling thread", events_of_thread);
	measure("event, of a given producer", events_of_producer);
	if (punctual_trace_end(&statistics) != PUNCTUAL_TRACE_OK) {
		fprintf(stderr, "%s\n", punctual_trace_message());
		return 1;
	}
	printf("%llu events, %llu discarded\n", (unsigned long long)statistics.events,
		(unsigned long long)statistics.discarded);
	return 0;
}
