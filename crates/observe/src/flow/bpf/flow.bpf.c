/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The events and connections of a dataflow program, at functions of a framework that does not
 * trace them itself. The loader sets which function is which event, and where identities and names
 * lie; nothing here knows a framework.
 */
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include "flow.h"

const volatile struct flow_probe probes[MOST_PROBES] = {};

/* The program ran before; its tasks may be queued or executing. */
const volatile bool is_late = false;

__u64 counters[FLOW_COUNTERS] = {};

/* All probes begin at once, after the last one is in place. */
volatile __u32 is_on = 0;

struct flow_interface *types_for_skeleton;

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 16 * 1024 * 1024);
} records SEC(".maps");

struct object_key {
	__u64 id;
	__u32 is_channel;
	__u32 unused;
};

struct object {
	__u64 place; /* where its id was read first, or its name where its id is an argument */
	__u32 first; /* pushes of a channel, activations of a task */
	__u32 starts;
	__u32 names_sent;
	__u32 is_barrier;
};

/* The name of one object, read where its id or name is found elsewhere too, shows whether it is
 * one. */
enum { MOST_NAMES_SENT = 4 };

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__type(key, struct object_key);
	__type(value, struct object);
} objects SEC(".maps");

/* Inputs that were sent, and how they counted then. */
struct input_key {
	__u64 channel;
	__u64 task;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__type(key, struct input_key);
	__type(value, __u64);
} inputs SEC(".maps");

/* What a thread executes. */
struct execution {
	__u64 task;
	__u32 number;
	__u32 runs;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__type(key, __u32);
	__type(value, struct execution);
} executions SEC(".maps");

static __always_inline void count(__u32 which)
{
	__sync_fetch_and_add(&counters[which], 1);
}

/*
 * The arguments, read one by one before any is chosen: the verifier lets no register be read at a
 * place that is computed. The room is a power of two, so that any number can be cut to it.
 */
struct arguments {
	__u64 values[8];
};

static __always_inline void take_arguments(struct pt_regs *registers, struct arguments *arguments)
{
#if defined(__TARGET_ARCH_x86)
	arguments->values[0] = registers->di;
	arguments->values[1] = registers->si;
	arguments->values[2] = registers->dx;
	arguments->values[3] = registers->cx;
	arguments->values[4] = registers->r8;
	arguments->values[5] = registers->r9;
#else
	for (int number = 0; number < 6; number++)
		arguments->values[number] = registers->regs[number];
#endif
	arguments->values[6] = 0;
	arguments->values[7] = 0;
}

/* Follows a place to its address, or to the argument itself. */
static __always_inline bool follow(
	const struct arguments *arguments, const volatile struct flow_place *place, __u64 *address)
{
	__u64 at = arguments->values[place->argument & 7];

	for (int step = 0; step < MOST_STEPS; step++) {
		if (step >= place->steps)
			break;
		at += (__s64)place->offsets[step];
		if (step + 1 < place->steps && bpf_probe_read_user(&at, sizeof(at), (void *)at))
			return false;
	}
	*address = at;
	return true;
}

/* And where it was read: 0 for an argument itself. */
static __always_inline bool identity(const struct arguments *arguments,
	const volatile struct flow_place *place, __u64 *id, __u64 *address)
{
	__u32 bytes = place->bytes;

	if (!follow(arguments, place, address))
		return false;
	*id = 0;
	if (place->steps == 0) {
		*id = *address;
		*address = 0;
		return true;
	}
	if (bytes == 0 || bytes > 8)
		return false;
	return bpf_probe_read_user(id, bytes, (void *)*address) == 0;
}

static __always_inline void fill(struct flow_event *event, __u64 at, __u64 object, __u64 place,
	__u32 number, __u32 probe, __u32 kind)
{
	event->at = at;
	event->object = object;
	event->place = place;
	event->tid = (__u32)bpf_get_current_pid_tgid();
	event->number = number;
	event->probe = probe;
	event->kind = kind;
}

/* Sends its name, before its first event. */
static __always_inline void send_name(const struct arguments *arguments,
	const volatile struct flow_probe *probe, __u64 at, __u64 id, __u32 which)
{
	struct flow_name *name = bpf_ringbuf_reserve(&records, sizeof(*name), 0);
	__u64 address;

	if (!name) {
		count(FLOW_LOST);
		return;
	}
	fill(&name->event, at, id, 0, probe->kind, which, FLOW_NAME);
	name->text[0] = 0;
	if (!follow(arguments, &probe->name, &address) ||
		bpf_probe_read_user_str(name->text, sizeof(name->text), (void *)address) < 0) {
		name->text[0] = 0;
		count(FLOW_NAMELESS + (probe->kind != FLOW_PUSH));
	}
	bpf_ringbuf_submit(name, BPF_RB_NO_WAKEUP);
}

