/* What requests to punctuald cost, seen by a client: `daemon echo SOCKET` answers, for the cost of
 * an exchange that does nothing; `daemon measure ECHO PLUGIN ROUNDS` measures, next to that and to
 * the direct system call, with 0 to 1,024 specs admitted, and prints lines "specs what median_ns".
 * Both take the priority and the processor that they are started with. */
#include <pthread.h>
#include <punctual.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

/* As a CreateSpec and its answer go over the socket, each with its NUL. */
static const char request[] = "{\"method\":\"io.punctual.Scheduler1.CreateSpec\",\"parameters\":{"
			      "\"parameters\":{\"runtime_ns\":10000,"
			      "\"period_ns\":100000000,\"priority\":20}}}";
static const char reply[] =
	"{\"parameters\":{\"admission\":{\"spec\":1024,\"plugin\":\"RM\",\"answer\":\"ok\","
	"\"admission_ignored\":false,\"processor\":1,"
	"\"accepted_runtime_ns\":10000,\"policy\":\"fifo\",\"policy_priority\":20}}}";

enum { CREATE, ATTACH, HOLD, CHANGE, RELEASE, PING, EXCHANGE, DIRECT, KINDS };
static const char *const names[KINDS] = {
	"create", "attach", "hold", "change", "release", "ping", "exchange", "direct"};

static void fail(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, punctual_last_error_message());
	exit(1);
}

static struct sockaddr_un address(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	if (strlen(path) >= sizeof address.sun_path)
		fail("the path of the socket is too long");
	strcpy(address.sun_path, path);
	return address;
}

static void receive(int socket)
{
	char buffer[4096];
	ssize_t count;
	do
		count = recv(socket, buffer, sizeof buffer, 0);
	while (count > 0 && buffer[count - 1] != 0);
	if (count == 0)
		exit(0);
	if (count < 0)
		fail("recv");
}

static void echo(const char *path)
{
	struct sockaddr_un here = address(path);
	int listening = socket(AF_UNIX, SOCK_STREAM, 0);
	if (bind(listening, (struct sockaddr *)&here, sizeof here) || listen(listening, 1))
		fail("cannot listen");
	int client = accept(listening, NULL, NULL);
	for (;;) {
		receive(client);
		if (send(client, reply, sizeof reply, 0) != sizeof reply)
			exit(0);
	}
}

