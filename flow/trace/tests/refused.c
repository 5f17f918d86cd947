/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What cannot be: configurations, folders, disks that are full, for a while and for good; and a
 * child, which has no part in its parent's trace.
 */
#define _XOPEN_SOURCE 700

#include "punctual/trace.h"
#include "reading.h"
#include "test.h"

#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define IN_PACKET 506u
#define IN_RING	  (16u * IN_PACKET)

static const char *folder;

static struct punctual_trace_config good(void)
{
	struct punctual_trace_config config = {0};

	remove_trace(folder);
	config.producers = 1;
	config.folder = folder;
	config.packets = 16;
	return config;
}

/* `says` is of what failed; behind a semicolon there is what to do. */
static void refuse(const struct punctual_trace_config *config, int result, const char *says)
{
	const int got = punctual_trace_begin(config);

	CHECK(strstr(punctual_trace_message(), "; "), "'%s' has no remedy",
		punctual_trace_message());
	CHECK(got == result, "%d for: %s", got, says);
	CHECK(strstr(punctual_trace_message(), says), "'%s' instead of '%s'",
		punctual_trace_message(), says);
	punctual_trace_push(1, 1);
	CHECK(punctual_trace_end(NULL) == PUNCTUAL_TRACE_STATE, "a trace has begun for: %s", says);
	CHECK(punctual_trace_flush() == PUNCTUAL_TRACE_STATE, "a trace has begun for: %s", says);
	CHECK(access(folder, F_OK) != 0, "a folder was made for: %s", says);
}

static void refuse_configurations(void)
{
	static const struct punctual_trace_name nameless[] = {{1, "a"}, {2, NULL}};
	static const struct punctual_trace_name twice[] = {{1, "a"}, {2, "b"}, {1, "c"}};
	static const struct punctual_trace_name names[] = {
		{1, "a,b"}, {1, "a\nb"}, {1, "a\x7f"}, {1, " a"}, {1, "a "}, {1, " "}};
	static const struct punctual_trace_name none[] = {{1, "a"}, {65535, "b"}};
	static unsigned char memory[128];
	struct punctual_trace_config config;

	config = good();
	config.folder = NULL;
	refuse(&config, PUNCTUAL_TRACE_INVALID, "folder");
	config = good();
	config.producers = 0;
	refuse(&config, PUNCTUAL_TRACE_INVALID, "producers are too few");
	config.producers = 2;
	config.executors = 3;
	refuse(&config, PUNCTUAL_TRACE_INVALID, "producers are too few");
	config = good();
	config.executors = 1;
	config.no_executors = 1;
	refuse(&config, PUNCTUAL_TRACE_INVALID, "no_executors");
	config = good();
	config.packets = 3;
	refuse(&config, PUNCTUAL_TRACE_INVALID, "packets are out of range");
	config.packets = 1u << 30;
	config.packet_size = 131072;
	config.producers = UINT32_MAX;
	refuse(&config, PUNCTUAL_TRACE_MEMORY, "too large");
	config = good();
	config.packet_size = 100;
	refuse(&config, PUNCTUAL_TRACE_INVALID, "packet_size is out of range");
	config = good();
	config.tasks = nameless;
	config.task_count = 2;
	refuse(&config, PUNCTUAL_TRACE_INVALID, "name is missing");
	config.tasks = NULL;
	refuse(&config, PUNCTUAL_TRACE_INVALID, "no table of tasks");
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		config.tasks = &names[i];
		config.task_count = 1;
		refuse(&config, PUNCTUAL_TRACE_INVALID, "in the name");
	}
	config = good();
	config.channels = twice;
	config.channel_count = 3;
	refuse(&config, PUNCTUAL_TRACE_INVALID, "same number in the table of channels: c");
	config.channels = none;
	config.channel_count = 2;
	refuse(&config, PUNCTUAL_TRACE_INVALID, "65,535 in the table of channels");
	config = good();
	config.connection_count = 1;
	refuse(&config, PUNCTUAL_TRACE_INVALID, "no table of connections");
	config = good();
	config.memory = memory;
	config.memory_size = sizeof memory;
	refuse(&config, PUNCTUAL_TRACE_MEMORY, "memory_size is too small");
}

static void add_too_much(void *barrier)
{
	((struct punctual_trace_barrier *)barrier)->arrived = 3;
}

