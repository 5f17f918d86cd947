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
 *
 * Whoever includes this defines what is asked for only where it is needed, since it takes time:
 */
#ifndef PUNCTUAL_LATENCY_MACHINE_H
#define PUNCTUAL_LATENCY_MACHINE_H

/* Nanoseconds. */
static __always_inline __u64 latency_clock(void);
/* Whether the idle thread runs. */
static __always_inline int latency_is_idle(void);
/* Whether the processor knows that the scheduler is to be called. */
static __always_inline int latency_need_resched(void);
/* The thread that runs. */
struct latency_who;
static __always_inline void latency_running(struct latency_who *who);

/*
 * Attempts to read the clock without an interrupt in between. Where reading it takes long, and
 * masks interrupts (HPET on a busy host), one is often due at the end, and again at that of the
 * next try.
 */
#define LATENCY_ATTEMPTS 8

#ifndef __noinline
#define __noinline __attribute__((noinline))
#endif

/* Durations of which the greatest is kept. */
enum latency_variable {
	LATENCY_POID, /* preemption or interrupts off, not to schedule */
	LATENCY_PSD,  /* preemption off to schedule */
	LATENCY_ST,   /* from the scheduler's masking of interrupts to its end */
	LATENCY_PAIE, /* all enabled, although the scheduler is to be called */
	LATENCY_VARIABLES
};

/* What the time of threads goes to while one waits: a variable, or this. */
#define LATENCY_REST  LATENCY_VARIABLES
#define LATENCY_PARTS (LATENCY_VARIABLES + 1)

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

struct latency_who {
	__u32 tgid;
	__u32 tid;
	char comm[16];
};

/* How much of a wait went to a variable, or to the rest. The last four are those of its longest
 * section. */
struct latency_part {
	__u64 spent;
	__u64 from; /* where the first section began in the wait */
	__u64 longest;
	__u64 before;  /* so long had the section been open when the wait began */
	__u64 address; /* that began it, 0 where none is known */
	struct latency_who who;
};

/*
 * A woken thread waits. Every instant of that which is no interrupt's belongs to one part: that of
 * the innermost section then. The parts sum up to the thread time of the wait.
 */
struct latency_wait {
	__u64 ready;	/* when it began */
	__u64 begin;	/* in thread time */
	__u64 since;	/* thread time up to which the parts are summed up */
	__u64 overhead; /* the observer's own time until it began; at its end, during it */
	__u64 is_over;
	struct latency_part parts[LATENCY_PARTS];
};

/* A power of two. */
#define LATENCY_WAITS 4

/* Whether a woken thread waits. */
enum {
	WAIT_NONE,
	WAIT_READY,  /* until the scheduler has chosen it */
	WAIT_CHOSEN, /* until the scheduling context ends */
};

struct latency_cpu {
	/* Taken by interrupts, NMIs and the observer so far, and by NMIs alone. */
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
	/* An NMI has hidden the next masking of interrupts. */
	__u8 blind;
	/* The observer works: what it does itself is no event. */
	__u8 observing;
	/* Which of the thread times below are valid. */
	__u8 poid_open;
	__u8 st_open;
	__u8 paie_open;
	/* If a woken thread waits, this one of `waits` is valid. */
	__u8 waiting;
	__u8 wait;
	/* A bit for each of `waits` that is being read: the next ones leave it alone. */
	__u8 held;
	__u64 poid;
	__u64 psd;
	__u64 st;
	__u64 paie;
	/* Since when the scheduler has been due although nothing was off, but for other sections.
	 */
	__u64 due;
	__u64 preempt_off_at;
	__u64 poid_address;
	__u64 entry_address;
	/* Thread time stands still while this is not 0: then it is this. */
	__u64 paused_at;
	/* The observer's own time, which no duration contains. */
	__u64 overhead;
	/* Durations that would have been negative: there must be none. */
	__u64 negative;
	/* When the last scheduling context ended (EV7), and `overhead` then. */
	__u64 scheduled;
	__u64 scheduled_overhead;
	/* Sections and interrupts of which the beginning was not seen. */
	__u64 unseen;
	struct latency_maximum greatest[LATENCY_VARIABLES];
	/* The next waits may begin, in interrupts, while the last one is still being read. */
	struct latency_wait waits[LATENCY_WAITS];
};

/* A point in time, and the processor's thread time then. */
struct latency_moment {
	__u64 now;
	__u64 time;
};

