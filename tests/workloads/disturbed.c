// Threads that are disturbed, or whose timers expire more often than they check; and a thread that
// measures the cost of its jobs.
//
// disturbed MODE [--jobs N] prints what it did as one line of JSON. MODE is one of
//
// - stopped: `drv` sleeps until absolute times; its process is stopped and continued, before and
//   after them
// - timerfd: `drv` reads a timerfd, now and then after several expirations; prints their numbers
// - sigwait: the same with a POSIX timer and sigwaitinfo
// - signalfd: the same with a POSIX timer and a signalfd
// - interrupted: `drv` waits in epoll_wait, ppoll and a futex; a signal with a handler ends every
//   wait
// - ended: threads wait in several ways when the process exits
// - shut: threads wait at sockets and a pipe that are shut down
// - costs: `drv` spins, and most of its reads do not wait; prints the cost of each job by the
//   thread's own clock
#include "workload.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

enum { PRIORITY = 50, MOST_JOBS = 100000, THREADS = 9 };

static int64_t period_ns = 5 * MS, beginning_ns;
static int jobs;
static int64_t told[MOST_JOBS];
static atomic_int done, waiting;
static atomic_bool stopping;

static void print_told(const char *what)
{
	printf("{\"pid\": %d, \"jobs\": %d, \"%s\": [", getpid(), (int)done, what);
	for (int job = 0; job < done; job++)
		printf(job ? ", %lld" : "%lld", (long long)told[job]);
	puts("]}");
}

static pthread_t start(void *(*body)(void *), void *argument)
{
	pthread_t thread;
	int error = pthread_create(&thread, NULL, body, argument);
	if (error)
		die("pthread_create", error);
	return thread;
}

// --- stopped

// Ends by a signal that it checks for: killed between the two, it would leave its parent stopped
// forever.
static void stop_and_continue(pid_t parent, const sigset_t *end)
{
	const struct timespec at_once = {0};
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (int64_t n = 0; sigtimedwait(end, NULL, &at_once) < 0; n++) {
		sleep_until(beginning_ns + (5 * n + 2) * period_ns + period_ns / 2);
		kill(parent, SIGSTOP);
		// Every other time two arrivals pass before it continues.
		if (n % 2)
			sleep_until(beginning_ns + (5 * n + 4) * period_ns + period_ns / 4);
		kill(parent, SIGCONT);
	}
	_exit(0);
}

static void *sleeper(void *unused)
{
	become_fifo("drv", PRIORITY);
	for (; done < jobs; done++) {
		told[done] = beginning_ns + done * period_ns;
		struct timespec t = timespec_of(told[done]);
		must(syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL),
			"clock_nanosleep");
		burn(100 * US);
	}
	return unused;
}

static void stopped(void)
{
	period_ns = 10 * MS;
	beginning_ns = now_ns() + 20 * MS;
	pid_t parent = getpid();
	sigset_t end;
	sigemptyset(&end);
	sigaddset(&end, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &end, NULL);
	pid_t child = must(fork(), "fork");
	if (child == 0)
		stop_and_continue(parent, &end);
	pthread_join(start(sleeper, NULL), NULL);
	kill(child, SIGUSR1);
	waitpid(child, NULL, 0);
	print_told("arrivals_ns");
}

// --- expirations

static int timer_descriptor;

static void start_timer(void)
{
	struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGRTMIN};
	event.sigev_notify_thread_id = gettid();
	timer_t timer;
	must(timer_create(CLOCK_MONOTONIC, &event, &timer), "timer_create");
	struct itimerspec setting = {
		.it_value = timespec_of(period_ns), .it_interval = timespec_of(period_ns)};
	must(timer_settime(timer, 0, &setting, NULL), "timer_settime");
}

static sigset_t only_timer(void)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	return set;
}

static void begin_timerfd(void)
{
	struct itimerspec setting = {
		.it_value = timespec_of(period_ns), .it_interval = timespec_of(period_ns)};
	timer_descriptor = must(timerfd_create(CLOCK_MONOTONIC, 0), "timerfd_create");
	must(timerfd_settime(timer_descriptor, 0, &setting, NULL), "timerfd_settime");
}

static int64_t wait_timerfd(void)
{
	uint64_t expirations;
	must(syscall(SYS_read, timer_descriptor, &expirations, sizeof expirations), "read");
	return (int64_t)expirations;
}

static void begin_sigwait(void)
{
	only_timer();
	start_timer();
}

static int64_t wait_sigwait(void)
{
	sigset_t set = only_timer();
	siginfo_t info;
	must(sigwaitinfo(&set, &info), "sigwaitinfo");
	return 1 + info.si_overrun;
}

static void begin_signalfd(void)
{
	sigset_t set = only_timer();
	timer_descriptor = must(signalfd(-1, &set, 0), "signalfd");
	start_timer();
}

