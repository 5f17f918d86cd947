/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The tracer's port for POSIX: CLOCK_MONOTONIC in nanoseconds, a number for each thread. Packets go
 * to files (src/posix.c). Included by trace.h.
 */
#ifndef PUNCTUAL_TRACE_POSIX_H
#define PUNCTUAL_TRACE_POSIX_H

#include <time.h>

/* Which producer the thread is in which trace. */
struct punctual_trace_posix_thread {
	uint32_t trace;
	uint32_t producer;
};

/* In the executable's own block, where access is one instruction; a shared object may have that,
 * too, while it is this small. */
extern __thread struct punctual_trace_posix_thread punctual_trace_posix_thread
	__attribute__((tls_model("initial-exec")));

/* Gives the thread its number for this trace. */
uint32_t punctual_trace_posix_number(void);
uint64_t punctual_trace_posix_clock(void);

static inline uint32_t punctual_trace_port_producer(void)
{
	const uint32_t trace = PUNCTUAL_TRACE_LOAD(&punctual_trace_shared.trace);

	if (trace != 0 && trace == punctual_trace_posix_thread.trace)
		return punctual_trace_posix_thread.producer;
	return punctual_trace_posix_number();
}

static inline uint64_t punctual_trace_port_clock(void)
{
	/* Programs in strict C that ask for no POSIX do not see the clock. */
#ifdef CLOCK_MONOTONIC
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
#else
	return punctual_trace_posix_clock();
#endif
}

#endif
