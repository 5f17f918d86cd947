/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * libpunctual: declare a thread's timing needs, have them admitted, have it scheduled.
 *
 * A program connects to punctuald(8), creates a spec from the parameters that it declares, and
 * attaches a thread to it. From then on that thread runs under a real-time policy of the kernel, as
 * admitted. A spec belongs to the process (and user) that created it: it ends when it is released
 * or when the process ends, not when a connection closes. Threads that an attached thread starts do
 * not inherit its policy.
 *
 * Times are nanoseconds. Instants are those of CLOCK_MONOTONIC.
 *
 * Results: unless stated otherwise, functions return PUNCTUAL_OK (0) or their result (0 or
 * greater), and a negative enum punctual_error on failure; punctual_last_error_message() then
 * explains it for people. A function that fails changes nothing, not even the place for its result.
 *
 * Threads: every function may be called from any thread at any time, with these exceptions. A
 * handle must not be used by any thread once it is passed to the function that ends it
 * (punctual_disconnect, punctual_params_free, punctual_spec_release, punctual_spec_free).
 * Parameters have no lock: while one thread sets them, no other uses them. The loop of a spec
 * (punctual_spec_start, punctual_spec_wait_period) is for one thread at a time. Calls over one
 * connection wait for one another; a thread that must not wait for others needs its own connection.
 *
 * Real time: punctual_spec_wait_period, punctual_spec_get_accepted_runtime,
 * punctual_spec_get_release and punctual_spec_get_deadline_misses take no lock, allocate nothing
 * and do not ask the daemon: use them inside the loop. All functions that take a connection or say
 * "asks the daemon" block until it answers or the time limit is over. No function is
 * async-signal-safe.
 *
 * fork: a child must not use its parent's connections and specs; functions that need them fail
 * with PUNCTUAL_ERROR_FORKED. It may end the handles (which has no effect on the parent), and may
 * connect anew.
 */
#ifndef PUNCTUAL_H
#define PUNCTUAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Errors. Later versions may add some. */
enum punctual_error {
	PUNCTUAL_OK = 0,
	/* An argument is NULL or makes no sense; nothing was sent. */
	PUNCTUAL_ERROR_INVALID = -1,
	/* There is no daemon at the socket; nothing was done. */
	PUNCTUAL_ERROR_UNREACHABLE = -2,
	/* No answer came within the time limit. It may have been done:
	   punctual_list_specs tells. */
	PUNCTUAL_ERROR_TIMED_OUT = -3,
	/* The daemon went away before it answered. It may have been done:
	   punctual_list_specs tells. */
	PUNCTUAL_ERROR_LOST = -4,
	/* This version does not understand the answer. */
	PUNCTUAL_ERROR_PROTOCOL = -5,
	/* The handle belongs to the parent process. */
	PUNCTUAL_ERROR_FORKED = -6,
	/* No plugin takes it: parameters are missing, or the admission test fails. Ask for less,
	   or later. */
	PUNCTUAL_ERROR_NOT_ADMITTED = -7,
	/* The administrator's rules deny it. */
	PUNCTUAL_ERROR_NOT_PERMITTED = -8,
	/* A parameter is beyond a bound that nothing can lift. */
	PUNCTUAL_ERROR_OUT_OF_BOUNDS = -9,
	/* There is no such spec, or no longer. */
	PUNCTUAL_ERROR_NO_SUCH_SPEC = -10,
	/* There is no such thread, or no longer. */
	PUNCTUAL_ERROR_NO_SUCH_THREAD = -11,
	/* There is no plugin of that name. */
	PUNCTUAL_ERROR_NO_SUCH_PLUGIN = -12,
	/* The spec or the thread belongs to another user or process. */
	PUNCTUAL_ERROR_NOT_OWNER = -13,
	/* The spec has a thread already, or the thread a spec. */
	PUNCTUAL_ERROR_ALREADY_ATTACHED = -14,
	/* The spec has no thread. */
	PUNCTUAL_ERROR_NOT_ATTACHED = -15,
	/* The kernel refused what was admitted. */
	PUNCTUAL_ERROR_KERNEL_REFUSED = -16,
	/* The user has reached a limit of connections or specs. */
	PUNCTUAL_ERROR_TOO_MANY = -17,
	/* A bug in libpunctual. */
	PUNCTUAL_ERROR_INTERNAL = -18,
	/* Another thread has used the runtime of this period, under SCHED_DEADLINE: try again, a
	   period later at most. */
	PUNCTUAL_ERROR_NOT_YET = -19
};

