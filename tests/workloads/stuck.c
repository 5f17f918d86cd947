// A periodic thread that gets stuck: what a watch must notice without any record of it.
//
//   stuck busy|waiting [--jobs N] [--for SECONDS]
//
// After N jobs with a period of 10 ms, it works for as long as SECONDS without end, or waits for
// something that does not come. An ordinary thread, so that it harms nobody.
#include "workload.h"

#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	if (argc < 2 || (strcmp(argv[1], "busy") && strcmp(argv[1], "waiting"))) {
		fprintf(stderr, "usage: stuck busy|waiting [--jobs N] [--for SECONDS]\n");
		return 2;
	}
	double jobs = number_option(argc, argv, "--jobs", 50);
	double seconds = number_option(argc, argv, "--for", 1);
	prctl(PR_SET_NAME, "stuck");
	int64_t arrival = now_ns();
	for (int job = 0; job < (int)jobs; job++) {
		arrival += 10 * MS;
		sleep_until(arrival);
	}
	int64_t until = arrival + (int64_t)(seconds * (double)SECOND);
	if (!strcmp(argv[1], "busy"))
		while (now_ns() < until)
			burn(MS);
	else
		sleep_until(until);
	return 0;
}
