// Waiting for messages and connections.
#include "drivers.h"

#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>

const char *make_datagram_pair(struct run *run)
{
	int ends[2];
	must(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, ends), "socketpair");
	run->in = ends[0];
	run->out = ends[1];
	return NULL;
}

static const char *make_udp(struct run *run)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof address;
	run->in = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	run->out = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (run->in < 0 || run->out < 0 || bind(run->in, (void *)&address, length) < 0 ||
		getsockname(run->in, (void *)&address, &length) < 0 ||
		connect(run->out, (void *)&address, length) < 0)
		return "no UDP on the loopback interface here";
	return NULL;
}

// An abstract address: chosen by the kernel, and gone with the process.
static struct sockaddr_un listening;
static socklen_t listening_length;

static const char *make_listener(struct run *run)
{
	listening.sun_family = AF_UNIX;
	listening_length = sizeof listening;
	run->in = must(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket");
	must(bind(run->in, (void *)&listening, sizeof(sa_family_t)), "bind");
	must(getsockname(run->in, (void *)&listening, &listening_length), "getsockname");
	must(listen(run->in, 64), "listen");
	return NULL;
}

static void connect_once(struct run *run)
{
	(void)run;
	int fd = must(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket");
	must(connect(fd, (void *)&listening, listening_length), "connect");
	close(fd);
}

static void wait_accept(struct run *run)
{
#ifdef SYS_accept
	close(must(syscall(SYS_accept, run->in, NULL, NULL), "accept"));
#else
	close(must(accept(run->in, NULL, NULL), "accept"));
#endif
}

static void wait_accept4(struct run *run)
{
	close(must(syscall(SYS_accept4, run->in, NULL, NULL, SOCK_CLOEXEC), "accept4"));
}

static void wait_recv(struct run *run)
{
	must(recv(run->in, run->buffer, sizeof run->buffer, 0), "recv");
}

static void wait_recvfrom(struct run *run)
{
	struct sockaddr_storage from;
	socklen_t length = sizeof from;
	must(syscall(SYS_recvfrom, run->in, run->buffer, sizeof run->buffer, 0, &from, &length),
		"recvfrom");
}

static void wait_recvmsg(struct run *run)
{
	struct iovec part = {run->buffer, sizeof run->buffer};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
	must(syscall(SYS_recvmsg, run->in, &message, 0), "recvmsg");
}

static void wait_recvmmsg(struct run *run)
{
	struct iovec part = {run->buffer, sizeof run->buffer};
	struct mmsghdr message = {.msg_hdr = {.msg_iov = &part, .msg_iovlen = 1}};
	must(syscall(SYS_recvmmsg, run->in, &message, 1, 0, NULL), "recvmmsg");
}

const struct driver socket_drivers[] = {
	{.name = "accept",
		.call = "accept",
		.object = "socket",
		.setup = make_listener,
		.wait = wait_accept,
		.event = connect_once},
	{.name = "accept4",
		.call = "accept4",
		.object = "socket",
		.setup = make_listener,
		.wait = wait_accept4,
		.event = connect_once},
	{.name = "recv",
		.call = "recvfrom",
		.object = "socket",
		.setup = make_datagram_pair,
		.wait = wait_recv,
		.event = write_byte},
	{.name = "recvfrom_udp",
		.call = "recvfrom",
		.object = "socket",
		.setup = make_udp,
		.wait = wait_recvfrom,
		.event = write_byte},
	{.name = "recvmsg",
		.call = "recvmsg",
		.object = "socket",
		.setup = make_udp,
		.wait = wait_recvmsg,
		.event = write_byte},
	{.name = "recvmmsg",
		.call = "recvmmsg",
		.object = "socket",
		.setup = make_udp,
		.wait = wait_recvmmsg,
		.event = write_byte},
	{0},
};
