/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The tracer's port for POSIX with a clock that the executor reads once for all events under one
 * lock (tracing.hpp): reading the clock is most of an event's cost. Included by trace.h.
 */
#ifndef PUNCTUAL_FLOW_TRACE_PORT_H
#define PUNCTUAL_FLOW_TRACE_PORT_H

#define punctual_trace_port_clock punctual_flow_read_clock
#include <punctual/trace_posix.h>
#undef punctual_trace_port_clock

/* When the thread last read the clock. */
static inline uint64_t punctual_trace_port_clock(void);

#endif
