// Waiting for message queues and semaphores, POSIX and System V.
#include "drivers.h"

#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>

struct message {
	long type;
	char text[8];
};

const char *make_message_queue(struct run *run)
{
	char name[64];
	snprintf(name, sizeof name, "/punctual-driver-%d", getpid());
	struct mq_attr attributes = {.mq_maxmsg = 8, .mq_msgsize = 64};
	mqd_t in = mq_open(name, O_RDONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600, &attributes);
	if (in == (mqd_t)-1)
		return errno == ENOSYS ? "the kernel has no POSIX message queues"
				       : "no POSIX message queue can be created";
	mqd_t out = mq_open(name, O_WRONLY | O_CLOEXEC);
	int error = errno;
	mq_unlink(name);
	if (out == (mqd_t)-1)
		die("mq_open", error);
	run->in = in;
	run->out = out;
	return NULL;
}

static void send_message(struct run *run)
{
	must(mq_send(run->out, "x", 1, 0), "mq_send");
}

static void wait_mq(struct run *run)
{
	must(syscall(SYS_mq_timedreceive, run->in, run->buffer, sizeof run->buffer, NULL, NULL),
		"mq_timedreceive");
}

const char *make_sysv_queue(struct run *run)
{
	run->id = msgget(IPC_PRIVATE, 0600);
	return run->id < 0 ? "no System V message queue can be created" : NULL;
}

static void send_sysv(struct run *run)
{
	struct message message = {.type = 1, .text = "x"};
	must(msgsnd(run->id, &message, 1, 0), "msgsnd");
}

static void wait_msgrcv(struct run *run)
{
	struct message message;
	must(syscall(SYS_msgrcv, run->id, &message, sizeof message.text, 0L, 0), "msgrcv");
}

const char *make_sysv_semaphore(struct run *run)
{
	run->id = semget(IPC_PRIVATE, 1, 0600);
	return run->id < 0 ? "no System V semaphore can be created" : NULL;
}

static void add_one(struct run *run)
{
	struct sembuf up = {.sem_op = 1};
	must(semtimedop(run->id, &up, 1, NULL), "semtimedop");
}

#if defined SYS_semop || defined SYS_ipc
static void wait_semop(struct run *run)
{
	struct sembuf down = {.sem_op = -1};
#ifdef SYS_semop
	must(syscall(SYS_semop, run->id, &down, 1), "semop");
#else
	must(syscall(SYS_ipc, 1 /* SEMOP */, run->id, 1, 0, &down), "semop");
#endif
}
#endif

static void wait_semtimedop(struct run *run)
{
	struct sembuf down = {.sem_op = -1};
	struct timespec limit = {.tv_sec = 5};
	must(semtimedop(run->id, &down, 1, &limit), "semtimedop");
}

const struct driver ipc_drivers[] = {
	{.name = "mq_timedreceive",
		.call = "mq_timedreceive",
		.object = "mqueue",
		.setup = make_message_queue,
		.wait = wait_mq,
		.event = send_message},
	{.name = "msgrcv",
		.call = "msgrcv",
		.object = "id",
		.setup = make_sysv_queue,
		.wait = wait_msgrcv,
		.event = send_sysv},
#if defined SYS_semop || defined SYS_ipc
	{.name = "semop",
		.call = "semop",
		.object = "id",
		.setup = make_sysv_semaphore,
		.wait = wait_semop,
		.event = add_one},
#endif
	{.name = "semtimedop",
		.call = "semtimedop",
		.object = "id",
		.setup = make_sysv_semaphore,
		.wait = wait_semtimedop,
		.event = add_one},
	{0},
};
