// An ordinary loop whose cgroup has a quota of processor time, which it uses up now and then.
//
//   quota [JOBS]
//
// Prints a line for each job, as `late` does. The reason for being late is what the cgroup counts
// as throttled time. The processor is not idle meanwhile: a thread outside the cgroup always runs.
#include "workload.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define PERIOD (10 * MS)
#define USUAL  (MS / 5)
// More than the quota. So many jobs have less than theirs on average.
#define LONG  (8 * MS)
#define APART 13
// Of the cgroup: no multiple of its period lies between two long jobs.
#define QUOTA_US  5000
#define WINDOW_US 50000

static char root[] = "/tmp/quota-XXXXXX", group[PATH_MAX];
static int stat_file = -1;

static int at(const char *folder, const char *file, int flags)
{
	char path[PATH_MAX + 32];
	snprintf(path, sizeof(path), "%s/%s", folder, file);
	return open(path, flags | O_CLOEXEC);
}

static bool put(const char *folder, const char *file, const char *text)
{
	int fd = at(folder, file, O_WRONLY);
	bool is_put = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
	if (fd >= 0)
		close(fd);
	return is_put;
}

// The hierarchy of version 1 that has the controller `cpu`, as an option of mount(2); empty if
// there is none.
static void find_controllers(char *found, size_t size)
{
	char line[256], controllers[128];
	FILE *own = fopen("/proc/self/cgroup", "re");
	found[0] = 0;
	while (own && fgets(line, sizeof(line), own))
		if (sscanf(line, "%*d:%127[^:\n]:", controllers) == 1) {
			char list[130];
			snprintf(list, sizeof(list), ",%s,", controllers);
			if (strstr(list, ",cpu,"))
				snprintf(found, size, "%s", controllers);
		}
	if (own)
		fclose(own);
}

// Mounts the cgroups for this program only, since a system without systemd may not have done so,
// and makes one with a quota.
static bool enter_group(void)
{
	char controllers[128], text[64];
	if (!mkdtemp(root))
		return false;
	snprintf(group, sizeof(group), "%s/quota-%d", root, getpid());
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return false;
	find_controllers(controllers, sizeof(controllers));
	if (controllers[0]) {
		if (mount("quota", root, "cgroup", 0, controllers) || mkdir(group, 0700))
			return false;
		snprintf(text, sizeof(text), "%d", WINDOW_US);
		if (!put(group, "cpu.cfs_period_us", text))
			return false;
		snprintf(text, sizeof(text), "%d", QUOTA_US);
		if (!put(group, "cpu.cfs_quota_us", text))
			return false;
	} else {
		if (mount("quota", root, "cgroup2", 0, NULL) ||
			!put(root, "cgroup.subtree_control", "+cpu") || mkdir(group, 0700))
			return false;
		snprintf(text, sizeof(text), "%d %d", QUOTA_US, WINDOW_US);
		if (!put(group, "cpu.max", text))
			return false;
	}
	stat_file = at(group, "cpu.stat", O_RDONLY);
	return stat_file >= 0 && put(group, "cgroup.procs", "0");
}

static void leave_group(void)
{
	put(root, "cgroup.procs", "0");
	rmdir(group);
	umount2(root, MNT_DETACH);
	rmdir(root);
}

// For how long the cgroup has been throttled so far.
static int64_t throttled(void)
{
	char text[1024] = "";
	must(pread(stat_file, text, sizeof(text) - 1, 0), "cpu.stat");
	const char *us = strstr(text, "throttled_usec "), *ns = strstr(text, "throttled_time ");
	if (us)
		return atoll(us + strlen("throttled_usec ")) * US;
	return ns ? atoll(ns + strlen("throttled_time ")) : 0;
}

static pid_t start_other(void)
{
	pid_t parent = getpid(), child = must(fork(), "fork");
	if (child)
		return child;
	must(prctl(PR_SET_PDEATHSIG, SIGKILL), "PR_SET_PDEATHSIG");
	must(prctl(PR_SET_NAME, "other"), "prctl");
	must(set_attributes(0, SCHED_IDLE, 0) ? -1 : 0, "sched_setattr");
	while (getppid() == parent)
		;
	_exit(0);
}

int main(int argc, char **argv)
{
	long count = argc > 1 ? atol(argv[1]) : 500;
	struct job {
		int64_t due, end, cpu, reason;
	} *jobs = calloc(count, sizeof(*jobs));
	cpu_set_t first;

	if (!jobs)
		die("calloc", errno);
	CPU_ZERO(&first);
	CPU_SET(0, &first);
	must(sched_setaffinity(0, sizeof(first), &first), "sched_setaffinity");
	pid_t other = start_other();
	if (!enter_group()) {
		leave_group();
		kill(other, SIGKILL);
		return EXIT_SKIPPED;
	}
	must(prctl(PR_SET_NAME, "control"), "prctl");
	must(prctl(PR_SET_TIMERSLACK, 1), "PR_SET_TIMERSLACK");
	int64_t due = now_ns() + 2 * PERIOD;
	for (long j = 0; j < count; j++, due += PERIOD) {
		struct job *job = &jobs[j];
		job->due = due;
		sleep_until(due);
		int64_t cpu = now_on(CLOCK_THREAD_CPUTIME_ID), before = throttled();
		burn(j % APART == APART - 1 && j + 1 < count ? LONG : USUAL);
		job->reason = throttled() - before;
		job->end = now_ns();
		job->cpu = now_on(CLOCK_THREAD_CPUTIME_ID) - cpu;
	}
	leave_group();
	kill(other, SIGKILL);
	for (long j = 0; j < count; j++) {
		printf("%lld %lld %lld 0", (long long)jobs[j].due, (long long)jobs[j].end,
			(long long)jobs[j].cpu);
		if (jobs[j].reason)
			printf(" quota %lld", (long long)jobs[j].reason);
		putchar('\n');
	}
	return 0;
}
