/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the programs and user space share; user space gets these types from the skeleton. */
#ifndef PUNCTUAL_FLOW_H
#define PUNCTUAL_FLOW_H

enum flow_limits { MOST_PROBES = 32, MOST_STEPS = 4, MOST_NAME = 64 };

/* As the kinds of events in a trace, and more. A round is the end of a barrier's count. */
enum flow_kind {
	FLOW_PUSH,
	FLOW_ACTIVATION,
	FLOW_START,
	FLOW_STOP,
	FLOW_NAME,
	FLOW_CONNECTION,
	FLOW_ROUND
};

/* The last but one are of four and of two: by the kind of the event, and of what is named. */
enum flow_counter {
	FLOW_LOST,
	FLOW_UNMATCHED,
	FLOW_UNREADABLE,
	FLOW_NAMELESS = FLOW_UNREADABLE + 4,
	FLOW_UNCONNECTED = FLOW_NAMELESS + 2, /* connections whose ends could not be read */
	FLOW_EARLIER, /* starts and stops of what was activated or started before the probes */
	FLOW_COUNTERS
};

/* Where something lies: pointers to follow, from an argument of the function; the last step is not
 * followed. */
struct flow_place {
	__u8 argument;
	__u8 steps; /* 0: the argument itself */
	__u8 bytes; /* of a number */
	__u8 unused;
	__s32 offsets[MOST_STEPS];
};

struct flow_probe {
	struct flow_place id;
	struct flow_place name;
	/* Of a connection: its channel, and how the input counts. Without bytes: not known. */
	struct flow_place channel;
	struct flow_place synchronised;
	struct flow_place threshold;
	struct flow_place is_final;
	__u8 kind;
	__u8 has_id;	 /* or is that of the task that the thread runs */
	__u8 has_name;	 /* as text in the program */
	__u8 is_barrier; /* a push that does not always notify the inputs */
};

struct flow_event {
	__u64 at;
	__u64 object;
	__u64 place; /* the address of its id; 0 where that is an argument itself */
	__u32 tid;
	__u32 number;
	__u32 probe;
	__u32 kind;
};

struct flow_name {
	struct flow_event event; /* of kind FLOW_NAME; its number is the kind of what is named */
	__u8 text[MOST_NAME];
};

/* An input: a channel and a task that its data can activate. */
struct flow_connection {
	struct flow_event event; /* of kind FLOW_CONNECTION; its object is the task */
	__u64 channel;
	__u32 synchronised;
	__u32 threshold;
	__u32 is_final;
	__u32 unused;
};

/* Names every type that user space needs: the skeleton has only those that BTF describes. */
struct flow_interface {
	struct flow_probe probe;
	struct flow_name name;
	struct flow_connection connection;
	enum flow_limits limits;
	enum flow_kind kind;
	enum flow_counter counter;
};

#endif
