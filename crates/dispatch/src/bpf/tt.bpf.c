// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A time-triggered scheduler: each processor of the table serves the thread that owns the present
 * slot, and no other. docs/design/time-triggered.md has the reasons.
 *
 * Every thread of the table has a queue of its own, in which it waits. Where a turn begins, a
 * thread of SCHED_FIFO wakes up on the processor and sleeps again: the kernel takes the running
 * thread off, has it queued here (SCX_ENQ_IMMED), and then asks what to run.
 */
#include "kernel.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
#include "interface.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Settings, before it is loaded. */
const volatile __u64 slot_ns = 1;
const volatile __u32 task_count = 0; /* with guests */
const volatile bool is_tai = false;
/* A little longer than any turn of the table: if neither timer nor tick ends one, since they were
 * killed, the kernel's own tick does.
 */
const volatile __u64 longest_ns = SLICE_DEFAULT;
/* SCX_ENQ_IMMED: into the local queue only what runs at once, and back here when it is preempted.
 * Kernels before 7.1 do not have it: see tt_cpu_release.
 */
const volatile __u64 immediately = 0;

/* Turns are handed over this early; the processor then waits until the next one begins. */
const volatile __u64 handover_ns = 0;
/* With the number of a lane, it makes the mark of that lane's timer. */
const volatile __u64 mark = 0;

/* When the first slot begins; then the lanes are written, and it is told to go. */
volatile __u64 start = 0;
volatile bool is_going = false;
/* A task, plus one, whose thread is being let go of, and runs in idle slots until it is gone. */
volatile __u32 leaving = 0;
struct ending ending = {};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct turn);
} turns SEC(".maps");
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct lane);
} lanes SEC(".maps");
/* Rows that are to come, COMING of each lane, and how many there have been. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct rows);
} offers SEC(".maps");
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} published SEC(".maps");
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct task);
} tasks SEC(".maps");
/* The timer of a lane. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct timer);
} timers SEC(".maps");
/* The lane of a processor, plus one. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} lane_of SEC(".maps");
/* The task of a thread. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} task_of SEC(".maps");
/* Threads that those of the table have started: only one that was queued has wholly been started.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, __u32);
} others SEC(".maps");
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} records SEC(".maps");

/* Queues: of each task, and of threads that the table's have started and that are not yet released.
 */
#define QUEUE_OF_TASK(task) (1024ULL + (task))
#define QUEUE_OF_OTHERS	    1000ULL

/* The kernel's fast clock may be a few ns behind the one that woke the tick's thread. */
#define EARLY 500
/* Readings of the clock while a processor waits: for 20 µs at least. */
#define READINGS 1024

static __always_inline __u64 now(void)
{
	return is_tai ? bpf_ktime_get_tai_ns() : bpf_ktime_get_ns();
}

static __always_inline struct lane *lane_at(__u32 number)
{
	return bpf_map_lookup_elem(&lanes, &number);
}

static __always_inline struct task *task_at(__u32 number)
{
	return bpf_map_lookup_elem(&tasks, &number);
}

/* The lane of a processor; NONE. */
static __always_inline __u32 lane_number(__s32 cpu)
{
	__u32 key = cpu;
	__u32 *lane = bpf_map_lookup_elem(&lane_of, &key);

	return lane && *lane ? *lane - 1 : NONE;
}

/* The task of a thread; NONE. */
static __always_inline __u32 task_number(struct task_struct *p)
{
	__u32 tid = p->pid;
	__u32 *task = bpf_map_lookup_elem(&task_of, &tid);

	return task ? *task : NONE;
}

/* The same for a thread of this scheduler's. It is noted where queues that are sorted would look:
 * these are not.
 */
static __always_inline __u32 own_task_number(struct task_struct *p)
{
	__u32 number = p->scx.dsq_vtime;
	struct task *task = task_at(number);

	if (task && task->tid == (__u32)p->pid)
		return number;
	number = task_number(p);
	if (number != NONE)
		set_vtime(p, number);
	return number;
}

