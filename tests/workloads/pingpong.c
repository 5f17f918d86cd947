// Two real-time threads that send a byte back and forth over two pipes as fast as they can: more
// records than the buffer of a stopped reader can hold.
//
//   pingpong [--for SECONDS]     prints the number of rounds
//
// On a machine with one processor they pause now and then; otherwise no other thread could end
// them.
#include "workload.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

static int there[2], back[2], pause_asked[2];
static atomic_bool stopping;
static bool alone;
static int64_t rounds;

static void *ping(void *unused)
{
	char byte = 'x';
	become_fifo("ping", 40);
	while (!stopping) {
		must(write(alone && rounds % 500 == 499 ? pause_asked[1] : there[1], &byte, 1),
			"write");
		must(read(back[0], &byte, 1), "read");
		rounds++;
	}
	close(there[1]);
	close(pause_asked[1]);
	return unused;
}

/* Answers in pong's place, later: ping waits as it always does, and meanwhile others run. */
static void *rest(void *unused)
{
	char byte;
	while (must(read(pause_asked[0], &byte, 1), "read") == 1) {
		usleep(2000);
		must(write(back[1], &byte, 1), "write");
	}
	return unused;
}

static void *pong(void *unused)
{
	char byte;
	become_fifo("pong", 40);
	while (must(read(there[0], &byte, 1), "read") == 1)
		must(write(back[1], &byte, 1), "write");
	return unused;
}

int main(int argc, char **argv)
{
	double seconds = number_option(argc, argv, "--for", 5);
	block_stop_signals();
	alone = sysconf(_SC_NPROCESSORS_ONLN) == 1;
	must(pipe(there), "pipe");
	must(pipe(back), "pipe");
	must(pipe(pause_asked), "pipe");
	int64_t began = now_ns();
	pthread_t threads[3];
	if (pthread_create(&threads[2], NULL, rest, NULL) ||
		pthread_create(&threads[0], NULL, pong, NULL) ||
		pthread_create(&threads[1], NULL, ping, NULL))
		die("pthread_create", EAGAIN);
	wait_for_stop(seconds);
	stopping = true;
	pthread_join(threads[1], NULL);
	pthread_join(threads[0], NULL);
	pthread_join(threads[2], NULL);
	printf("{\"rounds\": %lld, \"began_ns\": %lld, \"ended_ns\": %lld}\n", (long long)rounds,
		(long long)began, (long long)now_ns());
	return 0;
}
