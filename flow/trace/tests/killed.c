/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A program that is killed leaves a trace that babeltrace2 reads: all of it, where the flusher had
 * the time that it takes; at least what was flushed, between any two writes; and at any moment at
 * all, a beginning of it without a gap that is not counted. Linked so that pwrite is what is
 * defined here.
 */
#define _POSIX_C_SOURCE 200809L

#include "punctual/trace.h"
#include "reading.h"
#include "test.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS		15
#define PRODUCERS	2
#define FLUSHES		8u
#define EVENTS_OF_FLUSH 190u

static const char *folder;

/* The program is killed instead of this one of the writes to come. 0: of none. */
static uint32_t writes_left;
static uint32_t writes_to_allow;

ssize_t __real_pwrite64(int file, const void *bytes, size_t size, off_t position);
ssize_t __wrap_pwrite64(int file, const void *bytes, size_t size, off_t position);

ssize_t __wrap_pwrite64(int file, const void *bytes, size_t size, off_t position)
{
	if (__atomic_load_n(&writes_left, __ATOMIC_RELAXED) &&
		__atomic_sub_fetch(&writes_left, 1, __ATOMIC_RELAXED) == 0)
		(void)raise(SIGKILL);
	return __real_pwrite64(file, bytes, size, position);
}

static void begin(uint32_t flush_ms)
{
	struct punctual_trace_config config = {0};

	config.producers = PRODUCERS;
	config.folder = folder;
	config.flush_ms = flush_ms;
	CHECK(punctual_trace_begin(&config) == PUNCTUAL_TRACE_OK, "%s", punctual_trace_message());
}

static void produce(uint32_t producer, uint32_t i)
{
	punctual_trace_start_by(producer, (uint16_t)(i >> 14), i);
}

/* Starts a child that runs `child`; what it writes can be read from *pipe. */
static pid_t start(void (*child)(int), int *readable)
{
	int ends[2];
	pid_t process;

	remove_trace(folder);
	CHECK(pipe(ends) == 0, "no pipe");
	process = fork();
	CHECK(process >= 0, "no child");
	if (process == 0) {
		(void)close(ends[0]);
		child(ends[1]);
		_exit(0);
	}
	(void)close(ends[1]);
	*readable = ends[0];
	return process;
}

static void kill_it(pid_t process, int readable)
{
	int status;

	CHECK(kill(process, SIGKILL) == 0, "no child");
	CHECK(waitpid(process, &status, 0) == process && WIFSIGNALED(status),
		"the child ended by itself");
	(void)close(readable);
}

/* A producer's events from 0 on, without gaps beyond those counted; returns how many events. */
static uint64_t check_producer(const struct reading *reading, uint32_t producer, uint64_t *gaps)
{
	uint64_t next = 0;
	uint64_t seen = 0;

	for (size_t i = 0; i < reading->count; i++) {
		const struct seen *const event = &reading->events[i];
		const uint64_t number = (uint64_t)event->object << 14 | event->number;

		if (event->producer != producer)
			continue;
		CHECK(event->kind == START && number >= next, "%llu after %llu",
			(unsigned long long)number, (unsigned long long)next);
		*gaps += number - next;
		next = number + 1;
		seen++;
	}
	return seen;
}

static void trace_some(int writable)
{
	begin(0);
	for (uint32_t i = 0; i < 1300; i++)
		produce(i % PRODUCERS, i / PRODUCERS);
	CHECK(write(writable, "", 1) == 1, "no pipe");
	for (;;)
		pause();
}

/* How many bits the packet says that it holds; 0 where there is none. */
static uint32_t content_of_packet(const char *name, int packet)
{
	char path[512];
	uint32_t bits = 0;
	int file;

	(void)snprintf(path, sizeof path, "%s/%s", folder, name);
	file = open(path, O_RDONLY);
	CHECK(file >= 0, "%s", path);
	if (pread(file, &bits, sizeof bits, (off_t)packet * 4096 + 24) != (ssize_t)sizeof bits)
		bits = 0;
	(void)close(file);
	return bits;
}

