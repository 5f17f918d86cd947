// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * How late real-time threads run after they were woken, and what ran instead: interrupts, threads
 * that the scheduler preferred, or anything else (the kernel with preemption or interrupts off).
 *
 * No figure is made of an event that was not seen. A wake-up counts only if the thread was off the
 * processor before; its parts are given only if no event between shows that another is missing.
 */
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
#include "cpu_of.h"
#include "interface.h"
#include "vectors.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Whether sched_switch has the state in which the thread leaves, as its last argument. */
const volatile bool switch_has_state = true;
/* Whether hrtimer_expire_entry passes a pointer to the time, or the time. */
const volatile bool timer_points_to_time = true;
/* Whether interrupts are sent one by one; their sums are kept in any case. */
const volatile bool interrupts_are_sent = true;
volatile bool is_active = false;

struct interface *types_for_skeleton;

enum phase {
	PHASE_UNKNOWN,
	PHASE_BLOCKED,	 /* it waits for something */
	PHASE_PREEMPTED, /* it is ready and has run before */
	PHASE_WAKING,	 /* it is being woken */
	PHASE_RUNNING,
};

/* A real-time thread. */
struct thread {
	__u32 phase;
	__u32 cpu;	    /* of which the parts below are */
	__u32 is_leaving;   /* it was woken while it was still being switched out */
	__u32 has_snapshot; /* the parts below are known */
	__u64 ready;
	__u64 interrupts;
	__u64 threads;
	__u64 doubts;
	/* The kernel's own account when it last left a processor: sleeps that had ended, and how
	 * often and how long it had waited for a processor. */
	__u32 has_account;
	__u64 sleeps;
	__u64 waits;
	__u64 waited;
	/* Wake-ups measured since, and the sum of their latencies. */
	__u64 measured;
	__u64 latencies;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct processor);
} processors SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__type(key, __u32);
	__type(value, struct thread);
} threads SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, struct thread_key);
	__type(value, struct thread_latencies);
} latencies SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4 << 20);
} records SEC(".maps");

/* Every longer latency of a processor is sent, unless a preferred thread delayed it. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} limits SEC(".maps");

/* Threads that found no room in the maps. */
__u64 untracked = 0;

static __always_inline struct processor *processor(__u32 number)
{
	return is_active ? bpf_map_lookup_elem(&processors, &number) : NULL;
}

static __always_inline struct processor *here(void)
{
	return processor(bpf_get_smp_processor_id());
}

static __always_inline void begin(struct processor *cpu)
{
	cpu->sequence++;
	barrier();
}

static __always_inline void end(struct processor *cpu)
{
	barrier();
	cpu->sequence++;
}

static __always_inline __u64 less(__u64 one, __u64 other)
{
	return one > other ? one - other : 0;
}

/* The time that interrupts, softirqs and NMIs have taken of a processor until `now`. */
static __always_inline __u64 interrupts_until(const struct processor *cpu, __u64 now)
{
	__u64 hard = cpu->hard_total + (cpu->hard_entry ? less(now, cpu->hard_entry) : 0);
	__u64 soft = cpu->soft_total;

	if (cpu->soft_entry)
		soft += less(less(now, cpu->soft_entry),
			hard - cpu->hard_at_soft + cpu->nmi_outside - cpu->nmi_at_soft);
	return hard + soft + cpu->nmi_outside;
}

/* The time that the running thread has had since it came, without interrupts. */
static __always_inline __u64 ran_until(const struct processor *cpu, __u64 now)
{
	return less(less(now, cpu->since), interrupts_until(cpu, now) - cpu->interrupts_since);
}

/* Index in `run` of an effective priority; PRIORITIES if it is not a real-time one. */
static __always_inline __u32 rank(__s32 prio)
{
	return prio >= -1 && prio < PRIORITIES - 1 ? prio + 1 : PRIORITIES;
}

/* The time that threads of at least this priority have had until `now`. Verified by itself, as all
 * functions that are not static. */
