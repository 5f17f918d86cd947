// Waiting for one of several descriptors. They are then read without blocking, so that only the
// wait separates jobs; `poll_then_read` reads with blocking.
#include "drivers.h"

#include <alloca.h>
#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>

#ifndef SYS_epoll_pwait2
#define SYS_epoll_pwait2 441
#endif

#ifdef SYS_select
static void wait_select(struct run *run)
{
	fd_set set;
	FD_ZERO(&set);
	FD_SET(run->in, &set);
	must(syscall(SYS_select, run->in + 1, &set, NULL, NULL, NULL), "select");
	drain(run);
}
#endif

static void wait_pselect6(struct run *run)
{
	fd_set set;
	FD_ZERO(&set);
	FD_SET(run->in, &set);
	must(syscall(SYS_pselect6, run->in + 1, &set, NULL, NULL, NULL, NULL), "pselect6");
	drain(run);
}

#ifdef SYS_poll
static void wait_poll(struct run *run)
{
	struct pollfd set = {.fd = run->in, .events = POLLIN};
	must(syscall(SYS_poll, &set, 1, -1), "poll");
	drain(run);
}
#endif

static void wait_ppoll(struct run *run)
{
	struct pollfd set = {.fd = run->in, .events = POLLIN};
	must(syscall(SYS_ppoll, &set, 1, NULL, NULL, 0), "ppoll");
	drain(run);
}

// The array is elsewhere on the stack every time.
static void wait_ppoll_moving(struct run *run)
{
	char *gap = alloca(16 + 48 * (run->done % 40));
	memset(gap, 0, 16);
	struct pollfd *set = alloca(2 * sizeof *set);
	set[0] = (struct pollfd){.fd = run->in, .events = POLLIN};
	set[1] = (struct pollfd){.fd = run->side, .events = POLLIN};
	must(syscall(SYS_ppoll, set, 2, NULL, NULL, 0), "ppoll");
	drain(run);
}

static const char *make_two(struct run *run)
{
	int ends[2];
	must(pipe(ends), "pipe");
	run->side = ends[0];
	return make_nonblocking_pipe(run);
}

static const char *make_epoll(struct run *run)
{
	make_nonblocking_eventfd(run);
	run->side = must(epoll_create1(EPOLL_CLOEXEC), "epoll_create1");
	struct epoll_event event = {.events = EPOLLIN};
	must(epoll_ctl(run->side, EPOLL_CTL_ADD, run->in, &event), "epoll_ctl");
	return NULL;
}

#ifdef SYS_epoll_wait
static void wait_epoll_wait(struct run *run)
{
	struct epoll_event event;
	must(syscall(SYS_epoll_wait, run->side, &event, 1, -1), "epoll_wait");
	drain(run);
}
#endif

static void wait_epoll_pwait(struct run *run)
{
	struct epoll_event event;
	must(syscall(SYS_epoll_pwait, run->side, &event, 1, -1, NULL, 0), "epoll_pwait");
	drain(run);
}

static const char *make_epoll_pwait2(struct run *run)
{
	make_epoll(run);
	struct epoll_event event;
	struct timespec none = {0};
	return syscall(SYS_epoll_pwait2, run->side, &event, 1, &none, NULL, 0) < 0
		       ? "the kernel lacks epoll_pwait2"
		       : NULL;
}

static void wait_epoll_pwait2(struct run *run)
{
	struct epoll_event event;
	must(syscall(SYS_epoll_pwait2, run->side, &event, 1, NULL, NULL, 0), "epoll_pwait2");
	drain(run);
}

const struct driver multiplex_drivers[] = {
#ifdef SYS_select
	{.name = "select",
		.call = "select",
		.setup = make_nonblocking_pipe,
		.wait = wait_select,
		.event = write_byte},
#endif
	{.name = "pselect6",
		.call = "pselect6",
		.setup = make_nonblocking_pipe,
		.wait = wait_pselect6,
		.event = write_byte},
#ifdef SYS_poll
	{.name = "poll",
		.call = "poll",
		.object = "pipe",
		.setup = make_nonblocking_pipe,
		.wait = wait_poll,
		.event = write_byte},
	{.name = "poll_then_read",
		.call = "poll",
		.object = "pipe",
		.setup = make_pipe,
		.wait = wait_poll,
		.event = write_byte},
#endif
	{.name = "ppoll",
		.call = "ppoll",
		.object = "eventfd",
		.setup = make_nonblocking_eventfd,
		.wait = wait_ppoll,
		.event = write_count},
	{.name = "ppoll_moving_array",
		.call = "ppoll",
		.setup = make_two,
		.wait = wait_ppoll_moving,
		.event = write_byte},
#ifdef SYS_epoll_wait
	{.name = "epoll_wait",
		.call = "epoll_wait",
		.object = "epoll",
		.setup = make_epoll,
		.wait = wait_epoll_wait,
		.event = write_count},
#endif
	{.name = "epoll_pwait",
		.call = "epoll_pwait",
		.object = "epoll",
		.setup = make_epoll,
		.wait = wait_epoll_pwait,
		.event = write_count},
	{.name = "epoll_pwait2",
		.call = "epoll_pwait2",
		.object = "epoll",
		.setup = make_epoll_pwait2,
		.wait = wait_epoll_pwait2,
		.event = write_count},
	{0},
};
