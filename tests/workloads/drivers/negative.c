// Calls that cannot block, made in the middle of every job of a thread that sleeps until absolute
// times: none of them separates jobs.
#include "drivers.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <mqueue.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>

#ifndef SYS_epoll_pwait2
#define SYS_epoll_pwait2 441
#endif
#ifndef RWF_NOWAIT
#define RWF_NOWAIT 8
#endif

static struct timespec no_time;

static void read_once(struct run *run)
{
	syscall(SYS_read, run->in, run->buffer, 1);
}

static const char *make_regular_file(struct run *run)
{
	run->in = must(open("/proc/self/exe", O_RDONLY | O_CLOEXEC), "/proc/self/exe");
	return NULL;
}

static const char *make_nonblocking_socket(struct run *run)
{
	make_datagram_pair(run);
	must(fcntl(run->in, F_SETFL, O_NONBLOCK), "fcntl");
	return NULL;
}

static void recvmsg_once(struct run *run)
{
	struct iovec part = {run->buffer, sizeof run->buffer};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
	syscall(SYS_recvmsg, run->in, &message, 0);
}

static void recv_at_once(struct run *run)
{
	syscall(SYS_recvfrom, run->in, run->buffer, sizeof run->buffer, MSG_DONTWAIT, NULL, NULL);
}

static const char *make_nonblocking_listener(struct run *run)
{
	run->in = must(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), "socket");
	must(bind(run->in, &(struct sockaddr){.sa_family = AF_UNIX}, sizeof(sa_family_t)), "bind");
	must(listen(run->in, 4), "listen");
	return NULL;
}

static void accept_once(struct run *run)
{
	syscall(SYS_accept4, run->in, NULL, NULL, 0);
}

#ifdef SYS_poll
static void poll_at_once(struct run *run)
{
	struct pollfd set = {.fd = run->in, .events = POLLIN};
	syscall(SYS_poll, &set, 1, 0);
}
#endif

static void ppoll_at_once(struct run *run)
{
	struct pollfd set = {.fd = run->in, .events = POLLIN};
	struct timespec none = no_time;
	syscall(SYS_ppoll, &set, 1, &none, NULL, 0);
}

#ifdef SYS_select
static void select_at_once(struct run *run)
{
	fd_set set;
	FD_ZERO(&set);
	FD_SET(run->in, &set);
	struct timeval none = {0};
	syscall(SYS_select, run->in + 1, &set, NULL, NULL, &none);
}
#endif

static void pselect6_at_once(struct run *run)
{
	fd_set set;
	FD_ZERO(&set);
	FD_SET(run->in, &set);
	struct timespec none = no_time;
	syscall(SYS_pselect6, run->in + 1, &set, NULL, NULL, &none, NULL);
}

static const char *make_idle_epoll(struct run *run)
{
	make_pipe(run);
	run->side = must(epoll_create1(EPOLL_CLOEXEC), "epoll_create1");
	struct epoll_event event = {.events = EPOLLIN};
	must(epoll_ctl(run->side, EPOLL_CTL_ADD, run->in, &event), "epoll_ctl");
	return NULL;
}

#ifdef SYS_epoll_wait
static void epoll_wait_at_once(struct run *run)
{
	struct epoll_event event;
	syscall(SYS_epoll_wait, run->side, &event, 1, 0);
}
#endif

static void epoll_pwait_at_once(struct run *run)
{
	struct epoll_event event;
	syscall(SYS_epoll_pwait, run->side, &event, 1, 0, NULL, 0);
}

static void epoll_pwait2_at_once(struct run *run)
{
	struct epoll_event event;
	struct timespec none = no_time;
	syscall(SYS_epoll_pwait2, run->side, &event, 1, &none, NULL, 0);
}