__noinline __u64 preferred_until(const struct processor *cpu, __s32 prio, __u64 now)
{
	__u64 sum = 0;
	__u32 last = rank(prio);

	if (!cpu)
		return 0;
	for (__u32 index = 0; index < PRIORITIES; index++) {
		if (index > last)
			break;
		sum += cpu->run[index];
	}
	return cpu->tid && rank(cpu->prio) <= last ? sum + ran_until(cpu, now) : sum;
}

static __always_inline void remember(struct processor *cpu, enum ran_kind kind, __u32 number,
	__u64 from, __u64 until, __u64 duration)
{
	struct ran *ran = &cpu->recent[cpu->recent_end & (RECENT - 1)];

	cpu->recent_end++;
	ran->from = from;
	ran->until = until;
	ran->duration = duration;
	ran->kind = kind;
	ran->number = number;
	ran->comm[0] = 0;
}

static __always_inline void send_interrupt(struct processor *cpu, __u32 kind, __u32 what,
	__u32 number, __u64 entry, __u64 exit, __u64 execution)
{
	struct interrupt_record *record;

	if (!interrupts_are_sent)
		return;
	record = bpf_ringbuf_reserve(&records, sizeof(*record), 0);
	if (!record) {
		__sync_fetch_and_add(&cpu->lost_records, 1);
		return;
	}
	record->kind = kind;
	record->cpu = bpf_get_smp_processor_id();
	record->what = what;
	record->number = number;
	record->entry = entry;
	record->exit = exit;
	record->execution = execution;
	bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
}

static __always_inline void missed(struct processor *cpu, __u32 what, __u32 number)
{
	cpu->missed++;
	cpu->doubts++;
	send_interrupt(cpu, RECORD_MISSED, what, number, 0, 0, 0);
}

static __always_inline int hard_entry(enum ran_kind what, __u32 number)
{
	struct processor *cpu = here();

	if (!cpu)
		return 0;
	begin(cpu);
	if (cpu->hard_entry)
		missed(cpu, cpu->hard_what, cpu->hard_number);
	cpu->hard_seen = 1;
	cpu->hard_what = what;
	cpu->hard_number = number;
	cpu->nmi_at_entry = cpu->nmi_total;
	cpu->hard_entry = bpf_ktime_get_ns();
	end(cpu);
	return 0;
}

static __always_inline int hard_exit(enum ran_kind what, __u32 number)
{
	struct processor *cpu = here();
	__u64 entry, now, execution;

	if (!cpu)
		return 0;
	now = bpf_ktime_get_ns();
	begin(cpu);
	entry = cpu->hard_entry;
	cpu->hard_entry = 0;
	if (!entry || cpu->hard_what != what || cpu->hard_number != number) {
		if (cpu->hard_seen)
			missed(cpu, what, number);
	} else {
		execution = less(now - entry, cpu->nmi_total - cpu->nmi_at_entry);
		cpu->hard_total += now - entry;
		remember(cpu, what, number, entry, now, execution);
		send_interrupt(cpu, RECORD_INTERRUPT, what, number, entry, now, execution);
	}
	end(cpu);
	return 0;
}

SEC("tp_btf/irq_handler_entry")
int BPF_PROG(handler_entry, int irq)
{
	return hard_entry(RAN_INTERRUPT, irq);
}

SEC("tp_btf/irq_handler_exit")
int BPF_PROG(handler_exit, int irq)
{
	return hard_exit(RAN_INTERRUPT, irq);
}