/*
 * Some clocks (HPET) mask interrupts while they are read, which would be events in the middle of
 * the one that asks for the time.
 */
static __always_inline __u64 latency_read(struct latency_cpu *cpu)
{
	volatile __u8 *observing = &cpu->observing;
	__u8 before = *observing;
	__u64 now;

	*observing = 1;
	now = latency_clock();
	*observing = before;
	return now;
}

/* An interrupt between the two readings would falsify the difference, so they are repeated. */
static __always_inline struct latency_moment latency_now(struct latency_cpu *cpu)
{
	volatile __u64 *interference = &cpu->interference;
	struct latency_moment at = {0};
	__u64 taken;

	for (int attempt = 0; attempt < LATENCY_ATTEMPTS; attempt++) {
		taken = *interference;
		at.now = latency_read(cpu);
		at.time = cpu->paused_at ? cpu->paused_at : at.now - taken;
		if (taken == *interference)
			break;
	}
	return at;
}

/* What another processor sees of this one. */
struct latency_glimpse {
	struct latency_moment at;
	__u64 overhead;
	/* An interrupt or exception was being served, which of the two was not known yet: its
	 * entry, else 0. */
	__u64 entry;
};

/* Of a processor that goes on meanwhile, seen from another one. */
static __always_inline __attribute__((unused)) struct latency_glimpse latency_glimpse(
	const struct latency_cpu *watched)
{
	const volatile struct latency_cpu *cpu = watched;
	struct latency_glimpse seen = {0};
	__u64 taken, entry, paused_at;
	__u8 serving;

	for (int attempt = 0; attempt < LATENCY_ATTEMPTS; attempt++) {
		taken = cpu->interference;
		serving = cpu->serving;
		entry = cpu->entry;
		paused_at = cpu->paused_at;
		seen.at.now = latency_clock();
		seen.at.time = paused_at ? paused_at : seen.at.now - taken;
		seen.overhead = cpu->overhead;
		seen.entry = 0;
		if (paused_at && !serving)
			seen.overhead += seen.at.now - paused_at - taken;
		if (serving && cpu->source)
			seen.at.time = cpu->entry_time;
		else if (serving)
			seen.entry = entry;
		if (taken == cpu->interference && serving == cpu->serving && entry == cpu->entry &&
			paused_at == cpu->paused_at)
			break;
	}
	return seen;
}

/* Counts the time since the pause began, without interrupts, as the observer's. */
static __always_inline void take_overhead(struct latency_cpu *cpu)
{
	volatile __u64 *interference = &cpu->interference;
	__u64 taken, now;

	for (int attempt = 0; attempt < LATENCY_ATTEMPTS; attempt++) {
		taken = *interference;
		now = latency_read(cpu);
		if (taken == *interference)
			break;
	}
	cpu->overhead += now - cpu->paused_at - cpu->interference;
	cpu->interference = now - cpu->paused_at;
}

/*
 * The observer does something that takes long. Until latency_resume(), thread time stands still,
 * and only interrupts are events.
 */
static __always_inline void latency_pause(struct latency_cpu *cpu)
{
	volatile __u64 *interference = &cpu->interference, *paused_at = &cpu->paused_at;
	__u64 taken;

	/* An interrupt in between has begun after this instant, and what it opened would, too. */
	for (int attempt = 0; attempt < LATENCY_ATTEMPTS; attempt++) {
		taken = *interference;
		*paused_at = latency_read(cpu) - taken;
		if (taken == *interference)
			break;
	}
	*(volatile __u8 *)&cpu->observing = 1;
}

static __always_inline void latency_resume(struct latency_cpu *cpu)
{
	volatile __u64 *paused_at = &cpu->paused_at;

	take_overhead(cpu);
	*paused_at = 0;
	*(volatile __u8 *)&cpu->observing = 0;
}

/* Returns whether it is a new greatest. */
static __always_inline int note(struct latency_cpu *cpu, enum latency_variable variable,
	__u64 begin, struct latency_moment end, __u64 opened, __u64 closed)
{
	struct latency_maximum *greatest = &cpu->greatest[variable];

	if (end.time < begin) {
		cpu->negative++;
		return 0;
	}
	if (end.time - begin <= greatest->duration)
		return 0;
	greatest->duration = end.time - begin;
	greatest->at = end.now;
	greatest->opened = opened;
	greatest->closed = closed;
	return 1;
}