static int64_t wait_signalfd(void)
{
	struct signalfd_siginfo info;
	must(syscall(SYS_read, timer_descriptor, &info, sizeof info), "read");
	return 1 + info.ssi_overrun;
}

static struct {
	void (*begin)(void);
	int64_t (*wait)(void);
} ticker;

static void *tick(void *unused)
{
	become_fifo("drv", PRIORITY);
	ticker.begin();
	for (; done < jobs; done++) {
		told[done] = ticker.wait();
		burn(done % 5 == 4 ? 5 * period_ns / 2 : 100 * US);
	}
	ticker.wait();
	return unused;
}

static void expirations(void (*begin)(void), int64_t (*wait)(void))
{
	ticker.begin = begin;
	ticker.wait = wait;
	only_timer();
	pthread_join(start(tick, NULL), NULL);
	print_told("expirations");
}

// --- interrupted

static void handle(int signal)
{
	(void)signal;
}

static _Atomic uint32_t never;
static int silent[2];

static void *interrupted_thread(void *unused)
{
	become_fifo("drv", PRIORITY);
	int epoll = must(epoll_create1(0), "epoll_create1");
	struct epoll_event event = {.events = EPOLLIN};
	must(epoll_ctl(epoll, EPOLL_CTL_ADD, silent[0], &event), "epoll_ctl");
	struct pollfd poll = {.fd = silent[0], .events = POLLIN};
	for (; done < jobs; done++) {
		waiting = 1;
		switch (done % 3) {
		case 0:
			syscall(SYS_epoll_pwait, epoll, &event, 1, -1, NULL, 8);
			break;
		case 1:
			syscall(SYS_ppoll, &poll, 1, NULL, NULL, 8);
			break;
		default:
			syscall(SYS_futex, &never, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
		}
		if (errno != EINTR)
			die("a wait ended without a reason", errno);
	}
	return unused;
}

// The state of a thread of this process, as /proc has it.
static char state_of(int tid)
{
	char path[64], line[256] = "", *end;
	snprintf(path, sizeof path, "/proc/self/task/%d/stat", tid);
	int file = open(path, O_RDONLY);
	if (file < 0)
		return 0;
	ssize_t length = read(file, line, sizeof line - 1);
	close(file);
	if (length <= 0 || !(end = strrchr(line, ')')))
		return 0;
	return end[2];
}

static _Atomic int drv_tid;

static void *interrupted_body(void *unused)
{
	drv_tid = gettid();
	return interrupted_thread(unused);
}

static void interrupted(void)
{
	must(pipe(silent), "pipe");
	struct sigaction action = {.sa_handler = handle};
	must(sigaction(SIGUSR1, &action, NULL), "sigaction");
	pthread_t thread = start(interrupted_body, NULL);
	for (int n = 0; n < jobs; n++) {
		while (done < n || !drv_tid || state_of(drv_tid) != 'S')
			sched_yield();
		pthread_kill(thread, SIGUSR1);
		while (done == n)
			sched_yield();
	}
	pthread_join(thread, NULL);
	printf("{\"pid\": %d, \"jobs\": %d}\n", getpid(), (int)done);
}

// --- ended, shut

static _Atomic int tids[THREADS];
static int sockets[4][2];

static void *wait_somehow(void *argument)
{
	int kind = (int)(intptr_t)argument;
	char name[16], byte;
	snprintf(name, sizeof name, "wait-%d", kind);
	become_fifo(name, PRIORITY);
	int epoll = must(epoll_create1(0), "epoll_create1");
	struct epoll_event event = {.events = EPOLLIN};
	must(epoll_ctl(epoll, EPOLL_CTL_ADD, silent[0], &event), "epoll_ctl");
	struct pollfd poll = {.fd = silent[0], .events = POLLIN};
	struct timespec long_time = {.tv_sec = 1000};
	tids[kind] = gettid();
	waiting++;
	switch (kind) {
	case 0:
		return (void *)syscall(SYS_epoll_pwait, epoll, &event, 1, -1, NULL, 8);
	case 1:
		return (void *)syscall(SYS_ppoll, &poll, 1, NULL, NULL, 8);
	case 2:
		return (void *)syscall(SYS_futex, &never, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
	case 3:
		return (void *)syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &long_time, NULL);
	case 4:
		return (void *)syscall(SYS_read, silent[0], &byte, 1);
	case 5:
		return (void *)syscall(SYS_recvfrom, sockets[0][0], &byte, 1, 0, NULL, NULL);
	case 6:
		return (void *)syscall(SYS_recvfrom, sockets[1][0], &byte, 1, 0, NULL, NULL);
	case 7:
		return (void *)syscall(SYS_accept4, sockets[2][0], NULL, NULL, 0);
	default:
		poll.fd = sockets[0][0];
		return (void *)syscall(SYS_ppoll, &poll, 1, NULL, NULL, 8);
	}
}

static void make_sockets(void)
{
	must(pipe(silent), "pipe");
	must(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets[0]), "socketpair");
	must(socketpair(AF_UNIX, SOCK_DGRAM, 0, sockets[1]), "socketpair");
	sockets[2][0] = must(socket(AF_INET, SOCK_STREAM, 0), "socket");
	struct sockaddr_in address = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	must(bind(sockets[2][0], (struct sockaddr *)&address, sizeof address), "bind");
	must(listen(sockets[2][0], 1), "listen");
}

