/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Threads produce as fast as they can, more than the flusher can take and more of them than there
 * are producers. Every event is in the trace or counted as discarded, each producer's events come
 * in order, and babeltrace2 counts as we do. Also run under ThreadSanitizer.
 */
#define _POSIX_C_SOURCE 200809L

#include "punctual/trace.h"
#include "reading.h"
#include "test.h"

#include <pthread.h>

#define EXECUTORS 2
#define OTHERS	  3
/* Two of the others have no number of their own left. */
#define PRODUCERS 3

static uint32_t events_of_each;

struct worker {
	pthread_t thread;
	uint32_t number;
	uint32_t producer;
};

static void *work(void *context)
{
	struct worker *const worker = context;

	if (worker->number < EXECUTORS)
		punctual_trace_set_producer(worker->number);
	for (uint32_t i = 0; i < events_of_each; i++) {
		/* A number of 14 bits, and two more in the task, so that a gap shows which events
		 * are missing. */
		punctual_trace_activation((uint16_t)(i >> 14 & 0xff), i);
	}
	worker->producer = punctual_trace_current_producer();
	return NULL;
}

/* The events of each producer, in order; returns how many are missing. */
static uint64_t missing(const struct reading *reading, uint32_t producer)
{
	uint64_t next = 0;
	uint64_t gaps = 0;

	for (size_t i = 0; i < reading->count; i++) {
		const struct seen *const seen = &reading->events[i];
		const uint32_t number = seen->object << 14 | seen->number;

		if (seen->producer != producer)
			continue;
		CHECK(seen->kind == ACTIVATION, "a %d", seen->kind);
		CHECK(number >= next, "%u of producer %u after %llu", number, producer,
			(unsigned long long)next);
		gaps += number - next;
		next = number + UINT64_C(1);
	}
	return gaps + (events_of_each - next);
}

int main(int count, char **arguments)
{
	struct worker workers[EXECUTORS + OTHERS] = {0};
	struct punctual_trace_config config = {0};
	struct punctual_trace_statistics statistics;
	struct reading reading;
	uint64_t expected = 0;
	unsigned of_nobody = 0;

	CHECK(count == 3, "usage: overflow FOLDER EVENTS");
	events_of_each = (uint32_t)strtoul(arguments[2], NULL, 10);
	CHECK(events_of_each > 0 && events_of_each < 1u << 22, "%u events of each", events_of_each);
	remove_trace(arguments[1]);
	config.executors = EXECUTORS;
	config.producers = PRODUCERS;
	config.packets = 8;
	config.packet_size = 2048;
	config.flush_ms = 3;
	config.folder = arguments[1];
	CHECK(punctual_trace_begin(&config) == PUNCTUAL_TRACE_OK, "%s", punctual_trace_message());
	for (uint32_t i = 0; i < EXECUTORS + OTHERS; i++) {
		workers[i].number = i;
		CHECK(pthread_create(&workers[i].thread, NULL, work, &workers[i]) == 0, "thread %u",
			i);
	}
	/* Whoever looks meanwhile disturbs nobody, and what is counted never is more than there
	 * was. */
	for (int i = 0; i < 100; i++) {
		const struct punctual_trace_statistics now = punctual_trace_get_statistics();

		CHECK(now.events + now.discarded <=
				UINT64_C(1) * events_of_each * (EXECUTORS + OTHERS),
			"%llu", (unsigned long long)now.events);
	}
	for (uint32_t i = 0; i < EXECUTORS + OTHERS; i++)
		CHECK(pthread_join(workers[i].thread, NULL) == 0, "thread %u", i);
	CHECK(punctual_trace_end(&statistics) == PUNCTUAL_TRACE_OK, "%s", punctual_trace_message());

	CHECK(statistics.events + statistics.discarded ==
			UINT64_C(1) * events_of_each * (EXECUTORS + OTHERS),
		"%llu + %llu", (unsigned long long)statistics.events,
		(unsigned long long)statistics.discarded);
	CHECK(statistics.unwritten == 0 && statistics.write_errors == 0, "%llu",
		(unsigned long long)statistics.unwritten);
	reading = read_trace(arguments[1]);
	CHECK(reading.count == statistics.events, "%lu events of %llu",
		(unsigned long)reading.count, (unsigned long long)statistics.events);
	CHECK(reading.discarded == statistics.discarded && reading.uncounted == 0 &&
			reading.complaints == 0,
		"%llu discarded of %llu", (unsigned long long)reading.discarded,
		(unsigned long long)statistics.discarded);
	for (uint32_t i = 0; i < EXECUTORS + OTHERS; i++) {
		if (workers[i].producer == PUNCTUAL_TRACE_NOBODY) {
			of_nobody++;
			expected += events_of_each;
		} else
			expected += missing(&reading, workers[i].producer);
	}
	CHECK(of_nobody == EXECUTORS + OTHERS - PRODUCERS, "%u threads had no producer", of_nobody);
	CHECK(expected == statistics.discarded, "%llu are missing", (unsigned long long)expected);
	printf("%llu events in the trace, %llu discarded\n", (unsigned long long)statistics.events,
		(unsigned long long)statistics.discarded);
	/* All of this is about overflow: there was some beside those of nobody. */
	CHECK(statistics.discarded > UINT64_C(1) * of_nobody * events_of_each,
		"nothing overflowed");
	free_reading(&reading);
	return 0;
}