static __always_inline bool is_queued(struct task_struct *p)
{
	return p->scx.flags & TASK_IS_QUEUED;
}

SEC("struct_ops/select_cpu")
__s32 BPF_PROG(tt_select_cpu, struct task_struct *p, __s32 previous, __u64 flags)
{
	struct task *task = task_at(task_number(p));
	struct lane *lane = task ? lane_at(task->holder) : NULL;

	return lane ? (__s32)lane->cpu : previous;
}

SEC("struct_ops/enqueue")
void BPF_PROG(tt_enqueue, struct task_struct *p, __u64 flags)
{
	__u32 number = own_task_number(p);
	struct task *task = task_at(number);
	struct lane *lane;

	flags &= ~immediately;
	if (!task) {
		__u32 tid = p->pid, one = 1;

		bpf_map_update_elem(&others, &tid, &one, BPF_ANY);
		insert(p, QUEUE_OF_OTHERS, SLICE_DEFAULT, flags);
		return;
	}
	insert(p, QUEUE_OF_TASK(number), longest_ns, flags);
	/* Its processor looks for it unless it is queued there. */
	lane = lane_at(task->holder);
	if (lane && (__s32)lane->cpu != scx_bpf_task_cpu(p))
		scx_bpf_kick_cpu(lane->cpu, KICK_PREEMPT);
}

static __always_inline __u64 instant(__u64 slot)
{
	return start + slot * slot_ns;
}

/* The rows that come next; NULL. */
static __always_inline struct rows *coming(struct lane *lane, __u32 number)
{
	volatile __u64 *count = bpf_map_lookup_elem(&published, &number);
	__u32 key = number * COMING + lane->taken % COMING;

	return count && *count != lane->taken ? bpf_map_lookup_elem(&offers, &key) : NULL;
}

/* Has the present turn end where other rows begin. */
static __always_inline void look(struct lane *lane, __u32 number)
{
	struct rows *rows = coming(lane, number);
	__u64 end;

	if (!rows || !lane->has_turn)
		return;
	end = rows->from > lane->slot ? rows->from : lane->slot + 1;
	if (end >= lane->end)
		return;
	lane->end = end;
	lane->until = instant(end);
	lane->is_last = false;
	lane->index = NONE;
}

/* Finds the turn at the end of the present one. It is mostly known. */
static __always_inline bool find_turn(struct lane *lane, __u32 number)
{
	__u32 first, low = 0, high, within;
	struct rows *rows;

	for (int change = 0; change < COMING; change++) {
		rows = coming(lane, number);
		if (!rows || rows->from > lane->end)
			break;
		lane->rows = *rows;
		lane->taken++;
		lane->index = NONE;
	}
	if (lane->index != NONE)
		return true;
	rows = &lane->rows;
	if (lane->end < rows->after) {
		first = rows->once;
		high = rows->once_count;
		lane->base = rows->from;
	} else if (rows->cycle_slots) {
		first = rows->cycle;
		high = rows->cycle_count;
		lane->base = lane->end - (lane->end - rows->origin) % rows->cycle_slots;
	} else {
		return false;
	}
	within = lane->end - lane->base;
	for (int step = 0; step < 32 && low + 1 < high; step++) {
		__u32 middle = low + (high - low) / 2, at = first + middle;
		struct turn *turn = bpf_map_lookup_elem(&turns, &at);

		if (!turn)
			return false;
		if (turn->from <= within)
			low = middle;
		else
			high = middle;
	}
	lane->index = first + low;
	return true;
}

/* Goes on to the turn after the one at `index`. */
static __always_inline void go_on(struct lane *lane)
{
	struct rows *rows = &lane->rows;

	lane->index++;
	if (lane->end == rows->after) {
		lane->index = NONE;
	} else if (lane->end > rows->after && lane->index == rows->cycle + rows->cycle_count) {
		lane->index = rows->cycle;
		lane->base += rows->cycle_slots;
	}
}

