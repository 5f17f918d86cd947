/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The port of the example for Cortex-M3, which besides tells the host each time that it has said,
 * in order: files clock_0 and clock_1, of the producers.
 */
#ifndef PORT_CORTEX_M3_H
#define PORT_CORTEX_M3_H

#define punctual_trace_port_clock board_port_clock
#include "port.h"
#undef punctual_trace_port_clock

uint64_t punctual_trace_port_clock(void);

#endif
