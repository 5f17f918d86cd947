/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The latency parser as a program of user space: events on standard input, a line each; what it has
 * measured on standard output, when a line says so.
 *
 *   LETTER TIME IDLE NEED_RESCHED EXTRA
 *
 * d, e: interrupts disabled, enabled; D, E: preemption; s, x: the scheduler is called, returns;
 * i: an interrupt begins (EXTRA is its source, 0 for an exception), o: ends; n: an NMI took EXTRA;
 * w: a thread is made ready, at c the scheduler has chosen it, and at r it runs; g: another
 * processor does that, and this one notices at l; I: something begins of which S says the source
 * later;
 * j: an interrupt will make a thread ready as soon as the parser has asked for something EXTRA
 * times;
 * .: the run ends, print and forget everything.
 *
 *   machine [NANOSECONDS [wakes]]
 *
 * With an argument, the observer takes as long to note each new maximum and is interrupted at it,
 * and the clock masks interrupts while it is read, as HPET does, which is told like any other
 * masking. With another, interrupts come in the middle of the parser's own work, too, and all of
 * them make threads ready that go before the running one.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned char __u8;
typedef unsigned int __u32;
typedef unsigned long long __u64;
#include "../../../../observe/src/latency/bpf/machine.h"

static struct latency_cpu cpu;
static unsigned long long now;
static unsigned idle, need_resched;
/* Time that the observer takes for a maximum, and has taken so far. */
static unsigned long long note_takes, noted;
/* The interrupts of that time make threads ready. */
static bool wakes;
/* Interrupts are masked whether or not the parser has been told yet. */
static bool is_masked;

/* Whoever runs masks interrupts for a moment. */
static void mask(void)
{
	if (!note_takes || is_masked || cpu.serving)
		return;
	is_masked = true;
	latency_irqs_off(&cpu, 0);
	latency_irqs_on(&cpu, 0);
	is_masked = false;
}

static void maybe_interrupt(void);

/* An interrupt that comes meanwhile waits for the end, as HPET masks it, or comes just before. */
static __u64 latency_clock(void)
{
	__u64 time;

	maybe_interrupt();
	mask();
	if (cpu.paused_at)
		noted += note_takes;
	time = now + noted;
	maybe_interrupt();
	return time;
}

static void keep(int greatest);
static void begin_wait(void);

/* After how many questions of the parser an interrupt comes that makes a thread ready; 0: none. */
static unsigned long long until_wakeup;

/* An interrupt, while the observer is at work. */
static void interrupt(void)
{
	struct latency_interrupt ended;
	unsigned before = need_resched;

	if (is_masked || cpu.serving)
		return;
	is_masked = true;
	noted += 10;
	latency_entry(&cpu, 0);
	latency_source(&cpu, 40);
	noted += 100;
	need_resched |= wakes;
	keep(latency_exit(&cpu, 0, &ended));
	need_resched = before;
	is_masked = false;
}

/* What the programs in the kernel do when a variable has grown. */
static void keep(int greatest)
{
	if (!greatest || !note_takes || cpu.paused_at)
		return;
	latency_pause(&cpu);
	noted += note_takes;
	interrupt();
	mask();
	latency_resume(&cpu);
}

/* An interrupt that makes a thread ready; the parser's work around it takes time, too. */
static void wake_in_interrupt(void)
{
	struct latency_interrupt ended;

	noted += 10;
	latency_entry(&cpu, 0);
	latency_source(&cpu, 40);
	begin_wait();
	need_resched = 1;
	noted += 100;
	latency_exit(&cpu, 0, &ended);
	noted += 7;
}

/* An interrupt comes now and then where the parser asks for something, several in a row too. */
static void maybe_interrupt(void)
{
	static unsigned random;

	if (until_wakeup && !--until_wakeup && !cpu.serving)
		wake_in_interrupt();

	random = random * 1664525 + 1013904223;
	if (wakes && random >> 29 == 0)
		interrupt();
}

static int latency_is_idle(void)
{
	maybe_interrupt();
	return idle;
}

