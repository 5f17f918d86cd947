/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the programs and user space share: the records of the ring buffer and the state of each
 * watched thread. User space gets these types from the skeleton (struct interface, below). Times
 * are nanoseconds of CLOCK_MONOTONIC.
 */
#ifndef PUNCTUAL_INTERFACE_H
#define PUNCTUAL_INTERFACE_H

/* Separators: enum call and enum file_class. */
#include "separators.gen.h"

/* What else a system call can be; beyond the numbers of enum call. */
enum other_call {
	CALL_SOCKETCALL = 250, /* socketcall(2) of i386: one number for many calls */
	CALL_IPC = 251,	       /* ipc(2) of i386: likewise */
	CALL_SET_CLOCK = 249,  /* clock_settime(2) and others */
	CALL_FUTEX = 252,      /* futex(2): which separator it is depends on its operation */
	CALL_RESTART = 253,    /* restart_syscall(2): resumes the call that a signal interrupted */
	CALL_SET = 254,	       /* sched_set*(2): a task transition may follow */
	CALL_NONE = 255,
};

/* What a call waits on where that is not a file; beyond the numbers of enum file_class. */
enum object_class {
	OBJECT_NONE = 0,
	OBJECT_CLOCK = 250,
	OBJECT_CLOCK_ABSOLUTE = 251,
	OBJECT_ADDRESS = 252,
	OBJECT_ID = 253,
	OBJECT_NEVER_BLOCKS = 255, /* a file whose reading separates nothing */
};

enum limits {
	SYSTEM_CALLS = 512,	 /* numbers of one kind of program; a power of two */
	SYSTEM_CALL_KEYS = 1024, /* of 64-bit programs, then of 32-bit ones */
	COMM_LENGTH = 16,
	AFFINITY_WORDS = 16,
	CGROUP_LEVELS = 16,
	COMMAND_LENGTH = 256,
	FILE_NAME_LENGTH = 48,
	INTERRUPT_NAME_LENGTH = 32,
	MOST_READY = 4, /* a power of two */
	SLOT_SIZE = 32, /* of a processor's last moments */
	SLOTS_WITH_NAME = 3,
	SHORT_NAME_LENGTH = 16,
};

enum record_kind {
	RECORD_TASK = 1,
	RECORD_ACTIVATION = 2,
	RECORD_RENAMED = 3,
	RECORD_EXIT = 4,
	RECORD_COMMAND = 5,
	RECORD_SWITCH = 6,
	RECORD_BYSTANDER = 7,
	RECORD_BYSTANDER_EXIT = 8,
	RECORD_BUSY = 9,
	RECORD_CLOCK_SET = 10,
	RECORD_BLOCKED = 11,
	RECORD_FAULTED = 12,
	RECORD_TAKEN = 13,
	RECORD_BOTH = 14, /* kept: a switch_record of the thread that left; `by` is who came */
};

/* What the scheduler did with a thread: the flags of a switch record. */
enum step {
	STEP_IN = 0,
	STEP_PREEMPTED = 1,
	STEP_ASLEEP = 2,		 /* a signal would wake it */
	STEP_ASLEEP_UNINTERRUPTIBLE = 3, /* only what it waits for does */
	STEP_WOKEN = 4,
	STEP_STOPPED = 5,   /* by a signal, or a debugger */
	STEP_THROTTLED = 6, /* ready, but its cgroup has used up its quota */
	STEP_ENDED = 8,	    /* kept only */
	STEP_MOVED = 7,	    /* from the queue of one processor to that of another */
};

enum activation_flags {
	ACTIVATION_SLEPT = 1,	     /* the thread slept in the call */
	ACTIVATION_RESUMED = 2,	     /* earliest, latest, start are given */
	ACTIVATION_DISTURBANCE = 12, /* what moved the release: a disturbance, shifted by two */
	ACTIVATION_READY = 112,	     /* how many keys of `ready` are given, shifted by four */
};

enum disturbance {
	DISTURBANCE_NONE = 0,
	DISTURBANCE_SIGNAL =
		1, /* of a suspension: the thread was stopped, which releases nothing */
	DISTURBANCE_ENDING = 2, /* the thread is being ended, or what it waited for was shut down */
	DISTURBANCE_STALL = 3,	/* a hypervisor had taken the processor when the timer expired */
};

enum begin {
	BEGIN_SEEN = 0,
	BEGIN_POLICY = 1,
	BEGIN_PRIORITY = 2,
	BEGIN_AFFINITY = 3,
	BEGIN_EXEC = 4,
};

struct header {
	__u8 kind;
	__u8 flags; /* activation_flags, or begin */
	__u8 call;
	__u8 object_class;
	__u32 tid;	/* in the initial PID namespace */
	__u32 sequence; /* records of this thread so far, sent or dropped */
	__s32 number;	/* descriptor, clock or identifier */
};