static __always_inline struct object *lookup(const struct arguments *arguments,
	const volatile struct flow_probe *probe, __u64 at, __u64 id, __u64 place, __u32 which)
{
	struct object_key key = {.id = id, .is_channel = probe->kind == FLOW_PUSH};
	struct object *object = bpf_map_lookup_elem(&objects, &key);
	struct object first = {.place = place, .names_sent = 1};
	bool is_new_place;

	if (!place && probe->has_name && follow(arguments, &probe->name, &place))
		first.place = place;
	if (object) {
		is_new_place = object->place != place && object->names_sent < MOST_NAMES_SENT;
		object->names_sent += is_new_place;
	} else {
		/* Of two at once, only one finds that it is the first. */
		is_new_place = bpf_map_update_elem(&objects, &key, &first, BPF_NOEXIST) == 0;
		object = bpf_map_lookup_elem(&objects, &key);
	}
	if (is_new_place && probe->has_name)
		send_name(arguments, probe, at, id, which);
	return object;
}

static __always_inline __u32 number_at(
	const struct arguments *arguments, const volatile struct flow_place *place)
{
	__u64 value = 0, address;

	if (!place->bytes || !identity(arguments, place, &value, &address))
		return 0;
	return (__u32)value;
}

/* Sends an input when it is seen first, and when it counts in another way than before. */
static __always_inline int connection(const struct arguments *arguments,
	const volatile struct flow_probe *probe, __u64 at, __u32 which)
{
	struct flow_connection *sent;
	struct input_key key = {};
	__u64 counts, *before, place, other;
	__u32 synchronised, threshold, is_final;

	if (!identity(arguments, &probe->id, &key.task, &place) ||
		!identity(arguments, &probe->channel, &key.channel, &other)) {
		count(FLOW_UNCONNECTED);
		return 0;
	}
	synchronised = number_at(arguments, &probe->synchronised) != 0;
	threshold = number_at(arguments, &probe->threshold);
	is_final = number_at(arguments, &probe->is_final) != 0;
	counts = (__u64)threshold << 2 | synchronised << 1 | is_final;
	before = bpf_map_lookup_elem(&inputs, &key);
	if (before && *before == counts)
		return 0;
	sent = bpf_ringbuf_reserve(&records, sizeof(*sent), 0);
	if (!sent) {
		count(FLOW_LOST);
		return 0;
	}
	fill(&sent->event, at, key.task, place, 0, which, FLOW_CONNECTION);
	sent->channel = key.channel;
	sent->synchronised = synchronised;
	sent->threshold = threshold;
	sent->is_final = is_final;
	sent->unused = 0;
	bpf_ringbuf_submit(sent, BPF_RB_NO_WAKEUP);
	bpf_map_update_elem(&inputs, &key, &counts, BPF_ANY);
	return 0;
}

static __always_inline int handle(struct pt_regs *registers)
{
	__u64 at = bpf_ktime_get_ns();
	__u64 which = bpf_get_attach_cookie(registers);
	__u32 tid = (__u32)bpf_get_current_pid_tgid();
	const volatile struct flow_probe *probe;
	struct arguments arguments;
	struct execution *running;
	struct flow_event *event;
	struct object *object;
	__u32 number, kind;
	__u64 id = 0, place = 0;

	if (which >= MOST_PROBES || !is_on)
		return 0;
	probe = &probes[which];
	take_arguments(registers, &arguments);
	kind = probe->kind;
	if (kind == FLOW_CONNECTION)
		return connection(&arguments, probe, at, (__u32)which);
	if (probe->has_id && !identity(&arguments, &probe->id, &id, &place)) {
		count(FLOW_UNREADABLE + (kind & 3));
		return 0;
	}
	if (kind == FLOW_STOP) {
		running = bpf_map_lookup_elem(&executions, &tid);
		if (!running && is_late) {
			count(FLOW_EARLIER);
			return 0;
		}
		if (!running || !running->runs || (probe->has_id && running->task != id)) {
			count(FLOW_UNMATCHED);
			return 0;
		}
		running->runs = 0;
		id = running->task;
		number = running->number;
	} else {
		object = lookup(&arguments, probe, at, id, place, (__u32)which);
		if (!object) {
			count(FLOW_LOST);
			return 0;
		}
		if (kind == FLOW_START && is_late && !object->first) {
			/* Its next activation will be that of its next start. */
			count(FLOW_EARLIER);
			bpf_map_delete_elem(&executions, &tid);
			return 0;
		}
		if (kind == FLOW_START) {
			struct execution begun = {.task = id, .runs = 1};

			number = __sync_fetch_and_add(&object->starts, 1);
			begun.number = number;
			bpf_map_update_elem(&executions, &tid, &begun, BPF_ANY);
		} else if (object->is_barrier && !probe->is_barrier && kind == FLOW_PUSH) {
			/* In a push of the barrier, which was counted: inputs are notified. */
			number = object->first;
			kind = FLOW_ROUND;
		} else {
			if (probe->is_barrier)
				object->is_barrier = 1;
			number = __sync_fetch_and_add(&object->first, 1);
		}
	}
	event = bpf_ringbuf_reserve(&records, sizeof(*event), 0);
	if (!event) {
		count(FLOW_LOST);
		return 0;
	}
	fill(event, at, id, place, number, (__u32)which, kind);
	bpf_ringbuf_submit(event, BPF_RB_NO_WAKEUP);
	return 0;
}

SEC("uprobe")
int at_entry(struct pt_regs *registers)
{
	return handle(registers);
}

SEC("uretprobe")
int at_return(struct pt_regs *registers)
{
	return handle(registers);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
