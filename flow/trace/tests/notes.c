/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Counts of barriers come back as they were said, by whichever producer and between whatever else,
 * also where the four parts of a note are in two packets.
 */
#define _POSIX_C_SOURCE 200809L

#include "punctual/trace.h"
#include "reading.h"
#include "test.h"

static const struct punctual_trace_name channels[] = {{0, "first"}, {65534, "last"}};
static const struct punctual_trace_barrier barriers[] = {
	{.channel = 0, .count = 1}, {.channel = 65534, .count = 1}};
static const struct count said[] = {{0, 1}, {65534, UINT32_MAX}, {0, UINT32_MAX}, {65534, 1},
	{0x1234, 0x56789abc}, {0xa5a5, 0x80000001}};
#define COUNT (sizeof said / sizeof *said)

int main(int count, char **arguments)
{
	struct punctual_trace_config config = {0};
	struct reading reading;

	CHECK(count == 2, "usage: notes FOLDER");
	remove_trace(arguments[1]);
	config.channels = channels;
	config.channel_count = 2;
	config.barriers = barriers;
	config.barrier_count = 2;
	config.producers = 2;
	config.folder = arguments[1];
	/* Ten events. */
	config.packet_size = 128;
	punctual_trace_set_producer(0);
	CHECK(punctual_trace_begin(&config) == PUNCTUAL_TRACE_OK, "%s", punctual_trace_message());
	for (uint32_t i = 0; i < COUNT; i++) {
		test_ticks = 1000 + 10 * i;
		punctual_trace_push(0, i);
		/* So that babeltrace2 has the order of it. */
		test_ticks++;
		if (i % 3)
			punctual_trace_count((uint16_t)said[i].channel, said[i].count);
		else
			punctual_trace_count_by(1, (uint16_t)said[i].channel, said[i].count);
	}
	CHECK(punctual_trace_end(NULL) == PUNCTUAL_TRACE_OK, "%s", punctual_trace_message());

	reading = read_trace(arguments[1]);
	CHECK(reading.count == 5 * COUNT && reading.complaints == 0, "%lu events",
		(unsigned long)reading.count);
	for (uint32_t i = 0; i < COUNT; i++) {
		const struct seen *const push = &reading.events[5 * i];
		struct count read = {0, 0};

		CHECK(push->kind == PUSH && push->object == 0 && push->number == i,
			"no push before note %u", i);
		CHECK(read_count(&reading, 5 * i + 1, &read), "no note %u", i);
		CHECK(push[1].producer == (i % 3 ? 0 : 1) && push[1].ticks == 1001 + 10 * i,
			"note %u of %u", i, push[1].producer);
		CHECK(read.channel == said[i].channel && read.count == said[i].count,
			"note %u: %u on %u", i, read.count, read.channel);
	}
	free_reading(&reading);
	return 0;
}
