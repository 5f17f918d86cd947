/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The port without files, with a clock and a sink that the test holds in its hand: which events are
 * discarded, and what the packets say of it, to the event; a sink that cannot take packets for a
 * while; memory that is not aligned.
 */
#include "punctual/trace.h"
#include "reading.h"
#include "test.h"

#include <string.h>
#include <sys/stat.h>

#define PRODUCERS	 3
#define PACKET_SIZE	 128
#define EVENTS_IN_PACKET 10u
#define PACKETS		 4u

uint64_t test_ticks;
uint32_t test_producer;

static const char *folder;
static int sink_is_full;
static unsigned char memory[PUNCTUAL_TRACE_MEMORY_SIZE(PRODUCERS, PACKET_SIZE, PACKETS) + 3];
static const struct punctual_trace_name tasks[] = {{3, "navi"}};

static int append(const char *name, const void *bytes, size_t size)
{
	char path[512];
	FILE *file;

	(void)snprintf(path, sizeof path, "%s/%s", folder, name);
	file = fopen(path, "ab");
	CHECK(file, "%s", path);
	CHECK(fwrite(bytes, 1, size, file) == size, "%s", path);
	return fclose(file);
}

static int take_metadata(void *context, const char *text, size_t length)
{
	CHECK(context == memory, "another context");
	return append("metadata", text, length);
}

static int take_packet(void *context, uint32_t producer, const void *packet, size_t size)
{
	char name[32];

	CHECK(context == memory, "another context");
	CHECK(size == PACKET_SIZE, "%lu bytes", (unsigned long)size);
	if (sink_is_full)
		return -1;
	(void)snprintf(name, sizeof name, "stream_%u", producer);
	return append(name, packet, size);
}

static void begin(void)
{
	struct punctual_trace_config config = {0};

	remove_trace(folder);
	CHECK(mkdir(folder, 0777) == 0, "%s", folder);
	config.tasks = tasks;
	config.task_count = 1;
	config.producers = PRODUCERS;
	config.ticks_per_second = 12500000;
	config.packet_size = PACKET_SIZE;
	config.packets = PACKETS;
	config.memory = memory + 3;
	config.memory_size = sizeof memory - 3;
	config.sink.context = memory;
	config.sink.metadata = take_metadata;
	config.sink.packet = take_packet;
	sink_is_full = 0;
	test_ticks = 100;
	CHECK(punctual_trace_begin(&config) == PUNCTUAL_TRACE_OK, "%s", punctual_trace_message());
}

static uint32_t produce(uint32_t producer, uint32_t from, uint32_t count)
{
	test_producer = producer;
	for (uint32_t i = 0; i < count; i++) {
		test_ticks++;
		punctual_trace_start(3, from + i);
	}
	return from + count;
}

/* That a producer's events are those from..until, and nothing else before the next. */
static size_t expect(const struct reading *reading, size_t next, uint32_t producer, uint32_t from,
	uint32_t until)
{
	for (uint32_t number = from; number < until; number++) {
		while (next < reading->count && reading->events[next].producer != producer)
			next++;
		CHECK(next < reading->count, "%u of producer %u is not in the trace", number,
			producer);
		CHECK(reading->events[next].number == number % 16384u, "%u instead of %u",
			reading->events[next].number, number);
		next++;
	}
	return next;
}

static void end(uint64_t events, uint64_t discarded)
{
	struct punctual_trace_statistics statistics;

	CHECK(punctual_trace_end(&statistics) ==
			(statistics.write_errors ? PUNCTUAL_TRACE_IO : PUNCTUAL_TRACE_OK),
		"%s", punctual_trace_message());
	CHECK(statistics.events == events, "%llu events", (unsigned long long)statistics.events);
	CHECK(statistics.discarded == discarded, "%llu discarded",
		(unsigned long long)statistics.discarded);
	CHECK(statistics.unwritten == 0, "%llu unwritten",
		(unsigned long long)statistics.unwritten);
}

static struct reading read_back(size_t count, uint64_t discarded)
{
	const struct reading reading = read_trace(folder);

	CHECK(reading.count == count, "%lu events", (unsigned long)reading.count);
	CHECK(reading.discarded == discarded && reading.complaints == 0, "%llu discarded",
		(unsigned long long)reading.discarded);
	return reading;
}

