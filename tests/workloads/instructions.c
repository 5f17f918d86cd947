// The cost of events on one processor; in instructions, on a virtual one where each takes a
// nanosecond.
//
//   instructions [--batches N] [--gap-ms MS]
//
// Prints for each kind of event the median over all batches, and the processor time that the
// parent, if it is the observer, used for each. An observer has time to read its records between
// batches, but not within them, unless it stops the threads.
//
//   getppid   a call that separates nothing
//   write     writing a byte to an empty pipe that no thread waits for
//   read      reading that byte: a call that separates jobs and does not wait
//   wake      `write` with a thread of lower priority waiting: a write and a wake-up
//   yield     sched_yield() without another thread
//   switch    sched_yield() to another thread: `yield` and a switch
//   job       half a round of two threads that send each other a byte: a write, a wake-up, a
//             switch, a read that waits
#include "workload.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PRIORITY    40
#define PIPES	    32
#define CALLS	    200
#define BATCHES_MAX 1000
// Warms up: until all paths have been taken, memory is allocated, and self-patching code is done.
#define WARM_UP 3

enum { FROM, TO };
static int pipes[PIPES][2], go[2], there[2], back[2];

static void send(int to)
{
	char byte = 'x';
	must(write(to, &byte, 1), "write");
}

// Whether there was a byte: at the end of a pipe there is none.
static bool receive(int from)
{
	char byte;
	return must(read(from, &byte, 1), "read") == 1;
}

static int64_t getppid_batch(void)
{
	int64_t began = now_ns();
	for (int i = 0; i < CALLS; i++)
		syscall(SYS_getppid);
	return now_ns() - began;
}

static int64_t write_all(void)
{
	int64_t began = now_ns();
	for (int i = 0; i < PIPES; i++)
		send(pipes[i][TO]);
	return now_ns() - began;
}

static int64_t read_all(void)
{
	int64_t began = now_ns();
	for (int i = 0; i < PIPES; i++)
		receive(pipes[i][FROM]);
	return now_ns() - began;
}

static int64_t write_batch(void)
{
	int64_t took = write_all();
	read_all();
	return took;
}

static int64_t read_batch(void)
{
	write_all();
	return read_all();
}

static int64_t yield_batch(void)
{
	int64_t began = now_ns();
	for (int i = 0; i < CALLS; i++)
		sched_yield();
	return now_ns() - began;
}

static int64_t switch_batch(void)
{
	send(go[TO]);
	sched_yield(); // Now the other one has left its read() and yielded.
	return yield_batch();
}

static int64_t job_batch(void)
{
	int64_t began = now_ns();
	for (int i = 0; i < CALLS / 2; i++) {
		send(there[TO]);
		receive(back[FROM]);
	}
	return now_ns() - began;
}

static void *sleeper(void *argument)
{
	const int *pipe = argument;
	become_fifo("sleeper", PRIORITY - 10);
	while (receive(pipe[FROM]))
		;
	return NULL;
}

static void *yielder(void *unused)
{
	become_fifo("yielder", PRIORITY);
	while (receive(go[FROM]))
		for (int i = 0; i < CALLS + 1; i++)
			sched_yield();
	return unused;
}

static void *answerer(void *unused)
{
	become_fifo("answerer", PRIORITY);
	while (receive(there[FROM]))
		send(back[TO]);
	return unused;
}

static void start(pthread_t *thread, void *(*body)(void *), void *argument)
{
	int error = pthread_create(thread, NULL, body, argument);
	if (error)
		die("pthread_create", error);
}

// Processor time of all threads of a process; 0 if it has ended.
static int64_t processor_time(pid_t pid)
{
	char path[64];
	snprintf(path, sizeof path, "/proc/%d/task", pid);
	DIR *tasks = opendir(path);
	if (!tasks)
		return 0;
	int64_t total = 0;
	for (struct dirent *task; (task = readdir(tasks));) {
		long long ran;
		snprintf(path, sizeof path, "/proc/%d/task/%.16s/schedstat", pid, task->d_name);
		FILE *file = task->d_name[0] == '.' ? NULL : fopen(path, "r");
		if (file && fscanf(file, "%lld", &ran) == 1)
			total += ran;
		if (file)
			fclose(file);
	}
	closedir(tasks);
	return total;
}

static int ascending(const void *a, const void *b)
{
	int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
	return (left > right) - (left < right);
}

static int batches;
static int64_t gap_ns;
// Processor time of the observer in as many gaps as a measurement has, with nothing to read.
static int64_t idle_ns;

static int64_t nothing_batch(void)
{
	return 0;
}

static void measure(const char *kind, int64_t (*batch)(void), int events)
{
	static int64_t took[BATCHES_MAX];
	for (int i = 0; i < WARM_UP; i++) {
		batch();
		sleep_until(now_ns() + gap_ns);
	}
	int64_t before = processor_time(getppid());
	for (int i = 0; i < batches; i++) {
		took[i] = batch();
		sleep_until(now_ns() + gap_ns);
	}
	int64_t observer = processor_time(getppid()) - before;
	if (batch == nothing_batch) {
		idle_ns = observer;
		return;
	}
	qsort(took, batches, sizeof took[0], ascending);
	printf("{\"kind\": \"%s\", \"ns\": %.2f, \"least_ns\": %.2f, \"most_ns\": %.2f, "
	       "\"observer_ns\": %.1f}\n",
		kind, (double)took[batches / 2] / events, (double)took[0] / events,
		(double)took[batches - 1] / events,
		(double)(observer - idle_ns) / ((double)events * batches));
	fflush(stdout);
}

int main(int argc, char **argv)
{
	pthread_t sleepers[PIPES], other;
	batches = (int)number_option(argc, argv, "--batches", 21);
	gap_ns = (int64_t)(number_option(argc, argv, "--gap-ms", 300) * (double)MS);
	if (batches < 1 || batches > BATCHES_MAX)
		die("--batches", EINVAL);
	for (int i = 0; i < PIPES; i++)
		must(pipe(pipes[i]), "pipe");
	must(pipe(go), "pipe");
	must(pipe(there), "pipe");
	must(pipe(back), "pipe");
	become_fifo("instructions", PRIORITY);

	measure("nothing", nothing_batch, 1);
	measure("getppid", getppid_batch, CALLS);
	measure("write", write_batch, PIPES);
	measure("read", read_batch, PIPES);
	measure("yield", yield_batch, CALLS);
	start(&other, yielder, NULL);
	measure("switch", switch_batch, 2 * CALLS);
	close(go[TO]);
	pthread_join(other, NULL);
	start(&other, answerer, NULL);
	measure("job", job_batch, CALLS);
	close(there[TO]);
	pthread_join(other, NULL);
	for (int i = 0; i < PIPES; i++)
		start(&sleepers[i], sleeper, pipes[i]);
	measure("wake", write_all, PIPES);
	for (int i = 0; i < PIPES; i++) {
		close(pipes[i][TO]);
		pthread_join(sleepers[i], NULL);
	}
	return 0;
}
