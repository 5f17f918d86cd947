// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Drives the latency parser with the kernel's tracepoints, and keeps what it finds where user space
 * reads it. What the events mean is said in machine.h.
 *
 * Masking of interrupts comes by way of perf: a program that is attached to the tracepoint itself
 * would be entered with preemption enabled, and to enter it the kernel disables preemption, which
 * is an event too: five runs of programs instead of one.
 */
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
#include "interrupts.h"
#include "vectors.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct range {
	__u64 begin;
	__u64 length;
};

/* Addresses in the kernel: its text, and the functions in which an interrupt or an NMI begins. */
const volatile __u64 text = 0;
const volatile struct range interrupt_entry = {0};
const volatile struct range nmi_entry = {0};
/* In a thread's flags: the scheduler is to be called. */
const volatile __u64 need_resched_flag = 0;
/* The flight recorder stops at the first duration or latency of this length; 0: there is none. */
const volatile __u64 threshold = 0;

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct latency_shared);
} processors SEC(".maps");

/* The lowest byte is the number of sections with preemption disabled; the highest bit is clear if
 * the processor knows that the scheduler is to be called. */
extern const int __preempt_count __ksym __weak;
#define PREEMPT_NEED_RESCHED 0x80000000
extern const struct rq runqueues __ksym __weak;

static __always_inline __u64 latency_clock(void)
{
	return bpf_ktime_get_ns();
}

static __always_inline int latency_is_idle(void)
{
	return !bpf_get_current_task_btf()->pid;
}

static __always_inline int latency_need_resched(void)
{
	struct task_struct *task = bpf_get_current_task_btf();
	const int *count;

	if (!(task->thread_info.flags & need_resched_flag))
		return 0;
	/* Nobody interrupts an idle processor that looks at the flag. */
	if (!task->pid || !&__preempt_count)
		return 1;
	count = bpf_this_cpu_ptr(&__preempt_count);
	return !(*count & PREEMPT_NEED_RESCHED);
}

static __always_inline void latency_running(struct latency_who *who)
{
	struct task_struct *task = bpf_get_current_task_btf();

	who->tgid = task->tgid;
	who->tid = task->pid;
	bpf_get_current_comm(who->comm, sizeof(who->comm));
}

/* In assembly, as the compiler would split it into bytes. */
static __always_inline void latency_store(__u8 *place, __u64 word)
{
	asm volatile("*(u64 *)(%0 + 0) = %1" ::"r"(place), "r"(word) : "memory");
}

static __always_inline struct latency_shared *here(void)
{
	__u32 number = bpf_get_smp_processor_id();
	struct latency_shared *shared = bpf_map_lookup_elem(&processors, &number);

	return shared && shared->is_active ? shared : NULL;
}

static __always_inline bool is_in(__u64 address, const volatile struct range *range)
{
	return address - range->begin < range->length;
}

/* Whether a thread waits that was woken. */
static __always_inline bool is_pending(const volatile struct latency_wakeup *wakeup)
{
	return wakeup->asked != wakeup->settled;
}

/* Whether another processor has asked for the wake-up, and nothing has happened here since. */
static __always_inline bool is_unnoticed(const struct latency_wakeup *wakeup)
{
	return wakeup->is_remote && wakeup->noticed != wakeup->asked;
}

/*
 * The wait for a wake-up that another processor has asked for begins when this one notices. The
 * other may be about to ask for the next one.
 */
static __always_inline void notice_wakeup(
	struct latency_shared *shared, __u64 ready, __u64 thread_time)
{
	struct latency_wakeup *wakeup = &shared->wakeup;
	__u32 asked = *(volatile __u32 *)&wakeup->asked;

	if (asked == wakeup->settled)
		return;
	wakeup->noticed_ready = ready;
	wakeup->noticed_begin = thread_time;
	wakeup->noticed_overhead = shared->cpu.overhead;
	barrier();
	wakeup->noticed = asked;
	latency_wait_begins(&shared->cpu, ready, thread_time, shared->cpu.overhead);
}

/* Without a threshold, the verifier removes this. */
static __always_inline void log_event(
	struct latency_shared *shared, enum latency_event_kind kind, __u64 address, __u64 detail)
{
	struct latency_event *event;

	if (!threshold || shared->is_frozen)
		return;
	if (shared->cpu.observing && !shared->cpu.serving && kind != LATENCY_INTERRUPT_ENTRY)
		return;
	event = &shared->events[shared->events_end++ & (LATENCY_EVENTS - 1)];
	event->at = latency_read(&shared->cpu);
	event->address = address;
	event->tid = bpf_get_current_task_btf()->pid;
	event->kind = kind;
	event->detail = detail;
}

