/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Hands interrupts over to user space, in the forms of interface.h. No helpers and no maps, so that
 * it compiles for user space too, where a test reads what it writes.
 */
#ifndef PUNCTUAL_LATENCY_INTERRUPTS_H
#define PUNCTUAL_LATENCY_INTERRUPTS_H

#include "interface.h"

/* Whoever includes this defines it. `place` need not be aligned. */
static __always_inline void latency_store(__u8 *place, __u64 word);

/* The place of a source that has one or can be given one, else 0. */
static __always_inline __u64 latency_place(struct latency_buffer *buffer, __u32 source)
{
	__u8 *place = &buffer->places[source & (LATENCY_SOURCE_LIMIT - 1)];
	__u32 next;

	if (*place)
		return *place;
	next = buffer->places_end + 1;
	if (next >= LATENCY_PLACES)
		return 0;
	buffer->sources[next & (LATENCY_PLACES - 1)] = source;
	buffer->places_end = next;
	*place = next;
	return next;
}

/* Writes one word, of which so many bytes count. Returns where the next one goes. */
static __always_inline __u64 latency_write(
	struct latency_buffer *buffer, __u64 at, __u64 word, __u64 bytes)
{
	latency_store(&buffer->bytes[at & (LATENCY_BUFFER - 1)], word);
	return at + bytes;
}

/* Whether they fit into so many bits. */
static __always_inline int latency_fits(
	__u64 execution, int execution_bits, __u64 gap, int gap_bits)
{
	return !(execution >> execution_bits) && !(gap >> gap_bits);
}

static __always_inline __u64 latency_form(
	__u64 form, __u64 source, int source_bits, __u64 execution, int execution_bits, __u64 gap)
{
	return form | source << LATENCY_FORM_BITS | execution << (LATENCY_FORM_BITS + source_bits) |
	       gap << (LATENCY_FORM_BITS + source_bits + execution_bits);
}

static __always_inline void latency_hand_over(
	struct latency_buffer *buffer, const struct latency_interrupt *ended)
{
	__u64 gap = ended->entry - buffer->previous_exit;
	__u64 execution = ended->execution;
	__u64 end = buffer->end;
	__u64 place;

	if (execution != ended->exit - ended->entry || !latency_fits(execution, 20, gap, 30) ||
		end - buffer->absolute_at >= LATENCY_RELATIVE) {
		buffer->absolute_at = end;
		end = latency_write(buffer, end,
			latency_form(3, ended->source, LATENCY_SOURCE_BITS, 0, 0, 0), 8);
		end = latency_write(buffer, end, buffer->count, 8);
		end = latency_write(buffer, end, ended->entry, 8);
		end = latency_write(buffer, end, ended->exit, 8);
		end = latency_write(buffer, end, execution, 8);
	} else {
		place = latency_place(buffer, ended->source);
		if (place && latency_fits(execution, 14, gap, 20))
			end = latency_write(buffer, end,
				latency_form(0, place, LATENCY_PLACE_BITS, execution, 14, gap), 5);
		else if (place && latency_fits(execution, 17, gap, 25))
			end = latency_write(buffer, end,
				latency_form(1, place, LATENCY_PLACE_BITS, execution, 17, gap), 6);
		else
			end = latency_write(buffer, end,
				latency_form(
					2, ended->source, LATENCY_SOURCE_BITS, execution, 20, gap),
				8);
	}
	buffer->previous_exit = ended->exit;
	buffer->count++;
	barrier();
	buffer->end = end;
}

#endif
