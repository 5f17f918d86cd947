/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The latency parser: a state machine for each processor that turns events of interrupts,
 * preemption and the scheduler into the variables of the scheduling-latency bound (paper:
 * scheduling-latency, Table 1), and into occurrences of interrupts. No helpers and no maps, so that
 * it compiles for user space too.
 *
 * Durations of threads are differences of the processor's thread time: the clock, less all time
 * that interrupts and NMIs have taken so far. So no interference is subtracted twice or forgotten,
 * and none of it can make a duration negative.
 */
#ifndef PUNCTUAL_LATENCY_MACHINE_H
#define PUNCTUAL_LATENCY_MACHINE_H

/* Durations of which the greatest is kept. */
enum latency_variable {
	LATENCY_POID, /* preemption or interrupts off, not to schedule */
	LATENCY_PSD,  /* preemption off to schedule */
	LATENCY_ST,   /* from the scheduler's masking of interrupts to its end */
	LATENCY_PAIE, /* all enabled, although the scheduler is to be called */
	LATENCY_VARIABLES
};

enum latency_phase {
	PHASE_THREAD,	 /* no scheduler */
	PHASE_SCHEDULER, /* it has been called */
	PHASE_RETURNING, /* it has returned, preemption is still off */
};

/* Where a variable grew to its greatest value. */
struct latency_maximum {
	__u64 duration;
	__u64 at;     /* when it ended */
	__u64 opened; /* address that began it, 0 where none is known */
	__u64 closed; /* address that ended it */
};

/* An interrupt that has ended. Source 0: none. */
struct latency_interrupt {
	__u64 entry;
	__u64 exit;
	__u64 execution; /* without NMIs */
	__u32 source;
};

struct latency_cpu {
	/* Taken by interrupts and NMIs so far, and by NMIs alone. */
	__u64 interference;
	__u64 nmi;
	/* The interrupt, or exception, being served: when it began, in thread time too, and `nmi`
	 * then. */
	__u64 entry;
	__u64 entry_time;
	__u64 nmi_at_entry;
	__u32 source;
	/* What of preemption, interrupts and the scheduler holds for the thread. */
	__u8 phase;
	__u8 serving;
	__u8 irqs_off;
	__u8 preempt_off;
	/* Preemption is off inside of the interrupt. */
	__u8 inner_preempt_off;
	/* Which of the thread times below are valid. */
	__u8 poid_open;
	__u8 st_open;
	__u8 paie_open;
	__u64 poid;
	__u64 psd;
	__u64 st;
	__u64 paie;
	__u64 preempt_off_at;
	__u64 poid_address;
	__u64 entry_address;
	/* Durations that would have been negative: there must be none. */
	__u64 negative;
	struct latency_maximum greatest[LATENCY_VARIABLES];
};

/* What the running thread is. */
struct latency_current {
	__u8 is_idle;
	__u8 need_resched;
};

static __always_inline __u64 thread_time(const struct latency_cpu *cpu, __u64 now)
{
	return now - cpu->interference;
}

/* Returns whether it is a new greatest. */
static __always_inline int note(struct latency_cpu *cpu, enum latency_variable variable,
	__u64 begin, __u64 end, __u64 now, __u64 opened, __u64 closed)
{
	struct latency_maximum *greatest = &cpu->greatest[variable];

	if (end < begin) {
		cpu->negative++;
		return 0;
	}
	if (end - begin <= greatest->duration)
		return 0;
	greatest->duration = end - begin;
	greatest->at = now;
	greatest->opened = opened;
	greatest->closed = closed;
	return 1;
}

/* The idle thread delays nobody before the scheduler is to be called. */
static __always_inline int delays(struct latency_current current)
{
	return !current.is_idle || current.need_resched;
}

static __always_inline void open_poid(struct latency_cpu *cpu, __u64 time, __u64 address)
{
	if (cpu->poid_open)
		return;
	cpu->poid_open = 1;
	cpu->poid = time;
	cpu->poid_address = address;
}

/*
 * The thread has neither preemption nor interrupts off any more. If the scheduler is to be called,
 * that takes until preemption is off to schedule.
 */
static __always_inline int close_poid(
	struct latency_cpu *cpu, __u64 now, __u64 address, struct latency_current current)
{
	__u64 time = thread_time(cpu, now);
	int greatest = 0;

	if (cpu->poid_open)
		greatest =
			note(cpu, LATENCY_POID, cpu->poid, time, now, cpu->poid_address, address);
	cpu->poid_open = 0;
	if (current.need_resched && !cpu->paie_open) {
		cpu->paie_open = 1;
		cpu->paie = time;
	}
	return greatest;
}

/* A thread masks interrupts. Returns a bit for each variable with a new greatest, as all below do.
 */
static __always_inline int latency_irqs_off(
	struct latency_cpu *cpu, __u64 now, __u64 address, struct latency_current current)
{
	if (cpu->serving)
		return 0;
	cpu->irqs_off = 1;
	if (cpu->phase == PHASE_THREAD && delays(current)) {
		open_poid(cpu, thread_time(cpu, now), address);
	} else if (cpu->phase == PHASE_SCHEDULER && !cpu->st_open) {
		cpu->st_open = 1;
		cpu->st = thread_time(cpu, now);
	}
	return 0;
}

/*
 * The processor enters an interrupt or an exception. Which of the two, latency_source() says, if it
 * is called before the end: without it, this is a section of the thread with interrupts off.
 */
static __always_inline void latency_entry(struct latency_cpu *cpu, __u64 now, __u64 address)
{
	cpu->serving = 1;
	cpu->entry = now;
	cpu->entry_time = thread_time(cpu, now);
	cpu->entry_address = address;
	cpu->nmi_at_entry = cpu->nmi;
	cpu->source = 0;
	cpu->inner_preempt_off = 0;
}