/* Scheduling policies: the numbers of SCHED_FIFO, SCHED_RR and SCHED_DEADLINE in <sched.h>.
 */
enum punctual_policy {
	PUNCTUAL_POLICY_OTHER = 0,
	PUNCTUAL_POLICY_FIFO = 1,
	PUNCTUAL_POLICY_RR = 2,
	PUNCTUAL_POLICY_DEADLINE = 6
};

/* A connection to the daemon. */
struct punctual;
/* The declared parameters of a task. */
struct punctual_params;
/* A spec of this process. */
struct punctual_spec;

/*
 * The error of the last function that failed in the calling thread; PUNCTUAL_OK if none has.
 * Functions that succeed leave it as it is. Never fails.
 */
int punctual_last_error(void);

/*
 * What failed, on what, why, and what to do: one line of UTF-8 without an end of line; "" if
 * nothing has failed in the calling thread. The library owns the string, which is valid until the
 * next function fails in the same thread. Never fails.
 */
const char *punctual_last_error_message(void);

/*
 * The name of an error, such as "PUNCTUAL_ERROR_LOST"; "PUNCTUAL_OK" for 0 and greater. A constant.
 * Never fails.
 */
const char *punctual_error_name(int error);

/*
 * Connects to the daemon at `socket`, and puts a handle at `connection`, which the caller owns and
 * ends with punctual_disconnect. Where `socket` is NULL, it is the value of the environment
 * variable PUNCTUALD_SOCKET (which programs with more privileges than their caller ignore), else
 * /run/punctual/io.punctual.Scheduler1.
 *
 * If the daemon is restarted later, the next call reconnects by itself and finds the specs of this
 * process as they were.
 *
 * PUNCTUAL_ERROR_UNREACHABLE: there is none. PUNCTUAL_ERROR_INVALID: `connection` is NULL.
 */
int punctual_connect(const char *socket, struct punctual **connection);

/*
 * Ends the handle. The specs that were created through it are untouched, and their handles stay
 * valid. NULL is ignored. Never fails.
 */
void punctual_disconnect(struct punctual *connection);

/*
 * How long each later call over the connection waits for its answer, in nanoseconds; 0: for ever.
 * It is 5 s at first.
 */
int punctual_set_timeout(struct punctual *connection, uint64_t timeout_ns);

/*
 * Whether Polkit may ask the user about later requests over the connection to create or change a
 * spec, where the daemon's rules leave them to Polkit; at first not. With true, each later call may
 * wait for its answer for 125 s at least.
 */
int punctual_set_interactive(struct punctual *connection, bool interactive);

/*
 * Asks the daemon for nothing: checks whether it is there and answers.
 */
int punctual_ping(struct punctual *connection);

/*
 * Parameters, none of them declared yet. The caller owns them and ends them with
 * punctual_params_free. Setting them does not involve the daemon, and a spec keeps the values
 * that they had when it was created or changed. Never NULL.
 */
struct punctual_params *punctual_params_new(void);

/* Ends the handle. NULL is ignored. Never fails. */
void punctual_params_free(struct punctual_params *params);

/* Undeclares all of them. */
int punctual_params_clear(struct punctual_params *params);

/*
 * Setters declare a parameter; which ones are required depends on the plugin (punctuald(8)).
 * Values are checked when a spec is created or changed: zero is a value, and out of bounds.
 *
 * Getters return 1 and store the value where the parameter is declared, else 0, storing nothing.
 * `ns`, `priority` and `plugin` may be NULL.
 *
 * All return PUNCTUAL_ERROR_INVALID where `params` is NULL.
 */

/* Q: the longest processor time of a job. */
int punctual_params_set_runtime(struct punctual_params *params, uint64_t ns);
int punctual_params_get_runtime(const struct punctual_params *params, uint64_t *ns);

