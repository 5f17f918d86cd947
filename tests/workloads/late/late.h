// What the parts of `late` share: see main.c.
#pragma once

#include "../workload.h"

#include <stdlib.h>

#define PERIOD (10 * MS)
// A reason that makes a job late by itself, and one that lasts for half as long.
#define LONG  (12 * MS)
#define SHORT (6 * MS)
// The two jobs after one of so long are late, too.
#define THREE (35 * MS)
#define USUAL (1 * MS)
// Jobs with causes are this many jobs apart.
#define APART 5
#define PAGE  4096

enum cause {
	OWN,
	PREEMPTED,
	QUEUED,
	TURNS,
	LOCK,
	INHERIT,
	INVERSION,
	WORKER,
	MOVED,
	FAULTS,
	STOPPED,
	KERNEL,
	INTERRUPTS,
	BACKLOG,
	DISK,
	COLD,
	CAUSES
};

// Why a job should be late.
struct reason {
	const char *name;
	enum cause cause;
	int64_t length;	     // meant
	int64_t from, until; // of the step of the job that has this cause
	int64_t time;	     // how long it lasted within the job
};

#define MOST_REASONS 2

struct job {
	int64_t due, start, end, faults;
	// Its processor time, without interrupts that are known.
	int64_t cpu;
	int reasons;
	struct reason reason[MOST_REASONS];
};

void pin(int processor);

// A line for each job; each reason adds two words.
void print(const struct job *jobs, long count);

// --- steps.c: what each cause does

// Makes everything ready for jobs. Prints which causes cannot be had here, and why.
void set_up_causes(const char *file);
void tear_down_causes(void);

// For how long the loop was ready without a processor; 0 if the kernel does not count that.
int64_t ready_time(void);

bool is_available(enum cause cause);
const char *name_of(enum cause cause);
// One of their steps begins before the job is due.
bool begins_early(enum cause cause);

// What has to begin before the job is due.
void prepare(const struct reason *reason, int64_t due);
// The step of the job; ends when its cause has.
void run(struct reason *reason, struct job *job);
// After the job: how long the reason lasted.
void conclude(struct reason *reason, struct job *job);

// --- helpers.c: threads that the loop waits for

void start_helpers(void);
void stop_helpers(void);
bool has_helper(enum cause cause);

void prepare_helper(const struct reason *reason, int64_t due);
void run_helped(struct reason *reason);
void conclude_helped(struct reason *reason, struct job *job);

// --- kernel.c: the kernel's own threads, and interrupts

// Return NULL, or why that cannot be had.
const char *set_up_poller(void);
const char *set_up_interrupts(void);

// Return how long it took.
int64_t be_polled(int64_t length);
int64_t be_interrupted(int64_t length, struct job *job);

// --- loops.c: loops of their own, which return the exit status

int use_up_budget(struct job *jobs, long count);
int starve_others(struct job *jobs, long count);
int wake_late(struct job *jobs, long count);
