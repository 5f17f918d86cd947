/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A tracer for frameworks whose tasks are activated by data: four events of eight bytes each, in
 * CTF 1.8 (docs/flow-traces.md). Portable C99.
 *
 * A framework describes its tasks and channels once (punctual_trace_begin), then reports events
 * (punctual_trace_push, _activation, _start, _stop), and ends the trace (punctual_trace_end). The
 * event functions are inline; they take no locks, make no system calls and allocate nothing.
 * punctual_trace_count reports a change of a barrier's count.
 *
 * Producers: each executor thread is one, and so is every other thread that pushes (a timer, the
 * program's own). They are numbered, executors first, from 0. A producer has a ring of packets that
 * only it fills. Two threads must never be the same producer at the same time; neither may a thread
 * and an interrupt or signal handler that interrupts it.
 *
 * Nothing is lost silently: an event that finds no free packet is discarded and counted, and so is
 * an event of a thread for which no producer is left. The trace has the count (events_discarded,
 * which babeltrace2 shows), and punctual_trace_end returns it.
 *
 * Numbers: each event says how many events of its kind and object came before it, so that instance
 * k of a task is never mistaken for k + 1. The framework counts; only the low 14 bits are kept, so
 * any unsigned counter will do.
 *
 * Off: if PUNCTUAL_TRACE is not defined, or 0, all functions are empty, and there is nothing to
 * link.
 *
 * Ports: the port defines the clock, the producers and where packets go (PUNCTUAL_TRACE_PORT, a
 * header; see README.md). The default is POSIX.
 */
#ifndef PUNCTUAL_TRACE_H
#define PUNCTUAL_TRACE_H

#include <stddef.h>
#include <stdint.h>

#ifndef PUNCTUAL_TRACE
#define PUNCTUAL_TRACE 0
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Results. Below zero, the call failed, and punctual_trace_message says what, why, and what to
 * do. */
enum punctual_trace_result {
	PUNCTUAL_TRACE_OK = 0,
	/* The configuration is invalid; no trace has begun. */
	PUNCTUAL_TRACE_INVALID = -1,
	/* A trace has already begun, or none has. */
	PUNCTUAL_TRACE_STATE = -2,
	/* Not enough memory. */
	PUNCTUAL_TRACE_MEMORY = -3,
	/* Part of the trace could not be written. What was written is a usable trace. */
	PUNCTUAL_TRACE_IO = -4
};

/* No channel has this number. A push on it is part of a note (punctual_trace_count). */
#define PUNCTUAL_TRACE_NO_CHANNEL 65535u

/*
 * A task or channel: its number in events, and its name. A name is UTF-8, not empty, without
 * control characters and commas (`punctual chains --chain` separates names by commas), and does not
 * begin or end with a space. Names should be unique: readers show, and expect, NAME (NUMBER) for
 * others.
 */
struct punctual_trace_name {
	uint16_t id;
	const char *name;
};

/* How an input counts: punctual_trace_connection.flags. With no flag, it is synchronised, and the
 * task waits for it. */
enum punctual_trace_input {
	/* Only the newest value counts, not each push. */
	PUNCTUAL_TRACE_UNSYNCHRONISED = 1,
	/* The task does not wait for it. */
	PUNCTUAL_TRACE_OPTIONAL = 2,
	/* It activates the task by itself. */
	PUNCTUAL_TRACE_FINAL = 4
};

/* Data on the channel can activate the task, alone or with other inputs. A channel and a task may
 * have several connections. */
struct punctual_trace_connection {
	uint16_t channel;
	uint16_t task;
	/*
	 * How many pushes arm the input (docs/flow-traces.md, "What an input keeps"). 0: unknown;
	 * flags and pending are then 0 too. Following data needs it if a task takes less than is
	 * there.
	 */
	uint32_t threshold;
	/* A combination of enum punctual_trace_input. */
	uint32_t flags;
	/* For a synchronised input: pushes before all events that still count. */
	uint32_t pending;
};

/* Only each count-th push on the channel reaches its inputs. punctual_trace_count reports changes.
 */
struct punctual_trace_barrier {
	uint16_t channel;
	/* At least 1. */
	uint32_t count;
	/* Pushes before all events that have not reached the inputs; less than the count. */
	uint32_t arrived;
};

/*
 * Receives metadata and packets in ports without files. Both functions return 0 on success. They
 * are called only within punctual_trace_begin, punctual_trace_flush and punctual_trace_end, one at
 * a time.
 */
struct punctual_trace_sink {
	void *context;
	/* Appends a piece of text to the file `metadata`. All pieces come in order, during
	 * punctual_trace_begin. */
	int (*metadata)(void *context, const char *text, size_t length);
	/* Appends a packet to the file stream_PRODUCER. If it fails, the packet is kept and offered
	 * again at the next flush. */
	int (*packet)(void *context, uint32_t producer, const void *packet, size_t size);
};

/*
 * Describes the program and the trace. Zero and NULL mean the default or "unknown", so begin with
 * `struct punctual_trace_config config = {0};`. Pointers need to be valid only until
 * punctual_trace_begin returns, except `memory` and the sink's context.
 */
struct punctual_trace_config {
	/* Numbers are unique within each table. Events may have numbers that are not in it. */
	const struct punctual_trace_name *tasks;
	size_t task_count;
	const struct punctual_trace_name *channels;
	size_t channel_count;
	const struct punctual_trace_connection *connections;
	size_t connection_count;
	/* Not 0: these are all connections. 0: readers infer more from the events. */
	int connections_are_all;
	/* At most one for each channel. */
	const struct punctual_trace_barrier *barriers;
	size_t barrier_count;
	/*
	 * For programs that are already pushing: called once by punctual_trace_begin, when events
	 * are accepted and before the metadata is written. Under the lock of its pushes, the
	 * program fills in the pushes so far (pending, arrived) and enables tracing of those to
	 * come, so that each push is in exactly one of the two. NULL: nothing is pushed before
	 * punctual_trace_begin returns.
	 */
	void (*look)(void *context);
	void *look_context;

	/* The program's name; the platform (default on POSIX: operating system and processor);
	 * "fifo", "lifo" or "priority". */
	const char *program;
	const char *platform;
	const char *policy;
	/* Number of executor threads. They are producers 0 to executors - 1, which are not given to
	 * threads without a number. */
	uint32_t executors;
	/* Not 0: the program has no executors (`executors` is 0) and runs its tasks itself, in any
	 * thread, as producer 0. */
	int no_executors;
	/* Number of all producers, including executors. At least 1. */
	uint32_t producers;
	/* One name for each producer. Default: "executor 0", …, and none for the others. */
	const char *const *producer_names;

	/* Ticks of the port's clock in a second. Default: 1,000,000,000. */
	uint64_t ticks_per_second;
	/* Real time at tick 0, since 1970. Default: unknown (on POSIX, from the system). */
	uint64_t epoch_s;
	uint32_t epoch_ns;

	/*
	 * Bytes of a packet: a multiple of 64, from 128 to 131,072. Default: 4,096, with room for
	 * 506 events. Linux writes packets of a page, or of a smaller power of two, either
	 * completely or not at all, even if the program is killed meanwhile.
	 */
	uint32_t packet_size;
	/* Packets in each producer's ring: a power of two, from 2 to 2³⁰. Default: 256. */
	uint32_t packets;
	/* At least PUNCTUAL_TRACE_MEMORY_SIZE(producers, packet_size, packets) bytes. Default:
	 * allocated, if there is a heap. */
	void *memory;
	size_t memory_size;

	/* POSIX: the folder to write to, new or empty. */
	const char *folder;
	/* POSIX: if the program is killed, its trace lacks at most this much of its end. Default:
	 * 100. The flusher looks for full packets at least ten times as often. */
	uint32_t flush_ms;
	/* POSIX: priority of the flusher thread under SCHED_FIFO. Default: not real-time, with a
	 * niceness of 10. */
	int32_t flusher_priority;

	/* For ports without files. */
	struct punctual_trace_sink sink;
};

/* Bytes that punctual_trace_config.memory needs. A constant if its arguments are. */
#define PUNCTUAL_TRACE_MEMORY_SIZE(producers, packet_size, packets) \
	((size_t)(producers) * ((size_t)(packet_size) * (size_t)(packets) + 128u) + 64u)

/* Counts of events. */
struct punctual_trace_statistics {
	/* In the trace, or on their way there. */
	uint64_t events;
	/* Discarded: events_discarded in the trace. */
	uint64_t discarded;
	/* After punctual_trace_end: events that could not be written. The trace does not count
	 * them. */
	uint64_t unwritten;
	/* Writes that failed, including those that succeeded later. */
	uint64_t write_errors;
};

/* A thread without a producer. */
#define PUNCTUAL_TRACE_NOBODY UINT32_MAX

#if PUNCTUAL_TRACE

/*
 * Begins a trace. Events before that are neither traced nor counted as discarded. Returns
 * PUNCTUAL_TRACE_OK, _INVALID, _MEMORY, _IO, or _STATE if a trace has already begun. Call begin,
 * flush and end from one thread at a time.
 */
int punctual_trace_begin(const struct punctual_trace_config *config);

/*
 * Without files: passes all full packets to the sink; for the idle loop. On POSIX, a thread of the
 * tracer does that, and this writes everything so far, including packets that are not full. Returns
 * PUNCTUAL_TRACE_OK; _IO if something could not be written, which is then kept; _STATE if no trace
 * has begun.
 */
int punctual_trace_flush(void);

/*
 * Ends the trace: writes the rest. First make sure that no other thread traces any more. A late
 * event does no harm, but may be traced, counted, or neither. Afterwards, events are not traced
 * until the next begin. Returns PUNCTUAL_TRACE_OK; _IO if a write failed, for a time (write_errors)
 * or for good (unwritten); _STATE if no trace has begun, with *statistics unchanged. `statistics`
 * may be NULL.
 */
int punctual_trace_end(struct punctual_trace_statistics *statistics);

/*
 * Counts of events so far; all zero if no trace has begun. On POSIX, any thread may call it at any
 * time, and may have to wait for the flusher to write. Elsewhere, only the thread that calls
 * punctual_trace_flush may.
 */
struct punctual_trace_statistics punctual_trace_get_statistics(void);

/* The last failure of begin, flush or end: what failed, on what, why, and what to do; "" if there
 * was none. Call it from the thread that called them. */
const char *punctual_trace_message(void);

/*
 * POSIX: makes the calling thread this producer, in the current trace and all later ones. Any other
 * thread gets the next free number after the executors' at its first event; within a trace, numbers
 * are not reused. Also makes the system call for the thread's TID, which the first event would
 * otherwise make.
 */
void punctual_trace_set_producer(uint32_t producer);

/* Internal, up to the functions for events. */

struct punctual_trace_event {
	uint32_t timestamp;
	uint32_t what;
};

/* A cache line that the producer alone writes, and one that the flusher does. */
struct punctual_trace_producer {
	/* The time of the packet's first event. */
	uint64_t begin;
	/* Where the next event goes, and the end of its packet; equal if it is full or there is
	 * none. */
	struct punctual_trace_event *next;
	struct punctual_trace_event *end;
	/* The packet's field, in bits. Storing it publishes the events before. */
	uint32_t *content_size;
	/* Packets begun, and events discarded, since the trace began. */
	uint32_t begun;
	uint32_t discarded;
	unsigned char apart[64 - sizeof(uint64_t) - 3 * sizeof(void *) - 2 * sizeof(uint32_t)];
	/* Events in packets that are free again. */
	uint64_t handed;
	/* Packets that are free again, since the trace began. */
	uint32_t freed;
	/* Bits of the next packet that are already written. */
	uint32_t written;
	unsigned char behind[64 - sizeof(uint64_t) - 2 * sizeof(uint32_t)];
};

struct punctual_trace_shared {
	/* 0 if no trace has begun. */
	uint32_t producer_count;
	/* The number of the current trace: 1, 2, …; 0 if there is none. */
	uint32_t trace;
	struct punctual_trace_producer *producers;
};

extern struct punctual_trace_shared punctual_trace_shared;

/*
 * C99 has no atomic operations. These are for an aligned uint32_t; a load that sees a store also
 * sees what came before that store. You can define all three on the compiler's command line
 * instead, and the two others as well.
 */
#ifndef PUNCTUAL_TRACE_LOAD
#define PUNCTUAL_TRACE_LOAD(place)	   __atomic_load_n((place), __ATOMIC_ACQUIRE)
#define PUNCTUAL_TRACE_STORE(place, value) __atomic_store_n((place), (value), __ATOMIC_RELEASE)
#define PUNCTUAL_TRACE_INCREMENT(place)	   ((void)__atomic_fetch_add((place), 1u, __ATOMIC_RELAXED))
#endif
#ifndef PUNCTUAL_TRACE_UNLIKELY
#if defined(__GNUC__)
#define PUNCTUAL_TRACE_UNLIKELY(condition) __builtin_expect(!!(condition), 0)
#else
#define PUNCTUAL_TRACE_UNLIKELY(condition) (condition)
#endif
#endif
/* CTF's layout of bit fields. */
#ifndef PUNCTUAL_TRACE_BIG_ENDIAN
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define PUNCTUAL_TRACE_BIG_ENDIAN 1
#else
#define PUNCTUAL_TRACE_BIG_ENDIAN 0
#endif
#endif

#ifndef PUNCTUAL_TRACE_PORT
#define PUNCTUAL_TRACE_PORT "punctual/trace_posix.h"
#endif
/*
 * The port defines punctual_trace_port_clock(): ticks of a clock that never goes back for a
 * producer; and punctual_trace_port_producer(): the caller's number, or PUNCTUAL_TRACE_NOBODY. Both
 * should be inline, or short.
 */
#include PUNCTUAL_TRACE_PORT

/* Counts an event of a thread without a producer, if a trace has begun. */
void punctual_trace_miss(void);

/* Begins another packet. Returns 0 if none is free, and counts an event as discarded. */
int punctual_trace_next_packet(struct punctual_trace_producer *producer, uint64_t now);

static inline void punctual_trace_put(
	uint32_t number_of_producer, uint32_t kind, uint32_t number, uint32_t object)
{
	struct punctual_trace_producer *producer;
	struct punctual_trace_event *event;
	uint64_t now;

	if (PUNCTUAL_TRACE_UNLIKELY(number_of_producer >=
				    PUNCTUAL_TRACE_LOAD(&punctual_trace_shared.producer_count))) {
		punctual_trace_miss();
		return;
	}
	producer = &punctual_trace_shared.producers[number_of_producer];
	now = punctual_trace_port_clock();
	if (PUNCTUAL_TRACE_UNLIKELY(
		    producer->next == producer->end || now - producer->begin > UINT32_MAX) &&
		!punctual_trace_next_packet(producer, now))
		return;
	event = producer->next;
	event->timestamp = (uint32_t)now;
	if (PUNCTUAL_TRACE_BIG_ENDIAN)
		event->what = kind << 30 | (number & 0x3fffu) << 16 | object;
	else
		event->what = kind | (number & 0x3fffu) << 2 | object << 16;
	producer->next = event + 1;
	PUNCTUAL_TRACE_STORE(producer->content_size, *producer->content_size + 64u);
}

/* The producer of the calling thread (or interrupt, or whatever the port has); a thread without one
 * gets one. */
static inline uint32_t punctual_trace_current_producer(void)
{
	return punctual_trace_port_producer();
}

#else

static inline int punctual_trace_begin(const struct punctual_trace_config *config)
{
	(void)config;
	return PUNCTUAL_TRACE_OK;
}

static inline int punctual_trace_flush(void)
{
	return PUNCTUAL_TRACE_OK;
}

static inline struct punctual_trace_statistics punctual_trace_get_statistics(void)
{
	struct punctual_trace_statistics none = {0, 0, 0, 0};
	return none;
}

static inline int punctual_trace_end(struct punctual_trace_statistics *statistics)
{
	if (statistics)
		*statistics = punctual_trace_get_statistics();
	return PUNCTUAL_TRACE_OK;
}

static inline const char *punctual_trace_message(void)
{
	return "";
}

static inline void punctual_trace_set_producer(uint32_t producer)
{
	(void)producer;
}

static inline void punctual_trace_put(
	uint32_t number_of_producer, uint32_t kind, uint32_t number, uint32_t object)
{
	(void)number_of_producer;
	(void)kind;
	(void)number;
	(void)object;
}

static inline uint32_t punctual_trace_current_producer(void)
{
	return PUNCTUAL_TRACE_NOBODY;
}

#endif

/* Data is put on a channel. Call it before the channel's inputs see the data. `number`: that of the
 * push on this channel, from 0. */
static inline void punctual_trace_push_by(uint32_t producer, uint16_t channel, uint32_t number)
{
	punctual_trace_put(producer, 0, number, channel);
}

/* A task becomes ready and is queued. Call it during the push that made it ready, before an
 * executor can start it. `number`: its instance, from 0. */
static inline void punctual_trace_activation_by(uint32_t producer, uint16_t task, uint32_t number)
{
	punctual_trace_put(producer, 1, number, task);
}

/* An executor begins an instance. */
static inline void punctual_trace_start_by(uint32_t producer, uint16_t task, uint32_t number)
{
	punctual_trace_put(producer, 2, number, task);
}

/* An executor ends an instance. Call it as the producer of its start. */
static inline void punctual_trace_stop_by(uint32_t producer, uint16_t task, uint32_t number)
{
	punctual_trace_put(producer, 3, number, task);
}

/*
 * A barrier's count (punctual_trace_config.barriers) changes, to at least 1. If that many pushes
 * have already come, call it before the inputs see them. It is a note, which takes the room of four
 * events: docs/flow-traces.md, "Notes".
 */
static inline void punctual_trace_count_by(uint32_t producer, uint16_t channel, uint32_t count)
{
	const uint64_t note = channel | (uint64_t)count << 16 | UINT64_C(1) << 48;

	for (uint32_t bit = 0; bit < 56u; bit += 14u)
		punctual_trace_put(
			producer, 0, (uint32_t)(note >> bit & 0x3fffu), PUNCTUAL_TRACE_NO_CHANNEL);
}

/* The same for the calling thread. */
static inline void punctual_trace_push(uint16_t channel, uint32_t number)
{
	punctual_trace_push_by(punctual_trace_current_producer(), channel, number);
}

static inline void punctual_trace_activation(uint16_t task, uint32_t number)
{
	punctual_trace_activation_by(punctual_trace_current_producer(), task, number);
}

static inline void punctual_trace_start(uint16_t task, uint32_t number)
{
	punctual_trace_start_by(punctual_trace_current_producer(), task, number);
}

static inline void punctual_trace_stop(uint16_t task, uint32_t number)
{
	punctual_trace_stop_by(punctual_trace_current_producer(), task, number);
}

static inline void punctual_trace_count(uint16_t channel, uint32_t count)
{
	punctual_trace_count_by(punctual_trace_current_producer(), channel, count);
}

#ifdef __cplusplus
}
#endif

#endif
