// A control loop that misses deadlines and counts its late jobs.
//
//   gate MODE [--jobs N]     prints the number of jobs, of those certainly later than DEADLINE, and
//                            of those possibly later
//
// A job starts every 10 ms; every twentieth waits for 15 ms. MODE is what the thread waits for
// besides its next job:
//
//   disk         it writes to a disk before its first job and within some
//   files        it opens and reads files in its first jobs
//   lock         another thread holds its lock
//   pool         each job waits for a thread that does a part of it
//   socket       its timer is a file, and each job waits for an answer from a socket
//   semaphores   jobs come by a semaphore, and each waits for a second one
#include "workload.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define PERIOD	 (10 * MS)
#define DEADLINE (12 * MS)
#define LONG	 (15 * MS)
// An observer sees the end of a job later than the thread itself: at its next system call.
#define DOUBT (500 * US)

enum mode { DISK, FILES, LOCK, POOL, SOCKET, SEMAPHORES, MODES };
static const char *const names[MODES] = {"disk", "files", "lock", "pool", "socket", "semaphores"};

static enum mode mode;
static int jobs;
static int64_t begin;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static sem_t asked, answered, next;
static int ends[2];
// When each job was released by its semaphore.
static int64_t *posted;

static bool is_long(int job)
{
	return job % 20 == 10;
}

static int64_t due(int job)
{
	return begin + (job + 1) * PERIOD;
}

/* Holds the lock during the long jobs. */
static void *hold(void *unused)
{
	become_fifo("holder", 20);
	for (int job = 0; job < jobs; job++) {
		if (!is_long(job))
			continue;
		sleep_until(due(job) - MS);
		pthread_mutex_lock(&lock);
		sleep_until(due(job) + LONG);
		pthread_mutex_unlock(&lock);
	}
	return unused;
}

/* Does a part of each job. */
static void *help(void *unused)
{
	become_fifo("helper", 40);
	char byte = 0;
	for (int job = 0; job < jobs; job++) {
		if (mode == SOCKET)
			must(read(ends[1], &byte, 1), "read");
		else
			while (sem_wait(&asked))
				;
		int64_t until = now_ns() + (is_long(job) ? LONG : 300 * US);
		sleep_until(until);
		if (mode == SOCKET)
			must(write(ends[1], &byte, 1), "write");
		else
			sem_post(&answered);
	}
	return unused;
}

/* Lets jobs come. */
static void *release(void *unused)
{
	become_fifo("releaser", 60);
	for (int job = 0; job < jobs; job++) {
		sleep_until(due(job));
		posted[job] = now_ns();
		sem_post(&next);
	}
	return unused;
}

static void write_to_disk(void)
{
	static int file = -1;
	static char block[4096];
	if (file < 0) {
		char name[] = "/var/tmp/punctual-gate-XXXXXX";
		file = (int)must(mkstemp(name), "mkstemp");
		unlink(name);
	}
	must(write(file, block, sizeof block), "write");
	fsync(file);
}

static void read_a_file(void)
{
	char text[4096];
	int file = (int)must(open("/proc/self/maps", O_RDONLY), "open");
	while (read(file, text, sizeof text) > 0)
		;
	close(file);
	usleep(200);
}

struct counts {
	int jobs, certainly_late, possibly_late;
};

static void count(struct counts *counts, int64_t response)
{
	counts->jobs++;
	counts->certainly_late += response > DEADLINE + DOUBT;
	counts->possibly_late += response > DEADLINE - DOUBT;
}

static void *loop(void *argument)
{
	struct counts *counts = argument;
	become_fifo("loop", 50);
	if (mode == DISK)
		for (int i = 0; i < 3; i++)
			write_to_disk();
	int timer = -1;
	if (mode == SOCKET) {
		timer = (int)must(timerfd_create(CLOCK_MONOTONIC, 0), "timerfd_create");
		struct itimerspec times = {{0, PERIOD}, timespec_of(due(0))};
		must(timerfd_settime(timer, TFD_TIMER_ABSTIME, &times, NULL), "timerfd_settime");
	}
	uint64_t expirations = 0, seen = 0;
	int64_t from = 0, end = 0;
	for (int job = 0; job < jobs; job++) {
		// A semaphore that is already posted takes no system call: for an observer, the job
		// before goes on.
		bool goes_on = mode == SEMAPHORES && sem_trywait(&next) == 0;
		if (job > 0 && !goes_on)
			count(counts, end - from);
		if (mode == SOCKET) {
			must(read(timer, &expirations, sizeof expirations), "read");
			from = due((int)seen);
			seen += expirations;
		} else if (mode != SEMAPHORES) {
			from = due(job);
			sleep_until(from);
		} else if (!goes_on) {
			while (sem_wait(&next))
				;
			from = posted[job];
		}
		burn(200 * US);
		char byte = 0;
		if (mode == SOCKET) {
			must(write(ends[0], &byte, 1), "write");
			must(read(ends[0], &byte, 1), "read");
		} else if (mode == POOL || mode == SEMAPHORES) {
			sem_post(&asked);
			while (sem_wait(&answered))
				;
		} else {
			if (mode == FILES && job < 9)
				read_a_file();
			if (mode == DISK && job % 50 == 25)
				write_to_disk();
			pthread_mutex_lock(&lock);
			pthread_mutex_unlock(&lock);
		}
		end = now_ns();
	}
	count(counts, end - from);
	return NULL;
}

int main(int argc, char **argv)
{
	for (mode = 0; mode < MODES && (argc < 2 || strcmp(argv[1], names[mode])); mode++)
		;
	if (mode == MODES) {
		fprintf(stderr, "usage: gate disk|files|lock|pool|socket|semaphores [--jobs N]\n");
		return 2;
	}
	jobs = (int)number_option(argc, argv, "--jobs", 200);
	must(sem_init(&asked, 0, 0) | sem_init(&answered, 0, 0) | sem_init(&next, 0, 0),
		"sem_init");
	must(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), "socketpair");
	begin = now_ns() + 100 * MS;
	pthread_t looping, other, releaser;
	struct counts counts = {0};
	posted = calloc((size_t)jobs, sizeof *posted);
	if (!posted)
		die("calloc", ENOMEM);
	pthread_create(&looping, NULL, loop, &counts);
	pthread_create(&other, NULL, mode < POOL ? hold : help, NULL);
	if (mode == SEMAPHORES) {
		pthread_create(&releaser, NULL, release, NULL);
		pthread_join(releaser, NULL);
	}
	pthread_join(looping, NULL);
	pthread_join(other, NULL);
	printf("%d %d %d\n", counts.jobs, counts.certainly_late, counts.possibly_late);
	return 0;
}
