/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The tracer's port for programs without an operating system, or with one that is not POSIX:
 * packets and metadata go to punctual_trace_config.sink (src/bare.c), and the program defines the
 * two functions below. One that wants them inline has a header like this one of its own, a dozen
 * lines: -DPUNCTUAL_TRACE_PORT='"my_port.h"'. Included by trace.h.
 */
#ifndef PUNCTUAL_TRACE_BARE_H
#define PUNCTUAL_TRACE_BARE_H

/* Ticks, of which there are punctual_trace_config.ticks_per_second, since some moment. Never goes
 * back for a producer, and never wraps. */
uint64_t punctual_trace_port_clock(void);

/* Which producer the caller is: on one processor, 0 in the program and another for each level of
 * interrupts that traces. */
uint32_t punctual_trace_port_producer(void);

#endif
