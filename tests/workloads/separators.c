// A thread `many` that never waits on the same object twice: an observer's memory must not grow.
//
//   separators --kind fd|pipe|address [--jobs N] [--period-us N]
//
//   fd       a new descriptor number each time (old ones stay open up to the limit of the process;
//            then it starts over)
//   pipe     a new pipe each time, under the same number
//   address  a new futex word each time
//
// Every job waits 200 µs in its call, for a timeout or for a timer.
#include "workload.h"

#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

static int64_t period_ns;

static int new_timer(void)
{
	int timer = must(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC), "timerfd_create");
	struct itimerspec setting = {.it_value = timespec_of(period_ns)};
	must(timerfd_settime(timer, 0, &setting, NULL), "timerfd_settime");
	return timer;
}

// Descriptors `from` to `to - 1` in turn.
static void new_descriptor(int64_t job)
{
	enum { FROM = 100, TO = 900 };
	int number = FROM + job % (TO - FROM);
	int timer = new_timer();
	must(dup2(timer, number), "dup2");
	close(timer);
	uint64_t expirations;
	must(read(number, &expirations, sizeof expirations), "read");
}

static void new_pipe(int64_t job)
{
	(void)job;
	int ends[2];
	must(pipe(ends), "pipe");
	struct timespec t = timespec_of(period_ns);
	struct pollfd set = {.fd = ends[0], .events = POLLIN};
	must(syscall(SYS_ppoll, &set, 1, &t, NULL, 0), "ppoll");
	must(write(ends[1], "x", 1), "write");
	char byte;
	must(read(ends[0], &byte, 1), "read");
	close(ends[0]);
	close(ends[1]);
}

static uint32_t *words;
static const int64_t WORDS = 1 << 22;

static void new_address(int64_t job)
{
	struct timespec t = timespec_of(period_ns);
	// Two words apart: neighbours count as one.
	uint32_t *word = &words[job * 2 % WORDS];
	if (syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, *word, &t, NULL, 0) < 0 &&
		errno != ETIMEDOUT)
		die("FUTEX_WAIT", errno);
}

int main(int argc, char **argv)
{
	const char *kind = text_option(argc, argv, "--kind", "");
	int64_t jobs = (int64_t)number_option(argc, argv, "--jobs", 5000);
	period_ns = (int64_t)number_option(argc, argv, "--period-us", 200) * US;
	void (*wait)(int64_t) = strcmp(kind, "fd") == 0	       ? new_descriptor
				: strcmp(kind, "pipe") == 0    ? new_pipe
				: strcmp(kind, "address") == 0 ? new_address
							       : NULL;
	if (!wait) {
		fputs("usage: separators --kind fd|pipe|address [--jobs N] [--period-us N]\n",
			stderr);
		return 2;
	}
	words = calloc(WORDS, sizeof *words);
	if (!words)
		die("calloc", ENOMEM);
	become_fifo("many", 50);
	for (int64_t job = 0; job < jobs; job++)
		wait(job);
	printf("{\"kind\": \"%s\", \"jobs\": %lld}\n", kind, (long long)jobs);
	return 0;
}
