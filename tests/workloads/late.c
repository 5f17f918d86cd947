// A control loop that is late for reasons that it knows.
//
//   late [JOBS]
//
// Prints a line for each job: when it was due, when it ended, why it should be late, for how long the reason
// lasted within the job, and the processor time of the job. What is left of its time is what other load took.
// Needs two processors: the loop has the first, threads that it waits for have the second.
#include "workload.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#define PERIOD (10 * MS)
#define LONG   (12 * MS)
#define USUAL  (1 * MS)
// Causes that have nothing to do with each other are this many jobs apart.
#define APART 5

enum cause { NONE, OWN, PREEMPTED, QUEUED, LOCK, INVERSION, WORKER, CAUSES };

static const char *const names[CAUSES] = {
	"none", "own", "preempted", "queued", "lock", "inversion", "worker"};

struct job {
	int64_t due, start, end, reason, cpu;
	enum cause cause;
};

// A thread that is busy for as long as it was told to, from a given time on.
struct helper {
	const char *name;
	int priority, processor;
	void (*run)(struct helper *);
	sem_t begin, done;
	int64_t from, until; // when it was busy last
	int64_t at;	     // when it is to begin
	pthread_t thread;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile bool over;

static void pin(int processor)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(processor, &set);
	must(sched_setaffinity(0, sizeof(set), &set), "sched_setaffinity");
}

static void be_busy(struct helper *helper)
{
	sleep_until(helper->at);
	helper->from = now_ns();
	burn(LONG);
	helper->until = now_ns();
}

static void hold_lock(struct helper *helper)
{
	sleep_until(helper->at);
	pthread_mutex_lock(&lock);
	helper->from = now_ns();
	burn(LONG);
	helper->until = now_ns();
	pthread_mutex_unlock(&lock);
}

// Holds the lock for a short time only, unless somebody keeps it from its processor.
static void hold_lock_shortly(struct helper *helper)
{
	sleep_until(helper->at);
	pthread_mutex_lock(&lock);
	helper->from = now_ns();
	burn(USUAL);
	helper->until = now_ns();
	pthread_mutex_unlock(&lock);
}

static struct helper helpers[] = {
	[PREEMPTED] = {.name = "urgent", .priority = 70, .processor = 0, .run = be_busy},
	[QUEUED] = {.name = "equal", .priority = 60, .processor = 0, .run = be_busy},
	[LOCK] = {.name = "holder", .priority = 10, .processor = 1, .run = hold_lock},
	[INVERSION] = {.name = "victim", .priority = 10, .processor = 1, .run = hold_lock_shortly},
	[WORKER] = {.name = "worker", .priority = 20, .processor = 1, .run = be_busy},
	// Keeps the holder of the lock from its processor.
	[CAUSES] = {.name = "middle", .priority = 30, .processor = 1, .run = be_busy},
};

static void *help(void *argument)
{
	struct helper *helper = argument;

	pin(helper->processor);
	become_fifo(helper->name, helper->priority);
	for (;;) {
		while (sem_wait(&helper->begin) && errno == EINTR)
			;
		if (over)
			return NULL;
		helper->run(helper);
		sem_post(&helper->done);
	}
}

static void start(struct helper *helper, int64_t at)
{
	helper->at = at;
	sem_post(&helper->begin);
}

static void finish(struct helper *helper)
{
	while (sem_wait(&helper->done) && errno == EINTR)
		;
}

// What has to begin before the job of this cause is due.
static void prepare(enum cause cause, int64_t due)
{
	switch (cause) {
	case QUEUED:
	case LOCK:
		start(&helpers[cause], due - USUAL / 2);
		break;
	case INVERSION:
		start(&helpers[INVERSION], due - USUAL / 2);
		start(&helpers[CAUSES], due);
		break;
	default:
		break;
	}
}

// The job; ends when its cause has.
static void work(enum cause cause)
{
	int64_t mine = USUAL / 2;

	if (cause == OWN)
		mine = LONG;
	if (cause == PREEMPTED)
		start(&helpers[PREEMPTED], 0);
	burn(mine);
	if (cause == LOCK || cause == INVERSION) {
		pthread_mutex_lock(&lock);
		pthread_mutex_unlock(&lock);
	}
	if (cause == WORKER) {
		start(&helpers[WORKER], 0);
		finish(&helpers[WORKER]);
	}
}

// How long the reason lasted within the job.
static int64_t reason(enum cause cause, const struct job *job)
{
	if (cause == NONE || cause == OWN)
		return 0;
	int64_t from = helpers[cause].from, until = helpers[cause].until;
	// What the loop waits for before it runs counts from when it should have run.
	int64_t begin = cause == QUEUED ? job->due : job->start;
	from = from > begin ? from : begin;
	until = until < job->end ? until : job->end;
	return until > from ? until - from : 0;
}

int main(int argc, char **argv)
{
	long count = argc > 1 ? atol(argv[1]) : 200;
	struct job *jobs = calloc(count, sizeof(*jobs));

	if (!jobs)
		die("calloc", errno);
	cpu_set_t all;
	must(sched_getaffinity(0, sizeof(all), &all), "sched_getaffinity");
	if (CPU_COUNT(&all) < 2)
		return EXIT_SKIPPED;
	must(mlockall(MCL_CURRENT | MCL_FUTURE), "mlockall");
	for (enum cause cause = PREEMPTED; cause <= CAUSES; cause++) {
		sem_init(&helpers[cause].begin, 0, 0);
		sem_init(&helpers[cause].done, 0, 0);
		if (pthread_create(&helpers[cause].thread, NULL, help, &helpers[cause]))
			die("pthread_create", EAGAIN);
	}
	pin(0);
	become_fifo("control", 60);
	int64_t due = now_ns() + 2 * PERIOD;
	for (long j = 0; j < count; j++, due += PERIOD) {
		struct job *job = &jobs[j];
		job->due = due;
		// The end of the last job is that of the thread, which nobody else sees.
		bool has_cause = j % APART == APART - 1 && j + 1 < count;
		job->cause = has_cause ? 1 + j / APART % (CAUSES - 1) : NONE;
		prepare(job->cause, due);
		sleep_until(due);
		job->start = now_ns();
		int64_t cpu = now_on(CLOCK_THREAD_CPUTIME_ID);
		work(job->cause);
		job->end = now_ns();
		job->cpu = now_on(CLOCK_THREAD_CPUTIME_ID) - cpu;
		if (job->cause == INVERSION)
			finish(&helpers[CAUSES]);
		if (job->cause >= PREEMPTED && job->cause != WORKER)
			finish(&helpers[job->cause]);
		job->reason = reason(job->cause, job);
	}
	over = true;
	for (enum cause cause = PREEMPTED; cause <= CAUSES; cause++) {
		sem_post(&helpers[cause].begin);
		pthread_join(helpers[cause].thread, NULL);
	}
	for (long j = 0; j < count; j++)
		printf("%lld %lld %s %lld %lld\n", (long long)jobs[j].due, (long long)jobs[j].end,
			names[jobs[j].cause], (long long)jobs[j].reason, (long long)jobs[j].cpu);
	return 0;
}
