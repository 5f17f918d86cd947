// Waiting for words in memory, and the C library's ways of doing so.
#include "drivers.h"

#include <errno.h>
#include <linux/futex.h>
#include <semaphore.h>
#include <stddef.h>
#include <string.h>

#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif
#ifndef SYS_futex_wait
#define SYS_futex_wait 455
#endif
#ifndef FUTEX_LOCK_PI2
#define FUTEX_LOCK_PI2 13
#endif

// From linux/futex.h, which lacks them on older systems.
struct word_of_several {
	uint64_t value, address;
	uint32_t flags, reserved;
};
enum { WORD_OF_32_BITS = 2, PRIVATE = 128 };

static long futex(_Atomic uint32_t *word, int operation, uint32_t value, unsigned long value2,
	void *word2, uint32_t value3)
{
	return syscall(SYS_futex, word, operation, value, value2, word2, value3);
}

// Word 0 counts events; job n waits until there were more than n, in one call, which returns at
// once if there already were.
static void count_event(struct run *run)
{
	atomic_fetch_add(&run->words[0], 1);
	futex(&run->words[0], FUTEX_WAKE_PRIVATE, INT32_MAX, 0, NULL, 0);
}

static void accept_early(long result, const char *what)
{
	if (result < 0 && errno != EAGAIN)
		die(what, errno);
}

static void wait_futex(struct run *run)
{
	accept_early(
		futex(&run->words[0], FUTEX_WAIT_PRIVATE, run->done, 0, NULL, 0), "FUTEX_WAIT");
}

static void wait_bitset(struct run *run)
{
	accept_early(futex(&run->words[0], FUTEX_WAIT_BITSET_PRIVATE, run->done, 0, NULL,
			     FUTEX_BITSET_MATCH_ANY),
		"FUTEX_WAIT_BITSET");
}

// Even jobs wait on one word, odd ones on its neighbour.
static void count_event_alternating(struct run *run)
{
	_Atomic uint32_t *word = &run->words[run->events++ % 2];
	atomic_fetch_add(word, 1);
	futex(word, FUTEX_WAKE_PRIVATE, INT32_MAX, 0, NULL, 0);
}

static void wait_alternating(struct run *run)
{
	accept_early(futex(&run->words[run->done % 2], FUTEX_WAIT_BITSET_PRIVATE, run->done / 2, 0,
			     NULL, FUTEX_BITSET_MATCH_ANY),
		"FUTEX_WAIT_BITSET");
}

static const char *try_waitv(struct run *run)
{
	struct word_of_several word = {.value = 1,
		.address = (uintptr_t)&run->words[0],
		.flags = WORD_OF_32_BITS | PRIVATE};
	return syscall(SYS_futex_waitv, &word, 1, 0, NULL, 0) < 0 && errno == ENOSYS
		       ? "the kernel lacks futex_waitv"
		       : NULL;
}

static void wait_waitv(struct run *run)
{
	struct word_of_several words[2] = {
		{.value = run->done,
			.address = (uintptr_t)&run->words[0],
			.flags = WORD_OF_32_BITS | PRIVATE},
		{.value = 0,
			.address = (uintptr_t)&run->words[2],
			.flags = WORD_OF_32_BITS | PRIVATE},
	};
	accept_early(syscall(SYS_futex_waitv, words, 2, 0, NULL, 0), "futex_waitv");
}

static const char *try_wait2(struct run *run)
{
	return syscall(SYS_futex_wait, &run->words[0], 1UL, ~0UL, WORD_OF_32_BITS | PRIVATE, NULL,
		       0) < 0 &&
			       errno == ENOSYS
		       ? "the kernel lacks futex_wait"
		       : NULL;
}

static void wait_wait2(struct run *run)
{
	accept_early(
		syscall(SYS_futex_wait, &run->words[0], (unsigned long)run->done,
			(unsigned long)FUTEX_BITSET_MATCH_ANY, WORD_OF_32_BITS | PRIVATE, NULL, 0),
		"futex_wait");
}

// `src` holds the lock except for an instant at each event, when `drv` gets it and holds it for its
// job.
enum { LOCK = 1, TAKEN = 2, LENT = 3 };

static void lock(struct run *run, int operation)
{
	must(futex(&run->words[LOCK], operation, 0, 0, NULL, 0), "FUTEX_LOCK_PI");
}

static void unlock(struct run *run)
{
	must(futex(&run->words[LOCK], FUTEX_UNLOCK_PI_PRIVATE, 0, 0, NULL, 0), "FUTEX_UNLOCK_PI");
}