struct activation {
	struct header header;
	__u64 object;	/* inode, device or address */
	__u64 stop;	/* the job before ended */
	__u64 cpu;	/* processor time of the thread at `stop`, since it was created, with what
			   readings by the clock were ahead */
	__u64 arrival;	/* when the next job should come; 0: unknown */
	__u64 earliest; /* release of the next job: not before, … */
	__u64 latest;	/* … not after */
	__u64 start;	/* ran again */
	__u64 suspended_after;	 /* asleep inside the call after the release */
	__u64 expirations;	 /* of a timer, that the call stands for; 0: not known */
	__u32 ready[MOST_READY]; /* what the call waited for and was ready: keys, in any order */
};

/* The key of a wait that nothing else ended. */
#define READY_TIMEOUT 0xffffffffU

struct task_record {
	struct header header;
	__u64 at;
	__u64 runtime, deadline, period; /* of SCHED_DEADLINE */
	__u32 tgid;
	__u32 seen_tid; /* tid and tgid in the observer's PID namespace; 0 if not there */
	__u32 seen_tgid;
	__u32 policy;
	__u32 rt_priority;
	__s32 nice;
	__u32 kernel_thread;
	__u32 command_length; /* of `command`; 0: ask /proc */
	__u8 comm[COMM_LENGTH];
	__u64 affinity[AFFINITY_WORDS];
	__u8 command[COMMAND_LENGTH]; /* arguments, each with its NUL; after an exec only */
};

struct renamed {
	struct header header;
	__u8 comm[COMM_LENGTH];
};

struct command_record {
	struct header header;
	__u32 seen_tgid;
	__u32 length;
	__u8 command[COMMAND_LENGTH];
};

/* The thread's task ends here and has not waited once; sent before what ends it. */
struct busy_record {
	struct header header;
	__u64 cpu; /* processor time that the task took */
};

/* CLOCK_REALTIME was set. Of no thread. */
struct clock_record {
	struct header header;
	__u64 at;
	__s64 by; /* nanoseconds forward */
};

struct exit_record {
	struct header header;
	__u64 at;
};

/* A step of the scheduler; sent on request only, and not counted in the thread's sequence. */
struct switch_record {
	struct header header;
	__u64 at;
	__u32 cpu; /* of the waker, for a wake-up; the one that it leaves, if it is moved */
	__u32 by; /* who woke it, in the observer's PID namespace; 0: an interrupt, or a thread that
		     is not in it. To where it is moved */
};

enum blocked_flags {
	BLOCKED_NARROW = 1,	/* the program has 32 bits */
	BLOCKED_SHORT_NAME = 2, /* kept: the file's name stands in place of the other fields */
};

/* Sent just before the switch of a thread that goes to sleep: what it waits for. Takes no sequence
 * number, like a switch. */
struct blocked_record {
	struct header header; /* flags: blocked_flags; call: of futex(2); number: of its system
				 call; negative: a page fault */
	__u64 argument;	      /* the first one of the call */
	__u32 owner;	      /* who holds the lock; 0: not known */
	__u32 cpu;
	__u64 at;
	__u8 name[FILE_NAME_LENGTH]; /* of the file that the argument describes, if it does */
};

/* Sent just before a thread leaves its processor: its page faults since it last did. Takes no
 * sequence number. */
struct faulted_record {
	struct header header; /* number: of major ones */
	__u64 at;
	__u32 cpu;
	__u32 minor;
};

/* What took a processor from its thread: the flags of a taken_record. */
enum taker {
	TAKER_DEVICE = 0,    /* number: of the interrupt; name: of its handler */
	TAKER_SOFTIRQ = 1,   /* number: of the softirq */
	TAKER_TIMER = 2,     /* the processor's own timer */
	TAKER_PROCESSOR = 3, /* a request of another processor */
	TAKER_HYPERVISOR = 4,
	TAKERS = 5,
};

/* A time in which something else than a thread had the processor. Belongs to no thread. */
struct taken_record {
	struct header header;
	__u64 at;   /* when it was over */
	__u64 time; /* how long it took; by a hypervisor, some time since the last switch */
	__u32 cpu;
	__u8 name[INTERRUPT_NAME_LENGTH];
};

/*
 * The last moments of a processor: records of steps, and of what comes with them, in slots. Each
 * record begins a slot: the sequence in its header is the number of that slot, counted from the
 * beginning, and its object_class how many slots it takes. A record that has no name takes one slot
 * and lacks what does not fit: the processor, which is the ring's, and of a `blocked_record` the
 * time, which is that of the next step. The last record may reach into the slots beyond the last.
 */
struct moments {
	__u64 taken; /* slots so far */
	__u64 padding[7];
	__u8 slots[SLOT_SIZE * SLOTS_WITH_NAME];
};

/* What is remembered of a thread that is not watched and of which only switches are recorded. It is
 * introduced again when any of this changes. */
struct bystander {
	__u64 started; /* when the thread began: its number may be used again */
	char comm[COMM_LENGTH];
	__u32 policy;
	__u32 rt_priority;
	__s32 static_priority;
	__u32 padding; /* old verifiers want all bytes to be set */
};

enum thread_state {
	THREAD_UNKNOWN = 0,
	THREAD_RUNNING = 1,
	THREAD_PREEMPTED = 2,
	THREAD_ASLEEP = 3,
};