/* Q^d, at least Q: the processor time that a job can make use of. The accepted runtime lies between
 * the two. */
int punctual_params_set_desired_runtime(struct punctual_params *params, uint64_t ns);
int punctual_params_get_desired_runtime(const struct punctual_params *params, uint64_t *ns);

/* T: the least time between two releases. */
int punctual_params_set_period(struct punctual_params *params, uint64_t ns);
int punctual_params_get_period(const struct punctual_params *params, uint64_t *ns);

/* D: the time from its release in which a job must end; the period, if not declared. */
int punctual_params_set_deadline(struct punctual_params *params, uint64_t ns);
int punctual_params_get_deadline(const struct punctual_params *params, uint64_t *ns);

/* φ: the time from the beginning of a time-triggered table to the first release of a periodic task
 * (plugins of kind TT); 0, if not declared. What other plugins guarantee holds for every offset. */
int punctual_params_set_offset(struct punctual_params *params, uint64_t ns);
int punctual_params_get_offset(const struct punctual_params *params, uint64_t *ns);

/* B: the longest time that less urgent threads can delay a job, by locks for example; 0, if not
 * declared. */
int punctual_params_set_blocking(struct punctual_params *params, uint64_t ns);
int punctual_params_get_blocking(const struct punctual_params *params, uint64_t *ns);

/* P: greater is more urgent, as with sched_setscheduler(2). The kernel's priority may be another
 * one; the order is kept. */
int punctual_params_set_priority(struct punctual_params *params, uint32_t priority);
int punctual_params_get_priority(const struct punctual_params *params, uint32_t *priority);

/* The nice level, -20 to 19, for plugins of kind NICE. */
int punctual_params_set_nice(struct punctual_params *params, int nice);
int punctual_params_get_nice(const struct punctual_params *params, int *nice);

/*
 * The only plugin to ask, by its name in the daemon's configuration; NULL (as at first): all, in
 * their order. The name is copied; it has 256 bytes at most. The getter copies it to `plugin`,
 * which has room for `size` bytes: as much as fits, always ended.
 */
int punctual_params_set_plugin(struct punctual_params *params, const char *plugin);
int punctual_params_get_plugin(const struct punctual_params *params, char *plugin, size_t size);

/* Admit the spec even if the admission test fails, where the rules allow that. The getter returns
 * 1 or 0. */
int punctual_params_set_ignore_admission(struct punctual_params *params, bool ignore);
int punctual_params_get_ignore_admission(const struct punctual_params *params);

/*
 * Asks the daemon to admit a spec, and puts a handle at `spec`, which the caller owns and ends with
 * punctual_spec_release or punctual_spec_free. No thread is scheduled by it yet. `name` appears
 * in lists; NULL for none; at most 64 bytes. `params` and `name` are copied.
 *
 * PUNCTUAL_ERROR_NOT_ADMITTED, NOT_PERMITTED, OUT_OF_BOUNDS, NO_SUCH_PLUGIN, TOO_MANY: the daemon
 * refuses; the message names the plugin, rule or bound. PUNCTUAL_ERROR_UNREACHABLE: it cannot be
 * reached. TIMED_OUT, LOST: it may have been created nevertheless.
 */
int punctual_spec_create(struct punctual *connection, const struct punctual_params *params,
	const char *name, struct punctual_spec **spec);

/*
 * Asks the daemon to replace all parameters by `params`: on success the spec is scheduled by the
 * new ones, possibly by another plugin on another processor, and an attached thread switches
 * without losing its policy in between; after an error everything is as it was. A loop that has
 * begun continues, with the new period from the next release on. Errors as of punctual_spec_create,
 * and PUNCTUAL_ERROR_NO_SUCH_SPEC.
 */
int punctual_spec_change(struct punctual_spec *spec, const struct punctual_params *params);

/*
 * Asks the daemon to schedule a thread as admitted; when it returns, it is. `thread` is a TID
 * (gettid(2)) in this PID namespace of a thread of this user, a process's PID for its first thread,
 * or 0 for the calling thread. A spec has one thread, and a thread one spec.
 *
 * PUNCTUAL_ERROR_NO_SUCH_THREAD, NOT_OWNER, ALREADY_ATTACHED, NOT_YET, KERNEL_REFUSED,
 * NO_SUCH_SPEC.
 */