/* The idle thread delays nobody before the scheduler is to be called. */
static __always_inline int delays(void)
{
	return !latency_is_idle() || latency_need_resched();
}

/* The innermost section of threads. */
static __always_inline __u32 latency_innermost(const struct latency_cpu *cpu)
{
	if (cpu->phase != PHASE_THREAD)
		return cpu->st_open ? LATENCY_ST : LATENCY_PSD;
	if (cpu->poid_open)
		return LATENCY_POID;
	return cpu->paie_open ? LATENCY_PAIE : LATENCY_REST;
}

/* When it began. */
static __always_inline __u64 section_began(const struct latency_cpu *cpu, __u32 part)
{
	switch (part) {
	case LATENCY_POID:
		return cpu->poid;
	case LATENCY_PSD:
		return cpu->psd;
	case LATENCY_ST:
		return cpu->st;
	case LATENCY_PAIE:
		return cpu->paie;
	}
	return ~0ull;
}

/* The wait that goes on, or was the last one. */
static __always_inline struct latency_wait *latency_wait(struct latency_cpu *cpu)
{
	return &cpu->waits[*(volatile __u8 *)&cpu->wait & (LATENCY_WAITS - 1)];
}

/*
 * The time of the wait up to `time` went to this part. A function of its own, as it is rare. An
 * interrupt in the middle may do the same for a later time: no time is taken twice.
 */
static __noinline int latency_spend(
	struct latency_cpu *cpu, struct latency_wait *wait, __u32 which, __u64 time)
{
	struct latency_part *part;
	__u64 since, length, began;

	if (!cpu || !wait || which >= LATENCY_PARTS)
		return 0;
	since = wait->since;
	if (time <= since || __sync_val_compare_and_swap(&wait->since, since, time) != since)
		return 0;
	part = &wait->parts[which];
	length = time - since;
	if (!part->spent)
		part->from = since - wait->begin;
	if (length > part->longest) {
		began = section_began(cpu, which);
		part->longest = length;
		part->before = began < wait->begin ? wait->begin - began : 0;
		part->address = which == LATENCY_POID ? cpu->poid_address : 0;
		latency_running(&part->who);
	}
	__sync_fetch_and_add(&part->spent, length);
	return 0;
}

/* What was the innermost section so far is about to change, at `time`. */
static __always_inline void spend(struct latency_cpu *cpu, __u64 time)
{
	if (cpu->waiting)
		latency_spend(cpu, latency_wait(cpu), latency_innermost(cpu), time);
}

/*
 * A woken thread waits, since `ready`, which was `begin` in thread time, and `overhead` in that of
 * the observer. What has begun after that already is taken for what it is now.
 */
static __noinline __attribute__((unused)) int latency_wait_begins(
	struct latency_cpu *cpu, __u64 ready, __u64 begin, __u64 overhead)
{
	struct latency_wait *wait;
	__u32 which;
	__u8 next;

	if (!cpu)
		return 0;
	which = latency_innermost(cpu);
	*(volatile __u8 *)&cpu->waiting = WAIT_NONE;
	next = (cpu->wait + 1) & (LATENCY_WAITS - 1);
	if (*(volatile __u8 *)&cpu->held & 1 << next)
		next = (next + 1) & (LATENCY_WAITS - 1);
	*(volatile __u8 *)&cpu->wait = next;
	wait = &cpu->waits[next];
	__builtin_memset(wait, 0, sizeof(*wait));
	wait->ready = ready;
	wait->begin = begin;
	wait->since = begin;
	wait->overhead = overhead;
	if (which == LATENCY_ST) {
		latency_spend(cpu, wait, LATENCY_REST, cpu->psd);
		latency_spend(cpu, wait, LATENCY_PSD, cpu->st);
	} else if (which != LATENCY_REST) {
		latency_spend(cpu, wait, LATENCY_REST, section_began(cpu, which));
	}
	*(volatile __u8 *)&cpu->waiting = WAIT_READY;
	return 0;
}

/*
 * As latency_wait_begins(), by another processor at an instant at which it had a glimpse of this
 * one, and seen here only now. Which sections thread time went to meanwhile is not known.
 */
