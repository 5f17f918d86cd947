// The workload of benchmarks: many periodic threads.
//
//   periodic [--tasks N] [--rate N] [--cost-us N] [--for SECONDS] [PERIOD_US…]
//
// Without PERIOD_US, N tasks (20) have round periods that add up to about RATE (6000) activations
// per second. Prints the number of jobs, their processor time, and how often task 0 slept, as the
// kernel counted: a job that begins late does not sleep before it.
#include "workload.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

enum { MOST = 4096 };

static struct task {
	pthread_t thread;
	int64_t period_ns, jobs, cpu_ns, slept;
	int priority, number;
} tasks[MOST];

static int64_t beginning, cost_ns;
static atomic_bool stopping;

static void *run(void *argument)
{
	struct task *task = argument;
	char name[16];
	snprintf(name, sizeof name, "task-%d", task->number);
	become_fifo(name, task->priority);
	for (int64_t arrival = beginning; !stopping; arrival += task->period_ns) {
		sleep_until(arrival);
		if (cost_ns)
			burn(cost_ns);
		task->jobs++;
	}
	task->cpu_ns = now_on(CLOCK_THREAD_CPUTIME_ID);
	struct rusage usage;
	must(getrusage(RUSAGE_THREAD, &usage), "getrusage");
	task->slept = usage.ru_nvcsw;
	return NULL;
}

// Spread over a factor of ten, then scaled to the rate, then rounded to 10 µs.
static int choose_periods(int count, double rate)
{
	static const double spread[] = {1, 1.5, 2, 3, 4, 5, 6, 7.5, 8, 10};
	double sum = 0;
	for (int i = 0; i < count; i++)
		sum += 1 / spread[i % 10];
	for (int i = 0; i < count; i++) {
		double period_us = spread[i % 10] * sum / rate * 1e6;
		tasks[i].period_ns = ((int64_t)(period_us / 10 + 0.5) + (period_us < 5)) * 10 * US;
	}
	return count;
}

int main(int argc, char **argv)
{
	double seconds = number_option(argc, argv, "--for", 10);
	int count = (int)number_option(argc, argv, "--tasks", 20);
	double rate = number_option(argc, argv, "--rate", 6000);
	cost_ns = (int64_t)number_option(argc, argv, "--cost-us", 0) * US;
	int given = 0;
	for (int i = 1; i < argc; i++) {
		if (argv[i][0] == '-') {
			i++;
			continue;
		}
		int64_t period_us = atoll(argv[i]);
		if (period_us <= 0 || given == MOST) {
			fprintf(stderr,
				"periodic: '%s' is not a period in µs, or there are more than %d\n",
				argv[i], MOST);
			return 2;
		}
		tasks[given++].period_ns = period_us * US;
	}
	if (given)
		count = given;
	else if (count < 1 || count > MOST || rate <= 0)
		return fprintf(stderr, "periodic: from 1 to %d tasks, and a rate above 0\n", MOST),
		       2;
	else
		choose_periods(count, rate);

	block_stop_signals();
	beginning = now_ns() + 50 * MS;
	for (int i = 0; i < count; i++) {
		int above = 0;
		for (int k = 0; k < count; k++)
			above += tasks[k].period_ns < tasks[i].period_ns;
		tasks[i].number = i;
		tasks[i].priority = above < 80 ? 85 - above : 5;
		int error = pthread_create(&tasks[i].thread, NULL, run, &tasks[i]);
		if (error)
			die("pthread_create", error);
	}
	wait_for_stop(seconds);
	stopping = true;
	int64_t jobs = 0, cpu_ns = 0;
	for (int i = 0; i < count; i++) {
		pthread_join(tasks[i].thread, NULL);
		jobs += tasks[i].jobs;
		cpu_ns += tasks[i].cpu_ns;
	}
	double ran = (double)(now_ns() - beginning) / (double)SECOND;
	printf("{\"tasks\": %d, \"jobs\": %lld, \"jobs_per_second\": %.0f, \"cpu_ns\": %lld, "
	       "\"task_0_slept\": %lld}\n",
		count, (long long)jobs, (double)jobs / ran, (long long)cpu_ns,
		(long long)tasks[0].slept);
	return 0;
}
