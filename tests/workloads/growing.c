// Four periodic threads on one processor, one of which needs more and more processor time after a
// while: the program of the guarantee demonstration.
//
//   growing [--for SECONDS] [--grow-after SECONDS] [--cpu N] [--fifo]
//
// With --fifo, threads give themselves the priorities that rate-monotonic scheduling would;
// without, they are ordinary ones, for punctuald to schedule. Prints late jobs: those that ended
// after their deadline, which is their period.
#include "workload.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/prctl.h>

static struct task {
	const char *name;
	int64_t period_ns, cost_ns;
	int priority;
	bool grows;
	pthread_t thread;
	int64_t jobs, late;
} tasks[] = {
	{.name = "sensor", .period_ns = 5 * MS, .cost_ns = 300 * US, .priority = 80},
	{.name = "filter", .period_ns = 10 * MS, .cost_ns = 1 * MS, .priority = 70, .grows = true},
	{.name = "control", .period_ns = 20 * MS, .cost_ns = 2 * MS, .priority = 60},
	{.name = "logger", .period_ns = 50 * MS, .cost_ns = 4 * MS, .priority = 50},
};
enum { COUNT = sizeof tasks / sizeof *tasks };

// The growing thread stops there: everything still meets its deadline then.
static const int64_t most_ns = 4 * MS, growth_ns = 10 * US;

static int64_t beginning, growing_from;
static bool is_fifo;
static atomic_bool stopping;

static void *run(void *argument)
{
	struct task *task = argument;
	if (is_fifo)
		become_fifo(task->name, task->priority);
	else
		prctl(PR_SET_NAME, task->name);
	int64_t cost_ns = task->cost_ns;
	for (int64_t arrival = beginning; !stopping; arrival += task->period_ns) {
		sleep_until(arrival);
		if (task->grows && arrival >= growing_from && cost_ns < most_ns)
			cost_ns += growth_ns;
		burn(cost_ns);
		task->jobs++;
		task->late += now_ns() > arrival + task->period_ns;
	}
	return NULL;
}

int main(int argc, char **argv)
{
	double seconds = number_option(argc, argv, "--for", 10);
	double after = number_option(argc, argv, "--grow-after", 1e9);
	int cpu = (int)number_option(argc, argv, "--cpu", -1);
	is_fifo = has_flag(argc, argv, "--fifo");
	if (cpu >= 0) {
		cpu_set_t one;
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		must(sched_setaffinity(0, sizeof one, &one), "sched_setaffinity");
	}
	block_stop_signals();
	beginning = now_ns() + 100 * MS;
	growing_from = beginning + (int64_t)(after * (double)SECOND);
	for (int i = 0; i < COUNT; i++) {
		int error = pthread_create(&tasks[i].thread, NULL, run, &tasks[i]);
		if (error)
			die("pthread_create", error);
	}
	wait_for_stop(seconds);
	stopping = true;
	for (int i = 0; i < COUNT; i++) {
		pthread_join(tasks[i].thread, NULL);
		printf("%s: %lld jobs, %lld late\n", tasks[i].name, (long long)tasks[i].jobs,
			(long long)tasks[i].late);
	}
	return 0;
}
