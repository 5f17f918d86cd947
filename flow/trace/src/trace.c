/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The rings of packets, on every platform: how a producer begins a packet, and how complete packets
 * leave. Not for where they go, which is up to the port.
 */
#include "core.h"

#include <string.h>

struct punctual_trace_shared punctual_trace_shared;

/* State of all rings. */
static struct {
	unsigned char *packets;
	uint32_t producers;
	uint32_t packet_size;
	uint32_t ring;
	/* Traces begun so far: each has a unique number. */
	uint32_t traces;
	/* Events of threads without a producer. */
	uint32_t of_nobody;
} rings;

static char message[400];
/* Truncates the object of a message (a path may be long), to leave room for the rest. */
#define MOST_OF_ON 160u

const char *punctual_trace_message(void)
{
	return message;
}

static void append(const char *text)
{
	const size_t used = strlen(message);
	const size_t room = sizeof message - 1 - used;
	const size_t length = strlen(text) < room ? strlen(text) : room;

	memcpy(message + used, text, length);
	message[used + length] = '\0';
}

int punctual_trace_fail(
	int result, const char *what, const char *on, const char *why, const char *remedy)
{
	message[0] = '\0';
	append(what);
	if (on) {
		const size_t length = strlen(on);

		append(length > MOST_OF_ON ? " ..." : " ");
		append(length > MOST_OF_ON ? on + (length - MOST_OF_ON) : on);
	}
	if (why) {
		append(": ");
		append(why);
	}
	append("; ");
	append(remedy);
	return result;
}

static struct punctual_trace_packet *packet_of(uint32_t producer, uint32_t number)
{
	const size_t ring = (size_t)rings.ring * rings.packet_size;

	return (struct punctual_trace_packet *)(void *)(rings.packets + producer * ring +
							(size_t)(number & (rings.ring - 1u)) *
								rings.packet_size);
}

void punctual_trace_open(const struct punctual_trace_config *config)
{
	/* Aligned to a cache line; MEMORY_SIZE includes the padding. */
	const size_t astray = (size_t)(uintptr_t)config->memory % 64u;
	unsigned char *const memory = (unsigned char *)config->memory + (astray ? 64u - astray : 0);
	const size_t producers = config->producers * sizeof(struct punctual_trace_producer);

	/* Touch everything, so that no event causes a page fault. */
	memset(memory, 0,
		PUNCTUAL_TRACE_MEMORY_SIZE(
			config->producers, config->packet_size, config->packets) -
			64u);
	rings.packets = memory + producers;
	rings.producers = config->producers;
	rings.packet_size = config->packet_size;
	rings.ring = config->packets;
	rings.of_nobody = 0;
	rings.traces = rings.traces == UINT32_MAX ? 1 : rings.traces + 1;
	punctual_trace_shared.producers = (struct punctual_trace_producer *)(void *)memory;
	PUNCTUAL_TRACE_STORE(&punctual_trace_shared.trace, rings.traces);
	PUNCTUAL_TRACE_STORE(&punctual_trace_shared.producer_count, config->producers);
}

uint32_t punctual_trace_close(void)
{
	PUNCTUAL_TRACE_STORE(&punctual_trace_shared.producer_count, 0);
	PUNCTUAL_TRACE_STORE(&punctual_trace_shared.trace, 0);
	return rings.producers;
}

void punctual_trace_forget(void)
{
	rings.producers = 0;
}

void punctual_trace_miss(void)
{
	if (PUNCTUAL_TRACE_LOAD(&punctual_trace_shared.trace) != 0)
		PUNCTUAL_TRACE_INCREMENT(&rings.of_nobody);
}

int punctual_trace_next_packet(struct punctual_trace_producer *producer, uint64_t now)
{
	const uint32_t number = (uint32_t)(producer - punctual_trace_shared.producers);
	struct punctual_trace_packet *packet;

	if (producer->begun - PUNCTUAL_TRACE_LOAD(&producer->freed) >= rings.ring) {
		PUNCTUAL_TRACE_STORE(&producer->discarded, producer->discarded + 1u);
		return 0;
	}
	packet = packet_of(number, producer->begun);
	packet->magic = PUNCTUAL_TRACE_MAGIC;
	packet->stream_id = 0;
	packet->timestamp_begin = now;
	packet->timestamp_end = now;
	packet->packet_size = rings.packet_size * 8u;
	packet->packet_seq_num = producer->begun;
	packet->events_discarded = producer->discarded;
	packet->producer = number;
	packet->zero = 0;
	PUNCTUAL_TRACE_STORE(&packet->content_size, PUNCTUAL_TRACE_HEAD_BITS);
	producer->content_size = &packet->content_size;
	producer->begin = now;
	producer->next = (struct punctual_trace_event *)(void *)((unsigned char *)packet +
								 PUNCTUAL_TRACE_HEAD);
	producer->end = producer->next + (rings.packet_size - PUNCTUAL_TRACE_HEAD) /
						 sizeof(struct punctual_trace_event);
	PUNCTUAL_TRACE_STORE(&producer->begun, producer->begun + 1u);
	return 1;
}

static uint32_t events_in(uint32_t bits)
{
	return (bits - PUNCTUAL_TRACE_HEAD_BITS) / 64u;
}

