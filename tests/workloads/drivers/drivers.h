// A driver for every way to wait: thread `drv` waits in one chosen call, exactly as often as asked,
// for periodic events that thread `src` or a timer makes. What a driver cannot do without is its
// `setup`'s to find out.
#pragma once

#include "../workload.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

// What one run of a driver has at hand.
struct run {
	int64_t period_ns;
	int64_t cost_ns;
	int64_t jobs;
	int64_t beginning_ns; // arrival of the first job
	int64_t done;	      // waits so far
	int64_t skipped;      // activations so far that no wait was for
	int64_t taken;	// activations that the last wait was for, beside its own: they were over by
			// then
	int64_t events; // events made so far
	int64_t interruptions; // calls that a signal cut short
	atomic_bool finished;

	pthread_t drv;
	int in, out; // what `drv` waits on, what `src` writes to
	int side;    // one more descriptor, where a driver needs it
	int id;	     // System V identifier
	pid_t child;
	int ends_child; // the signal that ends it, after which it is waited for; 0: SIGKILL
	char *path;	// to be removed at the end
	_Alignas(64) _Atomic uint32_t words[4];
	_Alignas(4096) char buffer[4096];
};

struct driver {
	const char *name;
	const char
		*call; // the separator that must come out; for `forbidden` ones, the activation's
	const char *object;		    // class of what it waits on; NULL: nothing
	const char *forbidden;		    // the call that cannot block and must not come out
	const char *(*setup)(struct run *); // returns why the machine cannot do it, or NULL
	void (*begin)(struct run *);	    // in `drv`, before it becomes real-time
	void (*wait)(struct run *);	    // in `drv`: one wait
	void (*job)(struct run *);	    // in `drv`, beside its cost
	void (*event)(struct run *);	    // in `src`; NULL: time makes the events
	void (*end)(struct run *);	    // in `drv`, after the last job
	bool half_behind;		    // events come half a period behind the arrivals
	bool deadline;			    // SCHED_DEADLINE
	bool drifts;			    // nothing holds it to a period
	bool own_time; // `drv` itself waits for the next arrival, and may leave out those that are
		       // over
	bool merges; // events that nobody waits for may become one, and `drv` does not know
	int burst;   // events at once; 0 means 1
};

extern const struct driver time_drivers[], multiplex_drivers[], read_drivers[], socket_drivers[],
	futex_drivers[], signal_drivers[], ipc_drivers[], child_drivers[], aio_drivers[],
	negative_drivers[];

// When job `run->done` arrives, after those that were skipped.
int64_t next_arrival(const struct run *run);

// What is left until then, at least 1 ns: a sleep of zero is no sleep.
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

// What each job knows of itself, where it is asked for.
void truth_begin(const struct run *run);
void truth_job_begins(const struct run *run);
void truth_job_ends(const struct run *run);
void truth_write(const struct run *run, const char *path);

// A directory of its own for one file, removed with `clean_up`.
char *temporary_path(const char *file);

// Gives back what would outlive the process.
void clean_up(struct run *run);