static uint64_t now(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t random_between(uint64_t least, uint64_t most)
{
	return least + (uint64_t)rand() % (most - least + 1);
}

/* Light enough that 1,024 of them fit on one processor. */
static void declare(struct punctual_params *params, const char *plugin)
{
	punctual_params_clear(params);
	punctual_params_set_plugin(params, plugin);
	punctual_params_set_period(params, 1000000 * random_between(100, 1000));
	punctual_params_set_runtime(params, random_between(5000, 20000));
	punctual_params_set_priority(params, (uint32_t)random_between(1, 49));
}

/* Lets what the daemon does after its answers be done: its other thread, which holds threads to
 * their runtimes, has this processor and priority, too. */
static void settle(void)
{
	for (int turn = 0; turn < 3; turn++)
		sched_yield();
}

static void measure_change(struct punctual_spec *spec, struct punctual_params *params,
	const char *plugin, uint64_t *before, uint64_t *after)
{
	declare(params, plugin);
	*before = now();
	if (punctual_spec_change(spec, params))
		fail("change");
	*after = now();
	settle();
}

static pid_t idle_thread;
static pthread_barrier_t is_there;

static void *idle(void *unused)
{
	/* The thread to be scheduled: not as urgent as the one that measures, and never running. */
	struct sched_param ordinary = {0};
	sched_setscheduler(0, SCHED_OTHER, &ordinary);
	idle_thread = (pid_t)syscall(SYS_gettid);
	pthread_barrier_wait(&is_there);
	for (;;)
		pause();
	return unused;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

static void measure(const char *echo_path, const char *plugin, int rounds)
{
	static const int sizes[] = {0, 128, 512, 1024};
	struct sockaddr_un there = address(echo_path);
	struct punctual *connection;
	struct punctual_spec *spec;
	struct punctual_params *params = punctual_params_new();
	struct sched_param ordinary = {0}, urgent = {.sched_priority = 20};
	uint64_t *taken[KINDS];
	pthread_t thread;

	/* The kernel gives a changed reservation a new runtime at once, so others of that user
	 * would have to wait for a period. */
	int changes_attached = strcmp(plugin, "EDF") != 0;
	int exchange = socket(AF_UNIX, SOCK_STREAM, 0);
	if (connect(exchange, (struct sockaddr *)&there, sizeof there))
		fail("cannot connect to the echo");
	if (punctual_connect(NULL, &connection))
		fail("connect");
	pthread_barrier_init(&is_there, NULL, 2);
	if (pthread_create(&thread, NULL, idle, NULL))
		fail("pthread_create");
	pthread_barrier_wait(&is_there);
	for (int kind = 0; kind < KINDS; kind++)
		taken[kind] = calloc((size_t)rounds, sizeof **taken);

	int admitted = 0;
	for (size_t size = 0; size < sizeof sizes / sizeof *sizes; size++) {
		for (; admitted < sizes[size]; admitted++) {
			declare(params, plugin);
			if (punctual_spec_create(connection, params, NULL, &spec))
				fail("create beforehand");
			punctual_spec_free(spec);
		}
		/* The first rounds fill caches. */
		for (int round = -10; round < rounds; round++) {
			uint64_t at[KINDS + 1];
			declare(params, plugin);
			at[CREATE] = now();
			if (punctual_spec_create(connection, params, NULL, &spec))
				fail("create");
			uint64_t created = now(), change = 0, changed = 0;
			if (!changes_attached)
				measure_change(spec, params, plugin, &change, &changed);
			at[ATTACH] = now();
			if (punctual_spec_attach(spec, idle_thread))
				fail("attach");
			at[HOLD] = now();
			settle();
			at[CHANGE] = now();
			if (changes_attached)
				measure_change(spec, params, plugin, &change, &changed);
			/* What release costs is asked without a thread: with one, it costs a system
			 * call more. */
			if (punctual_spec_detach(spec))
				fail("detach");
			settle();
			at[RELEASE] = now();
			if (punctual_spec_release(spec))
				fail("release");
			at[PING] = now();
			if (punctual_ping(connection))
				fail("ping");
			at[EXCHANGE] = now();
			if (send(exchange, request, sizeof request, 0) != sizeof request)
				fail("send");
			receive(exchange);
			at[DIRECT] = now();
			if (sched_setscheduler(idle_thread, SCHED_FIFO, &urgent))
				fail("sched_setscheduler");
			at[KINDS] = now();
			sched_setscheduler(idle_thread, SCHED_OTHER, &ordinary);
			if (round < 0)
				continue;
			for (int kind = 0; kind < KINDS; kind++)
				taken[kind][round] = at[kind + 1] - at[kind];
			taken[CREATE][round] = created - at[CREATE];
			taken[CHANGE][round] = changed - change;
		}
		for (int kind = 0; kind < KINDS; kind++) {
			qsort(taken[kind], (size_t)rounds, sizeof **taken, compare);
			printf("%d %s %llu\n", sizes[size], names[kind],
				(unsigned long long)taken[kind][rounds / 2]);
		}
	}
	punctual_disconnect(connection);
}

int main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "echo") == 0)
		echo(argv[2]);
	else if (argc == 5 && strcmp(argv[1], "measure") == 0)
		measure(argv[2], argv[3], atoi(argv[4]));
	else
		fail("daemon echo SOCKET, or daemon measure ECHO PLUGIN ROUNDS");
	return 0;
}
