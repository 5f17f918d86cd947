/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A port whose clock and producer are what the test says.
 */
#ifndef PORT_BARE_H
#define PORT_BARE_H

extern uint64_t test_ticks;
extern uint32_t test_producer;

static inline uint64_t punctual_trace_port_clock(void)
{
	return test_ticks;
}

static inline uint32_t punctual_trace_port_producer(void)
{
	return test_producer;
}

#endif