/* Notes who is running and how the kernel came here. */
static __noinline int describe(void *context, struct latency_culprit *culprit)
{
	struct task_struct *task = bpf_get_current_task_btf();
	long bytes;

	if (!culprit)
		return 0;
	culprit->tgid = task->tgid;
	culprit->tid = task->pid;
	bpf_get_current_comm(culprit->comm, sizeof(culprit->comm));
	bytes = bpf_get_stack(context, culprit->stack, sizeof(culprit->stack), 0);
	culprit->depth = bytes > 0 ? bytes / sizeof(culprit->stack[0]) : 0;
	return 0;
}

/* Stops the flight recorder, and notes what for. Without a threshold, the verifier removes this. */
static __always_inline void freeze(
	struct latency_shared *shared, __u32 what, const struct latency_maximum *maximum)
{
	struct latency_exceeded *exceeded = &shared->exceeded;
	struct task_struct *task = bpf_get_current_task_btf();

	if (!threshold || shared->is_frozen || maximum->duration < threshold)
		return;
	exceeded->what = what;
	exceeded->tgid = task->tgid;
	exceeded->tid = task->pid;
	bpf_get_current_comm(exceeded->comm, sizeof(exceeded->comm));
	exceeded->maximum = *maximum;
	barrier();
	shared->is_frozen = 1;
}

/*
 * Keeps the culprits of new maxima. Where it is interrupted, maxima of the interrupt's end have no
 * culprit. A function of its own, so that programs that do not call it save fewer registers.
 */
static __noinline int note_culprits(void *context, struct latency_shared *shared, int greatest)
{
	if (!shared)
		return 0;
	for (int variable = 0; threshold && variable < LATENCY_VARIABLES; variable++) {
		if (greatest & 1 << variable)
			freeze(shared, variable, &shared->cpu.greatest[variable]);
	}
	if (shared->cpu.paused_at)
		return 0;
	latency_pause(&shared->cpu);
	for (int variable = 0; variable < LATENCY_VARIABLES; variable++) {
		struct latency_culprit *culprit = &shared->culprits[variable];

		if (!(greatest & 1 << variable))
			continue;
		culprit->sequence++;
		barrier();
		culprit->maximum = shared->cpu.greatest[variable];
		describe(context, culprit);
		barrier();
		culprit->sequence++;
	}
	latency_resume(&shared->cpu);
	return 0;
}

static __always_inline void keep(void *context, struct latency_shared *shared, int greatest)
{
	if (greatest)
		note_culprits(context, shared, greatest);
}

/* As the tracepoint's format in tracefs has it: addresses relative to the kernel's text. */
struct irqs_context {
	__u64 common;
	__s32 caller;
	__s32 parent;
};

SEC("tp/preemptirq/irq_disable")
int irqs_off(struct irqs_context *context)
{
	struct latency_shared *shared = here();
	__u64 address;

	if (!shared)
		return 0;
	address = text + context->caller;
	if (is_in(address, &interrupt_entry)) {
		log_event(shared, LATENCY_INTERRUPT_ENTRY, 0, 0);
		latency_entry(&shared->cpu, address);
		if (is_unnoticed(&shared->wakeup))
			notice_wakeup(shared, shared->cpu.entry, shared->cpu.entry_time);
	} else if (is_in(address, &nmi_entry)) {
		latency_nmi_entry(&shared->cpu);
	} else {
		log_event(shared, LATENCY_IRQS_OFF, address, 0);
		latency_irqs_off(&shared->cpu, address);
	}
	return 0;
}

SEC("tp/preemptirq/irq_enable")
int irqs_on(struct irqs_context *context)
{
	struct latency_shared *shared = here();
	struct latency_interrupt ended = {0};
	int greatest;

	if (!shared)
		return 0;
	log_event(shared, shared->cpu.serving ? LATENCY_INTERRUPT_EXIT : LATENCY_IRQS_ON,
		text + context->caller, 0);
	if (shared->cpu.serving) {
		greatest = latency_exit(&shared->cpu, text + context->caller, &ended);
		if (ended.source)
			latency_hand_over(&shared->interrupts, &ended);
	} else {
		greatest = latency_irqs_on(&shared->cpu, text + context->caller);
	}
	keep(context, shared, greatest);
	return 0;
}