static int latency_need_resched(void)
{
	maybe_interrupt();
	return need_resched;
}

/* Hands on what the parser has measured since the last time, and forgets it. */
static void print_and_forget(void)
{
	for (int variable = 0; variable < LATENCY_VARIABLES; variable++)
		printf("%s%llu", variable ? " " : ". ", cpu.greatest[variable].duration);
	printf(" %llu\n", cpu.negative);
	memset(&cpu, 0, sizeof cpu);
}

static void end_interrupt(void)
{
	static struct latency_interrupt ended;

	keep(latency_exit(&cpu, 0, &ended));
	if (ended.source)
		printf("i %u %llu %llu %llu\n", ended.source, ended.entry, ended.exit,
			ended.execution);
}

static void latency_running(struct latency_who *who)
{
	who->tid = idle;
}

static unsigned long long ready;

/* As the program does. */
static void begin_wait(void)
{
	struct latency_moment at = latency_now(&cpu);

	if (cpu.serving && cpu.source) {
		at.now = cpu.entry;
		at.time = cpu.entry_time;
	}
	ready = at.now;
	latency_wait_begins(&cpu, at.now, at.time, cpu.overhead);
}

/* Another processor makes a thread ready. */
static struct latency_glimpse seen;

static void glimpse(void)
{
	seen = latency_glimpse(&cpu);
	ready = seen.at.now;
}

/* Of each part: how much, where its first section began, and how long the longest was open before.
 */
static void end_wait(void)
{
	__u8 place = latency_hold_wait(&cpu);
	struct latency_wait *wait = latency_wait_over(&cpu, place, ready);

	latency_release_wait(&cpu, place);
	if (!wait)
		return;
	printf("w %llu %llu %llu", wait->ready, cpu.scheduled - wait->ready - wait->overhead,
		wait->overhead);
	for (int part = 0; part < LATENCY_PARTS; part++)
		printf(" %llu %llu %llu", wait->parts[part].spent, wait->parts[part].from,
			wait->parts[part].before);
	printf("\n");
}

/* Whether the event is known. */
static bool take(char what, unsigned long long extra)
{
	switch (what) {
	case 'd':
		latency_irqs_off(&cpu, 0);
		return true;
	case 'e':
		keep(latency_irqs_on(&cpu, 0));
		return true;
	case 'D':
		latency_preempt_off(&cpu, 0);
		return true;
	case 'E':
		keep(latency_preempt_on(&cpu, 0));
		return true;
	case 's':
		keep(latency_schedule(&cpu, 0));
		return true;
	case 'x':
		keep(latency_scheduled(&cpu, 0));
		return true;
	case 'i':
		latency_entry(&cpu, 0);
		latency_source(&cpu, extra);
		return true;
	case 'o':
		end_interrupt();
		return true;
	case 'n':
		latency_nmi(&cpu, extra);
		printf("i 1 %llu %llu %llu\n", now - extra, now, extra);
		return true;
	case 'I':
		latency_entry(&cpu, 0);
		return true;
	case 'S':
		latency_source(&cpu, extra);
		return true;
	case 'w':
		begin_wait();
		return true;
	case 'g':
		glimpse();
		return true;
	case 'l':
		latency_wait_begins_late(&cpu, ready, seen.at.time, seen.overhead, seen.entry);
		return true;
	case 'c':
		latency_wait_chosen(&cpu, ready);
		return true;
	case 'r':
		end_wait();
		return true;
	case 'j':
		until_wakeup = extra;
		return true;
	case '.':
		print_and_forget();
		return true;
	}
	return false;
}

int main(int count, char **words)
{
	unsigned long long extra;
	char what;

	note_takes = count > 1 ? strtoull(words[1], NULL, 10) : 0;
	wakes = count > 2;
	while (scanf(" %c %llu %u %u %llu", &what, &now, &idle, &need_resched, &extra) == 5) {
		is_masked = what == 'd' || what == 'e' || what == 'o' || cpu.irqs_off;
		if (!take(what, extra))
			return 1;
	}
	return 0;
}
