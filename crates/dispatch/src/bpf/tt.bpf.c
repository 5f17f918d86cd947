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
const volatile __u64 slots = 1; /* of the hyperperiod */
const volatile __u32 task_count = 0;
const volatile bool is_tai = false;
/* SCX_ENQ_IMMED: into the local queue only what runs at once, and back here when it is preempted.
 */
const volatile __u64 immediately = 0;

/* With the number of a lane, it makes the mark of that lane's timer. */
const volatile __u64 mark = 0;

/* When the first slot begins; then the lanes are written, and it is told to go. */
volatile __u64 start = 0;
volatile bool is_going = false;
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
	__u32 number = task_number(p);
	struct task *task = task_at(number);
	struct lane *lane;

	flags &= ~immediately;
	if (!task) {
		__u32 tid = p->pid, one = 1;

		bpf_map_update_elem(&others, &tid, &one, BPF_ANY);
		scx_bpf_dsq_insert___v2___punctual(p, QUEUE_OF_OTHERS, SLICE_DEFAULT, flags);
		return;
	}
	scx_bpf_dsq_insert___v2___punctual(p, QUEUE_OF_TASK(number), SLICE_FOR_EVER, flags);
	/* Its processor looks for it unless it is queued there. */
	lane = lane_at(task->holder);
	if (lane && (__s32)lane->cpu != scx_bpf_task_cpu(p))
		scx_bpf_kick_cpu(lane->cpu, KICK_PREEMPT);
}

/* Finds the turn at this time. It is mostly the next one. */
static __always_inline bool find_turn(struct lane *lane, __u64 time)
{
	__u64 slot = (time - start) / slot_ns, round = slot / slots;
	__u32 within = slot % slots, low = 0, high = lane->count;

	for (int step = 0; step < 32 && low + 1 < high; step++) {
		__u32 middle = low + (high - low) / 2, at = lane->first + middle;
		struct turn *turn = bpf_map_lookup_elem(&turns, &at);

		if (!turn)
			return false;
		if (turn->from <= within)
			low = middle;
		else
			high = middle;
	}
	lane->round = round;
	lane->next = low;
	return true;
}

/* Says that a turn is over. */
static __always_inline void send(
	struct lane *lane, __u32 number, struct turn *turn, __u64 ran, bool is_overrun)
{
	struct record *record = bpf_ringbuf_reserve(&records, sizeof(*record), 0);

	if (!record) {
		lane->lost++;
		return;
	}
	*record = (struct record){
		.slot = lane->slot,
		.number = lane->number,
		.previous = lane->previous,
		.error = lane->error,
		.ran = ran,
		.outside = lane->outside,
		.at = bpf_ktime_get_ns(),
		.lane = number,
		.slots = turn->to - turn->from,
		.task = turn->task,
		.job = turn->job,
		.tid = lane->tid,
		.is_overrun = is_overrun,
		.is_skipped = lane->is_skipped,
	};
	bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
}

