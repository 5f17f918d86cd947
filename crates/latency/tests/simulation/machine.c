/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The latency parser as a program of user space: events on standard input, a line each; what it has
 * measured on standard output, when a line says so.
 *
 *   LETTER TIME IDLE NEED_RESCHED EXTRA
 *
 * d, e: interrupts disabled, enabled; D, E: preemption; s, x: the scheduler is called, returns;
 * i: an interrupt begins (EXTRA is its source, 0 for an exception), o: ends; n: an NMI took EXTRA;
 * .: the run ends, print and forget everything.
 */
#include <stdio.h>
#include <string.h>

typedef unsigned char __u8;
typedef unsigned int __u32;
typedef unsigned long long __u64;
#include "../../../observe/src/latency/bpf/machine.h"

static unsigned long long now;
static unsigned idle, need_resched;

static __u64 latency_clock(void)
{
	return now;
}

static int latency_is_idle(void)
{
	return idle;
}

static int latency_need_resched(void)
{
	return need_resched;
}

int main(void)
{
	static struct latency_cpu cpu;
	struct latency_interrupt ended = {0};
	unsigned long long extra;
	char what;

	while (scanf(" %c %llu %u %u %llu", &what, &now, &idle, &need_resched, &extra) == 5) {
		switch (what) {
		case 'd':
			latency_irqs_off(&cpu, 0);
			break;
		case 'e':
			latency_irqs_on(&cpu, 0);
			break;
		case 'D':
			latency_preempt_off(&cpu, 0);
			break;
		case 'E':
			latency_preempt_on(&cpu, 0);
			break;
		case 's':
			latency_schedule(&cpu, 0);
			break;
		case 'x':
			latency_scheduled(&cpu, 0);
			break;
		case 'i':
			latency_entry(&cpu, 0);
			latency_source(&cpu, extra);
			break;
		case 'o':
			latency_exit(&cpu, 0, &ended);
			if (ended.source)
				printf("i %u %llu %llu %llu\n", ended.source, ended.entry,
					ended.exit, ended.execution);
			break;
		case 'n':
			latency_nmi(&cpu, extra);
			printf("i 1 %llu %llu %llu\n", now - extra, now, extra);
			break;
		case '.':
			printf(". %llu %llu %llu %llu %llu\n", cpu.greatest[LATENCY_POID].duration,
				cpu.greatest[LATENCY_PSD].duration,
				cpu.greatest[LATENCY_ST].duration,
				cpu.greatest[LATENCY_PAIE].duration, cpu.negative);
			memset(&cpu, 0, sizeof cpu);
			break;
		default:
			return 1;
		}
	}
	return 0;
}