/* The program does nothing any more; what it has traced is in the files without its doing. */
static void killed_when_idle(void)
{
	static const struct timespec moment = {0, 2000000};
	struct reading reading;
	uint64_t gaps = 0;
	char byte;
	int readable;
	const pid_t process = start(trace_some, &readable);

	CHECK(read(readable, &byte, 1) == 1, "the child failed");
	/* 650 events of each: a packet of 506, and one with the rest. */
	while (content_of_packet("stream_0", 1) != (48 + 8 * 144) * 8 ||
		content_of_packet("stream_1", 1) != (48 + 8 * 144) * 8)
		(void)nanosleep(&moment, NULL);
	kill_it(process, readable);
	reading = read_trace(folder);
	CHECK(reading.complaints == 0 && reading.discarded == 0 && reading.uncounted == 0,
		"babeltrace2 complains");
	CHECK(check_producer(&reading, 0, &gaps) == 650 &&
			check_producer(&reading, 1, &gaps) == 650 && gaps == 0,
		"%lu events", (unsigned long)reading.count);
	free_reading(&reading);
}

/* Fills packets, and has them flushed at several places in them. */
static void trace_and_flush(int writable)
{
	/* Never by itself. */
	begin(3600000);
	__atomic_store_n(&writes_left, writes_to_allow, __ATOMIC_RELAXED);
	for (uint32_t flush = 0; flush < FLUSHES; flush++) {
		for (uint32_t i = 0; i < EVENTS_OF_FLUSH; i++)
			punctual_trace_start((uint16_t)((flush * EVENTS_OF_FLUSH + i) >> 14),
				flush * EVENTS_OF_FLUSH + i);
		(void)punctual_trace_flush();
		CHECK(write(writable, "", 1) == 1, "no pipe");
	}
}

/* Returns whether it was: with more writes than there are, the program ends by itself. */
static int killed_between_writes(uint32_t writes)
{
	struct reading reading;
	uint64_t flushed = 0;
	uint64_t gaps = 0;
	uint64_t seen;
	char byte;
	int readable;
	int status;
	pid_t process;

	writes_to_allow = writes;
	process = start(trace_and_flush, &readable);
	while (read(readable, &byte, 1) == 1)
		flushed++;
	(void)close(readable);
	CHECK(waitpid(process, &status, 0) == process, "no child");
	CHECK(WIFSIGNALED(status) || (status == 0 && flushed == FLUSHES), "the child failed");
	reading = read_trace(folder);
	seen = check_producer(&reading, 0, &gaps);
	CHECK(reading.complaints == 0 && reading.discarded == 0 && gaps == 0, "%llu are missing",
		(unsigned long long)gaps);
	CHECK(seen == reading.count && seen >= flushed * EVENTS_OF_FLUSH, "%llu of %llu flushes",
		(unsigned long long)seen, (unsigned long long)flushed);
	free_reading(&reading);
	return WIFSIGNALED(status);
}

static void *trace_forever(void *unused)
{
	for (uint32_t i = 0; i < 1u << 28; i++)
		produce(1, i);
	return unused;
}

/* A byte every few events, which the parent must take. */
static void trace_and_tell(int writable)
{
	pthread_t other;

	/* The shortest there is, so that it is often in the middle of a write that it is killed. */
	begin(1);
	CHECK(pthread_create(&other, NULL, trace_forever, NULL) == 0, "no thread");
	for (uint32_t i = 0; i < 1u << 28; i++) {
		produce(0, i);
		if (i % 64 == 0)
			CHECK(write(writable, "", 1) == 1, "no pipe");
	}
}

static void killed_at_any_moment(unsigned round)
{
	struct reading reading;
	uint64_t gaps = 0;
	uint64_t seen = 0;
	char bytes[97];
	int readable;
	const pid_t process = start(trace_and_tell, &readable);

	for (unsigned i = 0; i < 1 + round * 7; i++)
		CHECK(read(readable, bytes, 1 + round * 31 % sizeof bytes) > 0, "the child failed");
	kill_it(process, readable);
	reading = read_trace(folder);
	CHECK(reading.complaints == 0 && reading.uncounted == 0, "babeltrace2 complains");
	for (uint32_t producer = 0; producer < PRODUCERS; producer++)
		seen += check_producer(&reading, producer, &gaps);
	CHECK(seen == reading.count, "other events");
	CHECK(gaps == reading.discarded, "%llu are missing, %llu are counted",
		(unsigned long long)gaps, (unsigned long long)reading.discarded);
	free_reading(&reading);
}

int main(int count, char **arguments)
{
	uint32_t writes = 0;

	CHECK(count == 2, "usage: killed FOLDER");
	folder = arguments[1];

	killed_when_idle();
	while (killed_between_writes(++writes))
		;
	/* Those of some packets, and of metadata that tell of a thread. */
	CHECK(writes > 15, "only %u writes", writes);
	for (unsigned round = 0; round < ROUNDS; round++)
		killed_at_any_moment(round);
	return 0;
}