static __noinline __attribute__((unused)) int latency_wait_begins_late(
	struct latency_cpu *cpu, __u64 ready, __u64 begin, __u64 overhead, __u64 entry)
{
	if (!cpu)
		return 0;
	/* What was being served then has turned out to be an interrupt. */
	if (entry && entry == cpu->entry && cpu->source)
		begin = cpu->entry_time;
	return latency_wait_begins(cpu, ready, begin, overhead);
}

/* The scheduler has chosen the thread that was `ready` then: it waits until EV7. */
static __always_inline __attribute__((unused)) void latency_wait_chosen(
	struct latency_cpu *cpu, __u64 ready)
{
	if (cpu->waiting && latency_wait(cpu)->ready == ready)
		cpu->waiting = WAIT_CHOSEN;
}

/*
 * The place of the latest wait, which stays as it is until it is released: interrupts, and on
 * PREEMPT_RT threads, may begin any number of waits while it is being read.
 */
static __always_inline __attribute__((unused)) __u8 latency_hold_wait(struct latency_cpu *cpu)
{
	__u8 place = *(volatile __u8 *)&cpu->wait & (LATENCY_WAITS - 1);

	*(volatile __u8 *)&cpu->held |= 1 << place;
	return place;
}

static __always_inline __attribute__((unused)) void latency_release_wait(
	struct latency_cpu *cpu, __u8 place)
{
	*(volatile __u8 *)&cpu->held &= ~(1 << place);
}

/* The wait in this place, if it is over and of the thread that was `ready` then; else NULL. */
static __always_inline __attribute__((unused)) struct latency_wait *latency_wait_over(
	struct latency_cpu *cpu, __u8 place, __u64 ready)
{
	struct latency_wait *wait = &cpu->waits[place & (LATENCY_WAITS - 1)];

	return wait->is_over && wait->ready == ready ? wait : NULL;
}

static __always_inline void open_poid(struct latency_cpu *cpu, __u64 time, __u64 address)
{
	if (cpu->poid_open)
		return;
	spend(cpu, time);
	cpu->poid_open = 1;
	cpu->poid = time;
	cpu->poid_address = address;
}

/*
 * The thread has neither preemption nor interrupts off any more. If the scheduler is to be called,
 * that takes until preemption is off to schedule.
 */
static __always_inline int close_poid(
	struct latency_cpu *cpu, struct latency_moment at, __u64 address)
{
	int greatest = 0;

	spend(cpu, at.time);
	if (cpu->poid_open)
		greatest = note(cpu, LATENCY_POID, cpu->poid, at, cpu->poid_address, address);
	cpu->poid_open = 0;
	/* The idle thread has preemption off always. */
	if (!cpu->paie_open && latency_need_resched() && !latency_is_idle()) {
		cpu->paie_open = 1;
		cpu->paie = at.time;
		cpu->due = at.time;
	}
	return greatest;
}

/* The processor comes online, in its idle thread: what was under way when it went is no more. */
static __always_inline void latency_online(struct latency_cpu *cpu)
{
	cpu->phase = PHASE_THREAD;
	cpu->serving = 0;
	cpu->irqs_off = 1;
	cpu->preempt_off = 1;
	cpu->blind = 0;
	cpu->observing = 0;
	cpu->paused_at = 0;
	cpu->poid_open = 0;
	cpu->st_open = 0;
	cpu->paie_open = 0;
	cpu->waiting = WAIT_NONE;
}

/* A thread masks interrupts. */
static __always_inline void latency_irqs_off(struct latency_cpu *cpu, __u64 address)
{
	if (cpu->serving || cpu->observing)
		return;
	cpu->irqs_off = 1;
	cpu->blind = 0;
	if (cpu->phase == PHASE_THREAD) {
		if (!cpu->poid_open && delays()) {
			/* The first idle time that is seen may have begun before. */
			if (latency_is_idle())
				cpu->preempt_off = 1;
			open_poid(cpu, latency_now(cpu).time, address);
		}
	} else if (cpu->phase == PHASE_SCHEDULER && !cpu->st_open) {
		cpu->st = latency_now(cpu).time;
		spend(cpu, cpu->st);
		cpu->st_open = 1;
	}
}

/*
 * The processor enters an interrupt or an exception. Which of the two, latency_source() says, if it
 * is called before the end: without it, this is a section of the thread with interrupts off.
 */