static void lend_lock(struct run *run)
{
	if (run->events > 0) {
		unlock(run);
		// The kernel lets a thread of higher priority steal the lock from the one it was
		// handed to.
		while (atomic_load(&run->words[TAKEN]) < run->events && !run->finished)
			sleep_until(now_ns() + 50 * US);
	}
	run->events++;
	lock(run, FUTEX_LOCK_PI_PRIVATE);
	atomic_fetch_add(&run->words[LENT], 1);
}

// The first wait needs a lock that is taken.
static void await_lent(struct run *run)
{
	while (!atomic_load(&run->words[LENT]))
		sleep_until(now_ns() + 1 * MS);
}

// Releases the lock and lets `src` take it: otherwise the next wait would not wait.
static void give_back(struct run *run)
{
	if (run->done == 0)
		return;
	unlock(run);
	while (atomic_load(&run->words[LENT]) <= run->done)
		;
}

static void take_lock(struct run *run, int operation)
{
	give_back(run);
	lock(run, operation);
	atomic_fetch_add(&run->words[TAKEN], 1);
}

static void wait_lock_pi(struct run *run)
{
	take_lock(run, FUTEX_LOCK_PI_PRIVATE);
}

static void wait_lock_pi2(struct run *run)
{
	take_lock(run, FUTEX_LOCK_PI2 | FUTEX_PRIVATE_FLAG);
}

static const char *try_lock_pi2(struct run *run)
{
	(void)run;
	_Atomic uint32_t word = 0;
	return futex(&word, FUTEX_LOCK_PI2 | FUTEX_PRIVATE_FLAG, 0, 0, NULL, 0) < 0
		       ? "the kernel lacks FUTEX_LOCK_PI2"
		       : NULL;
}

static void requeue_event(struct run *run)
{
	uint32_t value = atomic_fetch_add(&run->words[0], 1) + 1;
	futex(&run->words[0], FUTEX_CMP_REQUEUE_PI_PRIVATE, 1, 0, &run->words[LOCK], value);
}

static void wait_requeue_pi(struct run *run)
{
	long result = futex(
		&run->words[0], FUTEX_WAIT_REQUEUE_PI_PRIVATE, run->done, 0, &run->words[LOCK], 0);
	accept_early(result, "FUTEX_WAIT_REQUEUE_PI");
	if (result == 0)
		unlock(run);
}

static sem_t semaphore;

static void post(struct run *run)
{
	(void)run;
	sem_post(&semaphore);
}

static void wait_semaphore(struct run *run)
{
	(void)run;
	must(sem_wait(&semaphore), "sem_wait");
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static int signalled;

static void signal_condition(struct run *run)
{
	(void)run;
	pthread_mutex_lock(&mutex);
	signalled++;
	pthread_mutex_unlock(&mutex);
	pthread_cond_signal(&condition);
}

static void wait_condition(struct run *run)
{
	(void)run;
	pthread_mutex_lock(&mutex);
	while (!signalled)
		pthread_cond_wait(&condition, &mutex);
	signalled--;
	pthread_mutex_unlock(&mutex);
}

const struct driver futex_drivers[] = {
	{.name = "futex_wait",
		.call = "futex_wait",
		.object = "address",
		.wait = wait_futex,
		.event = count_event},
	{.name = "futex_wait_bitset",
		.call = "futex_wait_bitset",
		.object = "address",
		.wait = wait_bitset,
		.event = count_event},
	{.name = "futex_alternating_words",
		.call = "futex_wait_bitset",
		.object = "address",
		.wait = wait_alternating,
		.event = count_event_alternating},
	{.name = "futex_wait2",
		.call = "futex_wait",
		.object = "address",
		.setup = try_wait2,
		.wait = wait_wait2,
		.event = count_event},
	{.name = "futex_waitv",
		.call = "futex_waitv",
		.setup = try_waitv,
		.wait = wait_waitv,
		.event = count_event},
	{.name = "futex_lock_pi",
		.call = "futex_lock_pi",
		.object = "address",
		.begin = await_lent,
		.wait = wait_lock_pi,
		.event = lend_lock,
		.end = give_back},
	{.name = "futex_lock_pi2",
		.call = "futex_lock_pi",
		.object = "address",
		.setup = try_lock_pi2,
		.begin = await_lent,
		.wait = wait_lock_pi2,
		.event = lend_lock,
		.end = give_back},
	{.name = "futex_wait_requeue_pi",
		.call = "futex_wait_requeue_pi",
		.object = "address",
		.wait = wait_requeue_pi,
		.event = requeue_event},
	{.name = "semaphore",
		.call = "futex_wait_bitset",
		.object = "address",
		.wait = wait_semaphore,
		.event = post},
	{.name = "condition_variable",
		.call = "futex_wait_bitset",
		.object = "address",
		.wait = wait_condition,
		.event = signal_condition},
	{0},
};