int punctual_spec_attach(struct punctual_spec *spec, pid_t thread);

/*
 * Asks the daemon to restore the earlier scheduling of the spec's thread. The spec stays, and may
 * be attached again. PUNCTUAL_ERROR_NOT_ATTACHED, NO_SUCH_SPEC.
 */
int punctual_spec_detach(struct punctual_spec *spec);

/*
 * Asks the daemon to forget the spec, which first restores its thread. Ends the handle where it
 * returns PUNCTUAL_OK or PUNCTUAL_ERROR_NO_SUCH_SPEC; after any other error the handle stays valid,
 * to try again or for punctual_spec_free.
 */
int punctual_spec_release(struct punctual_spec *spec);

/*
 * Ends the handle and nothing else: the spec lives on until the process ends. NULL is ignored.
 * Never fails.
 */
void punctual_spec_free(struct punctual_spec *spec);

/* What becomes of one spec in a change of mode. */
struct punctual_replacement {
	/* The spec that is changed or released; NULL: a new one is created. */
	struct punctual_spec *spec;
	/* The parameters; NULL: the spec is released. */
	const struct punctual_params *params;
	/* Of a new spec, as in punctual_spec_create. */
	const char *name;
};

/*
 * Asks the daemon for a change of mode: to release, change and create specs as one. All are
 * admitted together, or nothing changes; threads of changed specs stay attached. On success the
 * handle of a new spec is at `spec` of its replacement, and that of a released one is ended, with
 * NULL in its place. After an error all is as it was. Errors as of punctual_spec_create and
 * punctual_spec_change; PUNCTUAL_ERROR_INVALID, too, where a spec stands there twice.
 */
int punctual_replace_specs(
	struct punctual *connection, struct punctual_replacement *replacements, size_t count);

/* The daemon's number for the spec, as `punctual ctl list` shows it. */
uint64_t punctual_spec_get_id(const struct punctual_spec *spec);

/*
 * Returns 1 and stores at `ns` the runtime that was accepted when the spec was created or changed:
 * between the runtime and the desired one. Returns 0 if no runtime was declared.
 */
int punctual_spec_get_accepted_runtime(const struct punctual_spec *spec, uint64_t *ns);

/* In place of a processor: the thread is not pinned. */
#define PUNCTUAL_PROCESSOR_ANY 0x7fffffff

/*
 * The daemon's answer when the spec was created, changed or attached: the plugin that took it
 * (its name, as much as fits into `size` bytes, always ended), the processor that its thread is
 * pinned to (PUNCTUAL_PROCESSOR_ANY if it is not), the policy (enum punctual_policy), its priority
 * (0 under PUNCTUAL_POLICY_DEADLINE; later specs of others may shift it: punctual_list_specs asks),
 * 1 or 0 for whether a recommended parameter was missing, and for whether the admission test failed
 * and was ignored. None of them asks the daemon.
 */
int punctual_spec_get_plugin(const struct punctual_spec *spec, char *plugin, size_t size);
int punctual_spec_get_processor(const struct punctual_spec *spec);
int punctual_spec_get_policy(const struct punctual_spec *spec);
int punctual_spec_get_policy_priority(const struct punctual_spec *spec);
int punctual_spec_is_partial(const struct punctual_spec *spec);
int punctual_spec_is_admission_ignored(const struct punctual_spec *spec);

/*
 * Begins a periodic loop in the calling thread: its first job is released now. Sets the count of
 * missed deadlines to 0. Called once before the loop, after the thread is attached. Asks the daemon
 * for memory in which the loop's jobs and missed deadlines are counted, for its lists; without that
 * (an older daemon, or none) the loop is the same. PUNCTUAL_ERROR_INVALID: the spec has no period.
 */
int punctual_spec_start(struct punctual_spec *spec);

/*
 * Ends the current job, and sleeps until the release of the next one, a period after the last
 * release; handled signals do not end the sleep. Releases never shift: after a job that took longer
 * than the period it returns at once, until the loop has caught up.
 *
 * Does not ask the daemon, and makes no system call but the sleep and those for the time.
 *
 * Returns 0 if the job that ended met its deadline, 1 if it missed it. PUNCTUAL_ERROR_INVALID:
 * there is no period, or the loop has not begun.
 */
