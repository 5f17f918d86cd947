// A control loop that is late for reasons that it knows.
//
//   late [JOBS [FILE]]
//   late budget|server|slack JOBS
//
// Prints a line for each job: when it was due, when it ended, why it should be late, for how long
// the reason lasted within the job, the processor time of the job, and its page faults. What is
// left of its time is what other load took. Needs two processors: the loop has the first, threads
// that it waits for have the second. With FILE, some jobs write to it or read it, and wait for the
// disk.
// With `budget`, the loop is under SCHED_DEADLINE and uses up its runtime now and then. With
// `server`, a less urgent real-time thread never waits, and now and then the kernel gives the
// processor to an ordinary thread all the same. With `slack`, the loop is an ordinary thread whose
// timers may be late.
#include "workload.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#define PERIOD (10 * MS)
// The two jobs after one of so long are late, too.
#define THREE (35 * MS)
#define LONG  (12 * MS)
#define USUAL (1 * MS)
// Causes that have nothing to do with each other are this many jobs apart.
#define APART 5

enum cause {
	NONE,
	OWN,
	PREEMPTED,
	QUEUED,
	TURNS,
	LOCK,
	INHERIT,
	INVERSION,
	WORKER,
	FAULTS,
	STOPPED,
	BACKLOG,
	// With a file.
	DISK,
	COLD,
	CAUSES,
	// Loops of their own.
	BUDGET = CAUSES,
	SERVER,
	SLACK
};
// Those with a helper.
#define FIRST_HELPED PREEMPTED
#define LAST_HELPED  WORKER

static const char *const names[] = {"none", "own", "preempted", "queued", "turns", "lock",
	"inherit", "inversion", "worker", "faults", "stopped", "backlog", "disk", "cold", "budget",
	"server", "slack"};

struct job {
	int64_t due, start, end, reason, cpu, faults;
	enum cause cause;
};

// Stops this program for a while each time that it is asked to.
static struct {
	int asks[2];
	struct {
		volatile long stops;
		volatile int64_t from, until; // of the last one
	} * shared;
} stopper;

// Memory that a job faults in.
static char *memory;
#define MEMORY (8 << 20)
#define PAGE   4096

static int file = -1;
// A part of it that jobs read.
static char *mapped;
#define WRITTEN (MEMORY / 8)

// A thread that is busy for as long as it was told to, from a given time on.
struct helper {
	const char *name;
	int priority, processor;
	bool round_robin;
	void (*run)(struct helper *);
	sem_t begin, done;
	int64_t from, until; // when it was busy last
	int64_t at;	     // when it is to begin
	pthread_t thread;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t lent; // its owner inherits priorities
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

static void hold(struct helper *helper, pthread_mutex_t *held, int64_t time)
{
	sleep_until(helper->at);
	pthread_mutex_lock(held);
	helper->from = now_ns();
	burn(time);
	helper->until = now_ns();
	pthread_mutex_unlock(held);
}

static void hold_lock(struct helper *helper)
{
	hold(helper, &lock, LONG);
}

static void hold_lent(struct helper *helper)
{
	hold(helper, &lent, LONG);
}

// Holds the lock for a short time only, unless somebody keeps it from its processor.
static void hold_lock_shortly(struct helper *helper)
{
	hold(helper, &lock, USUAL);
}

enum { MIDDLE = LAST_HELPED + 1 };

static struct helper helpers[] = {
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
	[INVERSION] = {.name = "victim", .priority = 10, .processor = 1, .run = hold_lock_shortly},
	[WORKER] = {.name = "worker", .priority = 20, .processor = 1, .run = be_busy},
	// Keeps the holder of the lock from its processor.
	[MIDDLE] = {.name = "middle", .priority = 30, .processor = 1, .run = be_busy},
};

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
	case TURNS:
	case LOCK:
	case INHERIT:
		start(&helpers[cause], due - USUAL / 2);
		break;
	case INVERSION:
		start(&helpers[INVERSION], due - USUAL / 2);
		start(&helpers[MIDDLE], due);
		break;
	default:
		break;
	}
}

static int64_t faults(void)
{
	struct rusage usage;
	must(getrusage(RUSAGE_THREAD, &usage), "getrusage");
	return usage.ru_minflt + usage.ru_majflt;
}

