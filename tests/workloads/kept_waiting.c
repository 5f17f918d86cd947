// A FIFO thread `waiter` that is kept waiting by another, `blocker`, for a known time.
//
//   kept_waiting [--rounds N] [--busy-us N] [--cpu N]
//
// Both are on one processor. In every round the blocker, of higher priority, wakes the waiter,
// works for a while, and sleeps. Prints JSON: for every round when the blocker woke the waiter
// (woken_ns), when it went to sleep (left_ns), when the waiter ran (ran_ns), on CLOCK_MONOTONIC.
#include "workload.h"

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MOST_ROUNDS = 1000, BLOCKER = 60, WAITER = 40 };

static sem_t awake, done;
static int rounds = 50, processor;
static int64_t busy_ns = 2000000;
static int64_t woken[MOST_ROUNDS], left[MOST_ROUNDS], ran[MOST_ROUNDS];
static int waiter_tid;

static void become(const char *name, int priority)
{
	struct sched_param parameters = {.sched_priority = priority};
	cpu_set_t one;

	prctl(PR_SET_NAME, name);
	CPU_ZERO(&one);
	CPU_SET(processor, &one);
	if (sched_setaffinity(0, sizeof(one), &one) ||
		sched_setscheduler(0, SCHED_FIFO, &parameters)) {
		perror("kept_waiting: cannot become a real-time thread");
		exit(1);
	}
}

static void *wait_rounds(void *unused)
{
	become("waiter", WAITER);
	waiter_tid = (int)syscall(SYS_gettid);
	sem_post(&done);
	for (int round = 0; round < rounds; round++) {
		sem_wait(&awake);
		ran[round] = now_ns();
		sem_post(&done);
	}
	return unused;
}

static void print_list(const char *name, const int64_t *list)
{
	printf(", \"%s\": [", name);
	for (int round = 0; round < rounds; round++)
		printf("%s%lld", round ? ", " : "", (long long)list[round]);
	printf("]");
}

int main(int count, char **words)
{
	pthread_t waiter;

	for (int word = 1; word + 1 < count; word += 2) {
		long value = atol(words[word + 1]);

		if (!strcmp(words[word], "--rounds") && value > 0 && value <= MOST_ROUNDS)
			rounds = (int)value;
		else if (!strcmp(words[word], "--busy-us") && value > 0)
			busy_ns = value * 1000;
		else if (!strcmp(words[word], "--cpu") && value >= 0)
			processor = (int)value;
		else
			return fprintf(stderr, "kept_waiting: %s?\n", words[word]), 2;
	}
	sem_init(&awake, 0, 0);
	sem_init(&done, 0, 0);
	if (pthread_create(&waiter, NULL, wait_rounds, NULL))
		return perror("kept_waiting: cannot start a thread"), 1;
	become("blocker", BLOCKER);
	sem_wait(&done);
	for (int round = 0; round < rounds; round++) {
		struct timespec pause = {0, 5000000};

		// The waiter has gone to sleep by then: nobody else keeps it.
		nanosleep(&pause, NULL);
		woken[round] = now_ns();
		sem_post(&awake);
		while (now_ns() < woken[round] + busy_ns)
			;
		left[round] = now_ns();
		sem_wait(&done);
	}
	pthread_join(waiter, NULL);
	printf("{\"waiter\": %d", waiter_tid);
	print_list("woken_ns", woken);
	print_list("left_ns", left);
	print_list("ran_ns", ran);
	printf("}\n");
	return 0;
}
