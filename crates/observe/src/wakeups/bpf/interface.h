/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the wake-up programs and user space share. */
#ifndef PUNCTUAL_WAKEUPS_INTERFACE_H
#define PUNCTUAL_WAKEUPS_INTERFACE_H

#define COMM_SIZE  16
#define RECENT	   32 /* a power of two */
#define RAN_MOST   16
#define WORST	   5
#define WORST_ROOM 8   /* a power of two */
#define PRIORITIES 101 /* SCHED_DEADLINE, then the kernel's priorities 0 to 99 */

/* What a processor may be busy with. */
enum ran_kind { RAN_THREAD, RAN_INTERRUPT, RAN_VECTOR, RAN_SOFTIRQ, RAN_NMI };

/* What ran for a while. */
struct ran {
	__u64 from;
	__u64 until;
	__u64 duration; /* less what interrupted it */
	__u32 kind;
	__u32 number; /* of the thread, interrupt, vector or softirq */
	char comm[COMM_SIZE];
};

/* Which record it is. */
enum record_kind { RECORD_INTERRUPT, RECORD_MISSED, RECORD_WAKEUP };

/* An interrupt that has ended, or one of which only the beginning or the end was seen. */
struct interrupt_record {
	__u32 kind;
	__u32 cpu;
	__u32 what; /* enum ran_kind */
	__u32 number;
	__u64 entry;
	__u64 exit;
	__u64 execution;
};

/* Whose latencies are counted together. */
struct thread_key {
	__u32 tid;
	__u32 cpu;
	__u32 policy;
	__u32 priority;
};

/* One of the latest wake-ups of a thread, and what has ended last before it. */
struct wakeup_record {
	__u32 kind;
	__u32 has_split;
	struct thread_key key;
	__u64 ready;
	__u64 latency;
	__u64 interrupts;
	__u64 threads;
	struct ran ran[RAN_MOST];
};

/* The latencies of a thread on a processor. */
struct thread_latencies {
	__u32 pid;
	char comm[COMM_SIZE];
	__u32 has_undelayed;
	__u64 wakeups;
	__u64 unmeasured;
	__u64 total;
	__u64 greatest;
	__u64 undelayed;	 /* the greatest of those that no preferred thread delayed */
	__u64 worst[WORST_ROOM]; /* the first WORST are used */
};

/* How late timers expired. */
struct timer_latencies {
	__u64 expired;
	__u64 total;
	__u64 greatest;
	__u64 at;
	__u64 function;
	__u32 pid;
	__u32 tid;
	char comm[COMM_SIZE];
};

/* What is known of a processor. Only programs on that processor write it. */
struct processor {
	__u32 sequence; /* odd while it is being changed */
	__u32 hard_what;
	__u32 hard_number;
	__u32 soft_number;
	/* The interrupt being served, 0 if none, and all that were. */
	__u64 hard_entry;
	__u64 hard_total;
	__u64 nmi_at_entry;
	/* The softirq being served, 0 if none; without what interrupted it. */
	__u64 soft_entry;
	__u64 soft_total;
	__u64 hard_at_soft;
	__u64 nmi_at_soft;
	/* NMIs outside of interrupts, and all. */
	__u64 nmi_outside;
	__u64 nmi_total;
	/* The thread that runs, its effective priority, and what it had of the processor before. */
	__u32 tid;
	__s32 prio;
	__u64 since;
	__u64 interrupts_since;
	__u64 run[PRIORITIES];
	/* How often something was seen that shows that another event was not. */
	__u64 missed;
	/* The same, and how often a running thread has changed its priority. */
	__u64 doubts;
	__u64 lost_records;
	struct timer_latencies timers;
	__u32 recent_end;
	/* An interrupt or softirq has begun since the measurement did. */
	__u8 hard_seen;
	__u8 soft_seen;
	__u16 padding;
	struct ran recent[RECENT];
};

/* Names every type that user space needs: the skeleton has only those that BTF describes. */
struct interface {
	enum ran_kind ran_kind;
	enum record_kind record_kind;
	struct interrupt_record interrupt_record;
	struct wakeup_record wakeup_record;
	struct thread_key thread_key;
	struct thread_latencies thread_latencies;
};

#endif
