// A FIFO thread `waiter` that is kept waiting by another, `blocker`, for a known time.
//
//   kept_waiting [--rounds N] [--busy-us N] [--cpu N] [--waiter-priority N] [--waker-cpu N]
//
// Both are on one processor. In every round the blocker (priority 60) wakes the waiter (40), works
// for a while, and sleeps. With --waker-cpu, an ordinary thread on that processor wakes the waiter
// meanwhile. Prints JSON: for every round when the blocker woke the waiter
// (woken_ns), when it went to sleep (left_ns), when the waiter ran (ran_ns), on CLOCK_MONOTONIC.
#include "workload.h"

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MOST_ROUNDS = 1000, BLOCKER = 60 };

static sem_t awake, done, working;
static int rounds = 50, processor, waiter_priority = 40, waker_processor = -1;
static atomic_int times_woken;
static int64_t busy_ns = 2000000;
static int64_t woken[MOST_ROUNDS], left[MOST_ROUNDS], ran[MOST_ROUNDS];
static int waiter_tid;

static void move_to(int cpu)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	if (sched_setaffinity(0, sizeof(one), &one)) {
		perror("kept_waiting: cannot move to the processor");
		exit(1);
	}
}

static void become(const char *name, int priority)
{
	struct sched_param parameters = {.sched_priority = priority};

	prctl(PR_SET_NAME, name);
	move_to(processor);
	if (sched_setscheduler(0, SCHED_FIFO, &parameters)) {
		perror("kept_waiting: cannot become a real-time thread");
		exit(1);
	}
}

static void *wait_rounds(void *unused)
{
	become("waiter", waiter_priority);
	waiter_tid = (int)syscall(SYS_gettid);
	sem_post(&done);
	for (int round = 0; round < rounds; round++) {
		sem_wait(&awake);
		ran[round] = now_ns();
		sem_post(&done);
	}
	return unused;
}

static void *wake_rounds(void *unused)
{
	prctl(PR_SET_NAME, "waker");
	move_to(waker_processor);
	for (int round = 0; round < rounds; round++) {
		sem_wait(&working);
		sem_post(&awake);
		times_woken++;
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
	pthread_t waiter, waker;

	for (int word = 1; word + 1 < count; word += 2) {
		long value = atol(words[word + 1]);

		if (!strcmp(words[word], "--rounds") && value > 0 && value <= MOST_ROUNDS)
			rounds = (int)value;
		else if (!strcmp(words[word], "--busy-us") && value > 0)
			busy_ns = value * 1000;
		else if (!strcmp(words[word], "--cpu") && value >= 0)
			processor = (int)value;
		else if (!strcmp(words[word], "--waiter-priority") && value > 0)
			waiter_priority = (int)value;
		else if (!strcmp(words[word], "--waker-cpu") && value >= 0)
			waker_processor = (int)value;
		else
			return fprintf(stderr, "kept_waiting: %s?\n", words[word]), 2;
	}
	sem_init(&awake, 0, 0);
	sem_init(&done, 0, 0);
	sem_init(&working, 0, 0);
	if (pthread_create(&waiter, NULL, wait_rounds, NULL) ||
		(waker_processor >= 0 && pthread_create(&waker, NULL, wake_rounds, NULL)))
		return perror("kept_waiting: cannot start a thread"), 1;
	become("blocker", BLOCKER);
	sem_wait(&done);
	for (int round = 0; round < rounds; round++) {
		struct timespec pause = {0, 5000000};

		// The waiter has gone to sleep by then: nobody else keeps it.
		nanosleep(&pause, NULL);
		woken[round] = now_ns();
		sem_post(waker_processor >= 0 ? &working : &awake);
		while ((waker_processor >= 0 && times_woken <= round) ||
			now_ns() < woken[round] + busy_ns)
			;
		left[round] = now_ns();
		sem_wait(&done);
	}
	pthread_join(waiter, NULL);
	if (waker_processor >= 0)
		pthread_join(waker, NULL);
	printf("{\"waiter\": %d", waiter_tid);
	print_list("woken_ns", woken);
	print_list("left_ns", left);
	print_list("ran_ns", ran);
	printf("}\n");
	return 0;
}
