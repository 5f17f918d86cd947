// The demonstration workload: threads with known timing, each waiting in a different way (see
// USAGE).
//
// One table has the configured timing: threads are made from it, and `--truth` prints it.
#include "workload.h"

#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

struct row {
	const char *thread; // at most 15 bytes: the kernel cuts longer names
	const char *call;   // of the primary separator
	const char *kind;
	int64_t period_ns; // rounded, if `period_exact` is given
	int64_t cost_ns;
	int64_t suspension_ns;
	struct {
		int64_t numerator, denominator;
	} period_exact;
	int burst; // events per period
	void (*body)(const struct row *row);
	int (*make_channel)(int ends[2]); // connects a sender with the receiver in the next row
	int receiving, sending;
	bool deadline; // SCHED_DEADLINE rather than SCHED_FIFO
	int priority;
	const char *note;
};

static atomic_bool stopping;
static int64_t beginning;

// Arrival of job `j`, from 0.
static int64_t arrival(const struct row *row, int64_t j)
{
	if (row->period_exact.denominator)
		return beginning + (int64_t)((__int128)j * row->period_exact.numerator /
					     row->period_exact.denominator);
	return beginning + j * row->period_ns;
}

static void absolute_sleep(const struct row *row)
{
	for (int64_t j = 0; !stopping; j++) {
		sleep_until(arrival(row, j));
		burn(row->cost_ns);
	}
}

// Sleeps for the time left until the next arrival, so it does not drift although each sleep is
// relative.
static void relative_sleep(const struct row *row)
{
	for (int64_t j = 0; !stopping; j++) {
		int64_t left = arrival(row, j) - now_ns();
		// Even if it is late, it sleeps for an instant: every job needs an activation.
		struct timespec t = timespec_of(left > 0 ? left : 1);
		clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
		burn(row->cost_ns);
	}
}

static void drifting_sleep(const struct row *row)
{
	while (!stopping) {
		usleep(row->period_ns / US);
		burn(row->cost_ns);
	}
}

static void suspending(const struct row *row)
{
	struct timespec inside = timespec_of(row->suspension_ns);
	for (int64_t j = 0; !stopping; j++) {
		sleep_until(arrival(row, j));
		burn(row->cost_ns / 2);
		// Not by the C library, which would use clock_nanosleep, the call of the
		// activation.
		syscall(SYS_nanosleep, &inside, NULL);
		burn(row->cost_ns - row->cost_ns / 2);
	}
}

static void timer_descriptor(const struct row *row)
{
	int timer =
		must(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC), "timerfd_create");
	int epoll = must(epoll_create1(EPOLL_CLOEXEC), "epoll_create1");
	struct epoll_event event = {.events = EPOLLIN};
	must(epoll_ctl(epoll, EPOLL_CTL_ADD, timer, &event), "epoll_ctl");
	struct itimerspec setting = {
		.it_value = timespec_of(beginning), .it_interval = timespec_of(row->period_ns)};
	must(timerfd_settime(timer, TFD_TIMER_ABSTIME, &setting, NULL), "timerfd_settime");
	uint64_t expirations;
	while (!stopping)
		if (epoll_wait(epoll, &event, 1, -1) == 1 &&
			read(timer, &expirations, sizeof expirations) > 0)
			burn(row->cost_ns);
}

static void timer_signal(const struct row *row)
{
	int signal = SIGRTMIN;
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, signal);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = signal};
	event.sigev_notify_thread_id = gettid();
	timer_t timer;
	must(timer_create(CLOCK_MONOTONIC, &event, &timer), "timer_create");
	struct itimerspec setting = {
		.it_value = timespec_of(beginning), .it_interval = timespec_of(row->period_ns)};
	must(timer_settime(timer, TIMER_ABSTIME, &setting, NULL), "timer_settime");
	while (!stopping)
		if (sigwait(&set, &signal) == 0)
			burn(row->cost_ns);
	timer_delete(timer);
}

// Each yield gives up the rest of the budget: the kernel wakes the thread at its next period.
static void yielding(const struct row *row)
{
	while (!stopping) {
		burn(row->cost_ns);
		sched_yield();
	}
}

static void sender(const struct row *row)
{
	const char message[16] = "punctual";
	bool last;
	int64_t j = 0;
	do {
		sleep_until(arrival(row, j++));
		// Read before sending: the receiver, woken by the last message, must see the
		// request to stop.
		last = stopping;
		for (int i = 0; i < row->burst; i++)
			must(write(row->sending, message, sizeof message), row->thread);
		burn(row->cost_ns);
	} while (!last);
}

static void pipe_receiver(const struct row *row)
{
	char message[16];
	while (!stopping) {
		must(read(row->receiving, message, sizeof message), row->thread);
		burn(row->cost_ns);
	}
}

