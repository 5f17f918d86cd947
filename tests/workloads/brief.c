// Real-time processes that run once and end: what is missed of one is not seen later.
//
//   brief [--processes NUMBER]     prints how many it has started
#include "workload.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	int processes = (int)number_option(argc, argv, "--processes", 500);
	become_fifo("brief", 40);
	for (int64_t arrival = now_ns(), started = 0; started < processes; started++) {
		arrival += 2 * MS;
		sleep_until(arrival);
		pid_t child = fork();
		must(child, "fork");
		if (!child) {
			burn(MS / 10);
			_exit(0);
		}
		must(waitpid(child, NULL, 0), "waitpid");
	}
	printf("%d\n", processes);
	return 0;
}
