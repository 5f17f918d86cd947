/*
 * punctual-plugin.h: plugins of punctuald from shared objects.
 *
 * A plugin decides whether a spec can be admitted, on which processor its thread runs, and under
 * which policy. It does not call the kernel: the daemon does, which also pins the thread, remembers
 * what to undo, and checks the rules first.
 *
 * A shared object exports one function, punctual_plugin(), which returns a description that stays
 * valid. Compile with
 *
 *     cc -std=c11 -O2 -fPIC -shared -o mine.so mine.c
 *
 * and name it in punctuald.toml:
 *
 *     [[plugin]]
 *     name = "mine"
 *     object = "/usr/lib/punctual/mine.so"
 *
 * The object is opened only if root (or the user that the daemon runs as) owns it and nobody else
 * may write it. It then runs inside the daemon: if it crashes, so does the daemon. The daemon calls
 * it from one thread, one call after another; a call must return soon and must not change signals,
 * the working directory or the environment. The same object may be configured several times, with
 * one instance each, made by init().
 *
 * Times are nanoseconds. Strings are UTF-8 and end with a zero. What the daemon passes is valid
 * during the call only, but for the instance, which is the plugin's. SPDX-License-Identifier: MIT
 * OR Apache-2.0
 */
#ifndef PUNCTUAL_PLUGIN_H
#define PUNCTUAL_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The version of this interface. It changes when old plugins would not work any more, and the
 * daemon then refuses them. Structures may grow at their ends: each begins with its size as its
 * writer knows it, and fields beyond that size are absent.
 */
#define PUNCTUAL_PLUGIN_ABI 1u

/* Which parameters a spec declares: bits of punctual_parameters.declared. A field whose bit is not
 * set is 0. */
#define PUNCTUAL_PLUGIN_RUNTIME		(1u << 0)
#define PUNCTUAL_PLUGIN_DESIRED_RUNTIME (1u << 1)
#define PUNCTUAL_PLUGIN_PERIOD		(1u << 2)
#define PUNCTUAL_PLUGIN_DEADLINE	(1u << 3)
#define PUNCTUAL_PLUGIN_PRIORITY	(1u << 4)

/*
 * What a client declares. Bounds that hold for every plugin (no zero times, runtime at most desired
 * runtime, priority in the kernel's range) were checked before.
 */
struct punctual_parameters {
	uint32_t size;
	uint32_t declared;	     /* bits, see above */
	uint64_t runtime_ns;	     /* Q: longest processor time of a job */
	uint64_t desired_runtime_ns; /* Q^d, at least Q */
	uint64_t period_ns;	     /* T */
	uint64_t deadline_ns;	     /* D, relative; T where it is not declared */
	uint32_t priority;	     /* higher is more urgent */
	uint32_t ignore_admission;   /* 1: admit it even if the test fails; the rules allow it */
};

/* How the administrator configures the plugin, and what the kernel accepts at all. */
struct punctual_configuration {
	uint32_t size;
	uint32_t priority_min; /* what it may give out, of SCHED_FIFO and SCHED_RR */
	uint32_t priority_max;
	uint32_t processor_count;   /* at least 1 */
	const uint32_t *processors; /* what it may use, ascending */
	const char *name;
	double threshold; /* U^thr: how much of each processor it may give out, above 0 and at most
			     1 */
	uint32_t exact;	  /* 1: admission = "exact"; 0: "utilization" */
	uint32_t reserved;
	uint64_t least_runtime_ns; /* SCHED_DEADLINE's */
	uint64_t least_period_ns;
	uint64_t greatest_period_ns;
};

/* A plugin's offer for a spec. Not binding until schedule(). */
struct punctual_offer {
	uint32_t size;
	uint32_t processor;	      /* one of its processors */
	uint64_t accepted_runtime_ns; /* Q^a: from Q to Q^d. 0 where no runtime was declared */
	uint32_t ignored;	      /* 1: the admission test failed, and was ignored as asked */
	uint32_t reserved;
};