static __always_inline void latency_entry(struct latency_cpu *cpu, __u64 address)
{
	struct latency_moment at;

	if (cpu->paused_at)
		take_overhead(cpu);
	at = latency_now(cpu);
	cpu->blind = 0;
	cpu->entry = at.now;
	cpu->entry_time = at.time;
	cpu->entry_address = address;
	cpu->nmi_at_entry = cpu->nmi;
	cpu->source = 0;
	cpu->inner_preempt_off = 0;
	/* Last, as other processors may look. */
	*(volatile __u8 *)&cpu->serving = 1;
}

/* The interrupt being served is this one; the last that is named counts. */
static __always_inline void latency_source(struct latency_cpu *cpu, __u32 source)
{
	if (!cpu->serving) {
		if (!cpu->blind)
			return;
		cpu->unseen++;
		latency_entry(cpu, 0);
	}
	cpu->source = source;
}

/* The interrupt or exception ends; what has ended is put into `ended`. Returns a bit for each
 * variable with a new greatest, as all below do. */
static __always_inline int latency_exit(
	struct latency_cpu *cpu, __u64 address, struct latency_interrupt *ended)
{
	struct latency_moment at = latency_now(cpu);

	ended->source = cpu->source;
	if (cpu->source) {
		ended->entry = cpu->entry;
		ended->exit = at.now;
		ended->execution = at.now - cpu->entry - (cpu->nmi - cpu->nmi_at_entry);
		cpu->interference += ended->execution;
		at.time = cpu->entry_time;
	}
	/* Only now, as other processors may look. */
	*(volatile __u8 *)&cpu->serving = 0;
	if (cpu->phase != PHASE_THREAD)
		return 0;
	if (!cpu->source && !latency_is_idle())
		open_poid(cpu, cpu->entry_time, cpu->entry_address);
	if (cpu->inner_preempt_off && !cpu->preempt_off) {
		/* On its way out, the interrupt is about to call the scheduler. */
		cpu->preempt_off = 1;
		cpu->preempt_off_at = at.time;
		open_poid(cpu, at.time, address);
	} else if (latency_is_idle() && latency_need_resched()) {
		/* The idle thread has preemption off always; from here on it delays a thread. */
		cpu->preempt_off = 1;
		open_poid(cpu, at.time, address);
	} else if (!cpu->preempt_off && !cpu->irqs_off) {
		return close_poid(cpu, at, address) << LATENCY_POID;
	}
	return 0;
}

/* An NMI has taken `execution`. */
static __always_inline void latency_nmi(struct latency_cpu *cpu, __u64 execution)
{
	cpu->nmi += execution;
	cpu->interference += execution;
}

/* An NMI has come while interrupts were enabled: the kernel does not tell of the next masking. */
static __always_inline void latency_nmi_entry(struct latency_cpu *cpu)
{
	if (!cpu->serving && !cpu->irqs_off)
		cpu->blind = 1;
}

/*
 * A thread has ended a section of its own. What seemed to be the way to the scheduler before it was
 * none: an interrupt came between the thread's disabling of preemption and the event that tells it.
 * So the section has lasted since then. If there is no section any more, an interrupt has ended it
 * meanwhile, and the way to the scheduler is one.
 */
static __always_inline int end_section(
	struct latency_cpu *cpu, struct latency_moment at, __u64 address)
{
	__u8 was_due = cpu->paie_open;
	__u64 due = cpu->due;
	int greatest;

	if (was_due && !cpu->poid_open)
		return 0;
	if (was_due)
		cpu->poid = due;
	cpu->paie_open = 0;
	greatest = close_poid(cpu, at, address) << LATENCY_POID;
	if (was_due)
		cpu->due = due;
	return greatest;
}

/* A thread unmasks interrupts. */
static __always_inline int latency_irqs_on(struct latency_cpu *cpu, __u64 address)
{
	if (cpu->blind) {
		cpu->blind = 0;
		cpu->unseen++;
	}
	if (cpu->observing)
		return 0;
	cpu->irqs_off = 0;
	if (cpu->phase != PHASE_THREAD || cpu->preempt_off)
		return 0;
	return end_section(cpu, latency_now(cpu), address);
}