static void run_stopper(void)
{
	pid_t stopped = getppid();
	char ask;

	must(prctl(PR_SET_PDEATHSIG, SIGKILL), "prctl");
	pin(1);
	become_fifo("stopper", 50);
	close(stopper.asks[1]);
	while (read(stopper.asks[0], &ask, 1) == 1) {
		stopper.shared->from = now_ns();
		must(kill(stopped, SIGSTOP), "kill");
		sleep_until(now_ns() + LONG);
		stopper.shared->until = now_ns();
		stopper.shared->stops++;
		must(kill(stopped, SIGCONT), "kill");
	}
	_exit(0);
}

static void start_stopper(void)
{
	stopper.shared =
		mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (stopper.shared == MAP_FAILED)
		die("mmap", errno);
	must(pipe2(stopper.asks, O_CLOEXEC), "pipe2");
	if (!must(fork(), "fork"))
		run_stopper();
}

static void be_stopped(void)
{
	long before = stopper.shared->stops;
	must(write(stopper.asks[1], "", 1), "write");
	while (stopper.shared->stops == before)
		;
}

// Faults in pages for a while, again and again.
static void touch_memory(void)
{
	int64_t until = now_ns() + LONG;
	do {
		must(madvise(memory, MEMORY, MADV_DONTNEED), "madvise");
		for (int i = 0; i < MEMORY && now_ns() < until; i += PAGE)
			memory[i] = 1;
	} while (now_ns() < until);
}

// Writes to the disk for a while. Returns how long it waited for that.
static int64_t write_to_disk(void)
{
	int64_t begin = now_ns(), cpu = now_on(CLOCK_THREAD_CPUTIME_ID);
	do {
		// Much at once: each wait is then long beside the way out of it.
		must(pwrite(file, memory, WRITTEN, 0), "pwrite");
		must(fsync(file), "fsync");
	} while (now_ns() < begin + LONG);
	return now_ns() - begin - (now_on(CLOCK_THREAD_CPUTIME_ID) - cpu);
}

// Reads a file through memory for a while, always from the disk. Returns how long it waited for
// that.
static int64_t read_from_disk(void)
{
	int64_t begin = now_ns(), cpu = now_on(CLOCK_THREAD_CPUTIME_ID);
	do {
		must(madvise(mapped, MEMORY, MADV_DONTNEED), "madvise");
		posix_fadvise(file, WRITTEN, MEMORY, POSIX_FADV_DONTNEED);
		for (int i = 0; i < MEMORY && now_ns() < begin + LONG; i += PAGE)
			(void)*(volatile char *)(mapped + i);
	} while (now_ns() < begin + LONG);
	return now_ns() - begin - (now_on(CLOCK_THREAD_CPUTIME_ID) - cpu);
}

static void map_file(void)
{
	for (int i = 0; i < WRITTEN + MEMORY; i += WRITTEN)
		must(pwrite(file, memory, WRITTEN, i), "pwrite");
	must(fsync(file), "fsync");
	mapped = mmap(NULL, MEMORY, PROT_READ, MAP_SHARED, file, WRITTEN);
	if (mapped == MAP_FAILED)
		die("mmap", errno);
	must(munlock(mapped, MEMORY), "munlock");
	must(madvise(mapped, MEMORY, MADV_RANDOM), "madvise");
}

// The job; ends when its cause has. Returns how long it waited where nobody else knows that.
static int64_t work(enum cause cause)
{
	int64_t mine = USUAL / 2;

	if (cause == OWN)
		mine = LONG;
	if (cause == BACKLOG)
		mine = THREE;
	if (cause == PREEMPTED)
		start(&helpers[PREEMPTED], 0);
	burn(mine);
	if (cause == LOCK || cause == INVERSION) {
		pthread_mutex_lock(&lock);
		pthread_mutex_unlock(&lock);
	}
	if (cause == INHERIT) {
		pthread_mutex_lock(&lent);
		pthread_mutex_unlock(&lent);
	}
	if (cause == WORKER) {
		start(&helpers[WORKER], 0);
		finish(&helpers[WORKER]);
	}
	if (cause == FAULTS)
		touch_memory();
	if (cause == STOPPED)
		be_stopped();
	if (cause == DISK)
		return write_to_disk();
	return cause == COLD ? read_from_disk() : 0;
}

