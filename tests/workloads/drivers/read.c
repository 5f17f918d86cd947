// Reading from descriptors that can block.
#include "drivers.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <termios.h>

const char *make_pipe(struct run *run)
{
	int ends[2];
	must(pipe(ends), "pipe");
	run->in = ends[0];
	run->out = ends[1];
	return NULL;
}

const char *make_nonblocking_pipe(struct run *run)
{
	make_pipe(run);
	must(fcntl(run->in, F_SETFL, O_NONBLOCK), "fcntl");
	return NULL;
}

const char *make_eventfd(struct run *run)
{
	run->in = run->out = must(eventfd(0, EFD_SEMAPHORE), "eventfd");
	return NULL;
}

const char *make_nonblocking_eventfd(struct run *run)
{
	run->in = run->out = must(eventfd(0, EFD_NONBLOCK | EFD_SEMAPHORE), "eventfd");
	return NULL;
}

void write_byte(struct run *run)
{
	must(write(run->out, "x", 1), "write");
}

void write_count(struct run *run)
{
	uint64_t one = 1;
	must(write(run->out, &one, sizeof one), "write");
}

void drain(struct run *run)
{
	uint64_t count;
	ssize_t bytes = read(run->in, &count, sizeof count);
	if (bytes < 0 && errno != EAGAIN)
		die("read", errno);
	// An eventfd adds up what is written to it; other descriptors are read one by one.
	if (run->in != run->out && bytes > 1)
		run->taken += bytes - 1;
}

static const char *make_fifo(struct run *run)
{
	run->path = temporary_path("fifo");
	must(mkfifo(run->path, 0600), "mkfifo");
	run->out = must(open(run->path, O_RDWR | O_CLOEXEC), run->path);
	run->in = must(open(run->path, O_RDONLY | O_CLOEXEC), run->path);
	return NULL;
}

static const char *make_terminal(struct run *run)
{
	run->out = posix_openpt(O_RDWR | O_NOCTTY);
	if (run->out < 0 || grantpt(run->out) < 0 || unlockpt(run->out) < 0)
		return "no pseudo-terminals here";
	const char *name = ptsname(run->out);
	run->in = name ? open(name, O_RDWR | O_NOCTTY) : -1;
	if (run->in < 0)
		return "no pseudo-terminals here";
	struct termios settings;
	must(tcgetattr(run->in, &settings), "tcgetattr");
	cfmakeraw(&settings);
	must(tcsetattr(run->in, TCSANOW, &settings), "tcsetattr");
	return NULL;
}

static const char *make_timerfd_on(struct run *run, clockid_t clock)
{
	int64_t ahead = clock == CLOCK_MONOTONIC ? 0 : now_on(clock) - now_ns();
	run->in = must(timerfd_create(clock, TFD_CLOEXEC), "timerfd_create");
	struct itimerspec setting = {
		.it_value = timespec_of(run->beginning_ns + ahead),
		.it_interval = timespec_of(run->period_ns),
	};
	must(timerfd_settime(run->in, TFD_TIMER_ABSTIME, &setting, NULL), "timerfd_settime");
	return NULL;
}

static const char *make_timerfd(struct run *run)
{
	return make_timerfd_on(run, CLOCK_MONOTONIC);
}

static const char *make_timerfd_realtime(struct run *run)
{
	return make_timerfd_on(run, CLOCK_REALTIME);
}

static const char *make_signalfd(struct run *run)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN);
	sigprocmask(SIG_BLOCK, &set, NULL);
	run->in = must(signalfd(-1, &set, SFD_CLOEXEC), "signalfd");
	return NULL;
}

static void send_signal(struct run *run)
{
	(void)run;
	kill(getpid(), SIGRTMIN);
}

static const char *make_inotify(struct run *run)
{
	run->path = temporary_path("file");
	run->out = must(open(run->path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600), run->path);
	run->in = inotify_init1(IN_CLOEXEC);
	if (run->in < 0)
		return "no inotify here";
	must(inotify_add_watch(run->in, run->path, IN_MODIFY), "inotify_add_watch");
	return NULL;
}

// Each read sleeps until the device answers: there is no period, but as many jobs as reads.
static const char *make_block_device(struct run *run)
{
	int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
	if (control < 0)
		return "no loop devices here";
	run->path = temporary_path("disk");
	int file = must(open(run->path, O_RDWR | O_CREAT | O_CLOEXEC, 0600), run->path);
	must(ftruncate(file, 1 << 20), "ftruncate");
	struct loop_config config = {.fd = file, .info.lo_flags = LO_FLAGS_AUTOCLEAR};
	// Another process may take the free device first.
	for (int tries = 0; tries < 10; tries++) {
		char name[32];
		int number = ioctl(control, LOOP_CTL_GET_FREE);
		snprintf(name, sizeof name, "/dev/loop%d", number);
		run->in = number < 0 ? -1 : open(name, O_RDWR | O_DIRECT | O_CLOEXEC);
		if (run->in < 0)
			return "no free loop device here";
		if (ioctl(run->in, LOOP_CONFIGURE, &config) == 0) {
			run->period_ns = 0;
			return NULL;
		}
		close(run->in);
	}
	return "the kernel refuses a loop device";
}

