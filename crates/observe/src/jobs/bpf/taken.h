/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What takes the processor from threads: interrupts, softirqs, and a hypervisor. Only where
 * switches are recorded; no model depends on it.
 */
#ifndef PUNCTUAL_TAKEN_H
#define PUNCTUAL_TAKEN_H

/* What each processor serves since when; 0: nothing. Interrupts of one kind do not nest. */
struct taking {
	__u64 since[TAKERS];
	__u32 softirq_of; /* the thread in which a softirq began */
	__u64 stolen;	  /* by a hypervisor, as of the last look */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct taking);
} taking SEC(".maps");

static __always_inline struct taking *taking_here(void)
{
	__u32 only = 0;

	return active ? bpf_map_lookup_elem(&taking, &only) : NULL;
}

static __always_inline void emit_taken(
	__u8 taker, int number, const char *name, __u64 time, __u64 now)
{
	__u32 slots = name ? SLOTS_WITH_NAME : 1;
	struct moment moment = reserve_moment(sizeof(struct taken_record), slots);
	struct taken_record *record = moment.record;

	if (!record)
		return;
	fill_plain_header(&record->header, 0, 0, RECORD_TAKEN, taker);
	record->header.number = number;
	record->at = now;
	record->time = time;
	if (slots == 1 && keeps_moments)
		goto filled;
	record->cpu = bpf_get_smp_processor_id();
	record->name[0] = 0;
	if (name)
		bpf_probe_read_kernel_str(record->name, sizeof(record->name), name);
filled:
	submit_moment(moment, slots);
}

static __always_inline int taker_begins(__u8 taker)
{
	struct taking *taking = taking_here();

	if (!taking)
		return 0;
	if (taker == TAKER_SOFTIRQ)
		taking->softirq_of = bpf_get_current_task_btf()->pid;
	taking->since[taker] = bpf_ktime_get_ns();
	return 0;
}

static __always_inline int taker_ends(__u8 taker, int number, const char *name)
{
	struct taking *taking = taking_here();
	__u64 since, now;

	if (!taking || !taking->since[taker])
		return 0;
	since = taking->since[taker];
	taking->since[taker] = 0;
	/* Where softirqs can be preempted, another thread may have begun its own. */
	if (taker == TAKER_SOFTIRQ && taking->softirq_of != (__u32)bpf_get_current_task_btf()->pid)
		return 0;
	now = bpf_ktime_get_ns();
	emit_taken(taker, number, name, now - since, now);
	return 0;
}

/* What a hypervisor has taken since the last switch. `prev` leaves the processor. */
static __always_inline void note_theft(struct task_struct *prev)
{
	struct taking *taking = taking_here();
	__u64 stolen, before;

	if (!taking)
		return;
	stolen = stolen_so_far(prev);
	before = taking->stolen;
	taking->stolen = stolen;
	if (before && stolen > before)
		emit_taken(TAKER_HYPERVISOR, 0, NULL, stolen - before, bpf_ktime_get_ns());
}

/* Ends before beginnings: they are attached in this order, and a beginning alone does no harm. */
SEC("tp_btf/irq_handler_exit")
int BPF_PROG(taken_by_device, int irq, struct irqaction *action)
{
	return taker_ends(TAKER_DEVICE, irq, action->name);
}

SEC("tp_btf/irq_handler_entry")
int BPF_PROG(device_takes, int irq)
{
	return taker_begins(TAKER_DEVICE);
}

SEC("tp_btf/softirq_exit")
int BPF_PROG(taken_by_softirq, unsigned int number)
{
	return taker_ends(TAKER_SOFTIRQ, number, NULL);
}

SEC("tp_btf/softirq_entry")
int BPF_PROG(softirq_takes, unsigned int number)
{
	return taker_begins(TAKER_SOFTIRQ);
}

#define TAKES(NAME, TAKER) \
	SEC("tp_btf/" #NAME "_exit") int BPF_PROG(taken_by_##NAME, int vector) \
	{ \
		return taker_ends(TAKER, vector, NULL); \
	} \
	SEC("tp_btf/" #NAME "_entry") int BPF_PROG(NAME##_takes, int vector) \
	{ \
		return taker_begins(TAKER); \
	}
TAKES(local_timer, TAKER_TIMER)
TAKES(reschedule, TAKER_PROCESSOR)
TAKES(call_function, TAKER_PROCESSOR)
TAKES(call_function_single, TAKER_PROCESSOR)
TAKES(irq_work, TAKER_PROCESSOR)

#endif