static bool has_helper(enum cause cause)
{
	return FIRST_HELPED <= cause && cause <= LAST_HELPED;
}

// How long the reason lasted within the job, without what kept a helper itself from its processor.
static int64_t reason(enum cause cause, const struct job *job)
{
	int64_t from, until;
	if (cause == STOPPED) {
		from = stopper.shared->from;
		until = stopper.shared->until;
	} else if (has_helper(cause)) {
		from = helpers[cause].from;
		until = helpers[cause].until;
	} else {
		return job->reason;
	}
	// What the loop waits for before it runs counts from when it should have run.
	int64_t begin = cause == QUEUED || cause == TURNS ? job->due : job->start;
	from = from > begin ? from : begin;
	until = until < job->end ? until : job->end;
	int64_t most = cause == STOPPED || cause == INVERSION ? LONG + 2 * USUAL : LONG;
	int64_t lasted = until > from ? until - from : 0;
	return lasted < most ? lasted : most;
}

static void print(const struct job *jobs, long count)
{
	for (long j = 0; j < count; j++)
		printf("%lld %lld %s %lld %lld %lld\n", (long long)jobs[j].due,
			(long long)jobs[j].end, names[jobs[j].cause], (long long)jobs[j].reason,
			(long long)jobs[j].cpu, (long long)jobs[j].faults);
}

// A job that needs nothing but its own time.
static void do_job(struct job *job, int64_t due, int64_t time)
{
	job->due = due;
	sleep_until(due);
	job->start = now_ns();
	int64_t cpu = now_on(CLOCK_THREAD_CPUTIME_ID);
	burn(time);
	job->end = now_ns();
	job->cpu = now_on(CLOCK_THREAD_CPUTIME_ID) - cpu;
}

// A job that needs more than the runtime gets the rest in the next period.
static int use_up_budget(struct job *jobs, long count)
{
	const int64_t runtime = 3 * MS;
	if (become_deadline("control", runtime, PERIOD, PERIOD))
		return EXIT_SKIPPED;
	int64_t due = now_ns() + 2 * PERIOD;
	for (long j = 0; j < count; j++, due += PERIOD) {
		struct job *job = &jobs[j];
		job->cause = j % APART == APART - 1 && j + 1 < count ? BUDGET : NONE;
		do_job(job, due, job->cause ? runtime * 3 / 2 : USUAL / 2);
		job->reason = job->cause ? job->end - due - job->cpu : 0;
	}
	print(jobs, count);
	return 0;
}

// Real-time throttling, or since Linux 6.12 the fair server: an ordinary thread that has not run
// for about a second runs for some 50 ms.
static struct {
	int64_t from, until;
} turns[64];
static _Atomic int turns_seen;
static _Atomic int64_t hog_began;

// Logs its turns: stretches of time in which it ran without a gap.
static void *be_ordinary(void *unused)
{
	const int64_t gap = MS / 10;
	int turn = -1;
	must(prctl(PR_SET_NAME, "ordinary"), "prctl");
	pin(0);
	for (int64_t last = 0; !over;) {
		int64_t now = now_ns();
		if (now - last > gap && turn + 1 < (int)(sizeof(turns) / sizeof(*turns)))
			turns[++turn].from = now;
		turns[turn].until = last = now;
		turns_seen = turn + 1;
	}
	return unused;
}

static void *never_wait(void *unused)
{
	pin(0);
	become_fifo("hog", 10);
	hog_began = now_ns();
	while (!over)
		;
	return unused;
}

static int64_t of_ordinary(int64_t from, int64_t until)
{
	int64_t sum = 0;
	for (int turn = 0; turn < turns_seen; turn++) {
		int64_t begin = turns[turn].from > from ? turns[turn].from : from;
		int64_t end = turns[turn].until < until ? turns[turn].until : until;
		if (turns[turn].from > hog_began && end > begin)
			sum += end - begin;
	}
	return sum;
}

