/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The port for POSIX: a thread, the flusher, writes the trace to a folder. Producers never wait for
 * it, and it never waits for them. Only the flusher writes, even at the end: it blocks the signal
 * of a file size limit, so the limit ends no program.
 */
#if defined(__linux__)
#define _GNU_SOURCE
#else
#define _POSIX_C_SOURCE 200809L
#endif

#include "files.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>
#if defined(__linux__)
#include <sys/resource.h>
#include <sys/syscall.h>
#endif

#define NS_PER_S 1000000000u
#define NICENESS 10

__thread struct punctual_trace_posix_thread punctual_trace_posix_thread = {
	0, PUNCTUAL_TRACE_NOBODY};
/* The producer that the thread declared itself to be, and its TID. */
static __thread uint32_t own_producer = PUNCTUAL_TRACE_NOBODY;
static __thread uint32_t own_thread;

/* The state of the current trace. Stays until the next one begins: a late event must find it. */
static struct {
	struct punctual_trace_files *files;
	/* Holds a copy of an incomplete packet. */
	void *copy;
	/* Memory allocated for the rings, if the caller gave none. */
	void *memory;
	/* TIDs of the producers' threads; 0 if unknown. */
	uint32_t *threads;
	uint32_t producers;
	uint32_t packets;
	uint32_t flush_ms;
	/* Assigned producer numbers, including those of the executors. */
	uint32_t numbers;
	/* Number of TIDs in `threads`, and of those already in the metadata. */
	uint32_t known;
	uint32_t told;
	int number_threads;
} trace;

/* The flusher and its requests. */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	pthread_t thread;
	int running;
	int stop;
	/* Number of flushes requested, and done. */
	uint32_t asked;
	uint32_t done;
	/* Writes that failed since the trace began; the last one's file and error. */
	uint64_t errors;
	int error;
	char failed[4200];
} flusher = {.lock = PTHREAD_MUTEX_INITIALIZER};