static void wake_futex(struct run *run)
{
	syscall(SYS_futex, &run->words[0], FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void try_lock_pi(struct run *run)
{
	syscall(SYS_futex, &run->words[0], FUTEX_TRYLOCK_PI_PRIVATE, 0, NULL, NULL, 0);
}

static void wait4_at_once(struct run *run)
{
	(void)run;
	syscall(SYS_wait4, -1, NULL, WNOHANG, NULL);
}

static void waitid_at_once(struct run *run)
{
	(void)run;
	siginfo_t info;
	syscall(SYS_waitid, P_ALL, 0, &info, WEXITED | WNOHANG, NULL);
}

static void msgrcv_at_once(struct run *run)
{
	struct {
		long type;
		char text[8];
	} message;
	syscall(SYS_msgrcv, run->id, &message, sizeof message.text, 0L, IPC_NOWAIT);
}

static void semtimedop_at_once(struct run *run)
{
	struct sembuf down = {.sem_op = -1, .sem_flg = IPC_NOWAIT};
	semtimedop(run->id, &down, 1, NULL);
}

static const char *make_nonblocking_queue(struct run *run)
{
	const char *missing = make_message_queue(run);
	if (missing)
		return missing;
	struct mq_attr attributes = {.mq_flags = O_NONBLOCK};
	must(mq_setattr(run->in, &attributes, NULL), "mq_setattr");
	return NULL;
}

static void mq_once(struct run *run)
{
	syscall(SYS_mq_timedreceive, run->in, run->buffer, sizeof run->buffer, NULL, NULL);
}

static void sigtimedwait_at_once(struct run *run)
{
	(void)run;
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN);
	struct timespec none = no_time;
	sigtimedwait(&set, NULL, &none);
}

static void preadv2_at_once(struct run *run)
{
	struct iovec part = {run->buffer, 1};
	syscall(SYS_preadv2, run->in, &part, 1, -1L, -1L, RWF_NOWAIT);
}

static void yield(struct run *run)
{
	(void)run;
	sched_yield();
}

#define NEGATIVE(what, which, ...) \
	{ \
		.name = "no_" what, .call = "clock_nanosleep", .object = "clock", \
		.wait = sleep_to_arrival, .forbidden = which, __VA_ARGS__ \
	}

const struct driver negative_drivers[] = {
	NEGATIVE("read_nonblocking", "read", .setup = make_nonblocking_pipe, .job = read_once),
	NEGATIVE("read_regular_file", "read", .setup = make_regular_file, .job = read_once),
	NEGATIVE("preadv2_nowait", "preadv2", .setup = make_pipe, .job = preadv2_at_once),
	NEGATIVE("recv_dontwait", "recvfrom", .setup = make_datagram_pair, .job = recv_at_once),
	NEGATIVE("recvmsg_nonblocking", "recvmsg", .setup = make_nonblocking_socket,
		.job = recvmsg_once),
	NEGATIVE("accept4_nonblocking", "accept4", .setup = make_nonblocking_listener,
		.job = accept_once),
#ifdef SYS_poll
	NEGATIVE("poll_zero", "poll", .setup = make_pipe, .job = poll_at_once),
#endif
	NEGATIVE("ppoll_zero", "ppoll", .setup = make_pipe, .job = ppoll_at_once),
#ifdef SYS_select
	NEGATIVE("select_zero", "select", .setup = make_pipe, .job = select_at_once),
#endif
	NEGATIVE("pselect6_zero", "pselect6", .setup = make_pipe, .job = pselect6_at_once),
#ifdef SYS_epoll_wait
	NEGATIVE("epoll_wait_zero", "epoll_wait", .setup = make_idle_epoll,
		.job = epoll_wait_at_once),
#endif
	NEGATIVE("epoll_pwait_zero", "epoll_pwait", .setup = make_idle_epoll,
		.job = epoll_pwait_at_once),
	NEGATIVE("epoll_pwait2_zero", "epoll_pwait2", .setup = make_idle_epoll,
		.job = epoll_pwait2_at_once),
	NEGATIVE("futex_wake", "futex", .job = wake_futex),
	NEGATIVE("futex_trylock_pi", "futex", .job = try_lock_pi),
	NEGATIVE("wait4_nohang", "wait4", .setup = make_child, .job = wait4_at_once),
	NEGATIVE("waitid_nohang", "waitid", .setup = make_child, .job = waitid_at_once),
	NEGATIVE("msgrcv_nowait", "msgrcv", .setup = make_sysv_queue, .job = msgrcv_at_once),
	NEGATIVE("semtimedop_nowait", "semtimedop", .setup = make_sysv_semaphore,
		.job = semtimedop_at_once),
	NEGATIVE("mq_nonblocking", "mq_timedreceive", .setup = make_nonblocking_queue,
		.job = mq_once),
	NEGATIVE("sigtimedwait_zero", "rt_sigtimedwait", .job = sigtimedwait_at_once),
	NEGATIVE("yield_fifo", "sched_yield", .job = yield),
	{0},
};