int punctual_spec_wait_period(struct punctual_spec *spec);

/* Returns 1 and stores at `ns` the release of the current job; 0 if the loop has not begun.
 */
int punctual_spec_get_release(const struct punctual_spec *spec, uint64_t *ns);

/* The number of jobs that missed their deadlines since the loop began. Any thread may ask. */
uint64_t punctual_spec_get_deadline_misses(const struct punctual_spec *spec);

/*
 * How often its thread took more than its runtime, as the daemon, which measures that, has told
 * this program last: with the configuration overruns = "warn" at most a second ago, with "demote"
 * at the first of them and then once a minute. 0 before punctual_spec_start. Reads memory that both
 * share, without asking the daemon, so a loop can look after each job. Any thread may ask.
 */
uint64_t punctual_spec_get_overruns(const struct punctual_spec *spec);

/*
 * Lists. The caller owns a list and ends it with the function that is named after it (NULL is
 * ignored); all that it points to ends with it. Later versions may add fields at the end of what
 * items point to, so copy fields, not items.
 */

/* The load of a processor under a plugin. No fields will be added. */
struct punctual_processor {
	uint32_t number;
	/* How many specs. */
	uint32_t specs;
	/* Sum of accepted runtime / min(period, deadline) over the specs that declare both. */
	double utilization;
};

/* A plugin as configured. */
struct punctual_plugin {
	const char *name;
	/* "EDF", "RM", "FP", "RR", or the file name of a shared object. */
	const char *kind;
	/* Its admission test. */
	const char *admission;
	/* The priorities that it gives. */
	uint32_t priority_min;
	uint32_t priority_max;
	/* The most utilization that it gives out per processor. */
	double threshold;
	size_t processor_count;
	const struct punctual_processor *processors;
};

struct punctual_plugin_list {
	size_t count;
	const struct punctual_plugin *const *items;
};

/* A spec of any process. */
struct punctual_spec_info {
	uint64_t id;
	/* NULL if it has none. */
	const char *name;
	const char *plugin;
	/* What was declared; for the getters of parameters. */
	const struct punctual_params *params;
	uid_t user;
	pid_t process;
	/* 0 if none is attached. */
	pid_t thread;
	/* PUNCTUAL_PROCESSOR_ANY if it is not pinned. */
	uint32_t processor;
	/* enum punctual_policy. */
	int policy;
	/* 0 under PUNCTUAL_POLICY_DEADLINE. */
	uint32_t policy_priority;
	/* 0 if no runtime was declared. */
	uint64_t accepted_runtime_ns;
	bool partial;
	bool admission_ignored;
	/* Whether its program has begun a periodic loop (punctual_spec_start), and what it says of
	 * that itself: jobs that have ended, how many of them after their deadline, and the longest
	 * time from a release to the end of its job. Not checked by anybody. */
	bool says;
	uint64_t says_jobs;
	uint64_t says_misses;
	uint64_t says_worst_response_ns;
};

struct punctual_spec_list {
	size_t count;
	const struct punctual_spec_info *const *items;
};

/* A process that is connected, or has specs. */
struct punctual_client {
	pid_t process;
	uid_t user;
	uint32_t specs;
	const char *command;
};

struct punctual_client_list {
	size_t count;
	const struct punctual_client *const *items;
};

/* Asks for the plugins, in the order in which they are asked. */
int punctual_list_plugins(struct punctual *connection, struct punctual_plugin_list **list);
void punctual_plugin_list_free(struct punctual_plugin_list *list);

/* Asks for the specs of this user; for root, those of all. */
int punctual_list_specs(struct punctual *connection, struct punctual_spec_list **list);
void punctual_spec_list_free(struct punctual_spec_list *list);

/* Asks for the clients of this user; for root, all. */
int punctual_list_clients(struct punctual *connection, struct punctual_client_list **list);
void punctual_client_list_free(struct punctual_client_list *list);

#ifdef __cplusplus
}
#endif

#endif
