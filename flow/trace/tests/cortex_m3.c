/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What the example for Cortex-M3 traced, in QEMU: every event, against what it does and the times
 * that its clock said.
 */
#include "reading.h"
#include "test.h"

#include <string.h>

#define IMAGES	     300u
#define IN_INTERRUPT 2u
#define IN_MAIN	     6u

struct what {
	enum kind kind;
	const char *name;
	uint32_t object;
};

static const struct what of_main[IN_MAIN] = {{START, "navi", 0}, {PUSH, "pose", 1},
	{ACTIVATION, "control", 1}, {STOP, "navi", 0}, {START, "control", 1}, {STOP, "control", 1}};
static const struct what of_interrupt[IN_INTERRUPT] = {{PUSH, "image", 0}, {ACTIVATION, "navi", 0}};

/* The times that a producer's clock said, in order. Returns how many. */
static size_t load_clock(const char *folder, const char *name, uint64_t *times, size_t most)
{
	unsigned char bytes[8];
	char path[512];
	size_t count = 0;
	FILE *file;

	(void)snprintf(path, sizeof path, "%s/../%s", folder, name);
	file = fopen(path, "rb");
	CHECK(file, "%s", path);
	while (count < most && fread(bytes, 1, sizeof bytes, file) == sizeof bytes) {
		times[count] = 0;
		for (int i = 7; i >= 0; i--)
			times[count] = times[count] << 8 | bytes[i];
		count++;
	}
	(void)fclose(file);
	return count;
}

int main(int count, char **arguments)
{
	static uint64_t times[2][IMAGES * IN_MAIN];
	uint32_t next[2] = {0, 0};
	struct reading reading;

	CHECK(count == 2, "usage: cortex-m3 FOLDER");
	CHECK(load_clock(arguments[1], "clock_0", times[0], IMAGES * IN_MAIN) == IMAGES * IN_MAIN,
		"the main loop's clock");
	CHECK(load_clock(arguments[1], "clock_1", times[1], IMAGES * IN_INTERRUPT) ==
			IMAGES * IN_INTERRUPT,
		"the interrupt's clock");
	reading = read_trace(arguments[1]);
	CHECK(reading.discarded == 0 && reading.uncounted == 0 && reading.complaints == 0,
		"babeltrace2 complains");
	CHECK(reading.count == IMAGES * (IN_MAIN + IN_INTERRUPT), "%lu events",
		(unsigned long)reading.count);
	for (size_t i = 0; i < reading.count; i++) {
		const struct seen *const seen = &reading.events[i];
		const uint32_t length = seen->producer == 0 ? IN_MAIN : IN_INTERRUPT;
		const struct what *what;

		CHECK(seen->producer < 2 && next[seen->producer] < IMAGES * length,
			"an event of producer %u too many", seen->producer);
		what = seen->producer == 0 ? &of_main[next[0] % length]
					   : &of_interrupt[next[1] % length];
		CHECK(seen->kind == what->kind && seen->object == what->object &&
				strcmp(seen->name, what->name) == 0,
			"event %lu is a %d of %s", (unsigned long)i, seen->kind, seen->name);
		CHECK(seen->number == next[seen->producer] / length, "event %lu has number %u",
			(unsigned long)i, seen->number);
		CHECK(seen->ticks == times[seen->producer][next[seen->producer]],
			"event %lu at %llu", (unsigned long)i, (unsigned long long)seen->ticks);
		next[seen->producer]++;
	}
	CHECK(reading.events[reading.count - 1].ticks > UINT64_C(10000000000), "it did not sleep");
	free_reading(&reading);
	return 0;
}