static void socket_receiver(const struct row *row)
{
	char message[16];
	while (!stopping) {
		must(recv(row->receiving, message, sizeof message, 0), row->thread);
		burn(row->cost_ns);
	}
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static int signalled;

static void signaller(const struct row *row)
{
	bool last;
	int64_t j = 0;
	do {
		sleep_until(arrival(row, j++));
		last = stopping;
		pthread_mutex_lock(&mutex);
		signalled++;
		pthread_mutex_unlock(&mutex);
		pthread_cond_signal(&condition);
		burn(row->cost_ns);
	} while (!last);
}

static void waiter(const struct row *row)
{
	while (!stopping) {
		pthread_mutex_lock(&mutex);
		while (!signalled)
			pthread_cond_wait(&condition, &mutex);
		signalled--;
		pthread_mutex_unlock(&mutex);
		burn(row->cost_ns);
	}
}

static int udp(int ends[2])
{
	struct sockaddr_in address = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof address;
	ends[0] = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	ends[1] = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (ends[0] < 0 || ends[1] < 0 || bind(ends[0], (void *)&address, length) < 0 ||
		getsockname(ends[0], (void *)&address, &length) < 0)
		return -1;
	return connect(ends[1], (void *)&address, length);
}

static int unix_socket(int ends[2])
{
	return socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, ends);
}

#ifdef SYS_epoll_wait
#define EPOLL_CALL "epoll_wait"
#else
#define EPOLL_CALL "epoll_pwait"
#endif

static struct row rows[] = {
	{.thread = "sleep-abs",
		.body = absolute_sleep,
		.call = "clock_nanosleep",
		.kind = "periodic",
		.period_ns = 5 * MS,
		.cost_ns = 200 * US,
		.note = "sleeps until absolute times"},
	{.thread = "sleep-rel",
		.body = relative_sleep,
		.call = "clock_nanosleep",
		.kind = "periodic",
		.period_ns = 20 * MS,
		.cost_ns = 300 * US,
		.note = "sleeps for the rest of the period"},
	{.thread = "timerfd-epoll",
		.body = timer_descriptor,
		.call = EPOLL_CALL,
		.kind = "periodic",
		.period_ns = 10 * MS,
		.cost_ns = 300 * US,
		.note = "waits for a timerfd by epoll"},
	{.thread = "udp-tx",
		.body = sender,
		.call = "clock_nanosleep",
		.kind = "periodic",
		.burst = 1,
		.period_ns = 25 * MS,
		.cost_ns = 20 * US,
		.make_channel = udp,
		.note = "sends to udp-rx"},
	{.thread = "udp-rx",
		.body = socket_receiver,
		.call = "recvfrom",
		.kind = "periodic",
		.period_ns = 25 * MS,
		.cost_ns = 400 * US,
		.note = "receives from udp-tx"},
	{.thread = "pipe-tx",
		.body = sender,
		.call = "clock_nanosleep",
		.kind = "periodic",
		.burst = 1,
		.period_ns = 8 * MS,
		.cost_ns = 10 * US,
		.make_channel = pipe,
		.note = "writes to pipe-rx"},
	{.thread = "pipe-rx",
		.body = pipe_receiver,
		.call = "read",
		.kind = "periodic",
		.period_ns = 8 * MS,
		.cost_ns = 160 * US,
		.note = "reads from pipe-tx"},
	{.thread = "cond-signal",
		.body = signaller,
		.call = "clock_nanosleep",
		.kind = "periodic",
		.period_ns = 40 * MS,
		.cost_ns = 20 * US,
		.note = "signals cond-wait"},
	{.thread = "cond-wait",
		.body = waiter,
		.call = "futex_wait_bitset",
		.kind = "periodic",
		.period_ns = 40 * MS,
		.cost_ns = 500 * US,
		.note = "waits for a condition variable"},
	{.thread = "timer-sigwait",
		.body = timer_signal,
		.call = "rt_sigtimedwait",
		.kind = "periodic",
		.period_ns = 50 * MS,
		.cost_ns = 500 * US,
		.note = "waits for the signal of a POSIX timer"},
	{.thread = "deadline-yield",
		.body = yielding,
		.call = "sched_yield",
		.kind = "periodic",
		.deadline = true,
		.period_ns = 12 * MS,
		.cost_ns = 300 * US,
		.note = "SCHED_DEADLINE, yields when done"},
	{.thread = "usleep-drift",
		.body = drifting_sleep,
		.call = "clock_nanosleep",
		.kind = "drifting",
		.period_ns = 15 * MS,
		.cost_ns = 200 * US,
		.note = "usleep between jobs: cost and latency add to the period"},
	{.thread = "suspending",
		.body = suspending,
		.call = "clock_nanosleep",
		.kind = "periodic",
		.period_ns = 30 * MS,
		.cost_ns = 500 * US,
		.suspension_ns = 1 * MS,
		.note = "sleeps 1 ms in the middle of each job"},
	{.thread = "burst-tx",
		.body = sender,
		.call = "clock_nanosleep",
		.kind = "periodic",
		.burst = 3,
		.period_ns = 40 * MS,
		.cost_ns = 20 * US,
		.make_channel = unix_socket,
		.note = "sends three messages at once to burst-rx"},
	{.thread = "burst-rx",
		.body = socket_receiver,
		.call = "recvfrom",
		.kind = "bursty",
		.burst = 3,
		.period_ns = 40 * MS,
		.cost_ns = 150 * US,
		.note = "three messages at once in every period"},
	{.thread = "video-60hz",
		.body = absolute_sleep,
		.call = "clock_nanosleep",
		.kind = "periodic",
		.period_ns = 16666667,
		.period_exact = {50000000, 3},
		.cost_ns = 300 * US,
		.note = "60 Hz: the period is not a whole number of nanoseconds"},
	{.thread = "odd-period",
		.body = absolute_sleep,
		.call = "clock_nanosleep",
		.kind = "periodic",
		.period_ns = 7654321,
		.cost_ns = 100 * US,
		.note = "a period that is not round"},
};
enum { ROWS = sizeof rows / sizeof *rows };

