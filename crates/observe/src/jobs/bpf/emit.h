/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Maps, settings, and how records leave: always into the ring buffer, never waking the reader (it
 * comes by itself). */
#ifndef PUNCTUAL_EMIT_H
#define PUNCTUAL_EMIT_H

/* Set once all programs are attached, cleared before the first is detached: some of them without
 * the others would see half of what happens. */
volatile bool active = false;

/* Set before loading. */
const volatile __u32 target = TARGET_ALL_REAL_TIME;
const volatile bool best_effort_too = false;
const volatile __u32 own_tgid = 0; /* in the observer's PID namespace */
const volatile __u32 pid_namespace =
	0; /* inode of the observer's, 0: the initial one, where no translation is needed */
const volatile __u64 cgroup_id = 0;
const volatile __u32 affinity_words = 1;
const volatile bool switch_has_state = true; /* sched_switch passes prev_state (5.18) */
const volatile bool with_switches = false;   /* a record of every step of the scheduler too */
const volatile bool with_bystanders = false; /* and of every step of all other threads */
const volatile __u8 call_of_key[SYSTEM_CALL_KEYS] = {};
const volatile __u8 unhooked[SYSTEM_CALL_KEYS] = {}; /* calls whose exit cannot be seen */

struct interface *types_for_skeleton;

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4 * 1024 * 1024);
} records SEC(".maps");

/*
 * Preallocated, because on kernels before 6.1 memory must not be taken under a run queue's lock.
 * Where the kernel has an allocator for eBPF the loader lifts that: entries in the kernel's own
 * memory cost fewer misses than in mapped pages.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__type(key, __u32);
	__type(value, struct thread);
} threads SEC(".maps");

/* Process groups to watch, by their number in the observer's PID namespace; the value says whether
 * to follow their children. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 32768);
	__type(key, __u32);
	__type(value, __u32);
} processes SEC(".maps");

/* Threads that are not watched, of which switches are recorded; made only for that. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct bystander);
} bystanders SEC(".maps");

/*
 * Read in memory that is shared with user space, not by a system call: while one looks into a map,
 * kernels skip all programs of perf's tracepoints on its processor, and where it is preempted
 * there, for long.
 */
__u64 counters[COUNTERS] = {};

static __always_inline void count(__u32 which)
{
	__sync_fetch_and_add(&counters[which], 1);
}

static __always_inline void fill_plain_header(
	struct header *header, __u32 tid, __u32 sequence, __u8 kind, __u8 flags)
{
	header->kind = kind;
	header->flags = flags;
	header->call = CALL_NONE;
	header->object_class = OBJECT_NONE;
	header->tid = tid;
	header->sequence = sequence;
	header->number = 0;
}

static __always_inline void fill_header(
	struct header *header, struct thread *thread, __u8 kind, __u8 flags)
{
	fill_plain_header(header, thread->tid, thread->sequence, kind, flags);
}

/* Room for a record of this thread. Its sequence number is taken even if there is none, so that the
 * gap shows. */
static __always_inline void *reserve(struct thread *thread, __u64 size)
{
	void *record = bpf_ringbuf_reserve(&records, size, 0);

	if (!record) {
		thread->sequence++;
		count(COUNTER_DROPPED);
	}
	return record;
}

static __always_inline void submit(struct thread *thread, void *record)
{
	thread->sequence++;
	bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
}

/* Room for a record that has no place in a thread's sequence. */
static __always_inline void *reserve_plain(__u64 size)
{
	void *record = bpf_ringbuf_reserve(&records, size, 0);

	if (!record)
		count(COUNTER_DROPPED);
	return record;
}

/* The step of a thread that stops in this state. */
static __always_inline __u8 step_of_sleep(unsigned int state)
{
	if (state & TASK_INTERRUPTIBLE)
		return STEP_ASLEEP;
	return state & STOPPED_STATES ? STEP_STOPPED : STEP_ASLEEP_UNINTERRUPTIBLE;
}

/* The step of a thread that leaves its processor and remains ready. The quota of a cgroup (cpu.max)
 * holds for ordinary threads only; until 6.18, all of a queue are throttled at once. */
static __always_inline __u8 step_of_ready(struct task_struct *task)
{
	bool is_throttled = false;

	if (!with_switches || task->prio < MAX_RT_PRIO)
		return STEP_PREEMPTED;
	if (bpf_core_field_exists(task->throttled))
		is_throttled = task->throttled;
	else if (bpf_core_field_exists(task->se.cfs_rq) &&
		 bpf_core_field_exists(struct cfs_rq, throttle_count))
		is_throttled = task->se.cfs_rq->throttle_count > 0;
	return is_throttled ? STEP_THROTTLED : STEP_PREEMPTED;
}

/* Keys of what was ready when a call returned. */
struct ready {
	__u32 keys[MOST_READY];
	__u32 count; /* 0: not known */
};

/* Sends the call that the thread is or was in, and what was ready at its end. */
static __always_inline void emit_call(struct thread *thread, __u8 flags, const struct ready *ready)
{
	struct activation *record = reserve(thread, sizeof(*record));

	if (!record)
		return;
	fill_header(&record->header, thread, RECORD_ACTIVATION, flags | thread->disturbance << 2);
	record->header.call = thread->call;
	record->header.object_class = thread->object_class;
	record->header.number = thread->number;
	record->object = thread->object;
	record->arrival = thread->arrival;
	if (flags & ACTIVATION_SLEPT) {
		record->stop = thread->first_stop;
		record->cpu = thread->cpu_at_stop;
		record->earliest = thread->earliest;
		record->latest = thread->latest;
		record->start = thread->start;
	} else {
		record->stop = thread->entry;
		record->cpu = thread->cpu_at_entry;
		record->earliest = 0;
		record->latest = 0;
		record->start = thread->entry;
		thread->read_by_clock = 1;
	}
	record->suspended_after = thread->suspended_after;
	record->expirations = thread->expirations;
	if (ready) {
		record->header.flags |= ready->count << 4;
		__builtin_memcpy(record->ready, ready->keys, sizeof(record->ready));
	} else {
		__builtin_memset(record->ready, 0, sizeof(record->ready));
	}
	thread->waited = 1;
	submit(thread, record);
}

/* Sends a sleep outside of all separators. */
static __always_inline void emit_suspension(
	struct thread *thread, __u8 disturbance, __u64 earliest, __u64 latest, __u64 start)
{
	struct activation *record = reserve(thread, sizeof(*record));

	if (!record)
		return;
	fill_header(&record->header, thread, RECORD_ACTIVATION,
		ACTIVATION_SLEPT | ACTIVATION_RESUMED | disturbance << 2);
	record->header.call = CALL_SUSPENSION;
	record->object = 0;
	record->stop = thread->stop;
	record->cpu = thread->cpu_at_stop;
	record->arrival = 0;
	record->earliest = earliest;
	record->latest = latest;
	record->start = start;
	record->suspended_after = 0;
	record->expirations = 0;
	__builtin_memset(record->ready, 0, sizeof(record->ready));
	thread->waited = 1;
	submit(thread, record);
}

#endif
