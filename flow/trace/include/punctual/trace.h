/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A tracer for frameworks that run tasks which are activated by data: four events, eight bytes
 * each, in CTF 1.8 (docs/flow-traces.md). Portable C99.
 *
 * A framework describes its tasks and channels once (punctual_trace_begin), then says what happens
 * (punctual_trace_push, _activation, _start, _stop), and ends the trace (punctual_trace_end). The
 * four are inline, take no lock, call no system and allocate nothing. Where a barrier's count
 * changes, it says that too (punctual_trace_count).
 *
 * Producers: each executor thread is one, and so is each other thread that pushes (a timer, the
 * program's own). They have numbers: executors first, from 0. A producer has a ring of packets that
 * it alone fills. Two threads, or a thread and an interrupt or signal handler that comes in its
 * way, must never be the same producer at a time.
 *
 * Nothing is lost silently: an event for which no packet is free is discarded and counted, and so
 * is an event of a thread for which there is no producer left. The trace says so (events_discarded;
 * babeltrace2 reports it), and punctual_trace_end does.
 *
 * Numbers: each event carries how many of its kind and object came before it, so that instance k of
 * a task is never taken for k + 1. The framework counts; only the low 14 bits are kept, so any
 * unsigned counter will do.
 *
 * Switching it off: where PUNCTUAL_TRACE is not defined, or 0, every function here is empty, and
 * there is nothing to link.
 *
 * Ports: clock, producer and where packets go are the port's (PUNCTUAL_TRACE_PORT, a header; see
 * README.md). The default is POSIX.
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

/* What functions return. Below zero: it failed, and punctual_trace_message says what, why, and what
 * to do. */
enum punctual_trace_result {
	PUNCTUAL_TRACE_OK = 0,
	/* The configuration makes no sense; nothing was begun. */
	PUNCTUAL_TRACE_INVALID = -1,
	/* A trace has begun already, or none has. */
	PUNCTUAL_TRACE_STATE = -2,
	/* There is too little memory. */
	PUNCTUAL_TRACE_MEMORY = -3,
	/* Something of the trace could not be written. After punctual_trace_end: what was written
	   is a usable trace. */
	PUNCTUAL_TRACE_IO = -4
};

/* No channel has this number: a push on it is a part of a note (punctual_trace_count). */
#define PUNCTUAL_TRACE_NO_CHANNEL 65535u

/*
 * A task or channel: its number in events, and its name for people. Names are UTF-8, not empty,
 * without control characters and commas (which separate names in `punctual chains --chain`),
 * without a space at their begin or end. They should be different: where two tasks have the same,
 * readers show them, and want them asked for, as NAME (NUMBER).
 */
struct punctual_trace_name {
	uint16_t id;
	const char *name;
};

/* How an input counts: punctual_trace_connection.flags. None of them: it is synchronised, and the
 * task waits for it. */
enum punctual_trace_input {
	/* What counts is the newest value, not each push. */
	PUNCTUAL_TRACE_UNSYNCHRONISED = 1,
	/* The task does not wait for it. */
	PUNCTUAL_TRACE_OPTIONAL = 2,
	/* It alone activates the task. */
	PUNCTUAL_TRACE_FINAL = 4
};

/* Data on the channel can activate the task, alone or with others. There may be several between the
 * same two. */
struct punctual_trace_connection {
	uint16_t channel;
	uint16_t task;
	/*
	 * How this input counts (docs/flow-traces.md, "What an input keeps"): so many pushes arm
	 * it. 0: nothing is said of that, and what follows is 0. Who follows data needs it where a
	 * task takes less than there is.
	 */
	uint32_t threshold;
	/* Of enum punctual_trace_input. */
	uint32_t flags;
	/* Of a synchronised input: pushes that count already, and come before all events. */
	uint32_t pending;
};

/* The inputs of the channel are told at each count-th push only. punctual_trace_count says where
 * that changes. */