static void print_truth(void)
{
	for (int i = 0; i < ROWS; i++) {
		const struct row *row = &rows[i];
		printf("%s{\"thread\": \"%s\", \"call\": \"%s\", \"kind\": \"%s\", \"policy\": "
		       "\"%s\", \"priority\": %d, "
		       "\"period_ns\": %lld, \"cost_ns\": %lld, \"suspension_ns\": %lld",
			i ? ",\n " : "[", row->thread, row->call, row->kind,
			row->deadline ? "SCHED_DEADLINE" : "SCHED_FIFO", row->priority,
			(long long)row->period_ns, (long long)row->cost_ns,
			(long long)row->suspension_ns);
		if (row->period_exact.denominator)
			printf(", \"period_exact\": {\"numerator\": %lld, \"denominator\": %lld}",
				(long long)row->period_exact.numerator,
				(long long)row->period_exact.denominator);
		if (strcmp(row->kind, "bursty") == 0)
			printf(", \"burst\": %d", row->burst);
		printf(", \"note\": \"%s\"}", row->note);
	}
	puts("]");
}

// Rate-monotonic: a shorter period has a higher priority; ties go to the earlier row.
static void assign_priorities(void)
{
	for (int i = 0; i < ROWS; i++) {
		int above = 0;
		for (int k = 0; k < ROWS; k++)
			above += rows[k].period_ns < rows[i].period_ns ||
				 (rows[k].period_ns == rows[i].period_ns && k < i);
		rows[i].priority = rows[i].deadline ? 0 : 80 - above;
	}
}

static void *run(void *argument)
{
	const struct row *row = argument;
	if (row->deadline) {
		// Many times the cost: a virtual machine that loses its processor for a moment must
		// not use up the budget, or a period is skipped.
		int error = become_deadline(
			row->thread, row->period_ns / 4, row->period_ns, row->period_ns);
		if (error) {
			fprintf(stderr,
				"demo: leaving out %s: the kernel refused SCHED_DEADLINE: %s\n",
				row->thread, strerror(error));
			return NULL;
		}
	} else {
		become_fifo(row->thread, row->priority);
	}
	row->body(row);
	return NULL;
}

static const char USAGE[] =
	"Usage: demo [--for SECONDS]   run the threads until then, or until SIGINT or SIGTERM\n"
	"       demo --truth           print their configured timing as JSON\n";

// Prints the usage and ends if it was asked for, or if the arguments are wrong.
static void check_usage(int argc, char **argv)
{
	if (argc == 1 || (argc == 2 && !strcmp(argv[1], "--truth")) ||
		(argc == 3 && !strcmp(argv[1], "--for")))
		return;
	bool asked = has_flag(argc, argv, "--help") || has_flag(argc, argv, "-h");
	fputs(USAGE, asked ? stdout : stderr);
	exit(asked ? 0 : 2);
}

int main(int argc, char **argv)
{
	check_usage(argc, argv);
	assign_priorities();
	if (has_flag(argc, argv, "--truth")) {
		print_truth();
		return 0;
	}
	double seconds =
		text_option(argc, argv, "--for", NULL) ? number_option(argc, argv, "--for", 0) : -1;
	block_stop_signals();

	for (int i = 0; i + 1 < ROWS; i++) {
		int ends[2];
		if (!rows[i].make_channel)
			continue;
		must(rows[i].make_channel(ends), rows[i].thread);
		rows[i + 1].receiving = ends[0];
		rows[i].sending = ends[1];
	}
	// Late enough that every thread exists and waits when its first job arrives.
	beginning = now_ns() + 50 * MS;
	pthread_t threads[ROWS];
	for (int i = 0; i < ROWS; i++) {
		int error = pthread_create(&threads[i], NULL, run, &rows[i]);
		if (error)
			die("pthread_create", error);
	}
	wait_for_stop(seconds);
	stopping = true;
	for (int i = 0; i < ROWS; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