/* Preemption is disabled; whether to schedule, shows when the scheduler is called, or not. */
static __always_inline void latency_preempt_off(struct latency_cpu *cpu, __u64 address)
{
	__u64 time;

	if (cpu->serving) {
		cpu->inner_preempt_off = 1;
		return;
	}
	if (cpu->observing)
		return;
	/*
	 * With interrupts masked, the scheduler is not called. If it were, all of the section would
	 * belong to D_PSD, which only moves time from one variable to another of the same sum.
	 */
	if (cpu->irqs_off && cpu->poid_open) {
		cpu->preempt_off = 1;
		cpu->preempt_off_at = cpu->poid;
		return;
	}
	/* First, so that the section contains interrupts that come from here on. */
	time = latency_now(cpu).time;
	*(volatile __u8 *)&cpu->preempt_off = 1;
	/* But for one that has come in between, at whose end this seemed to be none. */
	if (*(volatile __u8 *)&cpu->paie_open && cpu->paie > time)
		time = cpu->paie;
	cpu->preempt_off_at = time;
	if (cpu->phase == PHASE_THREAD && !cpu->poid_open && delays())
		open_poid(cpu, time, address);
}

/* The scheduler is called: preemption was disabled for it (EV1). */
static __always_inline int latency_schedule(struct latency_cpu *cpu, __u64 address)
{
	__u32 before = latency_innermost(cpu);
	struct latency_moment at;
	int greatest = 0;

	/* First, so that an interrupt after the clock is read opens nothing that ends here. */
	cpu->st_open = 0;
	*(volatile __u8 *)&cpu->phase = PHASE_SCHEDULER;
	at = latency_now(cpu);
	/* The idle thread has had preemption off all along. */
	cpu->psd = cpu->preempt_off && !latency_is_idle() ? cpu->preempt_off_at : at.time;
	at.time = cpu->psd;
	if (cpu->waiting)
		latency_spend(cpu, latency_wait(cpu), before, at.time);
	if (cpu->poid_open && note(cpu, LATENCY_POID, cpu->poid, at, cpu->poid_address, address))
		greatest |= 1 << LATENCY_POID;
	if (cpu->paie_open && note(cpu, LATENCY_PAIE, cpu->paie, at, 0, address))
		greatest |= 1 << LATENCY_PAIE;
	cpu->poid_open = 0;
	cpu->paie_open = 0;
	return greatest;
}

/* The scheduling context ends (EV7). */
static __always_inline int end_schedule(
	struct latency_cpu *cpu, struct latency_moment at, __u64 address)
{
	struct latency_wait *wait = latency_wait(cpu);
	int greatest = 0;

	spend(cpu, at.time);
	if (note(cpu, LATENCY_PSD, cpu->psd, at, 0, address))
		greatest |= 1 << LATENCY_PSD;
	if (cpu->st_open && note(cpu, LATENCY_ST, cpu->st, at, 0, address))
		greatest |= 1 << LATENCY_ST;
	cpu->st_open = 0;
	cpu->phase = PHASE_THREAD;
	cpu->scheduled = at.now;
	cpu->scheduled_overhead = cpu->overhead;
	if (cpu->waiting == WAIT_CHOSEN) {
		cpu->waiting = WAIT_NONE;
		wait->overhead = cpu->overhead - wait->overhead;
		wait->is_over = 1;
	}
	return greatest;
}

/* The scheduler returns (EV6). */
static __always_inline int latency_scheduled(struct latency_cpu *cpu, __u64 address)
{
	struct latency_moment at;
	int greatest;

	if (cpu->phase != PHASE_SCHEDULER)
		return 0;
	cpu->phase = PHASE_RETURNING;
	if (!latency_is_idle())
		return 0;
	/* The idle thread does not enable preemption. */
	at = latency_now(cpu);
	greatest = end_schedule(cpu, at, address);
	cpu->preempt_off = 1;
	if (latency_need_resched())
		open_poid(cpu, at.time, address);
	return greatest;
}

/* Preemption is enabled. */
static __always_inline int latency_preempt_on(struct latency_cpu *cpu, __u64 address)
{
	struct latency_moment at;
	int greatest = 0;

	if (cpu->serving) {
		cpu->inner_preempt_off = 0;
		return 0;
	}
	if (cpu->observing)
		return 0;
	cpu->preempt_off = 0;
	if (cpu->phase == PHASE_SCHEDULER || (cpu->phase == PHASE_THREAD && cpu->irqs_off))
		return 0;
	at = latency_now(cpu);
	if (cpu->phase == PHASE_RETURNING) {
		greatest = end_schedule(cpu, at, address);
		if (cpu->irqs_off) {
			open_poid(cpu, at.time, address);
			return greatest;
		}
	}
	return greatest | end_section(cpu, at, address);
}

#endif