SEC("tp_btf/preempt_disable")
int BPF_PROG(preempt_off, unsigned long ip, unsigned long parent)
{
	struct latency_shared *shared = here();

	if (!shared)
		return 0;
	log_event(shared, LATENCY_PREEMPT_OFF, ip, 0);
	latency_preempt_off(&shared->cpu, ip);
	return 0;
}

#define MOST_PROBES 8

/* The entry of the running thread; a change of priority begins another. */
static __always_inline struct latency_thread *entry_of(
	struct latency_shared *shared, struct task_struct *task)
{
	for (__u32 probe = 0; probe < MOST_PROBES; probe++) {
		struct latency_thread *thread =
			&shared->threads[(task->pid + probe) & (LATENCY_THREADS - 1)];

		if (thread->tid == (__u32)task->pid && thread->policy == task->policy &&
			thread->priority == task->rt_priority)
			return thread;
		if (thread->tid)
			continue;
		thread->tgid = task->tgid;
		thread->policy = task->policy;
		thread->priority = task->rt_priority;
		barrier();
		thread->tid = task->pid;
		return thread;
	}
	return NULL;
}

/* The scheduling context has ended, and the chosen thread runs. */
static __noinline int measure_wait(struct latency_shared *shared, __u8 place)
{
	struct task_struct *task = bpf_get_current_task_btf();
	volatile struct latency_wakeup *wakeup;
	struct latency_thread *thread;
	struct latency_wait *wait;
	__u64 ready, now, overhead, latency;

	if (!shared)
		return 0;
	wakeup = &shared->wakeup;
	wakeup->is_running = 0;
	/* Another thread has been woken meanwhile, which goes before this one. */
	if (wakeup->chosen != wakeup->asked)
		return 0;
	ready = wakeup->chosen_ready;
	now = shared->cpu.scheduled;
	overhead = shared->cpu.scheduled_overhead - wakeup->chosen_overhead;
	if (now < ready || now - ready < overhead) {
		shared->unmeasured++;
		return 0;
	}
	latency = now - ready - overhead;
	thread = entry_of(shared, task);
	if (!thread) {
		shared->unmeasured++;
		return 0;
	}
	thread->wakeups++;
	thread->total += latency;
	if (latency <= thread->max)
		return 0;
	if (threshold && latency >= threshold) {
		struct latency_maximum maximum = {.duration = latency, .at = now};

		freeze(shared, LATENCY_VARIABLES, &maximum);
	}
	thread->sequence++;
	barrier();
	thread->max = latency;
	thread->max_at = ready;
	wait = latency_wait_over(&shared->cpu, place, ready);
	if (wait)
		thread->worst = *wait;
	else
		thread->worst.ready = 0;
	bpf_get_current_comm(thread->comm, sizeof(thread->comm));
	barrier();
	thread->sequence++;
	return 0;
}

static __always_inline void measure(struct latency_shared *shared)
{
	__u8 place = latency_hold_wait(&shared->cpu);

	measure_wait(shared, place);
	latency_release_wait(&shared->cpu, place);
}

SEC("tp_btf/preempt_enable")
int BPF_PROG(preempt_on, unsigned long ip, unsigned long parent)
{
	struct latency_shared *shared = here();
	int greatest;

	if (!shared)
		return 0;
	log_event(shared, LATENCY_PREEMPT_ON, ip, 0);
	greatest = latency_preempt_on(&shared->cpu, ip);
	if (shared->wakeup.is_running && shared->cpu.phase == PHASE_THREAD)
		measure(shared);
	keep(ctx, shared, greatest);
	return 0;
}

SEC("tp_btf/sched_entry_tp")
int BPF_PROG(scheduler_entry, bool is_preemption)
{
	struct latency_shared *shared = here();

	if (!shared)
		return 0;
	log_event(shared, LATENCY_SCHEDULER_ENTRY, 0, 0);
	shared->is_settled = 1;
	if (is_unnoticed(&shared->wakeup) && latency_is_idle()) {
		/* It woke by itself, from whatever sleep it was in. */
		struct latency_moment at = latency_now(&shared->cpu);

		notice_wakeup(shared, at.now, at.time);
	}
	keep(ctx, shared, latency_schedule(&shared->cpu, 0));
	return 0;
}

/*
 * The wake-up of this number, and those before it, need no more attention. Another processor may
 * settle later ones meanwhile.
 */
