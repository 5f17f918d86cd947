/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A dataflow program without an operating system: a timer's interrupt pushes images, and the main
 * loop runs the task that they activate, which pushes what the next task is activated by. Packets
 * and metadata go to files of the host. A program in the field would send them where it has a line
 * to.
 */
#include "punctual/trace.h"

#include "board.h"

#define PRODUCERS   2
#define PACKET_SIZE 512
#define PACKETS	    4
#define IMAGES	    300u

enum { IMAGE, POSE };
enum { NAVIGATE, CONTROL };

static const struct punctual_trace_name tasks[] = {{NAVIGATE, "navi"}, {CONTROL, "control"}};
static const struct punctual_trace_name channels[] = {{IMAGE, "image"}, {POSE, "pose"}};
static const struct punctual_trace_connection connections[] = {
	{.channel = IMAGE, .task = NAVIGATE, .threshold = 1},
	{.channel = POSE, .task = CONTROL, .threshold = 1},
};
static const char *const producers[] = {"main loop", "interrupt"};
static unsigned char memory[PUNCTUAL_TRACE_MEMORY_SIZE(PRODUCERS, PACKET_SIZE, PACKETS)];

/* Images that were pushed, and those that the main loop has seen. */
static volatile uint32_t pushed;
static uint32_t seen;

static int metadata_file;
static int stream_files[PRODUCERS];

static int write_metadata(void *context, const char *text, size_t length)
{
	(void)context;
	return board_write(metadata_file, text, length);
}

static int write_packet(void *context, uint32_t producer, const void *packet, size_t size)
{
	(void)context;
	return board_write(stream_files[producer], packet, size);
}

static void tick(void)
{
	const uint32_t number = pushed;

	if (number == IMAGES)
		return;
	/* An executor would be told in between; here the main loop looks by itself. */
	punctual_trace_push(IMAGE, number);
	punctual_trace_activation(NAVIGATE, number);
	pushed = number + 1;
}

/* One executor, which runs NAVIGATE, and what that activates. */
static void execute(uint32_t number)
{
	punctual_trace_start(NAVIGATE, number);
	punctual_trace_push(POSE, number);
	punctual_trace_activation(CONTROL, number);
	punctual_trace_stop(NAVIGATE, number);
	punctual_trace_start(CONTROL, number);
	punctual_trace_stop(CONTROL, number);
}

static int begin(void)
{
	struct punctual_trace_config config = {0};

	metadata_file = board_open("metadata");
	stream_files[0] = board_open("stream_0");
	stream_files[1] = board_open("stream_1");
	if (metadata_file < 0 || stream_files[0] < 0 || stream_files[1] < 0)
		return -1;
	config.tasks = tasks;
	config.task_count = 2;
	config.channels = channels;
	config.channel_count = 2;
	config.connections = connections;
	config.connection_count = 2;
	config.connections_are_all = 1;
	config.program = "cortex-m3";
	config.platform = "lm3s6965evb";
	config.policy = "fifo";
	config.executors = 1;
	config.producers = PRODUCERS;
	config.producer_names = producers;
	config.ticks_per_second = BOARD_HZ;
	config.packet_size = PACKET_SIZE;
	config.packets = PACKETS;
	config.memory = memory;
	config.memory_size = sizeof memory;
	config.sink.metadata = write_metadata;
	config.sink.packet = write_packet;
	return punctual_trace_begin(&config);
}

int main(void)
{
	struct punctual_trace_statistics statistics;
	int failed = 0;

	if (begin() != PUNCTUAL_TRACE_OK)
		return 1;
	board_start(tick);
	while (seen < IMAGES) {
		if (seen == pushed) {
			board_wait();
			continue;
		}
		execute(seen++);
		/* Longer than the low half of the clock can count. */
		if (seen == IMAGES / 2)
			board_sleep(UINT64_C(10000000000));
		failed |= punctual_trace_flush();
	}
	board_stop();
	failed |= punctual_trace_end(&statistics);
	failed |= board_close(metadata_file) | board_close(stream_files[0]) |
		  board_close(stream_files[1]);
	return failed || statistics.discarded != 0;
}