static void refuse_graphs(void)
{
	const struct punctual_trace_connection flags_alone = {.flags = PUNCTUAL_TRACE_FINAL};
	const struct punctual_trace_connection pending_alone = {.pending = 1};
	const struct punctual_trace_connection unknown = {.threshold = 1, .flags = 8};
	const struct punctual_trace_connection kept[] = {{.threshold = 2, .pending = 3},
		{.threshold = 2, .flags = PUNCTUAL_TRACE_UNSYNCHRONISED, .pending = 1}};
	const struct punctual_trace_connection from_none = {.channel = 65535};
	const struct punctual_trace_barrier none = {.channel = 1};
	const struct punctual_trace_barrier on_none = {.channel = 65535, .count = 2};
	struct punctual_trace_barrier twice[] = {
		{.channel = 1, .count = 3, .arrived = 2}, {.channel = 1, .count = 1}};
	struct punctual_trace_config config;

	config = good();
	config.connection_count = 1;
	config.connections = &flags_alone;
	refuse(&config, PUNCTUAL_TRACE_INVALID, "has no threshold");
	config.connections = &pending_alone;
	refuse(&config, PUNCTUAL_TRACE_INVALID, "has no threshold");
	config.connections = &unknown;
	refuse(&config, PUNCTUAL_TRACE_INVALID, "unknown flags");
	config.connections = &from_none;
	refuse(&config, PUNCTUAL_TRACE_INVALID, "65,535 in the table of connections");
	config.connections = kept;
	config.connection_count = 2;
	refuse(&config, PUNCTUAL_TRACE_INVALID, "only synchronised inputs");
	config = good();
	config.barrier_count = 1;
	refuse(&config, PUNCTUAL_TRACE_INVALID, "no table of barriers");
	config.barriers = &none;
	refuse(&config, PUNCTUAL_TRACE_INVALID, "count is too low");
	config.barriers = &on_none;
	refuse(&config, PUNCTUAL_TRACE_INVALID, "65,535 in the table of barriers");
	config.barriers = twice;
	config.barrier_count = 2;
	refuse(&config, PUNCTUAL_TRACE_INVALID, "same channel");

	/* What is put down when events are taken already is looked at as well. */
	config.barrier_count = 1;
	config.look = add_too_much;
	config.look_context = twice;
	CHECK(punctual_trace_begin(&config) == PUNCTUAL_TRACE_INVALID &&
			strstr(punctual_trace_message(), "count is too low"),
		"%s", punctual_trace_message());
	CHECK(punctual_trace_end(NULL) == PUNCTUAL_TRACE_STATE, "a trace has begun");
}

static void refuse_folders(void)
{
	struct punctual_trace_config config = good();
	char below[512];
	char far[1024];

	(void)snprintf(below, sizeof below, "%s/below/that", folder);
	config.folder = below;
	refuse(&config, PUNCTUAL_TRACE_IO,
		"No such file or directory; make its parent folder first");
	/* Of a long path there is the end, and room for what is to be done. */
	(void)snprintf(far, sizeof far, "%s/%0200d/that", folder, 0);
	config.folder = far;
	refuse(&config, PUNCTUAL_TRACE_IO,
		"/that: No such file or directory; make its parent folder first");

	config.folder = folder;
	CHECK(punctual_trace_begin(&config) == PUNCTUAL_TRACE_OK, "%s", punctual_trace_message());
	CHECK(punctual_trace_end(NULL) == PUNCTUAL_TRACE_OK, "%s", punctual_trace_message());
	/* That trace is not written over. */
	CHECK(punctual_trace_begin(&config) == PUNCTUAL_TRACE_IO, "a second trace in the folder");
	CHECK(strstr(punctual_trace_message(), folder) &&
			strstr(punctual_trace_message(), "not empty; name another folder"),
		"%s", punctual_trace_message());
}

static void limit_files(rlim_t bytes)
{
	struct rlimit limit;

	CHECK(getrlimit(RLIMIT_FSIZE, &limit) == 0, "no limit");
	limit.rlim_cur = bytes;
	CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0, "no limit");
}

static void produce(uint32_t from, uint32_t until)
{
	for (uint32_t i = from; i < until; i++)
		punctual_trace_push(1, i);
}