struct punctual_trace_barrier {
	uint16_t channel;
	/* At least 1. */
	uint32_t count;
	/* Pushes since they were told last, that come before all events: fewer than the count. */
	uint32_t arrived;
};

/*
 * Where metadata and packets go in ports without files. Both functions return 0, or anything else
 * where they failed; they are called by punctual_trace_begin, punctual_trace_flush and
 * punctual_trace_end only, by one at a time.
 */
struct punctual_trace_sink {
	void *context;
	/* A piece of the text that belongs into the file `metadata`; pieces come in order, all of
	 * them in punctual_trace_begin. */
	int (*metadata)(void *context, const char *text, size_t length);
	/* A packet that belongs at the end of the file stream_PRODUCER. May fail for now: the
	 * packet is kept and offered again at the next flush. */
	int (*packet)(void *context, uint32_t producer, const void *packet, size_t size);
};

/*
 * What a trace says of its program, and how much room it has. Zero and NULL stand for the default
 * or for "not known", so that `struct punctual_trace_config config = {0};` is where to start. All
 * that it points to need last only until punctual_trace_begin returns, except `memory` and the
 * sink's context.
 */
struct punctual_trace_config {
	/* Identifiers are unique within each table. An event may name one that is not in it. */
	const struct punctual_trace_name *tasks;
	size_t task_count;
	const struct punctual_trace_name *channels;
	size_t channel_count;
	const struct punctual_trace_connection *connections;
	size_t connection_count;
	/* Not 0: there are no other connections than these. Else more may be found by what
	 * activates what. */
	int connections_are_all;
	/* One for each channel that is one, at most. */
	const struct punctual_trace_barrier *barriers;
	size_t barrier_count;
	/*
	 * Called once by punctual_trace_begin, when events are taken and the metadata is not
	 * written yet. For programs that push already: with the lock that their pushes take, it
	 * puts into the tables above what has come until then (pending, arrived), and has all
	 * pushes traced from then on. So each push is in exactly one of the two. NULL: nothing
	 * comes before punctual_trace_begin returns.
	 */
	void (*look)(void *context);
	void *look_context;

	/* What is traced; where (default, POSIX: the operating system and processor); "fifo",
	 * "lifo" or "priority". */
	const char *program;
	const char *platform;
	const char *policy;
	/* How many executor threads there are. Their producers are 0 to executors - 1: these are
	 * not given to threads that have no number. */
	uint32_t executors;
	/* Not 0: there are none, and `executors` is 0. The program runs its tasks itself, in
	 * whichever thread, as producer 0. */
	int no_executors;
	/* How many producers there are in all, executors included. At least 1. */
	uint32_t producers;
	/* Their names for people, as many as there are producers. Default: "executor 0", …, and
	 * none for the others. */
	const char *const *producer_names;

	/* Ticks of the port's clock in a second. Default: 1,000,000,000. */
	uint64_t ticks_per_second;
	/* Real time at tick 0, since 1970. Default: not known (POSIX: asked of the system). */
	uint64_t epoch_s;
	uint32_t epoch_ns;

	/*
	 * Bytes in a packet: a multiple of 64, from 128 to 131,072. Default: 4,096, of which 4,048
	 * are events (506 of them). Packets that are as large as a page, or smaller powers of two,
	 * are written by Linux wholly or not at all, even if the program is killed meanwhile.
	 */
	uint32_t packet_size;
	/* Packets in each producer's ring: a power of two, from 2 to 2³⁰. Default: 256. */
	uint32_t packets;
	/* PUNCTUAL_TRACE_MEMORY_SIZE(producers, packet_size, packets) bytes at least. Default,
	 * where there is a heap: allocated. */
	void *memory;
	size_t memory_size;

	/* POSIX: the folder to write to. It is made, and must not exist or must be empty. */
	const char *folder;
	/* POSIX: how old may be what a killed program's trace lacks. Default: 100. The flusher
	 * looks for full packets ten times as often, or more. */
	uint32_t flush_ms;
	/* POSIX: the flusher thread's priority under SCHED_FIFO. Default: it is not a real-time
	 * thread, and has a niceness of 10. */
	int32_t flusher_priority;

