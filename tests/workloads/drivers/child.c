// Waiting for children: `src` creates one at each event, which ends at once.
#include "drivers.h"

#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/wait.h>

// One that stays: without any child, waiting fails instead of waiting.
const char *make_child(struct run *run)
{
	run->child = must(fork(), "fork");
	if (run->child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	return NULL;
}

static void make_short_child(struct run *run)
{
	(void)run;
	// Unlike fork, this copies no page tables: the event comes at about the same distance from
	// its arrival each time.
	if (must(vfork(), "vfork") == 0)
		_exit(0);
}

static void wait_wait4(struct run *run)
{
	(void)run;
	must(syscall(SYS_wait4, -1, NULL, 0, NULL), "wait4");
}

static void wait_waitid(struct run *run)
{
	(void)run;
	siginfo_t info;
	must(syscall(SYS_waitid, P_ALL, 0, &info, WEXITED, NULL), "waitid");
}

const struct driver child_drivers[] = {
	{.name = "wait4",
		.call = "wait4",
		.setup = make_child,
		.wait = wait_wait4,
		.event = make_short_child},
	{.name = "waitid",
		.call = "waitid",
		.setup = make_child,
		.wait = wait_waitid,
		.event = make_short_child},
	{0},
};