/* Says that a turn is over. */
static __always_inline void send(
	struct lane *lane, __u32 number, __u64 time, __u64 at, __u64 ran, bool is_overrun)
{
	struct record *record = bpf_ringbuf_reserve(&records, sizeof(*record), 0);

	if (!record) {
		lane->lost++;
		return;
	}
	*record = (struct record){
		.slot = lane->slot,
		.previous = lane->previous,
		.error = lane->error,
		.ran = ran,
		.outside = lane->outside,
		.at = is_tai ? bpf_ktime_get_ns() + (at - time) : at,
		.lane = number,
		.slots = lane->end - lane->slot,
		.task = lane->task,
		.job = lane->job,
		.tid = lane->tid,
		.is_overrun = is_overrun,
		.is_skipped = lane->is_skipped,
	};
	bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
}

/* Takes the account of the present turn, which ends at `at`; now is `time`. */
static __always_inline void end_turn(struct lane *lane, __u32 number, __u64 time, __u64 at)
{
	struct task *task = task_at(lane->task);
	bool is_overrun = false;
	__u64 ran = 0;

	/* Its thread was named, but has not become this scheduler's yet. */
	if (task && task->is_new) {
		lane->tid = 0;
		if (task->holder == number)
			task->holder = NONE;
	}
	if (task && lane->tid && task->tid == lane->tid) {
		ran = task->used - lane->begun;
		is_overrun = lane->is_last && task->is_runnable && task->runnable_at < lane->until;
		if (is_overrun && task->skips)
			task->is_skipping = true;
		if (task->holder == number) {
			task->holder = NONE;
			task->ended = task->used;
		} else {
			/* Another processor has begun a turn of it, while it still ran here. */
			struct lane *other = lane_at(task->holder);

			if (other)
				other->begun = task->used;
		}
	}
	lane->has_turn = false;
	send(lane, number, time, at, ran, is_overrun);
}

/* Where the turn at `index` ends: other rows may begin before. */
static __always_inline __u64 end_of(struct lane *lane, __u32 number, struct turn *turn)
{
	struct rows *rows = coming(lane, number);
	__u64 end = lane->base + turn->to;

	return rows && rows->from < end ? rows->from : end;
}

/* Gives the turn that begins to its owner. */
static __always_inline void begin_turn(struct lane *lane, __u32 number, __u64 time)
{
	__u64 previous = lane->end, end;
	struct turn *turn;
	struct task *task;

	if (!find_turn(lane, number))
		return;
	turn = bpf_map_lookup_elem(&turns, &lane->index);
	if (!turn)
		return;
	end = end_of(lane, number, turn);
	if (time >= instant(end)) {
		/* It has passed. */
		lane->end = (time - start) / slot_ns;
		lane->index = NONE;
		if (!find_turn(lane, number))
			return;
		turn = bpf_map_lookup_elem(&turns, &lane->index);
		if (!turn)
			return;
		end = end_of(lane, number, turn);
	}
	lane->slot = lane->base + turn->from;
	if (lane->slot < previous)
		lane->slot = previous;
	if (lane->slot < lane->rows.from)
		lane->slot = lane->rows.from;
	lane->from = instant(lane->slot);
	lane->previous = previous;
	lane->end = end;
	lane->until = instant(end);
	lane->error = time > lane->from ? time - lane->from : 0;
	lane->task = turn->task;
	lane->job = turn->job;
	lane->is_last = turn->is_last && end == lane->base + turn->to;
	lane->tid = 0;
	lane->outside = 0;
	lane->is_skipped = false;
	lane->has_turn = true;
	go_on(lane);

	task = task_at(lane->task);
	if (!task)
		return;
	if (task->is_skipping) {
		lane->is_skipped = true;
		task->is_skipping = !lane->is_last;
		return;
	}
	lane->tid = task->tid;
	lane->begun = task->used;
	/* Elsewhere its turn is not over: what it uses until then is accounted there. Before its
	 * first turn, it ran as what it was until it got here.
	 */
	if (task->holder == NONE && task->had_turn)
		lane->outside = task->used - task->ended;
	task->had_turn = true;
	task->holder = number;
}

