/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Steps of the scheduler, either sent like all records or kept: each processor then has a ring of
 * its last moments, which user space reads only if it wants to know why a job was late. A ring
 * overwrites its oldest slots and wakes nobody.
 */
#ifndef PUNCTUAL_MOMENTS_H
#define PUNCTUAL_MOMENTS_H

const volatile bool keeps_moments = false;
const volatile __u32 last_slot = 0; /* of a ring: a power of two, less one */

/* One `struct moments` for each processor. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct moments));
} moments SEC(".maps");

/* A record of a step that is being filled, and the number of its first slot. */
struct moment {
	void *record;
	__u32 place;
};

/* Room for a record of this size, of which only the first `slots` are needed where it is kept. */
static __always_inline struct moment reserve_moment(__u64 size, __u32 slots)
{
	struct moment moment = {};
	struct moments *ring;
	__u32 cpu;

	if (!keeps_moments) {
		moment.record = reserve_plain(size);
		return moment;
	}
	cpu = bpf_get_smp_processor_id();
	ring = bpf_map_lookup_elem(&moments, &cpu);
	if (!ring) {
		count(COUNTER_DROPPED);
		return moment;
	}
	/* An interrupt may come between any two instructions, and record something, too. */
	moment.place = __sync_fetch_and_add(&ring->taken, slots);
	moment.record = (void *)ring->slots + (moment.place & last_slot) * SLOT_SIZE;
	return moment;
}

/* Completes the record: the number of its slot distinguishes it from an earlier one there. */
static __always_inline void submit_moment(struct moment moment, __u32 slots)
{
	struct header *header = moment.record;

	if (!keeps_moments) {
		bpf_ringbuf_submit(moment.record, BPF_RB_NO_WAKEUP);
		return;
	}
	header->object_class = slots;
	barrier();
	header->sequence = moment.place;
}

/* A step of a thread that may be on another processor, and is not half of a switch. */
static __always_inline void emit_step_on(
	__u32 cpu, __u32 tid, __u32 sequence, __u8 step, __u32 by, __u64 now)
{
	struct moment moment = reserve_moment(sizeof(struct switch_record), 1);
	struct switch_record *record = moment.record;

	if (!record)
		return;
	fill_plain_header(&record->header, tid, sequence, RECORD_SWITCH, step);
	record->at = now;
	record->cpu = cpu;
	record->by = by;
	submit_moment(moment, 1);
}

/* A step on this processor. Where they are kept, the two of a switch are kept as one. */
static __always_inline void emit_step(__u32 tid, __u32 sequence, __u8 step, __u32 by, __u64 now)
{
	struct switch_record *record;

	if (keeps_moments) {
		if (step == STEP_WOKEN)
			emit_step_on(bpf_get_smp_processor_id(), tid, sequence, step, by, now);
		return;
	}
	record = reserve_plain(sizeof(*record));
	if (!record)
		return;
	fill_plain_header(&record->header, tid, sequence, RECORD_SWITCH, step);
	record->at = now;
	record->cpu = bpf_get_smp_processor_id();
	record->by = by;
	bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
}

/* A step of the scheduler. It takes no sequence number: no model depends on it. */
static __always_inline void emit_switch(struct thread *thread, __u8 step, __u32 by, __u64 now)
{
	if (with_switches)
		emit_step(thread->tid, thread->sequence, step, by, now);
}

/* Keeps a switch: who left, how, and who came. A TID of 0 is nobody of interest. */
static __always_inline void keep_switch(__u32 left, __u8 step, __u32 came, __u64 now)
{
	struct moment moment;
	struct switch_record *record;

	moment = reserve_moment(sizeof(*record), 1);
	record = moment.record;
	if (!record)
		return;
	fill_plain_header(&record->header, left, 0, RECORD_BOTH, step);
	record->at = now;
	record->cpu = bpf_get_smp_processor_id();
	record->by = came;
	submit_moment(moment, 1);
}

#endif
