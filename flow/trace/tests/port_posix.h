/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The port for POSIX with a clock that tests can set, thread by thread.
 */
#ifndef PORT_POSIX_H
#define PORT_POSIX_H

#define punctual_trace_port_clock punctual_trace_posix_real_clock
#include "punctual/trace_posix.h"
#undef punctual_trace_port_clock

/* What the clock says; 0: the real time. */
static __thread uint64_t test_ticks;

static inline uint64_t punctual_trace_port_clock(void)
{
	return test_ticks ? test_ticks : punctual_trace_posix_real_clock();
}

#endif
