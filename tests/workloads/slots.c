// Threads that log when they run, for tests of time-triggered dispatch.
//
//   slots --log FILE NAME:KIND…
//
// Every thread reads CLOCK_MONOTONIC again and again; where two readings are further apart than it
// takes to do that, it was not running. At SIGTERM or SIGINT every stretch of running is appended
// to FILE, one line each: NAME FROM TO. Kinds:
//
//   busy      never sleeps
//   sleeper   works for 300 us of its time, sleeps for 1 ms, and so on
//   exits     as busy, but ends after 500 ms
//   forks     as busy, and forks a child every 10 ms, which works for 1 ms
//   locks     as busy, and holds a kernel spinlock that nobody else wants, nearly all the time
//   changes   as busy, and makes itself SCHED_OTHER on all processors every 10 ms
//   execs     as busy, but replaces the program by itself after 500 ms; the new one is busy
#include "workload.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_THREADS = 8, MOST_STRETCHES = 1 << 16 };

static const int64_t GAP = 20 * US;

struct stretch {
	int64_t from, to;
};

struct logger {
	const char *name, *kind;
	long count;
	struct stretch *stretches;
};

static struct logger loggers[MOST_THREADS];
static int threads;
static const char *log_path;
static char **own_words;

static void write_log(void)
{
	FILE *file = fopen(log_path, "a");

	if (!file)
		die("the log cannot be opened", 0);
	for (int thread = 0; thread < threads; thread++)
		for (long at = 0; at < loggers[thread].count; at++)
			fprintf(file, "%s %lld %lld\n", loggers[thread].name,
				(long long)loggers[thread].stretches[at].from,
				(long long)loggers[thread].stretches[at].to);
	fclose(file);
}

// Notes that the caller runs now; returns the time.
static int64_t look(struct logger *log)
{
	int64_t now = now_ns();
	struct stretch *last = log->count ? &log->stretches[log->count - 1] : NULL;

	if (last && now - last->to < GAP)
		last->to = now;
	else if (log->count < MOST_STRETCHES)
		log->stretches[log->count++] = (struct stretch){now, now};
	return now;
}

static void fork_child(void)
{
	pid_t child = fork();

	if (child == 0) {
		burn(MS);
		_exit(0);
	}
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
}

// Looks at pages of the caller's: all those of a page table under its lock.
static void take_lock(void)
{
	enum { PAGES = 1024, SIZE = PAGES * 4096 };
	static __thread char *own;
	static __thread unsigned char present[PAGES];

	if (!own) {
		own = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (own == MAP_FAILED)
			die("memory", 0);
		madvise(own, SIZE, MADV_NOHUGEPAGE);
		memset(own, 1, SIZE);
	}
	mincore(own, SIZE, present);
}

static void change_policy(void)
{
	struct sched_param parameters = {0};
	cpu_set_t all;

	sched_setscheduler(0, SCHED_OTHER, &parameters);
	CPU_ZERO(&all);
	for (int processor = 0; processor < sysconf(_SC_NPROCESSORS_ONLN); processor++)
		CPU_SET(processor, &all);
	sched_setaffinity(0, sizeof(all), &all);
}

static void become_busy(struct logger *log)
{
	static char what[64];

	write_log();
	snprintf(what, sizeof(what), "%s:busy", log->name);
	execl(own_words[0], own_words[0], "--log", log_path, what, (char *)NULL);
	die("exec", 0);
}

static void *run(void *argument)
{
	struct logger *log = argument;
	int64_t begin, due;

	prctl(PR_SET_NAME, log->name);
	begin = due = look(log);
	for (;;) {
		int64_t now = look(log);

		if (!strcmp(log->kind, "sleeper")) {
			int64_t until = now_on(CLOCK_THREAD_CPUTIME_ID) + 300 * US;

			while (now_on(CLOCK_THREAD_CPUTIME_ID) < until)
				look(log);
			usleep(1000);
		} else if (!strcmp(log->kind, "exits") && now - begin > 500 * MS) {
			return NULL;
		} else if (!strcmp(log->kind, "execs") && now - begin > 500 * MS) {
			become_busy(log);
		} else if (!strcmp(log->kind, "locks")) {
			take_lock();
		} else if (!strcmp(log->kind, "forks") && now >= due) {
			due = now + 10 * MS;
			fork_child();
		} else if (!strcmp(log->kind, "changes") && now >= due) {
			due = now + 10 * MS;
			change_policy();
		}
	}
}

int main(int argc, char **argv)
{
	pthread_t thread;

	own_words = argv;
	log_path = text_option(argc, argv, "--log", NULL);
	if (!log_path)
		return fprintf(stderr, "slots: --log FILE?\n"), 2;
	block_stop_signals();
	for (int word = 3; word < argc && threads < MOST_THREADS; word++) {
		struct logger *log = &loggers[threads++];
		char *name = strdup(argv[word]), *colon = strchr(name, ':');

		if (!colon)
			return fprintf(stderr, "slots: %s?\n", argv[word]), 2;
		*colon = 0;
		log->name = name;
		log->kind = colon + 1;
		log->stretches = calloc(MOST_STRETCHES, sizeof(struct stretch));
		if (!log->stretches)
			die("memory", 0);
	}
	for (int at = 0; at < threads; at++)
		if (pthread_create(&thread, NULL, run, &loggers[at]))
			die("a thread cannot be started", 0);
	wait_for_stop(-1);
	write_log();
	return 0;
}
