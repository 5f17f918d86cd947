/* What requests to ReTiF's daemon cost, seen by a client: `retif ECHO ROUNDS` measures them next to
 * an exchange with `daemon echo ECHO`, with 0 to 1,024 tasks admitted, and prints lines "tasks what
 * median_ns". docs/benchmarks.md says how it was built and run. */
#include <pthread.h>
#include <retif.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

/* ReTiF's answer to a request that is admitted whole. */
#define ADMITTED 1

enum { CREATE, ATTACH, DETACH, RELEASE, OLDEST, EXCHANGE, KINDS };
static const char *const names[KINDS] = {
	"create", "attach", "detach", "release", "attach-oldest", "exchange"};
static uint64_t *taken[KINDS];

static void fail(const char *what)
{
	fprintf(stderr, "%s\n", what);
	exit(1);
}

static uint64_t now(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static volatile pid_t idle_thread;

static void *idle(void *unused)
{
	struct sched_param ordinary = {0};
	sched_setscheduler(0, SCHED_OTHER, &ordinary);
	idle_thread = (pid_t)syscall(SYS_gettid);
	for (;;)
		pause();
	return unused;
}

/* In microseconds; so light that 1,024 of them fit on one processor. */
static void create(struct rtf_task *task)
{
	struct rtf_params params;
	rtf_params_init(&params);
	rtf_params_set_period(&params, (uint64_t)(1024 + rand() % 1024) * 1000);
	rtf_params_set_runtime(&params, 2);
	rtf_params_set_priority(&params, (uint32_t)(10 + rand() % 40));
	rtf_task_init(task);
	if (rtf_task_create(task, &params) != ADMITTED)
		fail("create");
}

static void exchange_with(int echo)
{
	/* As long as those of punctuald; the echo answers what ends with a NUL. */
	static const char message[160];
	char reply[4096];
	if (send(echo, message, sizeof message, 0) != sizeof message)
		fail("send");
	ssize_t count;
	do
		count = recv(echo, reply, sizeof reply, 0);
	while (count > 0 && reply[count - 1] != 0);
	if (count <= 0)
		fail("recv");
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	static const int sizes[] = {0, 128, 512, 1024};
	static struct rtf_task before[1024];
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	if (argc != 3 || strlen(argv[1]) >= sizeof address.sun_path)
		fail("retif ECHO ROUNDS");
	int rounds = atoi(argv[2]), echo = socket(AF_UNIX, SOCK_STREAM, 0), admitted = 0;
	strcpy(address.sun_path, argv[1]);
	if (connect(echo, (struct sockaddr *)&address, sizeof address))
		fail("cannot connect to the echo");
	if (rtf_connect() != 1)
		fail("cannot connect to retifd");
	pthread_t thread;
	if (pthread_create(&thread, NULL, idle, NULL))
		fail("pthread_create");
	while (!idle_thread)
		usleep(1000);
	for (int kind = 0; kind < KINDS; kind++)
		taken[kind] = calloc((size_t)rounds, sizeof **taken);
	for (size_t size = 0; size < sizeof sizes / sizeof *sizes; size++) {
		for (; admitted < sizes[size]; admitted++)
			create(&before[admitted]);
		/* The first rounds fill caches. */
		for (int round = -10; round < rounds; round++) {
			struct rtf_task task;
			uint64_t at[KINDS + 1];
			at[CREATE] = now();
			create(&task);
			at[ATTACH] = now();
			if (rtf_task_attach(&task, idle_thread) != ADMITTED)
				fail("attach");
			at[DETACH] = now();
			if (rtf_task_detach(&task) != ADMITTED)
				fail("detach");
			at[RELEASE] = now();
			if (rtf_task_release(&task) != ADMITTED)
				fail("release");
			at[OLDEST] = now();
			if (admitted && rtf_task_attach(&before[0], idle_thread) != ADMITTED)
				fail("attach");
			uint64_t attached = now();
			if (admitted && rtf_task_detach(&before[0]) != ADMITTED)
				fail("detach");
			at[EXCHANGE] = now();
			exchange_with(echo);
			at[KINDS] = now();
			if (round < 0)
				continue;
			for (int kind = 0; kind < KINDS; kind++)
				taken[kind][round] = at[kind + 1] - at[kind];
			taken[OLDEST][round] = attached - at[OLDEST];
		}
		for (int kind = 0; kind < KINDS; kind++) {
			if (kind == OLDEST && !admitted)
				continue;
			qsort(taken[kind], (size_t)rounds, sizeof **taken, compare);
			printf("%d %s %llu\n", sizes[size], names[kind],
				(unsigned long long)taken[kind][rounds / 2]);
		}
	}
	return 0;
}
