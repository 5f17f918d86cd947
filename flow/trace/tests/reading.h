/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A trace as babeltrace2 reads it: the real one, asked for text.
 */
#ifndef READING_H
#define READING_H

#include <stddef.h>
#include <stdint.h>

enum kind { PUSH, ACTIVATION, START, STOP };

struct seen {
	uint64_t ticks;
	uint32_t producer;
	enum kind kind;
	uint32_t number;
	uint32_t object;
	/* The object's; "" where the metadata has none. */
	char name[64];
};

struct reading {
	/* In the order of time, those of a producer in theirs. */
	struct seen *events;
	size_t count;
	/* As babeltrace2 warns of them. */
	uint64_t discarded;
	/* Discards whose number it could not tell, and other things that it said. */
	unsigned uncounted;
	unsigned complaints;
};

/* A note: a barrier's count is another from here on. */
struct count {
	uint32_t channel;
	uint32_t count;
};

/* Removes the folder and all in it, so that a trace can be made there. */
void remove_trace(const char *folder);

/* Reads a trace; ends the test where babeltrace2 fails or says something that is not understood,
 * and as skipped where there is none. */
struct reading read_trace(const char *folder);
void free_reading(struct reading *reading);

/* Whether the four events from `first` on are such a note. */
int read_count(const struct reading *reading, size_t first, struct count *count);

#endif
