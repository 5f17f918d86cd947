// The truth about each job of `drv`, as it measured it: kept in memory while jobs run, written when
// all are done.
#include "drivers.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static struct truth {
	int64_t index; // of its activation
	int64_t due_ns;
	int64_t seen_ns; // when the wait was over
	int64_t cpu_before_ns,
		cpu_after_ns; // processor time of the thread, at both ends of the job
} * jobs;

void truth_begin(const struct run *run)
{
	// No job may wait for a page.
	size_t size = (size_t)run->jobs * sizeof *jobs;
	jobs = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE,
		-1, 0);
	if (jobs == MAP_FAILED)
		die("memory for the truth", errno);
	mlock(jobs, size);
}

void truth_job_begins(const struct run *run)
{
	if (!jobs)
		return;
	struct truth *job = &jobs[run->done];
	job->seen_ns = now_ns();
	job->cpu_before_ns = now_on(CLOCK_THREAD_CPUTIME_ID);
	job->index = run->done + run->skipped;
	job->due_ns = next_arrival(run);
}

void truth_job_ends(const struct run *run)
{
	if (jobs)
		jobs[run->done].cpu_after_ns = now_on(CLOCK_THREAD_CPUTIME_ID);
}

void truth_write(const struct run *run, const char *path)
{
	FILE *file = fopen(path, "w");
	if (!file)
		die(path, errno);
	fputs("index,due_ns,seen_ns,cpu_before_ns,cpu_after_ns\n", file);
	for (const struct truth *job = jobs; job < jobs + run->done; job++)
		fprintf(file, "%lld,%lld,%lld,%lld,%lld\n", (long long)job->index,
			(long long)job->due_ns, (long long)job->seen_ns,
			(long long)job->cpu_before_ns, (long long)job->cpu_after_ns);
	if (fclose(file))
		die(path, errno);
}
