/* A periodic process by the names of ReTiF's paper (Listing 1): says what it was told and how its
 * own thread is scheduled. Takes its own PID's policy from the kernel, so that nothing rests on
 * what the library says. Exit codes: 10 no daemon, 11 not admitted, 12 not allowed, 13 no daemon
 * any more, 20 its thread may have had to be demoted by the time its policy was looked at. */
#include <retif.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define T_PERIOD      50000
#define T_RUNTIME     20000
#define T_DES_RUNTIME 30000
#define T_DEADLINE    45000

static int jobs;

static int computation_ended(void)
{
	return jobs == 5;
}

static long microseconds(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

int main(int argc, char **argv)
{
	struct rtf_spec s = RTF_SPEC_INIT;
	struct rtf_params p = RTF_PARAM_INIT;
	int optional = 0;

	if (rtf_connect() == RTF_CONNECTION_ERR)
		return 10;

	rtf_param_set_period(&p, T_PERIOD);
	rtf_param_set_runtime(&p, argc > 1 ? strtoull(argv[1], NULL, 10) : T_RUNTIME);
	rtf_param_set_des_runtime(&p, T_DES_RUNTIME);
	rtf_param_set_deadline(&p, T_DEADLINE);
	rtf_param_set_scheduler(&p, argc > 2 ? argv[2] : "");

	int res = rtf_spec_create(&s, &p);
	if (res == RTF_SCHEDULE_FAIL)
		return 11;
	else if (res == RTF_ACL_FAIL)
		return 12;
	else if (res == RTF_CONNECTION_ERR)
		return 13;
	if (res != RTF_OK)
		return 14;

	long asked = microseconds();
	if (rtf_spec_attach(&s, getpid()) != RTF_OK)
		return 15;
	int policy = sched_getscheduler(0) & ~SCHED_RESET_ON_FORK;
	if (policy == SCHED_OTHER && microseconds() - asked > T_RUNTIME)
		return 20;
	rtf_task_start(&s);
	while (!computation_ended()) {
		jobs++;
		if (rtf_spec_get_accepted_runtime(&s) > T_RUNTIME)
			optional++;
		rtf_task_wait_period(&s);
	}
	if (rtf_spec_release(&s) != RTF_OK)
		return 16;
	printf("%d jobs, %d with options, accepted %llu, policy %d, after it %d\n", jobs, optional,
		(unsigned long long)rtf_spec_get_accepted_runtime(&s), policy,
		sched_getscheduler(0) & ~SCHED_RESET_ON_FORK);
	return 0;
}