/* Vectors of x86: <asm/irq_vectors.h>, and the tracepoints' names. */
#define VECTOR(NAME, NUMBER) \
	SEC("tp_btf/" #NAME "_entry") \
	int BPF_PROG(NAME##_entered, int vector) \
	{ \
		return hard_entry(RAN_VECTOR, NUMBER); \
	} \
	SEC("tp_btf/" #NAME "_exit") \
	int BPF_PROG(NAME##_left, int vector) \
	{ \
		return hard_exit(RAN_VECTOR, NUMBER); \
	}
FOR_EACH_VECTOR(VECTOR)

SEC("tp_btf/softirq_entry")
int BPF_PROG(softirq_entered, unsigned int number)
{
	struct processor *cpu = here();
	__u64 hard;

	if (!cpu)
		return 0;
	begin(cpu);
	if (cpu->soft_entry)
		missed(cpu, RAN_SOFTIRQ, cpu->soft_number);
	cpu->soft_seen = 1;
	cpu->soft_number = number;
	/* An interrupt between may have changed the sums: then its time is before the entry. */
	for (int tries = 0; tries < 3; tries++) {
		hard = *(volatile __u64 *)&cpu->hard_total;
		cpu->hard_at_soft = hard;
		cpu->nmi_at_soft = cpu->nmi_outside;
		cpu->soft_entry = bpf_ktime_get_ns();
		if (hard == *(volatile __u64 *)&cpu->hard_total)
			break;
	}
	end(cpu);
	return 0;
}

SEC("tp_btf/softirq_exit")
int BPF_PROG(softirq_left, unsigned int number)
{
	struct processor *cpu = here();
	__u64 entry, now, inside, execution;

	if (!cpu)
		return 0;
	begin(cpu);
	entry = cpu->soft_entry;
	inside = cpu->hard_total - cpu->hard_at_soft + cpu->nmi_outside - cpu->nmi_at_soft;
	now = bpf_ktime_get_ns();
	cpu->soft_entry = 0;
	if (!entry || cpu->soft_number != number) {
		if (cpu->soft_seen)
			missed(cpu, RAN_SOFTIRQ, number);
	} else {
		execution = less(now - entry, inside);
		cpu->soft_total += execution;
		remember(cpu, RAN_SOFTIRQ, number, entry, now, execution);
		send_interrupt(cpu, RECORD_INTERRUPT, RAN_SOFTIRQ, number, entry, now, execution);
	}
	end(cpu);
	return 0;
}

SEC("tp_btf/nmi_handler")
int BPF_PROG(nmi, void *address, __s64 took, int handled)
{
	struct processor *cpu = here();
	__u64 now;

	if (!cpu || took < 0)
		return 0;
	now = bpf_ktime_get_ns();
	/* It may have interrupted whoever reads or writes this. */
	cpu->sequence += 2;
	cpu->nmi_total += took;
	if (!cpu->hard_entry)
		cpu->nmi_outside += took;
	remember(cpu, RAN_NMI, 0, now - took, now, took);
	send_interrupt(cpu, RECORD_INTERRUPT, RAN_NMI, 0, now - took, now, took);
	return 0;
}

SEC("tp_btf/hrtimer_expire_entry")
int BPF_PROG(timer_expired, struct hrtimer *timer)
{
	struct processor *cpu = here();
	struct timer_latencies *timers;
	struct task_struct *task;
	__s64 late = 0;

	if (!cpu || timer->is_soft)
		return 0;
	/* The second argument, not read directly: 5.15 refuses pointers to integers. */
	if (bpf_probe_read_kernel(&late, sizeof(late), &ctx[1]))
		return 0;
	if (timer_points_to_time && bpf_probe_read_kernel(&late, sizeof(late), (void *)late))
		return 0;
	timers = &cpu->timers;
	late -= timer->node.expires;
	/* Timers with slack may come before their latest time. */
	if (late < 0)
		late = 0;
	timers->expired++;
	timers->total += late;
	if ((__u64)late <= timers->greatest)
		return 0;
	task = bpf_get_current_task_btf();
	begin(cpu);
	timers->greatest = late;
	timers->at = bpf_ktime_get_ns();
	timers->function = (__u64)timer->function;
	timers->pid = task->tgid;
	timers->tid = task->pid;
	bpf_get_current_comm(timers->comm, sizeof(timers->comm));
	end(cpu);
	return 0;
}

static __always_inline bool is_real_time(const struct task_struct *task)
{
	return rank(task->prio) < PRIORITIES;
}

/* Notes what a processor was busy with until `now`, if nobody is changing that. */
static __always_inline void take_snapshot(
	struct thread *thread, __u32 number, struct task_struct *task, __u64 now, bool is_remote)
{
	struct processor *cpu = processor(number);
	__u32 before;

	thread->has_snapshot = 0;
	if (!cpu)
		return;
	before = *(volatile __u32 *)&cpu->sequence;
	barrier();
	thread->cpu = number;
	thread->interrupts = interrupts_until(cpu, now);
	thread->threads = preferred_until(cpu, task->prio, now);
	thread->doubts = cpu->doubts;
	barrier();
	thread->has_snapshot =
		!is_remote || (!(before & 1) && before == *(volatile __u32 *)&cpu->sequence);
}

static __always_inline struct thread *thread_of(__u32 tid)
{
	struct thread *thread = bpf_map_lookup_elem(&threads, &tid), new = {0};

	if (thread)
		return thread;
	if (bpf_map_update_elem(&threads, &tid, &new, BPF_NOEXIST)) {
		__sync_fetch_and_add(&untracked, 1);
		return NULL;
	}
	return bpf_map_lookup_elem(&threads, &tid);
}

static __always_inline struct thread_latencies *latencies_of(
	struct task_struct *task, struct thread_key *key)
{
	struct thread_latencies *of, new = {0};

	key->tid = task->pid;
	key->cpu = bpf_get_smp_processor_id();
	key->policy = task->policy;
	key->priority = task->rt_priority;
	of = bpf_map_lookup_elem(&latencies, key);
	if (of)
		return of;
	new.pid = task->tgid;
	bpf_probe_read_kernel_str(new.comm, sizeof(new.comm), task->comm);
	if (bpf_map_update_elem(&latencies, key, &new, BPF_NOEXIST)) {
		__sync_fetch_and_add(&untracked, 1);
		return NULL;
	}
	return bpf_map_lookup_elem(&latencies, key);
}

SEC("tp_btf/sched_waking")
int BPF_PROG(waking, struct task_struct *task)
{
	struct thread *thread;
	__u64 now;

	/* Who is on a run queue has not slept. */
	if (!is_active || !is_real_time(task) || task->on_rq)
		return 0;
	thread = thread_of(task->pid);
	if (!thread)
		return 0;
	now = bpf_ktime_get_ns();
	take_snapshot(thread, bpf_get_smp_processor_id(), task, now, false);
	thread->ready = now;
	thread->is_leaving = task->on_cpu;
	thread->phase = PHASE_WAKING;
	return 0;
}

SEC("tp_btf/sched_wakeup")
int BPF_PROG(woken, struct task_struct *task)
{
	__u32 number = cpu_of(task), tid = task->pid;
	struct thread *thread;

	if (!is_active || !is_real_time(task))
		return 0;
	thread = bpf_map_lookup_elem(&threads, &tid);
	if (!thread || thread->phase != PHASE_WAKING || thread->cpu == number)
		return 0;
	take_snapshot(
		thread, number, task, bpf_ktime_get_ns(), number != bpf_get_smp_processor_id());
	return 0;
}

/* What ran last, in the order in which it ended. */
__noinline int copy_recent(struct processor *cpu, struct wakeup_record *record)
{
	if (!cpu || !record)
		return 0;
	for (__u32 index = 0; index < RAN_MOST; index++) {
		__u32 from = (cpu->recent_end + RECENT - RAN_MOST + index) & (RECENT - 1);

		record->ran[index] = cpu->recent[from];
	}
	return 0;
}

/* Whether it is among the greatest of its thread. */
__noinline int is_among_worst(struct thread_latencies *of, __u64 latency)
{
	__u32 least = 0;

	if (!of)
		return 0;
	for (__u32 index = 1; index < WORST; index++)
		if (of->worst[index] < of->worst[least & (WORST_ROOM - 1)])
			least = index;
	if (latency <= of->worst[least & (WORST_ROOM - 1)])
		return 0;
	of->worst[least & (WORST_ROOM - 1)] = latency;
	return 1;
}

/* Whether it is more than was asked for of this processor. */
static __always_inline bool is_beyond_limit(__u32 number, __u64 latency)
{
	__u64 *limit = bpf_map_lookup_elem(&limits, &number);

	return limit && latency > *limit;
}

static __always_inline void measure(
	struct processor *cpu, struct thread *thread, struct task_struct *task, __u64 now)
{
	__u64 latency = now - thread->ready, interrupts = 0, preferred = 0;
	struct wakeup_record *record;
	struct thread_latencies *of;
	struct thread_key key;
	bool has_split, is_sent;

	if (now < thread->ready)
		return;
	thread->measured++;
	thread->latencies += latency;
	of = latencies_of(task, &key);
	if (!of)
		return;
	has_split = thread->has_snapshot && thread->cpu == key.cpu && thread->doubts == cpu->doubts;
	if (has_split) {
		interrupts = less(interrupts_until(cpu, now), thread->interrupts);
		preferred = less(preferred_until(cpu, task->prio, now), thread->threads);
		has_split = interrupts + preferred <= latency;
	}
	of->wakeups++;
	of->total += latency;
	if (latency > of->greatest)
		of->greatest = latency;
	if (has_split && !preferred) {
		of->has_undelayed = 1;
		if (latency > of->undelayed)
			of->undelayed = latency;
	}
	is_sent = is_among_worst(of, latency);
	if (!is_sent && (!has_split || !preferred))
		is_sent = is_beyond_limit(key.cpu, latency);
	if (!is_sent)
		return;
	record = bpf_ringbuf_reserve(&records, sizeof(*record), 0);
	if (!record) {
		__sync_fetch_and_add(&cpu->lost_records, 1);
		return;
	}
	record->kind = RECORD_WAKEUP;
	record->has_split = has_split;
	record->key = key;
	record->ready = thread->ready;
	record->latency = latency;
	record->interrupts = interrupts;
	record->threads = preferred;
	copy_recent(cpu, record);
	bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
}

/* A wake-up of which only the kernel's account tells: how long the thread was on the run queue. */
static __always_inline void send_account(struct processor *cpu, struct thread_latencies *of,
	const struct thread_key *key, __u64 ready, __u64 latency)
{
	struct wakeup_record *record;

	/* A file has no more of the worst wake-ups than measured ones. */
	if (of->wakeups < WORST || !is_among_worst(of, latency))
		return;
	record = bpf_ringbuf_reserve(&records, sizeof(*record), 0);
	if (!record) {
		__sync_fetch_and_add(&cpu->lost_records, 1);
		return;
	}
	record->kind = RECORD_WAKEUP;
	record->has_split = 0;
	record->key = *key;
	record->ready = ready;
	record->latency = latency;
	record->interrupts = 0;
	record->threads = 0;
	for (__u32 index = 0; index < RAN_MOST; index++)
		record->ran[index].from = 0;
	bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
}

/*
 * Wake-ups that reached no program, and how long the thread waited for a processor after them. That
 * is less than the latency: it begins only on the run queue.
 */
static __always_inline void count_unseen(struct processor *cpu, struct thread *thread,
	struct task_struct *task, __u64 unseen, __u64 now)
{
	struct thread_latencies *of;
	struct thread_key key;
	__u64 waits, waited;

	of = latencies_of(task, &key);
	if (!of)
		return;
	of->unmeasured += unseen;
	if (!bpf_core_field_exists(task->sched_info.last_arrival) ||
		!bpf_core_field_exists(task->se.cfs_rq))
		return;
	waits = task->sched_info.pcount - thread->waits;
	waited = less(task->sched_info.run_delay - thread->waited, thread->latencies);
	/* Otherwise it was preempted, and some of the time was after that. */
	if (waits != unseen + thread->measured)
		return;
	/* One of them took at least its share. */
	waited = (waited + unseen - 1) / unseen;
	if (waited > of->greatest)
		of->greatest = waited;
	if (waits == 1)
		send_account(cpu, of, &key,
			now - task->se.cfs_rq->rq->clock + task->sched_info.last_arrival - waited,
			waited);
}

/* Whether it is one by its policy, and not only while it holds a lock that such a thread waits for.
 */
static __always_inline bool has_real_time_policy(const struct task_struct *task)
{
	return task->rt_priority || task->policy == SCHED_DEADLINE;
}

/*
 * Counts the wake-ups of a thread that leaves a processor, by the kernel's count of its sleeps. A
 * thread that is a real-time one only for a while has slept as another one before.
 */
static __always_inline void settle(struct processor *cpu, struct thread *thread,
	struct task_struct *task, bool is_voluntary, __u64 now)
{
	__u64 ended = task->nvcsw - (is_voluntary ? 1 : 0), seen = thread->measured, wakeups;

	wakeups = less(ended, thread->sleeps);
	if (thread->has_account && wakeups > seen && has_real_time_policy(task))
		count_unseen(cpu, thread, task, wakeups - seen, now);
	thread->has_account = 1;
	/* A signal that was pending kept it from the sleep that has been counted. */
	thread->sleeps = task->on_rq ? task->nvcsw : ended;
	thread->measured = 0;
	thread->latencies = 0;
	if (bpf_core_field_exists(task->sched_info.last_arrival)) {
		thread->waits = task->sched_info.pcount;
		thread->waited = task->sched_info.run_delay;
	}
}

/* The thread that ran until now has had its time. */
static __always_inline void leave(struct processor *cpu, struct task_struct *task, __u64 now)
{
	__u32 index = rank(task->prio), last;
	__u64 ran = ran_until(cpu, now);

	if (!cpu->since)
		return;
	if (cpu->tid != (__u32)task->pid) {
		/* Another thread ran in between. */
		cpu->missed++;
		cpu->doubts++;
		return;
	}
	if (rank(cpu->prio) != index)
		cpu->doubts++;
	/* Checked in the register that is used: Linux 6.1 forgets what it knows of spilled ones. */
	barrier_var(index);
	if (index < PRIORITIES)
		cpu->run[index] += ran;
	last = cpu->recent_end & (RECENT - 1);
	remember(cpu, RAN_THREAD, task->pid, cpu->since, now, ran);
	bpf_probe_read_kernel_str(cpu->recent[last].comm, COMM_SIZE, task->comm);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(switched, bool is_preemption, struct task_struct *previous, struct task_struct *next)
{
	unsigned long state = switch_has_state ? (unsigned int)ctx[3] : previous->__state;
	struct processor *cpu = here();
	struct thread *thread;
	bool has_been_real_time;
	__u32 tid;
	__u64 now;

	if (!cpu)
		return 0;
	now = bpf_ktime_get_ns();
	has_been_real_time = rank(cpu->prio) < PRIORITIES;
	begin(cpu);
	leave(cpu, previous, now);
	cpu->tid = next->pid;
	cpu->prio = next->prio;
	cpu->since = now;
	cpu->interrupts_since = interrupts_until(cpu, now);
	end(cpu);
	tid = previous->pid;
	if (is_real_time(previous)) {
		thread = thread_of(tid);
		if (thread) {
			settle(cpu, thread, previous, state && !is_preemption, now);
			if (thread->phase == PHASE_WAKING && thread->is_leaving)
				thread->is_leaving = 0;
			else
				thread->phase =
					state && !is_preemption ? PHASE_BLOCKED : PHASE_PREEMPTED;
		}
		if (state & TASK_DEAD)
			bpf_map_delete_elem(&threads, &tid);
	} else if (has_been_real_time) {
		bpf_map_delete_elem(&threads, &tid);
	}
	if (!is_real_time(next))
		return 0;
	thread = thread_of(next->pid);
	if (!thread)
		return 0;
	if (thread->phase == PHASE_WAKING)
		measure(cpu, thread, next, now);
	thread->phase = PHASE_RUNNING;
	return 0;
}