static void check_trace(size_t count, uint64_t discarded)
{
	struct reading reading = read_trace(folder);

	CHECK(reading.count == count && reading.complaints == 0, "%lu events",
		(unsigned long)reading.count);
	CHECK(reading.discarded == discarded && reading.uncounted == 0, "%llu discarded",
		(unsigned long long)reading.discarded);
	free_reading(&reading);
}

/* There is room for two packets and a half. What does not fit into the ring meanwhile is counted;
 * when there is room again, the rest is written. */
static void disk_is_full_for_a_while(void)
{
	const struct punctual_trace_config config = good();
	struct punctual_trace_statistics statistics;

	CHECK(punctual_trace_begin(&config) == PUNCTUAL_TRACE_OK, "%s", punctual_trace_message());
	limit_files(5 * 4096 / 2);
	produce(0, 3 * IN_PACKET);
	CHECK(punctual_trace_flush() == PUNCTUAL_TRACE_IO, "no error");
	CHECK(strstr(punctual_trace_message(), "stream_0: File too large; raise the limit"), "%s",
		punctual_trace_message());
	/* Two packets are written and free. */
	produce(3 * IN_PACKET, 2 * IN_PACKET + IN_RING + 9);
	CHECK(punctual_trace_get_statistics().discarded == 9, "%llu discarded",
		(unsigned long long)punctual_trace_get_statistics().discarded);
	limit_files(RLIM_INFINITY);
	CHECK(punctual_trace_flush() == PUNCTUAL_TRACE_OK, "%s", punctual_trace_message());
	produce(2 * IN_PACKET + IN_RING + 9, 2 * IN_PACKET + IN_RING + 10);
	CHECK(punctual_trace_end(&statistics) == PUNCTUAL_TRACE_IO, "forgotten");
	CHECK(statistics.events == 2 * IN_PACKET + IN_RING + 1 && statistics.discarded == 9 &&
			statistics.unwritten == 0,
		"%llu events, %llu unwritten", (unsigned long long)statistics.events,
		(unsigned long long)statistics.unwritten);
	CHECK(statistics.write_errors > 0, "forgotten");
	check_trace(2 * IN_PACKET + IN_RING + 1, 9);
}

static void disk_is_full_for_good(void)
{
	const struct punctual_trace_config config = good();
	struct punctual_trace_statistics statistics;

	CHECK(punctual_trace_begin(&config) == PUNCTUAL_TRACE_OK, "%s", punctual_trace_message());
	limit_files(5 * 4096 / 2);
	produce(0, 4 * IN_PACKET + 1);
	CHECK(punctual_trace_end(&statistics) == PUNCTUAL_TRACE_IO, "no error");
	CHECK(strstr(punctual_trace_message(), "stream_0: File too large; raise the limit"), "%s",
		punctual_trace_message());
	CHECK(statistics.events == 2 * IN_PACKET && statistics.unwritten == 2 * IN_PACKET + 1,
		"%llu events, %llu unwritten", (unsigned long long)statistics.events,
		(unsigned long long)statistics.unwritten);
	limit_files(RLIM_INFINITY);
	check_trace(2 * IN_PACKET, 0);
}

static void child_has_no_part(void)
{
	const struct punctual_trace_config config = good();
	pid_t child;
	int status;

	CHECK(punctual_trace_begin(&config) == PUNCTUAL_TRACE_OK, "%s", punctual_trace_message());
	produce(0, 10);
	child = fork();
	CHECK(child >= 0, "no child");
	if (child == 0) {
		produce(10, 2000);
		CHECK(punctual_trace_get_statistics().events == 0, "the child traces");
		CHECK(punctual_trace_flush() == PUNCTUAL_TRACE_STATE, "the child flushes");
		CHECK(punctual_trace_end(NULL) == PUNCTUAL_TRACE_STATE, "the child ends it");
		_exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child && status == 0, "the child ended with %d",
		status);
	produce(10, 20);
	CHECK(punctual_trace_end(NULL) == PUNCTUAL_TRACE_OK, "%s", punctual_trace_message());
	check_trace(20, 0);
}

int main(int count, char **arguments)
{
	CHECK(count == 2, "usage: refused FOLDER");
	folder = arguments[1];
	refuse_configurations();
	refuse_graphs();
	refuse_folders();
	disk_is_full_for_a_while();
	disk_is_full_for_good();
	child_has_no_part();
	return 0;
}
