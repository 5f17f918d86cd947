/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * All four kinds come back with the numbers, names and times that they were given; so do times that
 * are far apart, and what is not in the tables.
 */
#define _POSIX_C_SOURCE 200809L

#include "punctual/trace.h"
#include "reading.h"
#include "test.h"

#include <string.h>
#include <unistd.h>

static const struct punctual_trace_name tasks[] = {{0, "cam1"}, {7, "na\"vi\\"}, {65535, "ter 1"}};
static const struct punctual_trace_name channels[] = {{0, "img"}, {65534, "p\xc3\xb6se"}};
/* The first says nothing but what every program said before there was more to say. */
static const struct punctual_trace_connection connections[] = {
	{.channel = 0, .task = 7},
	{.channel = 65534, .task = 65535, .threshold = 1},
	{.channel = 0, .task = 0, .threshold = 3, .pending = 5},
	{.channel = 0,
		.task = 0,
		.threshold = UINT32_MAX,
		.flags = PUNCTUAL_TRACE_UNSYNCHRONISED | PUNCTUAL_TRACE_OPTIONAL |
			 PUNCTUAL_TRACE_FINAL},
};
/* What had come is told when events are taken already. */
static struct punctual_trace_barrier barriers[] = {
	{.channel = 0, .count = 4}, {.channel = 65534, .count = UINT32_MAX}};

struct expected {
	uint64_t ticks;
	uint32_t producer;
	enum kind kind;
	uint32_t number;
	uint16_t object;
	const char *name;
};

#define FAR UINT64_C(0x100000000)
static const struct expected expected[] = {
	{1000, 0, PUSH, 0, 0, "img"},
	{1001, 0, ACTIVATION, 0, 0, "cam1"},
	{1002, 0, START, 0, 7, "na\\\"vi\\\\"},
	{1002, 0, STOP, 16383, 7, "na\\\"vi\\\\"},
	/* Numbers are modulo 2¹⁴. */
	{1003, 1, PUSH, 16384, 65534, "p\xc3\xb6se"},
	{1004, 1, ACTIVATION, UINT32_MAX, 65535, "ter 1"},
	{1005, 0, START, 0x5ffff, 4096, ""},
	/* The low half of the clock wraps, within a packet of producer 1. */
	{FAR - 1, 0, PUSH, 1, 0, "img"},
	{FAR, 0, PUSH, 2, 0, "img"},
	{FAR + 1002, 1, STOP, 3, 0, "cam1"},
	/* As far from its packet's begin as can be, and one more. */
	{FAR + 1003 - 1, 1, STOP, 4, 0, "cam1"},
	{FAR + 1003, 1, STOP, 5, 0, "cam1"},
	{3 * FAR + 5, 1, STOP, 6, 0, "cam1"},
	{3 * FAR + 5, 0, STOP, 7, 0, "cam1"},
	{UINT64_C(4000000000000000000), 0, STOP, 8, 0, "cam1"},
};
#define COUNT (sizeof expected / sizeof *expected)

static void trace_one(const struct expected *event)
{
	static void (*const of_thread[])(uint16_t, uint32_t) = {punctual_trace_push,
		punctual_trace_activation, punctual_trace_start, punctual_trace_stop};
	static void (*const of_producer[])(uint32_t, uint16_t, uint32_t) = {punctual_trace_push_by,
		punctual_trace_activation_by, punctual_trace_start_by, punctual_trace_stop_by};

	test_ticks = event->ticks;
	/* The thread is producer 0. */
	if (event->producer == 0)
		of_thread[event->kind](event->object, event->number);
	else
		of_producer[event->kind](event->producer, event->object, event->number);
}

static void look(void *context)
{
	CHECK(context == barriers, "another context");
	barriers[0].arrived++;
	/* Is traced: the first of all. */
	trace_one(&expected[0]);
}

static void compare(const struct reading *reading)
{
	CHECK(reading->count == COUNT, "%lu events instead of %lu", (unsigned long)reading->count,
		(unsigned long)COUNT);
	CHECK(reading->discarded == 0 && reading->uncounted == 0 && reading->complaints == 0,
		"babeltrace2 complains");
	for (size_t i = 0; i < COUNT; i++) {
		const struct seen *const seen = &reading->events[i];

		/* The order of time is that of the table but for one tick, at which the streams'
		 * order is babeltrace2's. */
		const struct expected *event = &expected[i];
		if (event->ticks == 3 * FAR + 5 && seen->producer != event->producer)
			event = event->producer == 1 ? event + 1 : event - 1;
		CHECK(seen->ticks == event->ticks, "event %lu at %llu", (unsigned long)i,
			(unsigned long long)seen->ticks);
		CHECK(seen->producer == event->producer, "event %lu of %u", (unsigned long)i,
			seen->producer);
		CHECK(seen->kind == event->kind, "event %lu is a %d", (unsigned long)i, seen->kind);
		CHECK(seen->number == event->number % 16384u, "event %lu has number %u",
			(unsigned long)i, seen->number);
		CHECK(seen->object == event->object, "event %lu on %u", (unsigned long)i,
			seen->object);
		CHECK(strcmp(seen->name, event->name) == 0, "event %lu on %s", (unsigned long)i,
			seen->name);
	}
}