/*
 * The state of a watched thread. Written by the thread itself and by the scheduler on its
 * processor; `waking` by its wakers. In the order of use: an event begins with cold caches, and
 * each cache line costs.
 */
struct thread {
	__u64 waking;
	__u64 stop; /* last time it went to sleep */
	/* Processor time at `clock_from`; since then at most the time that has passed. */
	__u64 clock_from;
	__u64 cpu_then;
	__u64 unaccounted; /* what readings by the clock were ahead of the account, in all */
	__u64 parameters;  /* of all that makes the task; a change is looked into */

	/* The call that it is in, and what has happened in it. */
	__u8 state;
	__u8 sleep; /* sleep_kind of the sleep that it is in */
	__u8 call;
	__u8 released;	  /* sleep_kind of the sleep that the release comes from */
	__u8 interrupted; /* left for a signal; may be restarted: enum interruption */
	__u8 unhooked;	  /* the end of its call will not be seen */
	__u8 object_class;
	__u8 known_class;
	__s32 number;
	__s32 system_call; /* the key of `call`: its number, and of which kind of program */
	__u32 sequence;
	__u32 tid;
	__u64 entry;
	__u64 cpu_at_entry;
	__u64 voluntary_switches; /* the kernel's own count at the entry */
	__u64 first_stop;	  /* 0: has not slept yet */
	__u64 cpu_at_stop;
	__u64 arrival;
	__u64 earliest, latest, start;
	__u64 suspended_after;
	__u64 object;
	__u64 expirations;
	__u64 left;  /* when it left the call for a signal */
	__u64 until; /* what an absolute sleep was given, on its own clock */

	/* The kernel's own account of waiting for a processor, as of the last stop, and how far its
	 * clock was behind ours when. */
	__u64 run_delay;
	__u64 arrivals;
	__u64 clock_offset; /* 0: unknown */
	__u64 clock_read_at;

	/* What a hypervisor had taken from the processor that the thread stopped on, when it did;
	 * and what it took in the sleep that the release comes from. */
	__u64 stolen;
	__u64 stolen_before_release;
	__u32 stolen_cpu;

	/* The task: a change of any of these is a transition. */
	__u32 policy;
	__u32 rt_priority;
	__s32 nice;
	__u8 command_sent; /* its command line was sent */
	__u8 disturbance;
	__u8 restarted;	    /* the call goes on after a signal */
	__u8 read_by_clock; /* in this turn on a processor a record has left with a reading by the
			       clock */
	__u8 waited;	    /* since the task began */
	__u64 reservation;
	__u64 affinity;
	__u64 cpu_at_begin; /* of the task */

	/* Its page faults as of its last record of them; 0: not known. */
	__u64 minor_faults, major_faults;

	/* The descriptor that it used last, so that it need not be looked into again. */
	__u64 known_file, known_inode, known_identity;
};

enum sleep_kind {
	SLEEP_NONE = 0,
	SLEEP_STOPPED = 1,	   /* by a signal, or a debugger */
	SLEEP_UNINTERRUPTIBLE = 2, /* disk, locks of the kernel */
	SLEEP_INTERRUPTIBLE = 3,   /* what calls that wait for events do */
	SLEEP_OVER = 4,		   /* greater than any sleep: what the call waits for has come */
};

/* How a call that was left for a signal goes on. */
enum interruption {
	INTERRUPTED_NOT = 0,
	INTERRUPTED_BY_HANDLER = 1, /* restarted, unless a handler runs */
	INTERRUPTED_BY_CHOICE =
		2,	       /* restarted, unless a handler runs that is not to restart calls */
	INTERRUPTED_NEVER = 3, /* always restarted */
	INTERRUPTED_FOR_GOOD =
		4, /* a handler has run; the program may go on with a sleep by itself */
};

enum counter {
	COUNTER_DROPPED = 0,   /* records that found no room */
	COUNTER_UNTRACKED = 1, /* threads that found no room */
	COUNTER_ENDED = 2,     /* processes that were to be watched and have ended */
	COUNTER_UNSEEN = 3,    /* threads that ended before a switch to them was seen */
	COUNTERS = 4,
};

enum target {
	TARGET_ALL_REAL_TIME = 0,
	TARGET_PROCESSES = 1,
	TARGET_CGROUP = 2,
};

/* Names every type that user space needs: the skeleton has only those that BTF describes. */
struct interface {
	struct task_record task;
	struct activation activation;
	struct renamed renamed;
	struct command_record command;
	struct exit_record exit;
	struct busy_record busy;
	struct clock_record clock;
	struct switch_record switched;
	struct blocked_record blocked;
	struct faulted_record faulted;
	struct taken_record taken;
	struct moments moments;
	enum blocked_flags blocked_flags;
	struct thread thread;
	enum call call;
	enum file_class file_class;
	enum other_call other_call;
	enum object_class object_class;
	enum limits limits;
	enum record_kind record_kind;
	enum step step;
	enum taker taker;
	enum activation_flags activation_flags;
	enum disturbance disturbance;
	enum begin begin;
	enum thread_state thread_state;
	enum sleep_kind sleep_kind;
	enum counter counter;
	enum target target;
};

#endif
