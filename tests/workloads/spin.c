// A real-time thread that does not wait: never, or not any more after a few jobs.
//
//   spin [--jobs NUMBER] [--for SECONDS]
#include "workload.h"

int main(int argc, char **argv)
{
	int jobs = (int)number_option(argc, argv, "--jobs", 0);
	int64_t spins = (int64_t)(number_option(argc, argv, "--for", 0.5) * SECOND);
	become_fifo("spin", 20);
	for (int job = 0; job < jobs; job++)
		sleep_until(now_ns() + SECOND / 200);
	for (int64_t until = now_ns() + spins; now_ns() < until;)
		;
	return 0;
}
