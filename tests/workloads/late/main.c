// A control loop that is late for reasons that it knows.
//
//   late [JOBS [FILE]]
//   late only CAUSE JOBS [FILE]
//   late budget|server|slack JOBS
//
// Prints a line for each job: when it was due, when it ended, its processor time, its page faults,
// and why it should be late: one cause or two, each with how long it lasted within the job. What is
// left of its time is what other load took. Needs two processors: the loop has the first, threads
// that it waits for have the second. With FILE, some jobs write to it or read it, and wait for the
// disk. With `only`, all late jobs have this one cause.
// With `budget`, the loop is under SCHED_DEADLINE and uses up its runtime now and then. With
// `server`, a less urgent real-time thread never waits, and now and then the kernel gives the
// processor to an ordinary thread all the same. With `slack`, the loop is an ordinary thread whose
// timers may be late.
#include "late.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

void pin(int processor)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(processor, &set);
	must(sched_setaffinity(0, sizeof(set), &set), "sched_setaffinity");
}

static int64_t faults(void)
{
	struct rusage usage;
	must(getrusage(RUSAGE_THREAD, &usage), "getrusage");
	return usage.ru_minflt + usage.ru_majflt;
}

void print(const struct job *jobs, long count)
{
	for (const struct job *job = jobs; job < jobs + count; job++) {
		printf("%lld %lld %lld %lld", (long long)job->due, (long long)job->end,
			(long long)job->cpu, (long long)job->faults);
		for (int r = 0; r < job->reasons; r++)
			printf(" %s %lld", job->reason[r].name, (long long)job->reason[r].time);
		putchar('\n');
	}
}

// Two causes of one job: the first one lasts for longer.
struct pair {
	enum cause longer, shorter;
};
static enum cause alone[CAUSES];
static struct pair pairs[CAUSES * CAUSES];
static int singles, couples;

// Whether both can be had within one job, and told apart.
static bool may_meet(enum cause one, enum cause other)
{
	bool is_own = one == OWN || one == FAULTS;
	bool other_is_own = other == OWN || other == FAULTS;
	return one != other && one != BACKLOG && other != BACKLOG && !(is_own && other_is_own) &&
	       !(begins_early(one) && begins_early(other));
}

static void choose_causes(const char *only)
{
	for (enum cause cause = 0; cause < CAUSES; cause++)
		if (is_available(cause) && (!only || strcmp(only, name_of(cause)) == 0))
			alone[singles++] = cause;
	for (int one = 0; one < singles; one++)
		for (int other = 0; other < singles; other++)
			if (may_meet(alone[one], alone[other]))
				pairs[couples++] = (struct pair){alone[one], alone[other]};
}

static void add_cause(struct job *job, enum cause cause, int64_t length)
{
	job->reason[job->reasons++] =
		(struct reason){.cause = cause, .name = name_of(cause), .length = length};
}

// The causes of the late job of this number: each alone, and between them pairs.
static void choose(struct job *job, long number)
{
	long turn = number / 2;
	if (number % 2 == 0 || !couples) {
		enum cause cause = alone[(couples ? turn : number) % singles];
		add_cause(job, cause, cause == BACKLOG ? THREE : LONG);
		return;
	}
	// A prime beyond the number of pairs, so that few jobs have all sorts of them.
	const long stride = 257;
	struct pair pair = pairs[turn * stride % couples];
	bool longer_first = begins_early(pair.longer) ||
			    (!begins_early(pair.shorter) && turn / couples % 2 == turn % 2);
	if (longer_first)
		add_cause(job, pair.longer, LONG);
	add_cause(job, pair.shorter, SHORT);
	if (!longer_first)
		add_cause(job, pair.longer, LONG);
}

static void do_late_job(struct job *job, int64_t due)
{
	job->due = due;
	for (int r = 0; r < job->reasons; r++)
		prepare(&job->reason[r], due);
	sleep_until(due);
	job->start = now_ns();
	int64_t cpu = now_on(CLOCK_THREAD_CPUTIME_ID), before = faults();
	burn(USUAL / 2);
	for (int r = 0; r < job->reasons; r++)
		run(&job->reason[r], job);
	job->end = now_ns();
	job->cpu += now_on(CLOCK_THREAD_CPUTIME_ID) - cpu;
	job->faults = faults() - before;
	for (int r = 0; r < job->reasons; r++)
		conclude(&job->reason[r], job);
}

static int be_late(struct job *jobs, long count, const char *file, const char *only)
{
	cpu_set_t all;
	must(sched_getaffinity(0, sizeof(all), &all), "sched_getaffinity");
	if (CPU_COUNT(&all) < 2)
		return EXIT_SKIPPED;
	set_up_causes(file);
	choose_causes(only);
	if (!singles)
		return EXIT_SKIPPED;
	become_fifo("control", 60);
	int64_t due = now_ns() + 2 * PERIOD;
	for (long j = 0; j < count; j++, due += PERIOD) {
		// The end of the last job is that of the thread, which nobody else sees.
		if (j % APART == APART - 1 && j + 1 < count)
			choose(&jobs[j], j / APART);
		do_late_job(&jobs[j], due);
	}
	tear_down_causes();
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
	const char *only = argc > 3 && strcmp(argv[1], "only") == 0 ? argv[2] : NULL;
	int words = loop ? 1 : only ? 2 : 0;
	argv += words;
	argc -= words;
	long count = argc > 1 ? atol(argv[1]) : 200;
	struct job *jobs = calloc(count, sizeof(*jobs));
	if (!jobs)
		die("calloc", errno);
	return loop ? loop(jobs, count) : be_late(jobs, count, argc > 2 ? argv[2] : NULL, only);
}
