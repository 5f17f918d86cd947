// Event loops with several timers, whose jobs take so long that one often waits for another:
//
//   loops [SECONDS]
//
// epolled: 5, 10 and 20 ms. polled: 7, 11 and 13 ms.
#include "workload.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

static int64_t beginning, end;

// A timer that expires each `period` from `first` on.
static int timer(int64_t first, int64_t period)
{
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
	struct itimerspec every = {
		.it_value = {.tv_sec = first / SECOND, .tv_nsec = first % SECOND},
		.it_interval = {.tv_nsec = period},
	};
	if (fd < 0 || timerfd_settime(fd, TFD_TIMER_ABSTIME, &every, NULL))
		die("timerfd", errno);
	return fd;
}

// Up to 2 ms, and none long enough for a timer to expire twice.
static void work(int fd, unsigned *seed)
{
	uint64_t expirations;
	if (read(fd, &expirations, sizeof expirations) == sizeof expirations)
		burn(20 * US + rand_r(seed) % (2 * MS));
}

static void *epolled(void *unused)
{
	(void)unused;
	unsigned seed = 1;
	int loop = epoll_create1(0);
	int timers[] = {
		timer(beginning, 5 * MS),
		timer(beginning + MS, 10 * MS),
		timer(beginning + 2 * MS, 20 * MS),
	};
	for (int i = 0; i < 3; i++) {
		struct epoll_event event = {.events = EPOLLIN, .data.ptr = timers + i};
		if (epoll_ctl(loop, EPOLL_CTL_ADD, timers[i], &event))
			die("epoll_ctl", errno);
	}
	become_fifo("epolled", 50);
	while (now_ns() < end) {
		struct epoll_event ready[3];
		int count = epoll_wait(loop, ready, 3, -1);
		for (int i = 0; i < count; i++)
			work(*(int *)ready[i].data.ptr, &seed);
	}
	return NULL;
}

static void *polled(void *unused)
{
	(void)unused;
	unsigned seed = 2;
	struct pollfd all[] = {
		{timer(beginning, 7 * MS), POLLIN, 0},
		{timer(beginning + 2 * MS, 11 * MS), POLLIN, 0},
		{timer(beginning + 3 * MS, 13 * MS), POLLIN, 0},
	};
	become_fifo("polled", 51);
	while (now_ns() < end) {
		if (poll(all, 3, -1) <= 0)
			continue;
		for (int i = 0; i < 3; i++) {
			if (all[i].revents)
				work(all[i].fd, &seed);
		}
	}
	return NULL;
}

int main(int argc, char **argv)
{
	beginning = now_ns() + 300 * MS;
	end = beginning + (argc > 1 ? atoi(argv[1]) : 4) * SECOND;
	void *(*threads[])(void *) = {epolled, polled};
	pthread_t all[2];
	for (int i = 0; i < 2; i++) {
		int error = pthread_create(all + i, NULL, threads[i], NULL);
		if (error)
			die("pthread_create", error);
	}
	for (int i = 0; i < 2; i++)
		pthread_join(all[i], NULL);
	return 0;
}
