// A periodic thread by CLOCK_REALTIME, 10 ms, which sets that clock forward after 50 jobs; it then
// does the jobs that it has missed one after the other. Only for machines whose clock is nobody
// else's.
//
//   set_clock [--by-ms MILLISECONDS]
#include "workload.h"

#include <time.h>

int main(int argc, char **argv)
{
	int64_t by = (int64_t)(number_option(argc, argv, "--by-ms", 500) * MS);
	become_fifo("clocked", 20);
	int64_t due = now_on(CLOCK_REALTIME);
	for (int64_t job = 0; job < 100 + by / (10 * MS); job++) {
		due += 10 * MS;
		struct timespec until = timespec_of(due);
		clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &until, NULL);
		burn(50000);
		if (job == 50) {
			struct timespec set = timespec_of(now_on(CLOCK_REALTIME) + by);
			must(clock_settime(CLOCK_REALTIME, &set), "clock_settime");
		}
	}
	return 0;
}
