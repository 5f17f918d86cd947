/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What the parts of the tracer share: the layout of packets, and what ports are made of. Not for
 * users, and not installed.
 */
#ifndef PUNCTUAL_TRACE_CORE_H
#define PUNCTUAL_TRACE_CORE_H

#include "punctual/trace.h"

/* Header and context of a packet: docs/flow-traces.md. */
struct punctual_trace_packet {
	uint32_t magic;
	uint32_t stream_id;
	uint64_t timestamp_begin;
	uint64_t timestamp_end;
	uint32_t content_size;
	uint32_t packet_size;
	uint32_t packet_seq_num;
	uint32_t events_discarded;
	uint32_t producer;
	uint32_t zero;
};

#define PUNCTUAL_TRACE_MAGIC 0xc1fc1fc1u
/* Bytes, and bits, of the above. */
#define PUNCTUAL_TRACE_HEAD	 48u
#define PUNCTUAL_TRACE_HEAD_BITS (PUNCTUAL_TRACE_HEAD * 8u)

/* Checks the configuration, and puts the defaults that are the same in all ports in its place. */
int punctual_trace_check(struct punctual_trace_config *config);

/* Once rings are open: has the program say what came before its first event, and checks that too.
 */
int punctual_trace_look(const struct punctual_trace_config *config);

/*
 * Write the text for a checked configuration to its sink: up to the end of what `env` says, and all
 * behind it. A port may have more to say between the two. They return 0, or anything else where the
 * sink failed.
 */
int punctual_trace_write_env(const struct punctual_trace_config *config);
int punctual_trace_write_layout(const struct punctual_trace_config *config);

/* Sets the rings up in config->memory, and lets events come. The configuration was checked; no
 * trace has begun. */
void punctual_trace_open(const struct punctual_trace_config *config);

/* Lets no events come any more. What is in the rings stays. Returns how many rings there are. */
uint32_t punctual_trace_close(void);

/*
 * Hands a producer's packets that are complete to `packet` and frees them, until one cannot be
 * written. `last`: the one that is being filled counts as complete. Returns whether all could be
 * written; *handed is how many were.
 */
int punctual_trace_drain(
	uint32_t producer, const struct punctual_trace_sink *sink, int last, uint32_t *handed);

/*
 * Copies the packet that is being filled as it is now, whole, where it holds more than when this
 * was called last. Returns whether it does. To be called after a drain that wrote all.
 */
int punctual_trace_peek(uint32_t producer, void *copy);

/* That the packet that was copied is not written after all: peek copies it again. */
void punctual_trace_unpeek(uint32_t producer);

/*
 * After close and a last drain: begins an empty packet in each ring that has discarded more than
 * its last packet says; for the first, events of nobody are among them.
 */
void punctual_trace_account(void);

/* What became of the events so far. Nobody drains meanwhile. `closed`: what is still in the rings
 * is unwritten. */
struct punctual_trace_statistics punctual_trace_sum(int closed);

/* Forgets the rings, after close. */
void punctual_trace_forget(void);

/* Has punctual_trace_message say `what`, where they are not NULL `on` and `why`, and what to do
 * about it. Returns the result given. */
int punctual_trace_fail(
	int result, const char *what, const char *on, const char *why, const char *remedy);

#endif