/* The interrupt being served is this one; the last that is named counts. */
static __always_inline void latency_source(struct latency_cpu *cpu, __u32 source)
{
	if (cpu->serving)
		cpu->source = source;
}

/* The interrupt or exception ends; what has ended is put into `ended`. */
static __always_inline int latency_exit(struct latency_cpu *cpu, __u64 now, __u64 address,
	struct latency_current current, struct latency_interrupt *ended)
{
	int greatest = 0;

	cpu->serving = 0;
	ended->source = cpu->source;
	if (cpu->source) {
		ended->entry = cpu->entry;
		ended->exit = now;
		ended->execution = now - cpu->entry - (cpu->nmi - cpu->nmi_at_entry);
		cpu->interference += ended->execution;
	}
	if (cpu->phase != PHASE_THREAD)
		return 0;
	if (!cpu->source && !current.is_idle)
		open_poid(cpu, cpu->entry_time, cpu->entry_address);
	if (cpu->inner_preempt_off && !cpu->preempt_off) {
		/* On its way out, the interrupt is about to call the scheduler. */
		cpu->preempt_off = 1;
		cpu->preempt_off_at = thread_time(cpu, now);
		open_poid(cpu, cpu->preempt_off_at, address);
	} else if (current.is_idle && current.need_resched) {
		/* The idle thread has preemption off always; from here on it delays a thread. */
		open_poid(cpu, thread_time(cpu, now), address);
	} else if (!cpu->preempt_off && !cpu->irqs_off) {
		greatest = close_poid(cpu, now, address, current) << LATENCY_POID;
	}
	return greatest;
}

/* An NMI has taken `execution`. */
static __always_inline void latency_nmi(struct latency_cpu *cpu, __u64 execution)
{
	cpu->nmi += execution;
	cpu->interference += execution;
}

/* A thread unmasks interrupts. */
static __always_inline int latency_irqs_on(
	struct latency_cpu *cpu, __u64 now, __u64 address, struct latency_current current)
{
	cpu->irqs_off = 0;
	if (cpu->phase != PHASE_THREAD || cpu->preempt_off)
		return 0;
	return close_poid(cpu, now, address, current) << LATENCY_POID;
}

/* Preemption is disabled; whether to schedule, shows when the scheduler is called, or not. */
static __always_inline void latency_preempt_off(
	struct latency_cpu *cpu, __u64 now, __u64 address, struct latency_current current)
{
	if (cpu->serving) {
		cpu->inner_preempt_off = 1;
		return;
	}
	cpu->preempt_off = 1;
	cpu->preempt_off_at = thread_time(cpu, now);
	if (cpu->phase == PHASE_THREAD && delays(current))
		open_poid(cpu, cpu->preempt_off_at, address);
}

/* The scheduler is called: preemption was disabled for it (EV1). */
static __always_inline int latency_schedule(
	struct latency_cpu *cpu, __u64 now, __u64 address, struct latency_current current)
{
	__u64 time = thread_time(cpu, now);
	int greatest = 0;

	/* The idle thread has had preemption off all along. */
	cpu->psd = cpu->preempt_off && !current.is_idle ? cpu->preempt_off_at : time;
	if (cpu->poid_open &&
		note(cpu, LATENCY_POID, cpu->poid, cpu->psd, now, cpu->poid_address, address))
		greatest |= 1 << LATENCY_POID;
	if (cpu->paie_open && note(cpu, LATENCY_PAIE, cpu->paie, cpu->psd, now, 0, address))
		greatest |= 1 << LATENCY_PAIE;
	cpu->poid_open = 0;
	cpu->paie_open = 0;
	cpu->st_open = 0;
	cpu->phase = PHASE_SCHEDULER;
	return greatest;
}

/* The scheduling context ends (EV7). */
static __always_inline int end_schedule(struct latency_cpu *cpu, __u64 now, __u64 address)
{
	__u64 time = thread_time(cpu, now);
	int greatest = 0;

	if (note(cpu, LATENCY_PSD, cpu->psd, time, now, 0, address))
		greatest |= 1 << LATENCY_PSD;
	if (cpu->st_open && note(cpu, LATENCY_ST, cpu->st, time, now, 0, address))
		greatest |= 1 << LATENCY_ST;
	cpu->st_open = 0;
	cpu->phase = PHASE_THREAD;
	return greatest;
}

/* The scheduler returns, into `current` (EV6). */
static __always_inline int latency_scheduled(
	struct latency_cpu *cpu, __u64 now, __u64 address, struct latency_current current)
{
	int greatest;

	if (cpu->phase != PHASE_SCHEDULER)
		return 0;
	cpu->phase = PHASE_RETURNING;
	if (!current.is_idle)
		return 0;
	/* The idle thread does not enable preemption. */
	greatest = end_schedule(cpu, now, address);
	cpu->preempt_off = 1;
	if (current.need_resched)
		open_poid(cpu, thread_time(cpu, now), address);
	return greatest;
}

/* Preemption is enabled. */
static __always_inline int latency_preempt_on(
	struct latency_cpu *cpu, __u64 now, __u64 address, struct latency_current current)
{
	int greatest = 0;

	if (cpu->serving) {
		cpu->inner_preempt_off = 0;
		return 0;
	}
	cpu->preempt_off = 0;
	if (cpu->phase == PHASE_RETURNING)
		greatest = end_schedule(cpu, now, address);
	if (cpu->phase != PHASE_THREAD)
		return greatest;
	if (cpu->irqs_off) {
		open_poid(cpu, thread_time(cpu, now), address);
		return greatest;
	}
	return greatest | close_poid(cpu, now, address, current) << LATENCY_POID;
}

#endif
