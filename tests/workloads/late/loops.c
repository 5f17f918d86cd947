// Loops that are late for what their own policy does.
#include "late.h"

#include <errno.h>
#include <pthread.h>
#include <sys/prctl.h>

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

// Adds a reason to a job that was late for it.
static void add_reason(struct job *job, const char *name, int64_t time)
{
	job->reason[job->reasons++] = (struct reason){.name = name, .time = time};
}

// Whether a job has a cause: the end of the last one is that of the thread, which nobody else sees.
static bool has_cause(long job, long count)
{
	return job % APART == APART - 1 && job + 1 < count;
}

// A job that needs more than the runtime gets the rest in the next period.
int use_up_budget(struct job *jobs, long count)
{
	const int64_t runtime = 3 * MS;
	if (become_deadline("control", runtime, PERIOD, PERIOD))
		return EXIT_SKIPPED;
	int64_t due = now_ns() + 2 * PERIOD;
	for (long j = 0; j < count; j++, due += PERIOD) {
		struct job *job = &jobs[j];
		do_job(job, due, has_cause(j, count) ? runtime * 3 / 2 : USUAL / 2);
		if (has_cause(j, count))
			// Its budget is whole when it begins: it needed little before.
			add_reason(job, "budget", job->end - job->start - job->cpu);
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
static volatile bool over;

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

int starve_others(struct job *jobs, long count)
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
		int64_t time = of_ordinary(jobs[j].due, jobs[j].end);
		if (time)
			add_reason(&jobs[j], "server", time);
	}
	print(jobs, count);
	return 0;
}

// The kernel may wake an ordinary thread later than asked for, to wake several at once.
int wake_late(struct job *jobs, long count)
{
	must(prctl(PR_SET_NAME, "control"), "prctl");
	int64_t due = now_ns() + 2 * PERIOD;
	for (long j = 0; j < count; j++, due += PERIOD) {
		struct job *job = &jobs[j];
		bool is_late = has_cause(j, count);
		must(prctl(PR_SET_TIMERSLACK, is_late ? 2 * PERIOD : 1), "PR_SET_TIMERSLACK");
		do_job(job, due, USUAL / 2);
		if (is_late)
			add_reason(job, "slack", job->start - due);
	}
	print(jobs, count);
	return 0;
}