/* Runs whoever has the processor now. */
static __always_inline void serve(struct lane *lane, struct task_struct *previous)
{
	__u32 task = lane->has_turn ? lane->task : NONE, gone = leaving;
	__u32 mine = previous && is_queued(previous) ? own_task_number(previous) : NONE;

	if (task == NONE) {
		bool found = move_to_local(QUEUE_OF_OTHERS, immediately);

		/* It may hold a lock for which whoever lets go of it waits. */
		if (!found && gone)
			found = move_to_local(QUEUE_OF_TASK(gone - 1), immediately);
		if (!found && previous && mine == NONE && is_queued(previous))
			set_slice(previous, SLICE_DEFAULT);
		return;
	}
	if (lane->is_skipped || !lane->tid)
		return;
	if (previous && mine == task && is_queued(previous))
		set_slice(previous, longest_ns);
	else if (move_to_local(QUEUE_OF_TASK(task), immediately))
		lane->is_awaited = lane->is_awaited == 1 ? 2 : 0;
}

/* Whether the present turn is to be handed over. */
static __always_inline bool is_over(struct lane *lane, __u64 time)
{
	return is_going && time + handover_ns + EARLY >= lane->until;
}

/* Waits until the turn begins that was handed over early: all that is left to do then is the
 * kernel's switch.
 */
static __always_inline void wait_for_turn(struct lane *lane, __u64 time)
{
	if (!lane->has_turn || time >= lane->from)
		return;
	for (int reading = 0; reading < READINGS && time < lane->from; reading++)
		time = now();
	lane->error = time > lane->from ? time - lane->from : 0;
}

SEC("struct_ops/dispatch")
void BPF_PROG(tt_dispatch, __s32 cpu, struct task_struct *previous)
{
	__u32 number = lane_number(cpu);
	struct lane *lane = lane_at(number);
	__u64 time = now(), at;

	if (!lane) {
		move_to_local(QUEUE_OF_OTHERS, immediately);
		return;
	}
	if (previous && is_queued(previous)) {
		struct task *task = task_at(own_task_number(previous));

		if (task)
			task->used = previous->se.sum_exec_runtime;
	}
	lane->is_awaited = false;
	look(lane, number);
	if (is_over(lane, time)) {
		at = time > lane->until ? time : lane->until;
		if (lane->has_turn)
			end_turn(lane, number, time, at);
		begin_turn(lane, number, at);
		lane->is_awaited = true;
	}
	serve(lane, previous);
	wait_for_turn(lane, time);
}

/* Its accounts begin here: before, it was not the table's. */
static __always_inline void welcome(struct task *task, struct task_struct *p)
{
	struct lane *lane = lane_at(task->holder);

	task->is_new = false;
	task->used = task->ended = p->se.sum_exec_runtime;
	if (lane)
		lane->begun = task->used;
}

SEC("struct_ops/runnable")
void BPF_PROG(tt_runnable, struct task_struct *p, __u64 flags)
{
	struct task *task = task_at(own_task_number(p));

	if (!task)
		return;
	if (task->is_new)
		welcome(task, p);
	task->is_runnable = true;
	task->runnable_at = now();
}

/* Whether the processor's turn is this task's. */
static __always_inline bool has_turn(struct lane *lane, __u32 task)
{
	return lane && lane->has_turn && lane->task == task && !lane->is_skipped;
}

SEC("struct_ops/quiescent")
void BPF_PROG(tt_quiescent, struct task_struct *p, __u64 flags)
{
	__u32 number = own_task_number(p);
	struct task *task = task_at(number);
	struct lane *lane;

	if (!task)
		return;
	task->is_runnable = false;
	lane = lane_at(task->holder);
	if ((flags & DEQUEUED_ASLEEP) && has_turn(lane, number))
		task->slept = lane->slot + 1;
}