/* Takes the account of the present turn. */
static __always_inline void end_turn(struct lane *lane, __u32 number)
{
	struct turn *turn = bpf_map_lookup_elem(&turns, &lane->turn);
	bool is_overrun = false;
	struct task *task;
	__u64 ran = 0;

	if (!turn)
		return;
	task = task_at(turn->task);
	if (task && lane->tid && task->tid == lane->tid) {
		ran = task->used - lane->begun;
		is_overrun = turn->is_last && task->is_runnable && task->runnable_at < lane->until;
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
	send(lane, number, turn, ran, is_overrun);
}

/* Gives the turn that begins to its owner. */
static __always_inline void begin_turn(struct lane *lane, __u32 number, __u64 time)
{
	__u32 at = lane->first + lane->next;
	struct turn *turn = bpf_map_lookup_elem(&turns, &at);
	struct task *task;
	__u64 until;

	if (!turn)
		return;
	until = start + (lane->round * slots + turn->to) * slot_ns;
	if (time >= until) {
		if (!find_turn(lane, time))
			return;
		at = lane->first + lane->next;
		turn = bpf_map_lookup_elem(&turns, &at);
		if (!turn)
			return;
		until = start + (lane->round * slots + turn->to) * slot_ns;
	}
	lane->turn = at;
	lane->slot = lane->round * slots + turn->from;
	lane->from = start + lane->slot * slot_ns;
	lane->until = until;
	lane->previous = lane->number;
	lane->number = lane->round * lane->count + lane->next;
	lane->error = time > lane->from ? time - lane->from : 0;
	lane->tid = 0;
	lane->outside = 0;
	lane->is_skipped = false;
	lane->has_turn = true;
	if (++lane->next == lane->count) {
		lane->next = 0;
		lane->round++;
	}

	task = task_at(turn->task);
	if (!task)
		return;
	if (task->is_skipping) {
		lane->is_skipped = true;
		task->is_skipping = !turn->is_last;
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
	__u32 task = NONE, mine = previous ? task_number(previous) : NONE;
	struct turn *turn = bpf_map_lookup_elem(&turns, &lane->turn);

	if (lane->has_turn && turn)
		task = turn->task;
	if (task == NONE) {
		bool found =
			scx_bpf_dsq_move_to_local___v2___punctual(QUEUE_OF_OTHERS, immediately);

		if (!found && previous && mine == NONE && is_queued(previous))
			scx_bpf_task_set_slice(previous, SLICE_DEFAULT);
		return;
	}
	if (lane->is_skipped || !lane->tid)
		return;
	if (previous && mine == task && is_queued(previous))
		scx_bpf_task_set_slice(previous, SLICE_FOR_EVER);
	else if (scx_bpf_dsq_move_to_local___v2___punctual(QUEUE_OF_TASK(task), immediately))
		lane->is_awaited = lane->is_awaited == 1 ? 2 : 0;
}

SEC("struct_ops/dispatch")
void BPF_PROG(tt_dispatch, __s32 cpu, struct task_struct *previous)
{
	__u32 number = lane_number(cpu);
	struct lane *lane = lane_at(number);
	__u64 time = now();

	if (!lane) {
		scx_bpf_dsq_move_to_local___v2___punctual(QUEUE_OF_OTHERS, immediately);
		return;
	}
	if (previous && is_queued(previous)) {
		struct task *task = task_at(task_number(previous));

		if (task)
			task->used = previous->se.sum_exec_runtime;
	}
	lane->is_awaited = false;
	if (is_going && time + EARLY >= lane->until) {
		if (lane->has_turn)
			end_turn(lane, number);
		begin_turn(lane, number, time);
		lane->is_awaited = true;
	}
	serve(lane, previous);
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
	struct task *task = task_at(task_number(p));

	if (!task)
		return;
	if (task->is_new)
		welcome(task, p);
	task->is_runnable = true;
	task->runnable_at = now();
}

SEC("struct_ops/quiescent")
void BPF_PROG(tt_quiescent, struct task_struct *p, __u64 flags)
{
	struct task *task = task_at(task_number(p));

	if (task)
		task->is_runnable = false;
}

/* Whether the processor's turn is this task's. */
static __always_inline bool has_turn(struct lane *lane, __u32 task)
{
	struct turn *turn = lane ? bpf_map_lookup_elem(&turns, &lane->turn) : NULL;

	return turn && lane->has_turn && turn->task == task && !lane->is_skipped;
}

SEC("struct_ops/running")
void BPF_PROG(tt_running, struct task_struct *p)
{
	__u32 number = task_number(p);
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
	struct task *task = task_at(task_number(p));

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
	event = (void *)due - bpf_core_field_offset(struct perf_event, hw.hrtimer);
	if (BPF_CORE_READ(event, attr.config1) != mark + number)
		return 0;
	timer->due = BPF_CORE_READ(due, _softexpires);
	timer->count++;
	if (is_going && now() + EARLY >= lane->until)
		scx_bpf_kick_cpu(cpu, KICK_PREEMPT);
	return 0;
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
	.init = (void *)tt_init,
	.exit = (void *)tt_exit,
	.name = "punctual_tt",
};