static __always_inline void settle(volatile struct latency_wakeup *wakeup, __u32 asked)
{
	if ((__s32)(asked - wakeup->settled) > 0)
		wakeup->settled = asked;
}

/*
 * The thread that now runs was woken. If another processor asked for that, this one may not have
 * noticed; or another wait has been in the way.
 */
static __noinline int chosen(struct latency_shared *shared, __u32 asked)
{
	volatile struct latency_wakeup *wakeup;
	__u64 ready, begin, overhead, entry;

	if (!shared)
		return 0;
	wakeup = &shared->wakeup;
	if (wakeup->noticed == asked) {
		ready = wakeup->noticed_ready;
		begin = wakeup->noticed_begin;
		overhead = wakeup->noticed_overhead;
		entry = 0;
	} else {
		ready = wakeup->ready;
		begin = wakeup->begin;
		overhead = wakeup->overhead;
		entry = wakeup->entry;
	}
	/* Another thread is being woken meanwhile, which goes before this one. */
	if (wakeup->tid != (__u32)bpf_get_current_task_btf()->pid)
		return 0;
	wakeup->noticed = asked;
	barrier();
	if (!shared->cpu.waiting || latency_wait(&shared->cpu)->ready != ready)
		latency_wait_begins_late(&shared->cpu, ready, begin, overhead, entry);
	latency_wait_chosen(&shared->cpu, ready);
	wakeup->chosen_ready = ready;
	wakeup->chosen_overhead = overhead;
	wakeup->chosen = asked;
	wakeup->is_running = 1;
	settle(wakeup, asked);
	return 0;
}

/* Whether the thread that now runs is the one that was woken, if one was. */
static __always_inline void choose(struct latency_shared *shared)
{
	volatile struct latency_wakeup *wakeup = &shared->wakeup;
	struct task_struct *task = bpf_get_current_task_btf();
	__u32 asked = wakeup->asked;

	if (asked == wakeup->settled)
		return;
	if ((__u32)task->pid == wakeup->tid) {
		chosen(shared, asked);
	} else if (task->prio <= wakeup->prio) {
		/* It was not the ready thread of highest priority. */
		settle(wakeup, asked);
		shared->cpu.waiting = WAIT_NONE;
	}
}

SEC("tp_btf/sched_exit_tp")
int BPF_PROG(scheduler_exit, bool has_switched)
{
	struct latency_shared *shared = here();
	int greatest;

	if (!shared)
		return 0;
	log_event(shared, LATENCY_SCHEDULER_EXIT, 0, 0);
	/* First, so that who is woken from here on is compared with the thread that runs. */
	greatest = latency_scheduled(&shared->cpu, 0);
	if (is_pending(&shared->wakeup))
		choose(shared);
	keep(ctx, shared, greatest);
	return 0;
}

#define LOWEST_REAL_TIME_PRIO 99

/*
 * Whether the thread that runs on this processor, of which the run queue is locked, goes before
 * the woken one, or is its equal. Inside the scheduler it may be about to sleep, or be that one.
 */
static __always_inline bool is_outranked(const struct latency_shared *shared, __u32 number,
	bool is_remote, const struct task_struct *woken)
{
	struct task_struct *running = bpf_get_current_task_btf();
	bool may_leave;

	if (is_remote) {
		const struct rq *queue = &runqueues ? bpf_per_cpu_ptr(&runqueues, number) : NULL;

		if (!queue)
			return false;
		running = queue->curr;
	}
	may_leave = running->__state || running->pid == woken->pid;
	if (may_leave && *(const volatile __u8 *)&shared->cpu.phase == PHASE_SCHEDULER)
		return false;
	return running->prio <= woken->prio;
}

static __always_inline void wake_elsewhere(struct latency_shared *shared)
{
	struct latency_glimpse seen = latency_glimpse(&shared->cpu);

	shared->wakeup.ready = seen.at.now;
	shared->wakeup.begin = seen.at.time;
	shared->wakeup.overhead = seen.overhead;
	shared->wakeup.entry = seen.entry;
}

static __always_inline void wake_here(struct latency_shared *shared)
{
	struct latency_moment at = latency_now(&shared->cpu);

	/* The interrupt that woke it is part of its latency. */
	if (shared->cpu.serving && shared->cpu.source) {
		at.now = shared->cpu.entry;
		at.time = shared->cpu.entry_time;
	}
	shared->wakeup.ready = at.now;
	shared->wakeup.begin = at.time;
	shared->wakeup.overhead = shared->cpu.overhead;
	shared->wakeup.entry = 0;
	latency_wait_begins(&shared->cpu, at.now, at.time, shared->cpu.overhead);
}