	/* Ports without files: see there. */
	struct punctual_trace_sink sink;
};

/* Bytes of memory that a trace needs: what punctual_trace_config.memory must have. A constant where
 * its arguments are. */
#define PUNCTUAL_TRACE_MEMORY_SIZE(producers, packet_size, packets) \
	((size_t)(producers) * ((size_t)(packet_size) * (size_t)(packets) + 128u) + 64u)

/* What became of the events. */
struct punctual_trace_statistics {
	/* In the trace, or on their way there; after punctual_trace_end: in the trace. */
	uint64_t events;
	/* Counted in place of being traced, as events_discarded in the trace says too. */
	uint64_t discarded;
	/* After punctual_trace_end: events that could not be written, and that the trace does not
	 * count. */
	uint64_t unwritten;
	/* Writes that failed, those included that worked later. */
	uint64_t write_errors;
};

/* As a producer: the calling thread has none. */
#define PUNCTUAL_TRACE_NOBODY UINT32_MAX

#if PUNCTUAL_TRACE

/*
 * Begins a trace. What happens before is not traced, and not counted as discarded. Returns
 * PUNCTUAL_TRACE_OK; _INVALID, _MEMORY, _IO: see there; _STATE where a trace has begun already. One
 * thread at a time calls begin, flush and end.
 */
int punctual_trace_begin(const struct punctual_trace_config *config);

/*
 * Hands over to the sink all packets that are full: for the idle loop of a program without files.
 * On POSIX, where a thread of the tracer does it: writes all that was traced so far, also packets
 * that are not full yet. Returns PUNCTUAL_TRACE_OK; _IO: something could not be written, and is
 * kept; _STATE: no trace has begun.
 */
int punctual_trace_flush(void);

/*
 * Ends the trace: writes what is left. The caller sees to it that no other thread traces any more;
 * an event that comes nevertheless harms nothing, but may be in the trace, or counted, or neither.
 * After that, events are not traced until the next begin. Returns PUNCTUAL_TRACE_OK; _IO: not all
 * could be written, at some time (write_errors) or for good (unwritten); _STATE: no trace has
 * begun, and *statistics is left alone. `statistics` may be NULL.
 */
int punctual_trace_end(struct punctual_trace_statistics *statistics);

/*
 * What became of the events so far; all zero where no trace has begun. POSIX: any thread, at any
 * time, but it may have to wait for the flusher's disk. Elsewhere: who calls punctual_trace_flush.
 */
struct punctual_trace_statistics punctual_trace_get_statistics(void);

/* What failed last in begin, flush or end, on what, why, and what to do, in English; "" where
 * nothing has. For the thread that called them. */
const char *punctual_trace_message(void);

/*
 * POSIX: from now on the calling thread is this producer, in the trace that has begun and in all to
 * come. A thread that does not say so takes the next number that is free at its first event, after
 * those of the executors; numbers are not used again in the same trace. Asks the system for the
 * thread's number, which else the first event does.
 */
void punctual_trace_set_producer(uint32_t producer);

/* What follows to the functions for events is theirs: not for users. */

struct punctual_trace_event {
	uint32_t timestamp;
	uint32_t what;
};

/* A cache line that the producer alone writes, and one that the flusher does. */
struct punctual_trace_producer {
	/* The time of the packet's first event. */
	uint64_t begin;
	/* Where the next event goes, and the end of its packet: equal where it is full, or there is
	 * none. */
	struct punctual_trace_event *next;
	struct punctual_trace_event *end;
	/* The packet's field: bits. Storing it publishes the events before. */
	uint32_t *content_size;
	/* Packets begun, and events discarded, since the trace began. */
	uint32_t begun;
	uint32_t discarded;
	unsigned char apart[64 - sizeof(uint64_t) - 3 * sizeof(void *) - 2 * sizeof(uint32_t)];
	/* Events in packets that are free again. */
	uint64_t handed;
	/* Packets that are free again, since the trace began. */
	uint32_t freed;
	/* Bits of the packet after them that are written already. */
	uint32_t written;
	unsigned char behind[64 - sizeof(uint64_t) - 2 * sizeof(uint32_t)];
};