uint64_t punctual_trace_posix_clock(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

static uint32_t thread_of_kernel(void)
{
#if defined(__linux__)
	return (uint32_t)syscall(SYS_gettid);
#else
	return 0;
#endif
}

/* Whether TIDs are those of the initial PID namespace: others mean nothing outside their own. */
static int numbers_are_initial(void)
{
#if defined(__linux__)
	/* PROC_PID_INIT_INO. */
	static const char initial[] = "pid:[4026531836]";
	char namespace[64];
	const ssize_t length = readlink("/proc/self/ns/pid", namespace, sizeof namespace);

	return length == (ssize_t)sizeof initial - 1 &&
	       memcmp(namespace, initial, sizeof initial - 1) == 0;
#else
	return 0;
#endif
}

/* The next number, or nobody's if all are assigned: then the counter stops, so it cannot wrap. */
static uint32_t take_number(void)
{
	uint32_t number = PUNCTUAL_TRACE_LOAD(&trace.numbers);

	while (number < trace.producers) {
		if (__atomic_compare_exchange_n(&trace.numbers, &number, number + 1u, 0,
			    __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			return number;
	}
	return PUNCTUAL_TRACE_NOBODY;
}

uint32_t punctual_trace_posix_number(void)
{
	const uint32_t current = PUNCTUAL_TRACE_LOAD(&punctual_trace_shared.trace);
	uint32_t producer;

	if (current == 0)
		return PUNCTUAL_TRACE_NOBODY;
	producer = own_producer == PUNCTUAL_TRACE_NOBODY ? take_number() : own_producer;
	punctual_trace_posix_thread.trace = current;
	punctual_trace_posix_thread.producer = producer;
	if (producer < trace.producers && trace.number_threads) {
		if (!own_thread)
			own_thread = thread_of_kernel();
		PUNCTUAL_TRACE_STORE(&trace.threads[producer], own_thread);
		(void)__atomic_fetch_add(&trace.known, 1u, __ATOMIC_RELEASE);
	}
	return producer;
}

void punctual_trace_set_producer(uint32_t producer)
{
	own_producer = producer;
	own_thread = thread_of_kernel();
	/* Checked again at the next event. */
	punctual_trace_posix_thread.trace = 0;
}

/* Reports a failing write once; counts each. */
static int note(int error)
{
	if (!error)
		return 0;
	(void)snprintf(flusher.failed, sizeof flusher.failed, "%s: %s",
		punctual_trace_files_last(trace.files), strerror(error));
	flusher.error = error;
	if (flusher.errors++ == 0)
		(void)fprintf(stderr,
			"punctual trace: cannot write %s; retrying, events that do not fit into "
			"the "
			"buffers meanwhile are discarded\n",
			flusher.failed);
	return error;
}

static int append(void *context, uint32_t producer, const void *packet, size_t size)
{
	(void)context;
	(void)size;
	return note(punctual_trace_files_packet(trace.files, producer, packet));
}

/* Writes the complete packets of all producers. Returns the greatest number of packets of one. */
static uint32_t write_complete(int last)
{
	const struct punctual_trace_sink sink = {.packet = append};
	uint32_t most = 0;

	for (uint32_t producer = 0; producer < trace.producers; producer++) {
		uint32_t handed;

		(void)punctual_trace_drain(producer, &sink, last, &handed);
		if (handed > most)
			most = handed;
	}
	return most;
}

/* Also writes incomplete packets, and the TIDs of the producers. */
static void write_unfinished(void)
{
	const uint32_t known = __atomic_load_n(&trace.known, __ATOMIC_ACQUIRE);

	if (known != trace.told && !note(punctual_trace_files_metadata(trace.files, trace.threads)))
		trace.told = known;
	for (uint32_t producer = 0; producer < trace.producers; producer++) {
		if (punctual_trace_peek(producer, trace.copy) &&
			note(punctual_trace_files_unfinished(trace.files, producer, trace.copy)))
			punctual_trace_unpeek(producer);
	}
}

/* How long to wait after a ring had `most` packets, so that none overflows at that rate: at most a
 * tenth of the flush interval. */
static uint64_t next_pause(uint64_t pause_ns, uint32_t most)
{
	const uint64_t longest = (uint64_t)trace.flush_ms * 100000u;
	const uint64_t shortest = longest < 200000u ? longest : 200000u;

	if (most >= trace.packets / 2u)
		return shortest;
	if (most > trace.packets / 8u)
		return pause_ns / 2u > shortest ? pause_ns / 2u : shortest;
	return pause_ns * 2u < longest ? pause_ns * 2u : longest;
}

static void *flush_always(void *unused)
{
	uint64_t pause_ns = (uint64_t)trace.flush_ms * 100000u;
	uint64_t due = 0;

#if defined(__linux__)
	int policy = SCHED_OTHER;
	struct sched_param parameters;

	if (pthread_getschedparam(pthread_self(), &policy, &parameters) == 0 &&
		policy == SCHED_OTHER)
		(void)setpriority(PRIO_PROCESS, thread_of_kernel(), NICENESS);
#endif
	pthread_mutex_lock(&flusher.lock);
	while (!flusher.stop) {
		const uint32_t asked = flusher.asked;
		const uint64_t now = punctual_trace_posix_clock();
		uint64_t until;
		struct timespec deadline;

		pause_ns = next_pause(pause_ns, write_complete(0));
		if (now >= due || asked != flusher.done) {
			write_unfinished();
			due = now + (uint64_t)trace.flush_ms * 1000000u;
		}
		if (asked != flusher.done) {
			flusher.done = asked;
			pthread_cond_broadcast(&flusher.changed);
		}
		until = punctual_trace_posix_clock() + pause_ns;
		deadline.tv_sec = (time_t)(until / NS_PER_S);
		deadline.tv_nsec = (long)(until % NS_PER_S);
		if (!flusher.stop && flusher.asked == flusher.done)
			pthread_cond_timedwait(&flusher.changed, &flusher.lock, &deadline);
	}
	(void)write_complete(1);
	punctual_trace_account();
	(void)write_complete(1);
	write_unfinished();
	pthread_mutex_unlock(&flusher.lock);
	return unused;
}

static int start_flusher(int priority)
{
	struct sched_param parameters;
	pthread_attr_t attributes;
	pthread_condattr_t condition;
	sigset_t all;
	sigset_t before;
	int error;

	flusher.stop = 0;
	flusher.errors = 0;
	flusher.asked = flusher.done;
	memset(&parameters, 0, sizeof parameters);
	parameters.sched_priority = priority;
	pthread_condattr_init(&condition);
	pthread_condattr_setclock(&condition, CLOCK_MONOTONIC);
	pthread_cond_init(&flusher.changed, &condition);
	pthread_condattr_destroy(&condition);
	pthread_attr_init(&attributes);
	/* Not that of the caller, which may be a real-time thread. */
	pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED);
	pthread_attr_setschedpolicy(&attributes, priority ? SCHED_FIFO : SCHED_OTHER);
	error = pthread_attr_setschedparam(&attributes, &parameters);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	if (!error)
		error = pthread_create(&flusher.thread, &attributes, flush_always, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	flusher.running = !error;
	if (error)
		pthread_cond_destroy(&flusher.changed);
	return error;
}

/* A child has no flusher, and the files are its parent's. */
static void forget_in_child(void)
{
	(void)punctual_trace_close();
	punctual_trace_forget();
	if (flusher.running)
		punctual_trace_files_abandon(trace.files);
	trace.files = NULL;
	flusher.running = 0;
	pthread_mutex_init(&flusher.lock, NULL);
}

static void forget_in_children(void)
{
	(void)pthread_atfork(NULL, NULL, forget_in_child);
}

/* Replaces zeros by this port's defaults. */
static void put_defaults(struct punctual_trace_config *config, char *platform, size_t size)
{
	struct utsname system;
	struct timespec real;
	uint64_t zero;

	if (!config->platform && uname(&system) == 0) {
		(void)snprintf(
			platform, size, "%s %s %s", system.sysname, system.release, system.machine);
		config->platform = platform;
	}
	config->ticks_per_second = NS_PER_S;
	if (clock_gettime(CLOCK_REALTIME, &real) == 0 && config->epoch_s == 0 &&
		config->epoch_ns == 0) {
		zero = (uint64_t)real.tv_sec * NS_PER_S + (uint64_t)real.tv_nsec -
		       punctual_trace_posix_clock();
		config->epoch_s = zero / NS_PER_S;
		config->epoch_ns = (uint32_t)(zero % NS_PER_S);
	}
	if (!config->flush_ms)
		config->flush_ms = 100;
}

static int allocate(struct punctual_trace_config *config)
{
	const size_t size =
		PUNCTUAL_TRACE_MEMORY_SIZE(config->producers, config->packet_size, config->packets);

	/* From the previous trace. */
	free(trace.memory);
	free(trace.copy);
	free(trace.threads);
	trace.memory = config->memory ? NULL : malloc(size);
	trace.copy = malloc(config->packet_size);
	trace.threads = calloc(config->producers, sizeof *trace.threads);
	if (!config->memory) {
		config->memory = trace.memory;
		config->memory_size = size;
	}
	return config->memory && trace.copy && trace.threads
		       ? PUNCTUAL_TRACE_OK
		       : punctual_trace_fail(PUNCTUAL_TRACE_MEMORY, "cannot allocate the rings",
				 NULL, strerror(ENOMEM),
				 "make packets, packet_size or producers smaller");
}

int punctual_trace_begin(const struct punctual_trace_config *wanted)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct punctual_trace_config config = *wanted;
	char platform[256];
	int result;
	int error;

	if (flusher.running)
		return punctual_trace_fail(PUNCTUAL_TRACE_STATE, "a trace has already begun", NULL,
			NULL, "end it first: a program has one trace at a time");
	if (!config.folder || !config.folder[0])
		return punctual_trace_fail(PUNCTUAL_TRACE_INVALID,
			"no folder was given for the trace", NULL, NULL, "give config.folder");
	put_defaults(&config, platform, sizeof platform);
	result = punctual_trace_check(&config);
	if (result == PUNCTUAL_TRACE_OK)
		result = allocate(&config);
	if (result != PUNCTUAL_TRACE_OK)
		return result;
	pthread_once(&once, forget_in_children);
	trace.producers = config.producers;
	trace.packets = config.packets;
	trace.flush_ms = config.flush_ms;
	trace.numbers = config.executors;
	trace.known = 0;
	trace.told = 0;
	trace.number_threads = numbers_are_initial();
	trace.files = punctual_trace_files_open(&config);
	if (!trace.files)
		return PUNCTUAL_TRACE_IO;
	/* Events that occur while the files are being made wait in the rings. */
	punctual_trace_open(&config);
	result = punctual_trace_look(&config);
	if (result == PUNCTUAL_TRACE_OK)
		result = punctual_trace_files_begin(trace.files, &config);
	if (result == PUNCTUAL_TRACE_OK) {
		error = start_flusher(config.flusher_priority);
		if (!error)
			return PUNCTUAL_TRACE_OK;
		result = punctual_trace_fail(PUNCTUAL_TRACE_STATE, "cannot start the flusher", NULL,
			strerror(error),
			error == EAGAIN ? "end some threads, or free some memory"
					: "flusher_priority is 0 or from 1 to 99, which needs "
					  "CAP_SYS_NICE or a limit (ulimit -r) as high");
	}
	(void)punctual_trace_close();
	punctual_trace_forget();
	punctual_trace_files_close(trace.files);
	trace.files = NULL;
	return result;
}

static int no_trace(void)
{
	return punctual_trace_fail(PUNCTUAL_TRACE_STATE, "no trace has begun", NULL, NULL,
		"call punctual_trace_begin first");
}

static int cannot_write(void)
{
	return punctual_trace_fail(PUNCTUAL_TRACE_IO, "cannot write", flusher.failed, NULL,
		punctual_trace_files_remedy(flusher.error));
}

int punctual_trace_flush(void)
{
	uint64_t errors;
	uint32_t mine;

	if (!flusher.running)
		return no_trace();
	pthread_mutex_lock(&flusher.lock);
	errors = flusher.errors;
	mine = ++flusher.asked;
	pthread_cond_broadcast(&flusher.changed);
	while (flusher.done != mine)
		pthread_cond_wait(&flusher.changed, &flusher.lock);
	errors = flusher.errors - errors;
	pthread_mutex_unlock(&flusher.lock);
	return errors ? cannot_write() : PUNCTUAL_TRACE_OK;
}

struct punctual_trace_statistics punctual_trace_get_statistics(void)
{
	struct punctual_trace_statistics sum;

	pthread_mutex_lock(&flusher.lock);
	sum = punctual_trace_sum(0);
	sum.write_errors = flusher.running ? flusher.errors : 0;
	pthread_mutex_unlock(&flusher.lock);
	return sum;
}

int punctual_trace_end(struct punctual_trace_statistics *statistics)
{
	struct punctual_trace_statistics sum;

	if (!flusher.running)
		return no_trace();
	(void)punctual_trace_close();
	pthread_mutex_lock(&flusher.lock);
	flusher.stop = 1;
	pthread_cond_broadcast(&flusher.changed);
	pthread_mutex_unlock(&flusher.lock);
	pthread_join(flusher.thread, NULL);
	pthread_cond_destroy(&flusher.changed);

	sum = punctual_trace_sum(1);
	sum.write_errors = flusher.errors;
	punctual_trace_forget();
	punctual_trace_files_close(trace.files);
	trace.files = NULL;
	flusher.running = 0;
	if (statistics)
		*statistics = sum;
	return flusher.errors ? cannot_write() : PUNCTUAL_TRACE_OK;
}