/* The time of the last event. Its high half follows from the first event: no packet is longer than
 * 2³² ticks. */
static uint64_t end_of(const struct punctual_trace_packet *packet, uint32_t bits)
{
	const struct punctual_trace_event *event;

	if (bits == PUNCTUAL_TRACE_HEAD_BITS)
		return packet->timestamp_begin;
	event = (const struct punctual_trace_event *)(const void *)((const unsigned char *)packet +
								    bits / 8u) -
		1;
	return packet->timestamp_begin +
	       (uint32_t)(event->timestamp - (uint32_t)packet->timestamp_begin);
}

int punctual_trace_drain(
	uint32_t number, const struct punctual_trace_sink *sink, int last, uint32_t *handed)
{
	struct punctual_trace_producer *const producer = &punctual_trace_shared.producers[number];
	const uint32_t begun = PUNCTUAL_TRACE_LOAD(&producer->begun);
	uint32_t freed = producer->freed;

	*handed = 0;
	while (freed != begun) {
		struct punctual_trace_packet *const packet = packet_of(number, freed);
		const uint32_t bits = PUNCTUAL_TRACE_LOAD(&packet->content_size);

		if (freed + 1u == begun && bits < packet->packet_size && !last)
			return 1;
		packet->timestamp_end = end_of(packet, bits);
		/* Left by the previous packet here. */
		memset((unsigned char *)packet + bits / 8u, 0, rings.packet_size - bits / 8u);
		if (sink->packet(sink->context, number, packet, rings.packet_size) != 0)
			return 0;
		producer->written = 0;
		producer->handed += events_in(bits);
		PUNCTUAL_TRACE_STORE(&producer->freed, ++freed);
		++*handed;
	}
	return 1;
}

int punctual_trace_peek(uint32_t number, void *copy)
{
	struct punctual_trace_producer *const producer = &punctual_trace_shared.producers[number];
	struct punctual_trace_packet *head = copy;
	struct punctual_trace_packet *packet;
	uint32_t bits;

	if (PUNCTUAL_TRACE_LOAD(&producer->begun) == producer->freed)
		return 0;
	packet = packet_of(number, producer->freed);
	bits = PUNCTUAL_TRACE_LOAD(&packet->content_size);
	if (bits == producer->written || bits == PUNCTUAL_TRACE_HEAD_BITS)
		return 0;
	/* Everything but the size, which the producer may store meanwhile: the rest does not change
	 * any more. */
	*head = (struct punctual_trace_packet){
		.magic = packet->magic,
		.timestamp_begin = packet->timestamp_begin,
		.timestamp_end = end_of(packet, bits),
		.content_size = bits,
		.packet_size = packet->packet_size,
		.packet_seq_num = packet->packet_seq_num,
		.events_discarded = packet->events_discarded,
		.producer = number,
	};
	memcpy(head + 1, packet + 1, bits / 8u - PUNCTUAL_TRACE_HEAD);
	memset((unsigned char *)copy + bits / 8u, 0, rings.packet_size - bits / 8u);
	producer->written = bits;
	return 1;
}

void punctual_trace_unpeek(uint32_t number)
{
	punctual_trace_shared.producers[number].written = 0;
}

void punctual_trace_account(void)
{
	for (uint32_t number = 0; number < rings.producers; number++) {
		struct punctual_trace_producer *const producer =
			&punctual_trace_shared.producers[number];
		const uint64_t now = punctual_trace_port_clock();
		uint32_t discarded = producer->discarded;
		uint32_t said = 0;

		/* A write failed. */
		if (producer->begun != producer->freed)
			continue;
		if (producer->begun != 0)
			said = packet_of(number, producer->begun - 1u)->events_discarded;
		if (number == 0) {
			discarded += rings.of_nobody;
			rings.of_nobody = 0;
		}
		/* Readers take differences, so the first packet cannot count any. */
		if (producer->begun == 0 && discarded != 0)
			(void)punctual_trace_next_packet(producer, now);
		PUNCTUAL_TRACE_STORE(&producer->discarded, discarded);
		if (said != discarded)
			(void)punctual_trace_next_packet(producer, now);
	}
}

struct punctual_trace_statistics punctual_trace_sum(int closed)
{
	struct punctual_trace_statistics sum = {0, 0, 0, 0};

	for (uint32_t number = 0; number < rings.producers; number++) {
		struct punctual_trace_producer *const producer =
			&punctual_trace_shared.producers[number];
		const uint32_t begun = PUNCTUAL_TRACE_LOAD(&producer->begun);
		const uint32_t written = producer->written ? events_in(producer->written) : 0;
		uint64_t waiting = 0;

		for (uint32_t packet = producer->freed; packet != begun; packet++)
			waiting += events_in(
				PUNCTUAL_TRACE_LOAD(&packet_of(number, packet)->content_size));
		sum.events += producer->handed + (closed ? written : waiting);
		sum.unwritten += closed ? waiting - written : 0;
		sum.discarded += PUNCTUAL_TRACE_LOAD(&producer->discarded);
	}
	sum.discarded += PUNCTUAL_TRACE_LOAD(&rings.of_nobody);
	return sum;
}
