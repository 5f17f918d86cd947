/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Internal interfaces of the tracer: the layout of packets, and the building blocks of ports. Not
 * for users, and not installed.
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
/* Size of the above, in bytes and in bits. */
#define PUNCTUAL_TRACE_HEAD	 48u
#define PUNCTUAL_TRACE_HEAD_BITS (PUNCTUAL_TRACE_HEAD * 8u)

/* Checks the configuration, and fills in the defaults that all ports share. */
int punctual_trace_check(struct punctual_trace_config *config);

/* Once rings are open: asks the program for the state before its first event, and checks it. */
int punctual_trace_look(const struct punctual_trace_config *config);

/*
 * Write the metadata of a checked configuration to its sink: the part up to the end of `env`, and
 * the rest. A port may add to `env` in between. They return 0, or anything else if the sink failed.
 */
int punctual_trace_write_env(const struct punctual_trace_config *config);
int punctual_trace_write_layout(const struct punctual_trace_config *config);

/* Sets up the rings in config->memory, and enables events. The configuration was checked; no trace
 * has begun. */
void punctual_trace_open(const struct punctual_trace_config *config);

/* Disables events. The contents of the rings stay. Returns the number of rings. */
uint32_t punctual_trace_close(void);

/*
 * Passes a producer's complete packets to `packet` and frees them, until one cannot be written.
 * With `last`, the one being filled counts as complete. Returns whether all were written; *handed
 * is their number.
 */
int punctual_trace_drain(
	uint32_t producer, const struct punctual_trace_sink *sink, int last, uint32_t *handed);

/*
 * Copies the current contents of the packet being filled, if there are new events since the last
 * call. Returns whether there are. Call it after a drain that wrote everything.
 */
int punctual_trace_peek(uint32_t producer, void *copy);

/* The copied packet was not written after all: peek will copy it again. */
void punctual_trace_unpeek(uint32_t producer);

/*
 * After close and a last drain: begins an empty packet in each ring that has discarded more events
 * than its last packet counts. The first ring also counts events of threads without a producer.
 */
void punctual_trace_account(void);

/* Counts of events so far. No drain may run meanwhile. With `closed`, events still in the rings are
 * unwritten. */
struct punctual_trace_statistics punctual_trace_sum(int closed);

/* Forgets the rings, after close. */
void punctual_trace_forget(void);

/* Sets punctual_trace_message: what failed, on what and why (unless NULL), and what to do. Returns
 * the given result. */
int punctual_trace_fail(
	int result, const char *what, const char *on, const char *why, const char *remedy);

#endif
