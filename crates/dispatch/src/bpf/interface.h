/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the scheduler and its user space share; src/ext/interface.rs mirrors it. Times are in
 * nanoseconds, on the table's clock where nothing else is said.
 */
#ifndef PUNCTUAL_DISPATCH_INTERFACE_H
#define PUNCTUAL_DISPATCH_INTERFACE_H

/* A task, or a lane, that is none. */
#define NONE (~0U)

/* A row of slots of one processor with one owner, as user space writes it. */
struct turn {
	__u32 from, to; /* slots since the first of all that belong together; `to` not included */
	__u32 task;	/* NONE: idle */
	__u32 job;
	__u32 is_last; /* the job has no slots after it */
};

/* Changes of rows that may be under way at once on a lane. */
#define COMING 16

/* The slots of a processor from slot `from` on: turns once, then turns over and over. Both are
 * places in the map of all turns, each from 0 on.
 */
struct rows {
	__u64 from;   /* slots are counted since the start */
	__u64 after;  /* the slot after those of `once` */
	__u64 origin; /* a slot with which the cycle begins */
	__u32 once, once_count;
	__u32 cycle, cycle_count;
	__u32 cycle_slots; /* its length */
	__u32 reserved;
};

/* A processor of the table. Only the processor itself writes it, once it has begun. */
struct lane {
	/* From user space. */
	__u64 until; /* when the present turn ends, and the next one begins */
	__u64 end;   /* the slot at which it does */
	struct rows rows;
	__u64 base;  /* where `index` is known: the slot from which that turn counts */
	__u64 taken; /* changes of rows so far */
	__u32 index; /* place of the next turn; NONE: not known */
	__u32 cpu;

	/* The present turn. */
	__u64 slot;	/* its first slot, counted since the start */
	__u64 from;	/* when it began */
	__u64 error;	/* from then until the processor was handed over */
	__u64 begun;	/* the owner's processor time at its beginning */
	__u64 outside;	/* what the owner had used since its turn before */
	__u64 previous; /* the slot after the turn that was carried out before it */
	__u64 lost;	/* records for which there was no room */
	__u32 task;	/* the owner; NONE: idle */
	__u32 job;
	__u32 is_last;
	__u32 tid; /* the owner's thread; 0: none */
	__u32 has_turn;
	__u32 is_skipped;
	__u32 is_awaited; /* the owner is about to run: the error ends when it does */
	__u32 reserved;
};

/* A task of the table. */
struct task {
	__u32 tid;    /* its thread; 0: none */
	__u32 skips;  /* an overrun costs the next job */
	__u32 holder; /* the lane whose turn is its; NONE */
	__u32 is_skipping;
	__u32 is_runnable;
	__u32 is_new;	/* what it has used until now does not count */
	__u32 had_turn; /* with this thread */
	__u32 reserved;
	__u64 runnable_at;
	__u64 used;  /* processor time so far, as of when it last stopped or began */
	__u64 ended; /* the same at the end of its last turn */
	__u64 slept; /* the slot after the first of the turn in which it slept last; 0: none */
};

/* When the timer of a lane was last due (CLOCK_MONOTONIC), and how often; and where the kernel has
 * it. */
struct timer {
	__u64 due, count;
	__u64 address;
};

/* A turn that is over. */
struct record {
	__u64 slot, previous;
	__u64 error, ran, outside;
	__u64 at; /* CLOCK_MONOTONIC */
	__u32 lane, slots;
	__u32 task, job;
	__u32 tid, is_overrun;
	__u32 is_skipped, reserved;
};

/* Why the kernel has ended the scheduler. */
struct ending {
	__u64 code;
	__u32 kind; /* 0: it goes on */
	char reason[64];
	char message[132];
};

#endif
