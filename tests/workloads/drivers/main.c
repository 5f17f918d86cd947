// drivers list | drivers run NAME [--period-us 10000] [--jobs 50] [--cost-us 200] [--truth FILE]
// [--skips]
//
// Runs one driver and prints what it did as one line of JSON. --truth writes the truth about each
// job to FILE at the end; with --skips a thread that waits for time skips past arrivals. Exits with
// 77 and the reason if the machine cannot run it.
#include "drivers.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/wait.h>

enum { DRV_PRIORITY = 50, SRC_PRIORITY = 60 };

static const struct driver *const groups[] = {
	time_drivers,
	multiplex_drivers,
	read_drivers,
	socket_drivers,
	futex_drivers,
	signal_drivers,
	ipc_drivers,
	child_drivers,
	aio_drivers,
	negative_drivers,
};
enum { GROUPS = sizeof groups / sizeof *groups };

static const struct driver *driver;
static struct run run = {.in = -1, .out = -1, .side = -1, .id = -1};
static int64_t began_ns, ended_ns;
static bool skips;

char *temporary_path(const char *file)
{
	const char *parent = getenv("TMPDIR");
	char *path;
	if (asprintf(&path, "%s/punctual-driver-XXXXXX", parent ? parent : "/tmp") < 0)
		die("temporary directory", ENOMEM);
	if (!mkdtemp(path))
		die(path, errno);
	char *inside;
	if (asprintf(&inside, "%s/%s", path, file) < 0)
		die("temporary file", ENOMEM);
	free(path);
	return inside;
}

void clean_up(struct run *run)
{
	if (run->child > 0)
		kill(run->child, run->ends_child ? run->ends_child : SIGKILL);
	if (run->child > 0 && run->ends_child)
		waitpid(run->child, NULL, 0);
	if (run->id >= 0) {
		// Only remove an identifier of the right kind: as another kind it does not exist,
		// or belongs to another process.
		if (driver->setup == make_sysv_queue)
			msgctl(run->id, IPC_RMID, NULL);
		else
			semctl(run->id, 0, IPC_RMID);
	}
	if (run->path) {
		unlink(run->path);
		char *slash = strrchr(run->path, '/');
		*slash = 0;
		rmdir(run->path);
		*slash = '/';
	}
}

static void give_up(int signal)
{
	clean_up(&run);
	_exit(128 + signal);
}

static void block_endings(int how)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGALRM);
	pthread_sigmask(how, &set, NULL);
}

// As in cyclictest.
static void skip_what_is_over(void)
{
	while (skips && driver->own_time && next_arrival(&run) <= now_ns())
		run.skipped++;
}

static void *drv(void *unused)
{
	if (driver->begin)
		driver->begin(&run);
	if (driver->deadline) {
		// Some budget for the kernel's overhead too.
		int error = become_deadline(
			"drv", run.cost_ns + run.period_ns / 4, run.period_ns, run.period_ns);
		if (error) {
			printf("{\"driver\": \"%s\", \"skip\": \"SCHED_DEADLINE is refused: "
			       "%s\"}\n",
				driver->name, strerror(error));
			clean_up(&run);
			exit(EXIT_SKIPPED);
		}
	} else {
		become_fifo("drv", DRV_PRIORITY);
	}
	began_ns = now_ns();
	for (; run.done < run.jobs; run.done++) {
		skip_what_is_over();
		driver->wait(&run);
		if (driver->merges)
			run.taken = run.made - (run.done + run.skipped) - 1;
		truth_job_begins(&run);
		run.skipped += run.taken;
		run.taken = 0;
		burn(run.cost_ns / 2);
		if (driver->job)
			driver->job(&run);
		burn(run.cost_ns - run.cost_ns / 2);
		truth_job_ends(&run);
	}
	if (driver->end)
		driver->end(&run);
	ended_ns = now_ns();
	run.finished = true;
	return unused;
}

static void *src(void *unused)
{
	become_fifo("src", SRC_PRIORITY);
	int64_t beginning = run.beginning_ns + (driver->half_behind ? run.period_ns / 2 : 0);
	for (int64_t j = 0; !run.finished; j++) {
		sleep_until(beginning + j * run.period_ns);
		run.made = j + 1;
		driver->event(&run);
	}
	return unused;
}

static void start(pthread_t *thread, void *(*body)(void *))
{
	int error = pthread_create(thread, NULL, body, NULL);
	if (error)
		die("pthread_create", error);
}

static const struct driver *find(const char *name)
{
	for (int i = 0; i < GROUPS; i++)
		for (const struct driver *d = groups[i]; d->name; d++)
			if (strcmp(d->name, name) == 0)
				return d;
	return NULL;
}

static int list(void)
{
	for (int i = 0; i < GROUPS; i++)
		for (const struct driver *d = groups[i]; d->name; d++)
			puts(d->name);
	return 0;
}

static void print_text(const char *field, const char *text)
{
	if (text)
		printf("\"%s\": \"%s\", ", field, text);
	else
		printf("\"%s\": null, ", field);
}

static void print_number(const char *field, int64_t number)
{
	printf("\"%s\": %lld, ", field, (long long)number);
}

static void print_done(void)
{
	putchar('{');
	print_text("driver", driver->name);
	print_text("call", driver->call);
	print_text("object", driver->object);
	print_text("forbidden", driver->forbidden);
	print_number("pid", getpid());
	print_number("jobs", run.done);
	print_number("skipped", run.skipped);
	print_number("burst", driver->burst ? driver->burst : 1);
	print_number("interruptions", run.interruptions);
	print_number("period_ns", driver->drifts ? 0 : run.period_ns);
	print_number("cost_ns", run.cost_ns);
	print_number("began_ns", began_ns);
	printf("\"ended_ns\": %lld}\n", (long long)ended_ns);
}

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "list") == 0)
		return list();
	if (argc < 3 || strcmp(argv[1], "run") != 0 || !(driver = find(argv[2]))) {
		fputs("usage: drivers list | drivers run NAME [--period-us N] [--jobs N] "
		      "[--cost-us N] [--truth FILE] [--skips]\n",
			stderr);
		return 2;
	}
	run.period_ns = (int64_t)(number_option(argc, argv, "--period-us", 10000) * (double)US);
	run.jobs = (int64_t)number_option(argc, argv, "--jobs", 50);
	run.cost_ns = (int64_t)number_option(argc, argv, "--cost-us", 200) * US;
	skips = has_flag(argc, argv, "--skips");
	const char *truth = text_option(argc, argv, "--truth", NULL);
	// The truth begins with a thread that waits, however loaded the machine is.
	run.beginning_ns = now_ns() + (truth ? 300 : 20) * MS;

	const char *missing = driver->setup ? driver->setup(&run) : NULL;
	if (missing) {
		printf("{\"driver\": \"%s\", \"skip\": \"%s\"}\n", driver->name, missing);
		clean_up(&run);
		return EXIT_SKIPPED;
	}
	struct sigaction action = {.sa_handler = give_up};
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGALRM, &action, NULL);
	// A driver whose event is lost would wait forever.
	alarm(15 + (unsigned)(run.jobs * run.period_ns / SECOND));

	// Only this thread handles the timeout, so that the others are never interrupted.
	block_endings(SIG_BLOCK);
	if (truth)
		truth_begin(&run);
	pthread_t source;
	start(&run.drv, drv);
	if (driver->event)
		start(&source, src);
	block_endings(SIG_UNBLOCK);
	if (driver->event)
		pthread_join(source, NULL);
	pthread_join(run.drv, NULL);
	clean_up(&run);
	if (truth)
		truth_write(&run, truth);
	print_done();
	return 0;
}