static int in_initial_namespace(void)
{
	char namespace[64] = "";

	return readlink("/proc/self/ns/pid", namespace, sizeof namespace - 1) > 0 &&
	       strcmp(namespace, "pid:[4026531836]") == 0;
}

static void check_metadata(const char *folder)
{
	static const char *const lines[] = {"\tdomain = \"dataflow\";\n",
		"\ttracer_name = \"punctual\";\n", "\ttracer_major = 1;\n",
		"\tprogram = \"events \\\"1\\\"\";\n", "\tpolicy = \"fifo\";\n",
		"\texecutors = 1;\n", "\tproducer_0 = \"executor 0\";\n",
		"\tproducer_1 = \"timer\";\n", "\ttracer_minor = 1;\n",
		"\tconnection_0 = \"0 7\";\n",
		"\tconnection_1 = \"65534 65535 threshold=1 synchronised\";\n",
		"\tconnection_2 = \"0 0 threshold=3 synchronised pending=5\";\n",
		"\tconnection_3 = \"0 0 threshold=4294967295 unsynchronised optional final\";\n",
		"\tconnections = \"all\";\n", "\tbarrier_0 = \"0 4 3\";\n",
		"\tbarrier_1 = \"65534 4294967295 2\";\n", "\tfreq = 1000000000;\n",
		"\toffset_s = "};
	static char text[65536];
	char name[512];
	FILE *file;

	(void)snprintf(name, sizeof name, "%s/metadata", folder);
	file = fopen(name, "r");
	CHECK(file, "%s", name);
	text[fread(text, 1, sizeof text - 1, file)] = '\0';
	(void)fclose(file);
	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
		CHECK(strstr(text, lines[i]), "no line %sin the metadata:\n%s", lines[i], text);
	/* The kernel's number of the thread, where that means something to others. */
	(void)snprintf(name, sizeof name, "\tthread_0 = %ld;\n", (long)getpid());
	CHECK((strstr(text, name) != NULL) == in_initial_namespace(),
		"thread_0 in the metadata:\n%s", text);
	CHECK(!strstr(text, "thread_1"), "nobody is producer 1:\n%s", text);
}

int main(int count, char **arguments)
{
	static const char *const names[] = {NULL, "timer"};
	struct punctual_trace_config config = {0};
	struct punctual_trace_statistics statistics;
	struct reading reading;

	CHECK(count == 2, "usage: events FOLDER");
	config.tasks = tasks;
	config.task_count = 3;
	config.channels = channels;
	config.channel_count = 2;
	config.connections = connections;
	config.connection_count = sizeof connections / sizeof *connections;
	config.connections_are_all = 1;
	config.barriers = barriers;
	config.barrier_count = sizeof barriers / sizeof *barriers;
	config.look = look;
	config.look_context = barriers;
	config.program = "events \"1\"";
	config.policy = "fifo";
	config.executors = 1;
	config.producers = 2;
	config.producer_names = names;
	config.folder = arguments[1];
	/* So small that a packet is full after ten events. */
	config.packet_size = 128;

	punctual_trace_set_producer(0);
	/* Before a trace has begun, nothing happens. Twice, since one trace leaves nothing for the
	 * next. */
	for (int round = 0; round < 2; round++) {
		remove_trace(arguments[1]);
		barriers[0].arrived = 2;
		barriers[1].arrived = 2;
		for (size_t i = 0; i < COUNT; i++)
			trace_one(&expected[i]);
		CHECK(punctual_trace_begin(&config) == PUNCTUAL_TRACE_OK, "%s",
			punctual_trace_message());
		CHECK(punctual_trace_begin(&config) == PUNCTUAL_TRACE_STATE, "begins twice");
		for (size_t i = 1; i < COUNT; i++)
			trace_one(&expected[i]);
		CHECK(punctual_trace_get_statistics().events == COUNT, "%llu events",
			(unsigned long long)punctual_trace_get_statistics().events);
		CHECK(punctual_trace_flush() == PUNCTUAL_TRACE_OK, "%s", punctual_trace_message());
		/* Flushed, it is a whole trace already. */
		reading = read_trace(arguments[1]);
		compare(&reading);
		free_reading(&reading);
		CHECK(punctual_trace_end(&statistics) == PUNCTUAL_TRACE_OK, "%s",
			punctual_trace_message());
		CHECK(punctual_trace_end(&statistics) == PUNCTUAL_TRACE_STATE, "ends twice");
		CHECK(statistics.events == COUNT && statistics.discarded == 0 &&
				statistics.unwritten == 0,
			"%llu events, %llu discarded", (unsigned long long)statistics.events,
			(unsigned long long)statistics.discarded);
		reading = read_trace(arguments[1]);
		compare(&reading);
		free_reading(&reading);
		check_metadata(arguments[1]);
	}
	return 0;
}