static void wait_read(struct run *run)
{
	must(syscall(SYS_read, run->in, run->buffer, sizeof run->buffer), "read");
}

// Exactly one byte, so that every message is a read of its own.
static void wait_read_byte(struct run *run)
{
	must(syscall(SYS_read, run->in, run->buffer, 1), "read");
}

static void wait_read_count(struct run *run)
{
	uint64_t count;
	must(syscall(SYS_read, run->in, &count, sizeof count), "read");
}

// A timer counts the expirations since the last read.
static void wait_read_expirations(struct run *run)
{
	uint64_t count;
	must(syscall(SYS_read, run->in, &count, sizeof count), "read");
	run->taken += (int64_t)count - 1;
}

static void wait_read_signal(struct run *run)
{
	struct signalfd_siginfo info;
	must(syscall(SYS_read, run->in, &info, sizeof info), "read");
}

static void wait_read_block(struct run *run)
{
	must(lseek(run->in, 0, SEEK_SET), "lseek");
	wait_read(run);
}

static void wait_readv(struct run *run)
{
	struct iovec parts[2] = {{run->buffer, 1}, {run->buffer + 64, 0}};
	must(syscall(SYS_readv, run->in, parts, 2), "readv");
}

static void wait_preadv(struct run *run)
{
	struct iovec part = {run->buffer, sizeof run->buffer};
	must(syscall(SYS_preadv, run->in, &part, 1, 0L, 0L), "preadv");
}

// Offset -1 is the current position, the only one that a pipe has.
static void wait_preadv2(struct run *run)
{
	struct iovec part = {run->buffer, 1};
	must(syscall(SYS_preadv2, run->in, &part, 1, -1L, -1L, 0), "preadv2");
}

static void write_three(struct run *run)
{
	must(write(run->out, "xyz", 3), "write");
}

const struct driver read_drivers[] = {
	{.name = "read_pipe",
		.call = "read",
		.object = "pipe",
		.setup = make_pipe,
		.wait = wait_read_byte,
		.event = write_byte},
	{.name = "read_fifo",
		.call = "read",
		.object = "pipe",
		.setup = make_fifo,
		.wait = wait_read_byte,
		.event = write_byte},
	{.name = "read_terminal",
		.call = "read",
		.object = "char",
		.setup = make_terminal,
		.wait = wait_read_byte,
		.event = write_byte},
	{.name = "read_socket",
		.call = "read",
		.object = "socket",
		.setup = make_datagram_pair,
		.wait = wait_read,
		.event = write_byte},
	{.name = "read_timerfd",
		.call = "read",
		.object = "timerfd",
		.setup = make_timerfd,
		.wait = wait_read_expirations},
	{.name = "read_timerfd_realtime",
		.call = "read",
		.object = "timerfd",
		.setup = make_timerfd_realtime,
		.wait = wait_read_expirations},
	{.name = "read_eventfd",
		.call = "read",
		.object = "eventfd",
		.setup = make_eventfd,
		.wait = wait_read_count,
		.event = write_count},
	{.name = "read_signalfd",
		.call = "read",
		.object = "signalfd",
		.setup = make_signalfd,
		.wait = wait_read_signal,
		.event = send_signal},
	{.name = "read_inotify",
		.call = "read",
		.object = "inotify",
		.setup = make_inotify,
		.wait = wait_read,
		.event = write_byte,
		.merges = true},
	{.name = "read_block",
		.call = "read",
		.object = "block",
		.setup = make_block_device,
		.wait = wait_read_block},
	{.name = "readv",
		.call = "readv",
		.object = "pipe",
		.setup = make_pipe,
		.wait = wait_readv,
		.event = write_byte},
	{.name = "preadv_block",
		.call = "preadv",
		.object = "block",
		.setup = make_block_device,
		.wait = wait_preadv},
	{.name = "preadv2",
		.call = "preadv2",
		.object = "pipe",
		.setup = make_pipe,
		.wait = wait_preadv2,
		.event = write_byte},
	{.name = "read_back_to_back",
		.call = "read",
		.object = "pipe",
		.setup = make_pipe,
		.wait = wait_read_byte,
		.event = write_three,
		.burst = 3},
	{0},
};