/* The policies of a spec's thread. */
#define PUNCTUAL_PLUGIN_POLICY_FIFO	1u
#define PUNCTUAL_PLUGIN_POLICY_RR	2u
#define PUNCTUAL_PLUGIN_POLICY_DEADLINE 6u

struct punctual_assignment {
	uint32_t size;
	uint32_t processor;  /* the one that it is pinned to */
	uint32_t policy;     /* the kernel's number, see above */
	uint32_t priority;   /* of FIFO and RR, within the configured range */
	uint64_t runtime_ns; /* of DEADLINE: runtime <= deadline <= period */
	uint64_t deadline_ns;
	uint64_t period_ns;
};

struct punctual_load {
	uint32_t processor;
	uint32_t specs;
	double utilization; /* sum of Q^a / min(T, D) of the specs that declare them */
};

/* Answers of accept() and change(). */
#define PUNCTUAL_PLUGIN_OK	0 /* all that is needed is known, and met */
#define PUNCTUAL_PLUGIN_PARTIAL 1 /* it can be taken, but a recommended parameter is missing */
#define PUNCTUAL_PLUGIN_NO	2 /* it cannot */

/*
 * A plugin. All functions but attach() and detach() must be there. `self` is what init() returned.
 * A spec is a number that the daemon gives and never uses again.
 */
struct punctual_plugin_description {
	uint32_t abi_version; /* PUNCTUAL_PLUGIN_ABI */
	uint32_t size;	      /* sizeof(struct punctual_plugin_description) */

	/* Makes an instance. NULL: it cannot be, and `error` (of `room` bytes) says why; the daemon
	 * then does not start, or keeps its old configuration. */
	void *(*init)(const struct punctual_configuration *configuration, char *error, size_t room);

	/* Ends an instance, whatever it still holds. */
	void (*destroy)(void *self);

	/*
	 * The admission test for a new spec. PUNCTUAL_PLUGIN_OK or PUNCTUAL_PLUGIN_PARTIAL: the
	 * offer is filled in. PUNCTUAL_PLUGIN_NO: `reason` (of `room` bytes) says why: which test,
	 * on which processor, what was needed and what there is. It goes to the client. Changes
	 * nothing that could be seen.
	 */
	int (*accept)(void *self, const struct punctual_parameters *parameters,
		struct punctual_offer *offer, char *reason, size_t room);

	/* The same for new parameters of a spec that is there already; if this instance has it, it
	 * counts as gone. It stays as it is. */
	int (*change)(void *self, uint64_t spec, const struct punctual_parameters *parameters,
		struct punctual_offer *offer, char *reason, size_t room);

	/*
	 * Takes a spec in, as it was offered. After a change it is released first, and nothing
	 * comes between. It may also be a spec that another daemon admitted before this one was
	 * started: then no accept() came before, and the offer is how it was scheduled.
	 */
	void (*schedule)(void *self, uint64_t spec, const struct punctual_parameters *parameters,
		const struct punctual_offer *offer);

	/* Forgets a spec. Specs that it does not have are none of its business. */
	void (*release)(void *self, uint64_t spec);

	/* What holds for a spec now: 0 and the assignment, or -1 where it has no such spec. May
	 * change when others come and go: see shifted(). */
	int (*assignment)(void *self, uint64_t spec, struct punctual_assignment *assignment);

	/* 1 if assignments of other specs than the one scheduled or released may have changed since
	 * this was last asked. The daemon then tells the kernel. */
	int (*shifted)(void *self);

	/* Its books: fills in at most `room` loads, one for each processor, and returns how many.
	 */
	size_t (*loads)(void *self, struct punctual_load *loads, size_t room);

	/* The thread of a spec is scheduled as assigned from now on (a TID in the daemon's PID
	 * namespace). May be NULL. */
	void (*attach)(void *self, uint64_t spec, uint32_t thread);

	/* It is so no longer; it may have ended. May be NULL. */
	void (*detach)(void *self, uint64_t spec);
};

/* What a shared object exports. */
const struct punctual_plugin_description *punctual_plugin(void);

#ifdef __cplusplus
}
#endif

#endif
