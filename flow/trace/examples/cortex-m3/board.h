/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Just enough of a Cortex-M3 (here: QEMU's lm3s6965evb) to trace on it: a clock, its interrupt, and
 * files of the host by semihosting.
 */
#ifndef BOARD_H
#define BOARD_H

#include <stddef.h>
#include <stdint.h>

#define BOARD_HZ 12000000u
/* Cycles between two interrupts of SysTick. */
#define BOARD_TICK 120000u

/* Cycles since board_start. Never goes back, in the program and in interrupts. */
uint64_t board_cycles(void);

/* Whether an interrupt handler runs. */
static inline int board_in_interrupt(void)
{
	uint32_t number;

	__asm__ volatile("mrs %0, ipsr" : "=r"(number));
	return number != 0;
}

/* Starts the clock; from then on `tick` is called by its interrupt. */
void board_start(void (*tick)(void));
void board_stop(void);

/* Sleeps until an interrupt has come. */
void board_wait(void);

/* As if all had stood still for so long, the interrupt too, and a clock that does not had been
 * asked when it was over. */
void board_sleep(uint64_t cycles);

/* Files on the host, in the folder where QEMU was started. Below zero: it failed. */
int board_open(const char *path);
int board_write(int file, const void *bytes, size_t size);
int board_close(int file);
void board_exit(int failed) __attribute__((noreturn));

#endif
