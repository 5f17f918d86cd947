/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The tracer's port for POSIX, with the clock read by the executor: once for all that happens in
 * one piece, with the scheduler's lock (tracing.hpp). Reading the clock is most of what an event
 * costs. Included by trace.h.
 */
#ifndef PUNCTUAL_FLOW_TRACE_PORT_H
#define PUNCTUAL_FLOW_TRACE_PORT_H

#define punctual_trace_port_clock punctual_flow_read_clock
#include <punctual/trace_posix.h>
#undef punctual_trace_port_clock

/* When the thread last read the clock. */
static inline uint64_t punctual_trace_port_clock(void);

#endif
