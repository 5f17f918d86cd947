/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The tracer's port for this board: the cycles of SysTick, made 64 bits wide; the program is
 * producer 0, its interrupt handlers are producer 1.
 */
#ifndef PORT_H
#define PORT_H

#include "board.h"

static inline uint64_t punctual_trace_port_clock(void)
{
	return board_cycles();
}

static inline uint32_t punctual_trace_port_producer(void)
{
	return board_in_interrupt() ? 1 : 0;
}

#endif