/*
 * A thread is made ready. It is the one of highest priority if the running one is lower; what other
 * ready threads there are shows when the scheduler chooses.
 */
SEC("tp_btf/sched_wakeup")
int BPF_PROG(woken, struct task_struct *task)
{
	__u32 number = task->thread_info.cpu;
	struct latency_shared *shared;
	struct latency_wakeup *wakeup;
	bool is_remote;

	if (task->prio > LOWEST_REAL_TIME_PRIO)
		return 0;
	shared = bpf_map_lookup_elem(&processors, &number);
	/* A section of which the beginning was not seen is in latencies, but in no variable. */
	if (!shared || !shared->is_active || !shared->is_settled)
		return 0;
	is_remote = number != bpf_get_smp_processor_id();
	if (!is_remote)
		log_event(shared, LATENCY_WAKEUP, 0, task->pid);
	wakeup = &shared->wakeup;
	if (is_pending(wakeup) && wakeup->prio <= task->prio)
		return 0;
	if (is_outranked(shared, number, is_remote, task))
		return 0;
	/* That processor may look at any time, if it is another one. */
	wakeup->settled = wakeup->asked;
	barrier();
	wakeup->prio = task->prio;
	wakeup->tid = task->pid;
	barrier();
	wakeup->is_remote = is_remote;
	if (is_remote)
		wake_elsewhere(shared);
	else
		wake_here(shared);
	barrier();
	wakeup->asked++;
	return 0;
}

SEC("tp_btf/sched_migrate_task")
int BPF_PROG(migrated, struct task_struct *task, int to)
{
	__u32 number = task->thread_info.cpu;
	struct latency_shared *shared = bpf_map_lookup_elem(&processors, &number);
	volatile struct latency_wakeup *wakeup;
	__u32 asked;

	if (!shared)
		return 0;
	/* First its number: a wake-up that comes after this line is not settled. */
	wakeup = &shared->wakeup;
	asked = wakeup->asked;
	if (wakeup->tid == (__u32)task->pid)
		settle(wakeup, asked);
	return 0;
}

static __always_inline int name(__u32 source)
{
	struct latency_shared *shared = here();

	if (!shared)
		return 0;
	log_event(shared, LATENCY_INTERRUPT_SOURCE, 0, source);
	latency_source(&shared->cpu, source);
	return 0;
}

SEC("tp_btf/irq_handler_entry")
int BPF_PROG(handler, int irq)
{
	return name(LATENCY_SOURCE_IRQ + irq < LATENCY_SOURCE_LIMIT ? LATENCY_SOURCE_IRQ + irq
								    : LATENCY_SOURCE_LIMIT - 1);
}

#define VECTOR(NAME, NUMBER) \
	SEC("tp_btf/" #NAME "_entry") \
	int BPF_PROG(vector_##NAME, int vector) \
	{ \
		return name(NUMBER); \
	}
FOR_EACH_VECTOR(VECTOR)

SEC("tp_btf/nmi_handler")
int BPF_PROG(nmi, void *address, __s64 took, int handled)
{
	struct latency_shared *shared = here();
	__u64 end;

	if (!shared || took < 0)
		return 0;
	latency_nmi(&shared->cpu, took);
	end = shared->nmis_end;
	shared->nmis[end & (LATENCY_NMIS - 1)].exit = bpf_ktime_get_ns();
	shared->nmis[end & (LATENCY_NMIS - 1)].execution = took;
	barrier();
	shared->nmis_end = end + 1;
	return 0;
}

/* Called for each step of the change, on whichever processor asks for it. */
SEC("tp_btf/cpuhp_enter")
int BPF_PROG(hotplug, __u32 number, int target, int step)
{
	struct latency_shared *shared = bpf_map_lookup_elem(&processors, &number);
	int bringup = bpf_core_enum_value(enum cpuhp_state, CPUHP_BRINGUP_CPU);
	int teardown = bpf_core_enum_value(enum cpuhp_state, CPUHP_TEARDOWN_CPU);

	if (!shared || !shared->is_active)
		return 0;
	if (target < step && step == teardown)
		shared->offline++;
	if (target > step && step <= bringup) {
		latency_online(&shared->cpu);
		shared->is_settled = 0;
		shared->wakeup.settled = shared->wakeup.asked;
		shared->wakeup.is_running = 0;
	}
	return 0;
}