struct punctual_trace_shared {
	/* 0 where no trace has begun. */
	uint32_t producer_count;
	/* Which trace has begun: 1, 2, …; 0 where none has. */
	uint32_t trace;
	struct punctual_trace_producer *producers;
};

extern struct punctual_trace_shared punctual_trace_shared;

/*
 * C99 has no atomic operations. These are for an aligned uint32_t; what comes before a store is
 * seen by who loads what it stored. They may be given on the compiler's command line instead, all
 * three, and so may the other two.
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
/* How bit fields lie in CTF. */
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
 * The port: punctual_trace_port_clock(), ticks of a clock that never goes back for a producer;
 * punctual_trace_port_producer(), the number of the caller or PUNCTUAL_TRACE_NOBODY. Both inline,
 * or short.
 */
#include PUNCTUAL_TRACE_PORT

/* Counts an event of nobody, if a trace has begun. */
void punctual_trace_miss(void);

/* Begins another packet. 0: none is free, and an event is counted as discarded. */
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

/* Data is put on a channel: to be called before the inputs that are connected to it are told.
 * `number`: of the push on this channel, from 0. */
static inline void punctual_trace_push_by(uint32_t producer, uint16_t channel, uint32_t number)
{
	punctual_trace_put(producer, 0, number, channel);
}

/* A task is ready and is queued: to be called in the push that made it so, before an executor can
 * start it. `number`: its instance, from 0. */
static inline void punctual_trace_activation_by(uint32_t producer, uint16_t task, uint32_t number)
{
	punctual_trace_put(producer, 1, number, task);
}

/* An executor begins an instance. */
static inline void punctual_trace_start_by(uint32_t producer, uint16_t task, uint32_t number)
{
	punctual_trace_put(producer, 2, number, task);
}

/* It ends it: to be called by the same producer as its start. */
static inline void punctual_trace_stop_by(uint32_t producer, uint16_t task, uint32_t number)
{
	punctual_trace_put(producer, 3, number, task);
}

/*
 * A barrier's count (punctual_trace_config.barriers) is another from here on, at least 1: to be
 * called before its inputs are told, where as many pushes have come already. This is a note, which
 * takes the room of four events: docs/flow-traces.md, "Notes".
 */
static inline void punctual_trace_count_by(uint32_t producer, uint16_t channel, uint32_t count)
{
	const uint64_t note = channel | (uint64_t)count << 16 | UINT64_C(1) << 48;

	for (uint32_t bit = 0; bit < 56u; bit += 14u)
		punctual_trace_put(
			producer, 0, (uint32_t)(note >> bit & 0x3fffu), PUNCTUAL_TRACE_NO_CHANNEL);
}

/* The number of the calling thread (or interrupt, or whatever the port has), which it takes if it
 * has none. */
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

static inline void punctual_trace_push_by(uint32_t producer, uint16_t channel, uint32_t number)
{
	(void)producer;
	(void)channel;
	(void)number;
}

static inline void punctual_trace_activation_by(uint32_t producer, uint16_t task, uint32_t number)
{
	(void)producer;
	(void)task;
	(void)number;
}

static inline void punctual_trace_start_by(uint32_t producer, uint16_t task, uint32_t number)
{
	(void)producer;
	(void)task;
	(void)number;
}

static inline void punctual_trace_stop_by(uint32_t producer, uint16_t task, uint32_t number)
{
	(void)producer;
	(void)task;
	(void)number;
}

static inline void punctual_trace_count_by(uint32_t producer, uint16_t channel, uint32_t count)
{
	(void)producer;
	(void)channel;
	(void)count;
}

static inline uint32_t punctual_trace_current_producer(void)
{
	return PUNCTUAL_TRACE_NOBODY;
}

#endif

/* The same of the calling thread. */
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