SEC("struct_ops/running")
void BPF_PROG(tt_running, struct task_struct *p)
{
	__u32 number = own_task_number(p);
	struct task *task = task_at(number);
	__s32 cpu = scx_bpf_task_cpu(p);
	struct lane *lane;
	__u64 time;

	if (!task)
		return;
	task->used = p->se.sum_exec_runtime;
	/* It was running when it was made SCHED_EXT, and would go on to the end of its slice. */
	if (!has_turn(lane_at(lane_number(cpu)), number))
		scx_bpf_kick_cpu(cpu, KICK_PREEMPT);
	lane = lane_at(task->holder);
	if (!lane || lane->is_awaited != 2)
		return;
	time = now();
	lane->is_awaited = false;
	lane->error = time > lane->from ? time - lane->from : 0;
}

SEC("struct_ops/stopping")
void BPF_PROG(tt_stopping, struct task_struct *p, bool is_runnable)
{
	struct task *task = task_at(own_task_number(p));

	if (task)
		task->used = p->se.sum_exec_runtime;
}

/* What a perf event of the processor's clock calls when it is due, in an interrupt. */
SEC("fentry/perf_swevent_hrtimer")
int BPF_PROG(tt_timer, struct hrtimer *due)
{
	__u32 cpu = bpf_get_smp_processor_id(), number = lane_number(cpu);
	struct timer *timer = bpf_map_lookup_elem(&timers, &number);
	struct lane *lane = lane_at(number);
	struct perf_event *event;

	if (!lane || !timer)
		return 0;
	if (timer->address != (__u64)due) {
		event = (void *)due - bpf_core_field_offset(struct perf_event, hw.hrtimer);
		if (BPF_CORE_READ(event, attr.config1) != mark + number)
			return 0;
		timer->address = (__u64)due;
	}
	timer->due = due->_softexpires;
	timer->count++;
	look(lane, number);
	if (is_over(lane, now()))
		scx_bpf_kick_cpu(cpu, KICK_PREEMPT);
	return 0;
}

/* A higher class has taken the processor: what was preempted waits in its task's queue again, not
 * at the head of the processor's own. Only where the kernel has no SCX_ENQ_IMMED, which does that.
 */
SEC("struct_ops/cpu_release")
void BPF_PROG(tt_cpu_release, __s32 cpu, struct scx_cpu_release_args *args)
{
	reenqueue_local();
}

SEC("struct_ops.s/init")
__s32 BPF_PROG(tt_init)
{
	__s32 error = scx_bpf_create_dsq(QUEUE_OF_OTHERS, -1);

	for (__u32 task = 0; task < task_count && !error; task++)
		error = scx_bpf_create_dsq(QUEUE_OF_TASK(task), -1);
	return error;
}

SEC("struct_ops/exit")
void BPF_PROG(tt_exit, struct scx_exit_info *info)
{
	const char *reason = info->reason, *message = info->msg;

	bpf_probe_read_kernel_str(ending.reason, sizeof(ending.reason), reason);
	bpf_probe_read_kernel_str(ending.message, sizeof(ending.message), message);
	ending.code = info->exit_code;
	*(volatile __u32 *)&ending.kind = info->kind;
}

SEC(".struct_ops.link")
struct sched_ext_ops punctual_tt = {
	.select_cpu = (void *)tt_select_cpu,
	.enqueue = (void *)tt_enqueue,
	.dispatch = (void *)tt_dispatch,
	.runnable = (void *)tt_runnable,
	.running = (void *)tt_running,
	.stopping = (void *)tt_stopping,
	.quiescent = (void *)tt_quiescent,
	.cpu_release = (void *)tt_cpu_release,
	.init = (void *)tt_init,
	.exit = (void *)tt_exit,
	.name = "punctual_tt",
};
