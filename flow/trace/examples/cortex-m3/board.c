/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "board.h"

#include <string.h>

#define SYSTICK_CONTROL	   (*(volatile uint32_t *)0xe000e010u)
#define SYSTICK_RELOAD	   (*(volatile uint32_t *)0xe000e014u)
#define SYSTICK_CURRENT	   (*(volatile uint32_t *)0xe000e018u)
#define INTERRUPT_STATE	   (*(volatile uint32_t *)0xe000ed04u)
#define SYSTICK_IS_PENDING (1u << 26)

int main(void);

/* Cycles up to the last interrupt. */
static volatile uint64_t cycles;
static void (*on_tick)(void);

static uint32_t disable_interrupts(void)
{
	uint32_t before;

	__asm__ volatile("mrs %0, primask\n\tcpsid i" : "=r"(before) : : "memory");
	return before;
}

static void restore_interrupts(uint32_t before)
{
	__asm__ volatile("msr primask, %0" : : "r"(before) : "memory");
}

uint64_t board_cycles(void)
{
	const uint32_t before = disable_interrupts();
	uint64_t now = cycles;
	uint32_t left = SYSTICK_CURRENT;

	/* It began anew, and its interrupt has not been served. */
	if (INTERRUPT_STATE & SYSTICK_IS_PENDING) {
		left = SYSTICK_CURRENT;
		now += BOARD_TICK;
	}
	restore_interrupts(before);
	return now + (BOARD_TICK - 1u - left);
}

static void serve_systick(void)
{
	cycles += BOARD_TICK;
	on_tick();
}

void board_start(void (*tick)(void))
{
	on_tick = tick;
	SYSTICK_RELOAD = BOARD_TICK - 1u;
	SYSTICK_CURRENT = 0;
	SYSTICK_CONTROL = 7;
}

void board_stop(void)
{
	SYSTICK_CONTROL = 5;
}

void board_wait(void)
{
	__asm__ volatile("wfi");
}

void board_sleep(uint64_t asleep)
{
	const uint32_t before = disable_interrupts();

	cycles += asleep;
	restore_interrupts(before);
}

/* Arm's semihosting: the debugger, here QEMU, serves the call. */
static int call_host(int operation, const void *arguments)
{
	register int r0 __asm__("r0") = operation;
	register const void *r1 __asm__("r1") = arguments;

	__asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
	return r0;
}

int board_open(const char *path)
{
	/* Mode 5: "wb". */
	const uintptr_t arguments[] = {(uintptr_t)path, 5, strlen(path)};

	return call_host(0x01, arguments);
}

int board_write(int file, const void *bytes, size_t size)
{
	const uintptr_t arguments[] = {(uintptr_t)file, (uintptr_t)bytes, size};

	/* How much was not written. */
	return call_host(0x05, arguments) == 0 ? 0 : -1;
}

int board_close(int file)
{
	const uintptr_t arguments[] = {(uintptr_t)file};

	return call_host(0x02, arguments);
}

void board_exit(int failed)
{
	/* ADP_Stopped_ApplicationExit and, where it failed, ADP_Stopped_RunTimeErrorUnknown. */
	(void)call_host(0x18, (const void *)(uintptr_t)(failed ? 0x20023u : 0x20026u));
	for (;;)
		board_wait();
}

extern uint32_t board_stack_top, board_data_begin, board_data_end, board_data_stored,
	board_bss_begin, board_bss_end;

static void start(void)
{
	const uint32_t *from = &board_data_stored;

	for (uint32_t *to = &board_data_begin; to != &board_data_end;)
		*to++ = *from++;
	for (uint32_t *to = &board_bss_begin; to != &board_bss_end;)
		*to++ = 0;
	board_exit(main());
}

static void fail(void)
{
	board_exit(1);
}

/* A table of the initial stack and sixteen handlers, of which SysTick's is the last. */
union entry {
	void (*handler)(void);
	const void *place;
};

extern const union entry board_vectors[16];
__attribute__((section(".vectors"), used)) const union entry board_vectors[16] = {
	{.place = &board_stack_top},
	{.handler = start},
	{.handler = fail},
	{.handler = fail},
	{.handler = fail},
	{.handler = fail},
	{.handler = fail},
	{.handler = fail},
	{.handler = fail},
	{.handler = fail},
	{.handler = fail},
	{.handler = fail},
	{.handler = fail},
	{.handler = fail},
	{.handler = fail},
	{.handler = serve_systick},
};
