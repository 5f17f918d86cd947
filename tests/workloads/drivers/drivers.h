// A driver for every way to wait: thread `drv` waits in one chosen call, exactly as often as asked,
// for periodic events from thread `src` or a timer. `setup` checks what a driver needs.
#pragma once

#include "../workload.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

// Programs of 32 bits have an older select, whose arguments are in memory.
#ifdef SYS__newselect
#undef SYS_select
#define SYS_select SYS__newselect
#endif

// The state of one run of a driver.
struct run {
	int64_t period_ns;
	int64_t cost_ns;
	int64_t jobs;
	int64_t beginning_ns; // arrival of the first job
	int64_t done;	      // waits so far
	int64_t skipped;      // activations so far without a wait
	int64_t taken; // further activations that the last wait consumed: they were over by then
	_Atomic int64_t made;  // by `src`: its events so far, with the one that it is making
	int64_t events;	       // the same, counted by a driver
	int64_t interruptions; // calls that a signal cut short
	atomic_bool finished;

	pthread_t drv;
	int in, out; // what `drv` waits on, what `src` writes to
	int side;    // another descriptor, if a driver needs one
	int id;	     // System V identifier
	pid_t child;
	int ends_child; // the signal that ends it, after which it is waited for; 0: SIGKILL
	char *path;	// to be removed at the end
	_Alignas(64) _Atomic uint32_t words[4];
	_Alignas(4096) char buffer[4096];
};

struct driver {
	const char *name;
	const char *call;      // the expected separator; with `forbidden`, that of the activation
	const char *object;    // class of its object; NULL: none
	const char *forbidden; // a call that cannot block and must not separate jobs
	const char *(*setup)(struct run *); // returns why the machine cannot run it, or NULL
	void (*begin)(struct run *);	    // in `drv`, before it becomes real-time
	void (*wait)(struct run *);	    // in `drv`: one wait
	void (*job)(struct run *);	    // in `drv`, in addition to its cost
	void (*event)(struct run *);	    // in `src`; NULL: time makes the events
	void (*end)(struct run *);	    // in `drv`, after the last job
	bool half_behind;		    // events come half a period behind the arrivals
	bool deadline;			    // SCHED_DEADLINE
	bool drifts;			    // its period drifts
	bool own_time; // `drv` itself waits for the next arrival, and may skip past ones
	bool merges;   // events without a waiter merge into one
	int burst;     // events at once; 0 means 1
};

extern const struct driver time_drivers[], multiplex_drivers[], read_drivers[], socket_drivers[],
	futex_drivers[], signal_drivers[], ipc_drivers[], child_drivers[], aio_drivers[],
	negative_drivers[];

// When job `run->done` arrives, after those that were skipped.
int64_t next_arrival(const struct run *run);

// The time left until then, at least 1 ns: a sleep of zero does not sleep.
int64_t time_left(const struct run *run);

// Setups, events and waits that several drivers use.
const char *make_pipe(struct run *run);
const char *make_nonblocking_pipe(struct run *run);
const char *make_eventfd(struct run *run);
const char *make_nonblocking_eventfd(struct run *run);
const char *make_datagram_pair(struct run *run);
const char *make_child(struct run *run);
const char *make_message_queue(struct run *run);
const char *make_sysv_queue(struct run *run);
const char *make_sysv_semaphore(struct run *run);
const char *make_aio(struct run *run);
void write_byte(struct run *run);
void write_count(struct run *run); // to an eventfd
void drain(struct run *run); // a read of `in` that may not block, and takes several bytes of a pipe
void sleep_to_arrival(struct run *run);

// The truth about each job, on request.
void truth_begin(const struct run *run);
void truth_job_begins(const struct run *run);
void truth_job_ends(const struct run *run);
void truth_write(const struct run *run, const char *path);

// A directory of its own for one file, removed with `clean_up`.
char *temporary_path(const char *file);

// Removes what would outlive the process.
void clean_up(struct run *run);