/* A ring that nobody empties takes what fits; the next packet says how many did not. */
static void overflow_in_the_middle(void)
{
	const uint32_t fit = PACKETS * EVENTS_IN_PACKET;
	struct reading reading;
	uint32_t number;
	size_t next;

	begin();
	number = produce(1, 0, fit + 7);
	CHECK(punctual_trace_get_statistics().discarded == 7, "%llu discarded",
		(unsigned long long)punctual_trace_get_statistics().discarded);
	CHECK(punctual_trace_get_statistics().events == fit, "%llu events",
		(unsigned long long)punctual_trace_get_statistics().events);
	CHECK(punctual_trace_flush() == PUNCTUAL_TRACE_OK, "%s", punctual_trace_message());
	number = produce(1, number, 5);
	end(fit + 5, 7);
	reading = read_back(fit + 5, 7);
	CHECK(reading.uncounted == 0, "babeltrace2 cannot tell how many");
	next = expect(&reading, 0, 1, 0, fit);
	next = expect(&reading, next, 1, fit + 7, number);
	CHECK(next == reading.count, "more events");
	free_reading(&reading);
}

/* The same where no event comes after it, and for events of nobody, which producer 0 tells of, even
 * if it has no event. */
static void overflow_at_the_end(void)
{
	const uint32_t fit = PACKETS * EVENTS_IN_PACKET;
	struct reading reading;

	begin();
	(void)produce(2, 0, fit + 3);
	(void)produce(PRODUCERS, 0, 11);
	(void)produce(PUNCTUAL_TRACE_NOBODY, 0, 2);
	end(fit, 3 + 11 + 2);
	reading = read_back(fit, 3 + 11 + 2);
	CHECK(reading.uncounted == 0, "babeltrace2 cannot tell how many");
	(void)expect(&reading, 0, 2, 0, fit);
	free_reading(&reading);
}

/* A packet that was closed early, since time went on, does not count as full of events. */
static void early_packets_overflow(void)
{
	struct reading reading;

	begin();
	for (uint32_t i = 0; i < PACKETS + 2; i++) {
		test_ticks += UINT64_C(0x100000000);
		(void)produce(0, i, 1);
	}
	end(PACKETS, 2);
	reading = read_back(PACKETS, 2);
	(void)expect(&reading, 0, 0, 0, PACKETS);
	CHECK(reading.events[1].ticks - reading.events[0].ticks == UINT64_C(0x100000001), "%llu",
		(unsigned long long)reading.events[1].ticks);
	free_reading(&reading);
}

/* Packets that the sink does not take are offered again. */
static void sink_fails_for_a_while(void)
{
	struct reading reading;
	uint32_t number;

	begin();
	number = produce(0, 0, 2 * EVENTS_IN_PACKET);
	sink_is_full = 1;
	CHECK(punctual_trace_flush() == PUNCTUAL_TRACE_IO, "no error");
	CHECK(punctual_trace_get_statistics().write_errors == 1, "%llu errors",
		(unsigned long long)punctual_trace_get_statistics().write_errors);
	sink_is_full = 0;
	number = produce(0, number, 3);
	end(number, 0);
	reading = read_back(number, 0);
	(void)expect(&reading, 0, 0, 0, number);
	free_reading(&reading);
}

/* Those that it never takes are told at the end. */
static void sink_fails_for_good(void)
{
	struct punctual_trace_statistics statistics;
	struct reading reading;
	uint32_t number;

	begin();
	number = produce(0, 0, EVENTS_IN_PACKET);
	CHECK(punctual_trace_flush() == PUNCTUAL_TRACE_OK, "%s", punctual_trace_message());
	(void)produce(0, number, EVENTS_IN_PACKET + 4);
	sink_is_full = 1;
	CHECK(punctual_trace_end(&statistics) == PUNCTUAL_TRACE_IO, "no error");
	CHECK(statistics.events == EVENTS_IN_PACKET, "%llu events",
		(unsigned long long)statistics.events);
	CHECK(statistics.unwritten == EVENTS_IN_PACKET + 4, "%llu unwritten",
		(unsigned long long)statistics.unwritten);
	reading = read_back(EVENTS_IN_PACKET, 0);
	free_reading(&reading);
}

int main(int count, char **arguments)
{
	CHECK(count == 2, "usage: bare FOLDER");
	folder = arguments[1];
	overflow_in_the_middle();
	overflow_at_the_end();
	early_packets_overflow();
	sink_fails_for_a_while();
	sink_fails_for_good();
	return 0;
}
