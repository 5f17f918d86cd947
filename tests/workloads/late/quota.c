// An ordinary thread whose control group has a quota of the processor.
#include "late.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

// So many nanoseconds in so many.
#define QUOTA  (10 * MS)
#define WINDOW (40 * MS)

// The mount points of control groups with processors: of the first version, or the second.
struct hierarchy {
	char root[128];
	bool is_first;
};
static struct hierarchy hierarchy;
static char group[192];

static bool put(const char *folder, const char *name, const char *text)
{
	char path[256];
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	int file = open(path, O_WRONLY | O_CLOEXEC);
	if (file < 0)
		return false;
	bool is_written = write(file, text, strlen(text)) == (ssize_t)strlen(text);
	close(file);
	return is_written;
}

static bool has_word(const char *list, const char *word)
{
	size_t length = strlen(word);
	for (const char *at = list; (at = strstr(at, word)); at += length)
		if ((at == list || at[-1] == ',') && (!at[length] || at[length] == ','))
			return true;
	return false;
}

static bool find_hierarchy(void)
{
	FILE *mounts = fopen("/proc/self/mounts", "re");
	char root[128], kind[32], options[256];
	bool is_found = false;
	while (mounts && !is_found &&
		fscanf(mounts, "%*s %127s %31s %255s %*[^\n]", root, kind, options) == 3) {
		bool is_first = strcmp(kind, "cgroup") == 0 && has_word(options, "cpu");
		is_found = is_first || strcmp(kind, "cgroup2") == 0;
		hierarchy.is_first = is_first;
		memcpy(hierarchy.root, root, sizeof(root));
	}
	if (mounts)
		fclose(mounts);
	return is_found;
}

static bool set_quota(void)
{
	char quota[32], window[32], both[64];
	snprintf(quota, sizeof(quota), "%lld", QUOTA / US);
	snprintf(window, sizeof(window), "%lld", WINDOW / US);
	snprintf(both, sizeof(both), "%s %s", quota, window);
	return hierarchy.is_first ? put(group, "cpu.cfs_period_us", window) &&
					    put(group, "cpu.cfs_quota_us", quota)
				  : put(group, "cpu.max", both);
}

static void leave_group(void)
{
	put(hierarchy.root, "cgroup.procs", "0");
	rmdir(group);
}

static bool enter_group(void)
{
	if (!find_hierarchy())
		return false;
	snprintf(group, sizeof(group), "%s/punctual-late-%d", hierarchy.root, getpid());
	if (mkdir(group, 0755))
		return false;
	atexit(leave_group);
	return set_quota() && put(group, "cgroup.procs", "0");
}

// For how long the group has been without the processor.
static int64_t throttled(void)
{
	char path[256], name[32];
	snprintf(path, sizeof(path), "%s/cpu.stat", group);
	FILE *stat = fopen(path, "re");
	long long value, time = 0;
	while (stat && fscanf(stat, "%31s %lld", name, &value) == 2) {
		if (strcmp(name, "throttled_time") == 0)
			time = value;
		if (strcmp(name, "throttled_usec") == 0)
			time = value * US;
	}
	if (stat)
		fclose(stat);
	return time;
}

int use_up_quota(struct job *jobs, long count)
{
	if (!enter_group()) {
		fprintf(stderr, "late: no quota: there is no control group with processors\n");
		return EXIT_SKIPPED;
	}
	must(prctl(PR_SET_NAME, "control"), "prctl");
	must(prctl(PR_SET_TIMERSLACK, 1), "PR_SET_TIMERSLACK");
	pin(0);
	int64_t due = now_ns() + 2 * PERIOD;
	for (long j = 0; j < count; j++, due += PERIOD) {
		// The end of the last job is that of the thread, which nobody else sees.
		bool is_long = j % (2 * APART) == 2 * APART - 1 && j + 1 < count;
		int64_t before = throttled();
		do_job(&jobs[j], due, is_long ? QUOTA * 3 / 2 : USUAL / 2);
		int64_t time = throttled() - before;
		if (time)
			add_reason(&jobs[j], "quota", time);
	}
	print(jobs, count);
	return 0;
}
