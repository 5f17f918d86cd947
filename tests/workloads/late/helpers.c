// Threads that the loop waits for, or that take its processor.
#include "late.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <unistd.h>

// A thread that is busy for as long as it was told to, from a given time on.
struct helper {
	const char *name;
	int priority, processor;
	bool round_robin;
	void (*run)(struct helper *);
	sem_t begin, done;
	int64_t at, length;	     // when it is to begin, and for how long
	_Atomic int64_t from, until; // when it was busy last
	pthread_t thread;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t lent; // its owner inherits priorities
static volatile bool over;
static pid_t loop;

static void be_busy(struct helper *helper)
{
	sleep_until(helper->at);
	helper->from = now_ns();
	burn(helper->length);
	helper->until = now_ns();
}

static void hold(struct helper *helper, pthread_mutex_t *held)
{
	sleep_until(helper->at);
	pthread_mutex_lock(held);
	helper->from = now_ns();
	burn(helper->length);
	helper->until = now_ns();
	pthread_mutex_unlock(held);
}

static void hold_lock(struct helper *helper)
{
	hold(helper, &lock);
}

static void hold_lent(struct helper *helper)
{
	hold(helper, &lent);
}

// Moves the loop to the processor that it keeps busy.
static void attract(struct helper *helper)
{
	cpu_set_t here;
	CPU_ZERO(&here);
	CPU_SET(helper->processor, &here);
	must(sched_setaffinity(loop, sizeof(here), &here), "sched_setaffinity");
	be_busy(helper);
}

enum { MIDDLE = CAUSES, HELPERS };

static struct helper helpers[HELPERS] = {
	[PREEMPTED] = {.name = "urgent", .priority = 70, .processor = 0, .run = be_busy},
	[QUEUED] = {.name = "equal", .priority = 60, .processor = 0, .run = be_busy},
	[TURNS] = {.name = "turns",
		.priority = 60,
		.processor = 0,
		.round_robin = true,
		.run = be_busy},
	[LOCK] = {.name = "holder", .priority = 10, .processor = 1, .run = hold_lock},
	// On the processor of the loop: otherwise that spins until the owner is done.
	[INHERIT] = {.name = "lender", .priority = 10, .processor = 0, .run = hold_lent},
	[INVERSION] = {.name = "victim", .priority = 10, .processor = 1, .run = hold_lock},
	[WORKER] = {.name = "worker", .priority = 20, .processor = 1, .run = be_busy},
	[MOVED] = {.name = "magnet", .priority = 70, .processor = 1, .run = attract},
	// Keeps the holder of the lock from its processor.
	[MIDDLE] = {.name = "middle", .priority = 30, .processor = 1, .run = be_busy},
};

bool has_helper(enum cause cause)
{
	return helpers[cause].name;
}

static void *help(void *argument)
{
	struct helper *helper = argument;

	pin(helper->processor);
	become_fifo(helper->name, helper->priority);
	int error = helper->round_robin ? set_attributes(0, SCHED_RR, helper->priority) : 0;
	if (error)
		die("sched_setattr", error);
	for (;;) {
		while (sem_wait(&helper->begin) && errno == EINTR)
			;
		if (over)
			return NULL;
		helper->run(helper);
		sem_post(&helper->done);
	}
}

void start_helpers(void)
{
	loop = gettid();
	pthread_mutexattr_t inherits;
	pthread_mutexattr_init(&inherits);
	pthread_mutexattr_setprotocol(&inherits, PTHREAD_PRIO_INHERIT);
	pthread_mutex_init(&lent, &inherits);
	for (int h = 0; h < HELPERS; h++) {
		struct helper *helper = &helpers[h];
		sem_init(&helper->begin, 0, 0);
		sem_init(&helper->done, 0, 0);
		if (helper->name && pthread_create(&helper->thread, NULL, help, helper))
			die("pthread_create", EAGAIN);
	}
}

void stop_helpers(void)
{
	over = true;
	for (int h = 0; h < HELPERS; h++) {
		if (!helpers[h].name)
			continue;
		sem_post(&helpers[h].begin);
		pthread_join(helpers[h].thread, NULL);
	}
}

static void start(struct helper *helper, int64_t at, int64_t length)
{
	helper->at = at;
	helper->length = length;
	helper->from = helper->until = 0;
	sem_post(&helper->begin);
}

static void finish(struct helper *helper)
{
	while (sem_wait(&helper->done) && errno == EINTR)
		;
}

// Starts a helper of another processor, and goes on when it is busy.
static void start_elsewhere(struct helper *helper, int64_t length)
{
	start(helper, 0, length);
	while (!helper->from)
		;
}

void prepare_helper(const struct reason *reason, int64_t due)
{
	if (begins_early(reason->cause))
		start(&helpers[reason->cause], due - USUAL / 2, reason->length);
}

static void wait_for(pthread_mutex_t *held)
{
	pthread_mutex_lock(held);
	pthread_mutex_unlock(held);
}

void run_helped(struct reason *reason)
{
	struct helper *helper = &helpers[reason->cause];
	switch (reason->cause) {
	case QUEUED:
	case TURNS:
		reason->until = now_ns();
		// Its time slice may end before it is done: it would go on when the loop waits for
		// something else.
		finish(helper);
		sem_post(&helper->done);
		break;
	case PREEMPTED:
		start(helper, 0, reason->length);
		break;
	case LOCK:
		start_elsewhere(helper, reason->length);
		wait_for(&lock);
		break;
	case INHERIT:
		wait_for(&lent);
		break;
	case INVERSION:
		// It holds the lock for a short time only, but is kept from its processor.
		start_elsewhere(helper, USUAL);
		start(&helpers[MIDDLE], 0, reason->length);
		wait_for(&lock);
		break;
	case WORKER:
		start(helper, 0, reason->length);
		finish(helper);
		break;
	case MOVED:
		start(helper, 0, reason->length);
		while (sched_getcpu() != helper->processor)
			;
		pin(0);
		break;
	default:
		break;
	}
}

// If a helper is late, too, the loop waits for it: that is time of the job, for no reason.
static void finish_late(struct helper *helper, struct job *job)
{
	if (sem_trywait(&helper->done) == 0)
		return;
	finish(helper);
	job->end = now_ns();
}

// How long the reason lasted within the job, without what kept a helper itself from its processor.
void conclude_helped(struct reason *reason, struct job *job)
{
	struct helper *helper = &helpers[reason->cause];
	if (reason->cause != WORKER)
		finish_late(helper, job);
	if (reason->cause == INVERSION)
		finish_late(&helpers[MIDDLE], job);
	// What the loop waits for before it runs counts from when it should have run.
	bool before = reason->cause == QUEUED || reason->cause == TURNS;
	int64_t from = before ? job->due : reason->from;
	from = helper->from > from ? helper->from : from;
	int64_t until = helper->until < reason->until ? helper->until : reason->until;
	int64_t most = reason->length + (reason->cause == INVERSION ? 2 * USUAL : 0);
	int64_t lasted = until > from ? until - from : 0;
	reason->time = lasted < most ? lasted : most;
}