static int starve_others(struct job *jobs, long count)
{
	pthread_t ordinary, hog;
	if (pthread_create(&ordinary, NULL, be_ordinary, NULL) ||
		pthread_create(&hog, NULL, never_wait, NULL))
		die("pthread_create", EAGAIN);
	pin(0);
	become_fifo("control", 60);
	int64_t due = now_ns() + 2 * PERIOD;
	for (long j = 0; j < count; j++, due += PERIOD)
		do_job(&jobs[j], due, USUAL / 2);
	over = true;
	pthread_join(hog, NULL);
	pthread_join(ordinary, NULL);
	for (long j = 0; j < count; j++) {
		jobs[j].reason = of_ordinary(jobs[j].due, jobs[j].end);
		jobs[j].cause = jobs[j].reason ? SERVER : NONE;
	}
	print(jobs, count);
	return 0;
}

// The kernel may wake an ordinary thread later than asked for, to wake several at once.
static int wake_late(struct job *jobs, long count)
{
	must(prctl(PR_SET_NAME, "control"), "prctl");
	int64_t due = now_ns() + 2 * PERIOD;
	for (long j = 0; j < count; j++, due += PERIOD) {
		struct job *job = &jobs[j];
		job->cause = j % APART == APART - 1 && j + 1 < count ? SLACK : NONE;
		must(prctl(PR_SET_TIMERSLACK, job->cause ? 2 * PERIOD : 1), "PR_SET_TIMERSLACK");
		do_job(job, due, USUAL / 2);
		job->reason = job->cause ? job->start - due : 0;
	}
	print(jobs, count);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(struct job *, long);
	} loops[] = {{"budget", use_up_budget}, {"server", starve_others}, {"slack", wake_late}};
	int (*loop)(struct job *, long) = NULL;
	for (size_t l = 0; argc > 2 && l < sizeof(loops) / sizeof(*loops); l++)
		if (strcmp(argv[1], loops[l].name) == 0)
			loop = loops[l].run;
	argv += loop != NULL;
	argc -= loop != NULL;
	long count = argc > 1 ? atol(argv[1]) : 200;
	struct job *jobs = calloc(count, sizeof(*jobs));

	if (!jobs)
		die("calloc", errno);
	if (loop)
		return loop(jobs, count);
	cpu_set_t all;
	must(sched_getaffinity(0, sizeof(all), &all), "sched_getaffinity");
	if (CPU_COUNT(&all) < 2)
		return EXIT_SKIPPED;
	if (argc > 2)
		file = must(open(argv[2], O_RDWR | O_CREAT | O_CLOEXEC, 0600), "open");
	start_stopper();
	must(mlockall(MCL_CURRENT | MCL_FUTURE), "mlockall");
	memory = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		die("mmap", errno);
	must(munlock(memory, MEMORY), "munlock");
	must(madvise(memory, MEMORY, MADV_NOHUGEPAGE), "madvise");
	int causes = file < 0 ? DISK : CAUSES;
	if (file >= 0)
		map_file();
	pthread_mutexattr_t inherits;
	pthread_mutexattr_init(&inherits);
	pthread_mutexattr_setprotocol(&inherits, PTHREAD_PRIO_INHERIT);
	pthread_mutex_init(&lent, &inherits);
	for (int cause = FIRST_HELPED; cause <= MIDDLE; cause++) {
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
		job->cause = has_cause ? 1 + j / APART % (causes - 1) : NONE;
		prepare(job->cause, due);
		sleep_until(due);
		job->start = now_ns();
		int64_t cpu = now_on(CLOCK_THREAD_CPUTIME_ID), before = faults();
		job->reason = work(job->cause);
		job->end = now_ns();
		job->cpu = now_on(CLOCK_THREAD_CPUTIME_ID) - cpu;
		job->faults = faults() - before;
		if (job->cause == INVERSION)
			finish(&helpers[MIDDLE]);
		if (has_helper(job->cause) && job->cause != WORKER)
			finish(&helpers[job->cause]);
		job->reason = reason(job->cause, job);
	}
	over = true;
	for (int cause = FIRST_HELPED; cause <= MIDDLE; cause++) {
		sem_post(&helpers[cause].begin);
		pthread_join(helpers[cause].thread, NULL);
	}
	print(jobs, count);
	return 0;
}
