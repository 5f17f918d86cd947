/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How far other clocks are ahead of CLOCK_MONOTONIC, and steps of CLOCK_REALTIME: when it was set,
 * and by how much. What was due then on that clock is due at the step, not when the clock, as it is
 * now, would have shown that time.
 */
#ifndef PUNCTUAL_CLOCK_H
#define PUNCTUAL_CLOCK_H

/*
 * The last step, and a call that sets the clock now, from its entry to its exit: threads that the
 * step wakes may run before the exit. The kernel has set the offsets of all processors' timers
 * when the call returns.
 */
static __u64 stepped_at, setting_since;
static __s64 stepped_by, setting_from;

/*
 * How far a clock is ahead of CLOCK_MONOTONIC, as the kernel's timers have it: every thread has
 * one, which is unused but under SCHED_DEADLINE. False for clocks that timers do not run on by
 * themselves.
 */
static __always_inline bool is_ahead(int clock, __s64 *by)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct hrtimer_cpu_base *timers;
	int base;

	*by = 0;
	if (clock == CLOCK_MONOTONIC)
		return true;
	if (clock == CLOCK_REALTIME)
		base = bpf_core_enum_value(enum hrtimer_base_type, HRTIMER_BASE_REALTIME);
	else if (clock == CLOCK_BOOTTIME)
		base = bpf_core_enum_value(enum hrtimer_base_type, HRTIMER_BASE_BOOTTIME);
	else if (clock == CLOCK_TAI)
		base = bpf_core_enum_value(enum hrtimer_base_type, HRTIMER_BASE_TAI);
	else
		return false;
	timers = BPF_CORE_READ(task, dl.dl_timer.base, cpu_base);
	/* Addressed by hand: CO-RE knows the array as having one element. */
	return timers &&
	       !bpf_probe_read_kernel(by, sizeof(*by),
		       (void *)timers + bpf_core_field_offset(struct hrtimer_cpu_base, clock_base) +
			       base * bpf_core_type_size(struct hrtimer_clock_base) +
			       bpf_core_field_offset(struct hrtimer_clock_base, offset));
}

static __always_inline void begin_to_set_clock(void)
{
	__s64 ahead;

	if (active && is_ahead(CLOCK_REALTIME, &ahead)) {
		setting_from = ahead;
		setting_since = bpf_ktime_get_ns();
	}
}

static __noinline int end_of_setting_clock(void)
{
	struct clock_record *record;
	__u64 since = setting_since;
	__s64 ahead, by;

	if (!active || !since || !is_ahead(CLOCK_REALTIME, &ahead))
		return 0;
	by = ahead - setting_from;
	setting_since = 0;
	if (!by)
		return 0;
	stepped_at = since;
	stepped_by = by;
	record = reserve_plain(sizeof(*record));
	if (!record)
		return 0;
	fill_plain_header(&record->header, 0, 0, RECORD_CLOCK_SET, 0);
	record->at = since;
	record->by = by;
	bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
	return 0;
}

/* When something was due, given when the clock as it is now set would have shown its time. A step
 * forward over that time made it due. */
static __always_inline __s64 due_with_steps(int clock, __s64 due)
{
	__s64 at = stepped_at;
	__s64 by = stepped_by;
	__s64 ahead;

	if (clock != CLOCK_REALTIME && clock != CLOCK_TAI)
		return due;
	if (setting_since && is_ahead(CLOCK_REALTIME, &ahead) && ahead != setting_from) {
		at = setting_since;
		by = ahead - setting_from;
	}
	return by > 0 && due < at && due + by > at ? at : due;
}

/* When an absolute sleep is over, on CLOCK_MONOTONIC; 0: not known. */
static __always_inline __u64 end_of_sleep(int clock, __s64 until)
{
	__s64 ahead, due;

	if (!is_ahead(clock, &ahead))
		return 0;
	due = due_with_steps(clock, until - ahead);
	return due > 0 ? due : 0;
}

#endif