static void start_waiting(int from, int to, pthread_t *threads)
{
	for (int kind = from; kind < to; kind++)
		threads[kind] = start(wait_somehow, (void *)(intptr_t)kind);
	while (waiting < to - from)
		sched_yield();
	for (int kind = from; kind < to; kind++)
		while (state_of(tids[kind]) != 'S')
			sched_yield();
}

static void ended(void)
{
	pthread_t threads[THREADS];
	make_sockets();
	start_waiting(0, THREADS, threads);
	printf("{\"pid\": %d, \"jobs\": %d}\n", getpid(), THREADS);
	fflush(stdout);
	_exit(0);
}

static void shut(void)
{
	pthread_t threads[THREADS];
	make_sockets();
	start_waiting(4, THREADS, threads);
	close(silent[1]);
	must(shutdown(sockets[0][0], SHUT_RD), "shutdown");
	must(shutdown(sockets[1][0], SHUT_RD), "shutdown");
	must(shutdown(sockets[2][0], SHUT_RD), "shutdown");
	for (int kind = 4; kind < THREADS; kind++)
		pthread_join(threads[kind], NULL);
	printf("{\"pid\": %d, \"jobs\": %d}\n", getpid(), THREADS - 4);
}

// --- costs

static int semaphore;

static void pin(void)
{
	cpu_set_t one;
	CPU_ZERO(&one);
	CPU_SET(0, &one);
	must(sched_setaffinity(0, sizeof one, &one), "sched_setaffinity");
}

static void *preempt(void *unused)
{
	pin();
	become_fifo("preempt", PRIORITY + 10);
	for (int64_t at = now_ns(); !stopping; at += 730 * US) {
		sleep_until(at);
		burn(60 * US);
	}
	return unused;
}

static void *load(void *unused)
{
	while (!stopping)
		burn(MS);
	return unused;
}

// Jobs of 20 to 200 µs. The thread measures their cost itself, within what an observer sees as the
// job.
static void *spin(void *unused)
{
	pin();
	become_fifo("drv", PRIORITY);
	for (; done < jobs; done++) {
		uint64_t one;
		must(syscall(SYS_read, semaphore, &one, sizeof one), "read");
		int64_t before = now_on(CLOCK_THREAD_CPUTIME_ID);
		burn((20 + done * 37 % 180) * US);
		told[done] = now_on(CLOCK_THREAD_CPUTIME_ID) - before;
	}
	uint64_t last;
	must(syscall(SYS_read, semaphore, &last, sizeof last), "read");
	return unused;
}

static void costs(void)
{
	semaphore = must(eventfd(0, EFD_SEMAPHORE), "eventfd");
	pthread_t others[] = {start(preempt, NULL), start(load, NULL), start(load, NULL)};
	pthread_t thread = start(spin, NULL);
	// Ten events at once: nine of ten reads do not wait.
	for (int given = 0; given <= jobs; given += 10) {
		uint64_t ten = 10;
		must(write(semaphore, &ten, sizeof ten), "write");
		while (done < given)
			sched_yield();
	}
	pthread_join(thread, NULL);
	stopping = true;
	for (int i = 0; i < 3; i++)
		pthread_join(others[i], NULL);
	print_told("costs_ns");
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	jobs = (int)number_option(argc, argv, "--jobs", 40);
	jobs = jobs < MOST_JOBS ? jobs : MOST_JOBS;
	if (strcmp(mode, "stopped") == 0)
		stopped();
	else if (strcmp(mode, "timerfd") == 0)
		expirations(begin_timerfd, wait_timerfd);
	else if (strcmp(mode, "sigwait") == 0)
		expirations(begin_sigwait, wait_sigwait);
	else if (strcmp(mode, "signalfd") == 0)
		expirations(begin_signalfd, wait_signalfd);
	else if (strcmp(mode, "interrupted") == 0)
		interrupted();
	else if (strcmp(mode, "ended") == 0)
		ended();
	else if (strcmp(mode, "shut") == 0)
		shut();
	else if (strcmp(mode, "costs") == 0)
		costs();
	else
		return fputs("usage: disturbed "
			     "stopped|timerfd|sigwait|signalfd|interrupted|ended|shut|costs "
			     "[--jobs N]\n",
			       stderr),
		       2;
	return 0;
}
