/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Hands interrupts over as the programs do: each line of standard input is the source, entry, exit
 * and execution time of one. The buffer goes to standard output, at source 0 and at the end.
 */
#include <stdio.h>
#include <string.h>

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef int __s32;
typedef unsigned long long __u64;
#define barrier() __asm__ volatile("" ::: "memory")
#undef __always_inline
#define __always_inline __attribute__((unused)) inline
#include "bpf/interrupts.h"

static void latency_store(__u8 *place, __u64 word)
{
	memcpy(place, &word, sizeof(word));
}

static __u64 latency_clock(void)
{
	return 0;
}

static int latency_is_idle(void)
{
	return 0;
}

static int latency_need_resched(void)
{
	return 0;
}

static void latency_running(struct latency_who *who)
{
	(void)who;
}

int main(void)
{
	static struct latency_buffer buffer;
	unsigned long long entry, exit, execution;
	unsigned source;

	while (scanf("%u %llu %llu %llu", &source, &entry, &exit, &execution) == 4) {
		struct latency_interrupt ended = {
			.entry = entry, .exit = exit, .execution = execution, .source = source};

		if (source)
			latency_hand_over(&buffer, &ended);
		else
			fwrite(&buffer, sizeof(buffer), 1, stdout);
	}
	return fwrite(&buffer, sizeof(buffer), 1, stdout) != 1;
}
