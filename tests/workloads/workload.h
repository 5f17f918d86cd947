// What all workloads share: time, processor time, real-time threads, options. Not for ways of
// waiting: those are what each workload is about.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#define US     1000LL
#define MS     1000000LL
#define SECOND 1000000000LL

// Exit status for "this machine lacks what the workload needs".
#define EXIT_SKIPPED 77

// Nanoseconds on `clock`.
int64_t now_on(clockid_t clock);

// Nanoseconds on CLOCK_MONOTONIC.
int64_t now_ns(void);

struct timespec timespec_of(int64_t ns);

// Sleeps until `ns` on CLOCK_MONOTONIC by clock_nanosleep, even if signals interrupt it.
void sleep_until(int64_t ns);

// Uses up `ns` of the calling thread's processor time.
void burn(int64_t ns);

// Prints "PROGRAM: what: reason" and exits with 1.
_Noreturn void die(const char *what, int error);

// The result of a call that must not fail; otherwise dies with errno.
long must(long result, const char *what);

// Sets the calling thread's name and then its policy, so that observers see the name as soon as the
// thread is real-time.
void become_fifo(const char *name, int priority);

// The same for SCHED_DEADLINE. Returns 0, or an errno value if the kernel refuses the reservation.
int become_deadline(const char *name, int64_t runtime_ns, int64_t deadline_ns, int64_t period_ns);

// sched_setattr(2) on `tid` (0: the caller) for the policies without a reservation. Returns an
// errno value or 0.
int set_attributes(int tid, int policy, int priority);

// The value after `name` in the arguments, or `fallback`; dies if it is not a number.
double number_option(int argc, char **argv, const char *name, double fallback);

// The same for text.
const char *text_option(int argc, char **argv, const char *name, const char *fallback);

bool has_flag(int argc, char **argv, const char *name);

// Blocks SIGINT and SIGTERM in the caller and in all threads it creates later.
void block_stop_signals(void);

// Waits for SIGINT, SIGTERM or the end of `seconds` (forever if negative).
void wait_for_stop(double seconds);
