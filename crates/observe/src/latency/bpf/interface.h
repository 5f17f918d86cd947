/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the latency programs and user space share: memory for each processor, which the programs
 * write and user space reads at its leisure. Nothing waits for anybody, and nothing grows.
 */
#ifndef PUNCTUAL_LATENCY_INTERFACE_H
#define PUNCTUAL_LATENCY_INTERFACE_H

#include "machine.h"

#define LATENCY_STACK	32
#define LATENCY_BUFFER	131072 /* bytes, a power of two */
#define LATENCY_NMIS	256    /* a power of two */
#define LATENCY_THREADS 128    /* a power of two */
#define LATENCY_EVENTS	512    /* a power of two */

/* Sources of interrupts: x86 vectors as they are, numbered interrupts from here on. */
#define LATENCY_SOURCE_NMI   1
#define LATENCY_SOURCE_IRQ   256
#define LATENCY_SOURCE_LIMIT 4096

/* Who was running when a variable grew. Being written while `sequence` is odd. */
struct latency_culprit {
	__u32 sequence;
	__u32 tgid;
	__u32 tid;
	__u32 depth; /* entries of the stack */
	char comm[16];
	struct latency_maximum maximum;
	__u64 stack[LATENCY_STACK];
};

/*
 * Interrupts follow one another in a buffer of bytes, each in the shortest form that holds it. From
 * the lowest bit on, a form has its number in two bits, then the source (as a place among the
 * frequent `sources`, or as it is), the execution time, and the time since the one before ended:
 *
 *   form  bytes  source  execution  gap
 *   0     5      place   14 bits    20 bits
 *   1     6      place   17 bits    25 bits
 *   2     8      itself  20 bits    30 bits
 *   3     40     itself
 *
 * The last one has four words more: how many interrupts there were before, entry, exit and
 * execution. It is the form of what does not fit, and of at least one interrupt in
 * LATENCY_RELATIVE bytes, for a reader that has lost some.
 */
#define LATENCY_RELATIVE    2048
#define LATENCY_FORM_BITS   2
#define LATENCY_PLACE_BITS  4
#define LATENCY_SOURCE_BITS 12
#define LATENCY_PLACES	    (1 << LATENCY_PLACE_BITS) /* place 0: none */
#define LATENCY_WORD	    8 /* what is written at a time: as much lies behind the last byte */

struct latency_buffer {
	/* How many bytes have been written; they lie at this number modulo the size. */
	__u64 end;
	__u64 absolute_at; /* of these, where the last interrupt in the longest form begins */
	__u64 count;	   /* of interrupts */
	__u64 previous_exit;
	/* What the places stand for, in order of appearance, and the place of each source. */
	__u32 places_end;
	__u32 sources[LATENCY_PLACES];
	__u8 places[LATENCY_SOURCE_LIMIT];
	__u8 bytes[LATENCY_BUFFER + LATENCY_WORD];
};

struct latency_nmi_entry {
	__u64 exit;
	__u64 execution;
};

/*
 * The wake-up that a thread of high priority waits for, and its latency. What the wake-up is,
 * whoever asks for it writes, here or on another processor, with the run queue locked; the rest is
 * this processor's alone.
 */
struct latency_wakeup {
	__u64 ready;
	__u64 begin;	/* in thread time */
	__u64 overhead; /* the observer's own time until then */
	__u64 entry;	/* of what was being served then, if it was not known what that was; or 0 */
	__s32 prio;
	__u32 tid;
	__u32 asked;	 /* how many wake-ups there were, this one included */
	__u32 settled;	 /* the last one that nobody waits for any more */
	__u8 is_remote;	 /* another processor asks for it */
	__u8 is_running; /* the scheduler has chosen it */
	/* Where this processor noticed what another one had asked for. */
	__u32 noticed;
	__u64 noticed_ready;
	__u64 noticed_begin;
	__u64 noticed_overhead;
	/* What the scheduler has chosen. */
	__u32 chosen;
	__u64 chosen_ready;
	__u64 chosen_overhead;
};

/*
 * Latencies of one thread on one processor. Free while `tid` is 0. The greatest is being written
 * while `sequence` is odd.
 */
struct latency_thread {
	__u32 tid;
	__u32 tgid;
	__u32 policy;
	__u32 priority;
	char comm[16];
	__u64 wakeups;
	__u64 total;
	__u64 max;
	__u64 max_at;		   /* when it was ready */
	struct latency_wait worst; /* of the greatest, if it is `ready` then */
	__u32 sequence;
	__u32 padding;
};

/* What the flight recorder keeps. */
enum latency_event_kind {
	LATENCY_IRQS_OFF,
	LATENCY_IRQS_ON,
	LATENCY_INTERRUPT_ENTRY,
	LATENCY_INTERRUPT_SOURCE, /* `detail` is the source */
	LATENCY_INTERRUPT_EXIT,
	LATENCY_PREEMPT_OFF,
	LATENCY_PREEMPT_ON,
	LATENCY_SCHEDULER_ENTRY,
	LATENCY_SCHEDULER_EXIT,
	LATENCY_WAKEUP, /* `detail` is the thread */
};

struct latency_event {
	__u64 at;
	__u64 address;
	__u32 tid; /* of the running thread */
	__u16 kind;
	__u16 padding;
	__u64 detail;
};

/* What was the first to be as long as the threshold. */
struct latency_exceeded {
	__u32 what; /* a variable, or LATENCY_VARIABLES: the latency of the thread */
	__u32 tgid;
	__u32 tid;
	char comm[16];
	struct latency_maximum maximum;
};

struct latency_shared {
	struct latency_cpu cpu;
	__u8 is_active;
	/* The scheduler was called since: what was under way at the beginning has ended. */
	__u8 is_settled;
	/* The threshold was exceeded: the flight recorder has stopped, and `exceeded` is valid. */
	__u8 is_frozen;
	/* How often the processor went offline. */
	__u64 offline;
	struct latency_culprit culprits[LATENCY_VARIABLES];
	struct latency_wakeup wakeup;
	struct latency_thread threads[LATENCY_THREADS];
	/* Latencies of threads for which there was no room, and those that were not clear. */
	__u64 unmeasured;
	struct latency_buffer interrupts;
	__u64 nmis_end;
	struct latency_exceeded exceeded;
	__u64 events_end;
	struct latency_event events[LATENCY_EVENTS];
	struct latency_nmi_entry nmis[LATENCY_NMIS];
};

#endif
