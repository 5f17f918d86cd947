/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A file that was cut off anywhere is read up to its last whole packet: these lie at multiples of
 * their size, and each stands alone.
 */
#define _POSIX_C_SOURCE 200809L

#include "punctual/trace.h"
#include "reading.h"
#include "test.h"

#include <string.h>
#include <unistd.h>

#define PACKET_SIZE	 192u
#define EVENTS_IN_PACKET 18u
#define EVENTS		 100u

static unsigned char stream[4096];

static uint32_t field(size_t offset)
{
	uint32_t value;

	memcpy(&value, stream + offset, sizeof value);
	return value;
}

static size_t load(const char *path)
{
	FILE *const file = fopen(path, "rb");
	size_t size;

	CHECK(file, "%s", path);
	size = fread(stream, 1, sizeof stream, file);
	(void)fclose(file);
	return size;
}

int main(int count, char **arguments)
{
	struct punctual_trace_config config = {0};
	char path[512];
	size_t size;

	CHECK(count == 2, "usage: cut FOLDER");
	remove_trace(arguments[1]);
	config.producers = 2;
	config.packet_size = PACKET_SIZE;
	config.folder = arguments[1];
	CHECK(punctual_trace_begin(&config) == PUNCTUAL_TRACE_OK, "%s", punctual_trace_message());
	for (uint32_t i = 0; i < EVENTS; i++) {
		punctual_trace_push_by(0, 1, i);
		punctual_trace_push_by(1, 2, i);
	}
	CHECK(punctual_trace_end(NULL) == PUNCTUAL_TRACE_OK, "%s", punctual_trace_message());

	(void)snprintf(path, sizeof path, "%s/stream_1", arguments[1]);
	size = load(path);
	CHECK(size == (EVENTS + EVENTS_IN_PACKET - 1) / EVENTS_IN_PACKET * PACKET_SIZE, "%lu bytes",
		(unsigned long)size);
	/* At each byte, from the end: what is left begins with whole packets, and babeltrace2 reads
	 * those. */
	for (size_t length = size; length-- > 0;) {
		const size_t packets = length / PACKET_SIZE;
		struct reading reading;
		uint32_t next = 0;

		for (size_t packet = 0; packet < packets; packet++) {
			const size_t at = packet * PACKET_SIZE;

			CHECK(field(at) == 0xc1fc1fc1u && field(at + 28) == PACKET_SIZE * 8 &&
					field(at + 32) == packet && field(at + 40) == 1,
				"packet %lu", (unsigned long)packet);
			CHECK(field(at + 24) == (48 + 8 * EVENTS_IN_PACKET) * 8,
				"packet %lu holds %u", (unsigned long)packet, field(at + 24));
		}
		if (length != packets * PACKET_SIZE)
			continue;
		CHECK(truncate(path, (off_t)length) == 0, "%s", path);
		reading = read_trace(arguments[1]);
		CHECK(reading.complaints == 0 && reading.discarded == 0 && reading.uncounted == 0,
			"babeltrace2 complains");
		CHECK(reading.count == EVENTS + packets * EVENTS_IN_PACKET,
			"%lu events of %lu packets", (unsigned long)reading.count,
			(unsigned long)packets);
		for (size_t i = 0; i < reading.count; i++) {
			if (reading.events[i].producer == 1)
				CHECK(reading.events[i].number == next++, "%u",
					reading.events[i].number);
		}
		free_reading(&reading);
	}
	return 0;
}
