/* By the names of ReTiF's published code: parameters, a task's whole life, and all that may be
 * asked. */
#include <retif.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CHECK(what) \
	do { \
		if (!(what)) { \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #what); \
			return 1; \
		} \
	} while (0)

/* The layouts are part of the interface. */
_Static_assert(RTF_OK == 1 && RTF_FAIL == 0 && RTF_ERROR == -1 && RTF_PARTIAL == 0 && RTF_NO == -1,
	"codes");
_Static_assert(EMPTY == 0 && CONNECTED == 1 && DISCONNECTED == 2 && ERROR == 3, "states");
_Static_assert(
	sizeof(((struct rtf_params *)0)->sched_plugin) == 32 && sizeof(struct rtf_params) == 72,
	"parameters");
_Static_assert(
	sizeof(struct rtf_client_info) == 8 && sizeof(struct rtf_plugin_info) == 36, "information");
_Static_assert(
	sizeof(struct rtf_cpu_info) == 12 && sizeof(struct rtf_task_info) == 24, "information");

static int policy(void)
{
	return sched_getscheduler(0) & ~SCHED_RESET_ON_FORK;
}

/* Whether the thread has this policy, or gets it: one that has taken more than its runtime, on a
 * slow machine or because of a slow library, is demoted until its next period; and a spec that gets
 * what others have taken begins when that is paid. */
static bool becomes(int expected)
{
	for (int ms = 0; ms < 20000; ms++) {
		if (policy() == expected)
			return true;
		usleep(1000);
	}
	return false;
}

/* Which place in the list the thread's task has; -1: none. */
static int find(pid_t thread, struct rtf_task_info *info)
{
	for (int i = 0; i < rtf_tasks_info(); i++)
		if (rtf_task_info(i, info) == RTF_OK && info->tid == thread)
			return i;
	return -1;
}

int main(void)
{
	static struct rtf_task t;
	struct rtf_params p;
	char name[PLUGIN_MAX_NAME];
	pid_t self = (pid_t)syscall(SYS_gettid);

	rtf_task_init(&t);
	rtf_params_init(&p);
	CHECK(rtf_task_create(&t, &p) == RTF_ERROR); /* before it is connected */
	CHECK(rtf_connect() == RTF_OK);
	CHECK(rtf_connect() == RTF_OK);

	rtf_params_set_runtime(&p, 8000);
	rtf_params_set_des_runtime(&p, 9000);
	rtf_params_set_period(&p, 20000);
	rtf_params_set_deadline(&p, 15000);
	rtf_params_set_priority(&p, 30);
	rtf_params_set_scheduler(&p, "RM");
	rtf_params_ignore_admission(&p, 1);
	rtf_params_get_scheduler(&p, name);
	CHECK(rtf_params_get_runtime(&p) == 8000 && rtf_params_get_des_runtime(&p) == 9000 &&
		rtf_params_get_period(&p) == 20000);
	CHECK(rtf_params_get_deadline(&p) == 15000 && rtf_params_get_priority(&p) == 30 &&
		strcmp(name, "RM") == 0 && p.ignore_admission == 1);
	rtf_params_ignore_admission(&p, 0);

	/* What cannot be: no task comes of it, and it is an answer, not an error. */
	CHECK(rtf_task_attach(&t, self) == RTF_FAIL);
	rtf_params_set_runtime(&p, UINT64_MAX);
	CHECK(rtf_task_create(&t, &p) == RTF_FAIL);
	rtf_params_set_runtime(&p, 8000);
	rtf_params_set_scheduler(&p, "none of that name");
	CHECK(rtf_task_create(&t, &p) == RTF_FAIL);
	rtf_params_set_scheduler(&p, "RM");

	int before = policy();
	CHECK(rtf_task_create(&t, &p) == RTF_OK);
	CHECK(rtf_task_get_accepted_runtime(&t) >= 8000 &&
		rtf_task_get_accepted_runtime(&t) <= 9000);
	CHECK(policy() == before);
	CHECK(rtf_task_attach(&t, self) == RTF_OK);
	CHECK(becomes(SCHED_FIFO));

	struct rtf_task_info task;
	int place = find(self, &task);
	CHECK(place >= 0);
	CHECK(task.ppid == getpid() && task.period == 20000 && task.priority > 0 &&
		task.util > 0.5 && task.util < 0.61);
	struct rtf_plugin_info plugin;
	CHECK(rtf_plugins_info() > 0 && rtf_plugin_info(task.pluginid, &plugin) == RTF_OK);
	CHECK(strcmp(plugin.name, "RM") == 0 && plugin.cputot > 0 &&
		plugin.cpunum == plugin.cputot);
	struct rtf_cpu_info cpu;
	int tasks = 0;
	for (int i = 0; i < plugin.cputot; i++) {
		CHECK(rtf_plugin_cpu_info(task.pluginid, i, &cpu) == RTF_OK);
		CHECK(cpu.cpunum >= 0 && cpu.freeu >= 0 && cpu.freeu <= 1);
		tasks += cpu.ntask;
	}
	CHECK(tasks >= 1);
	CHECK(rtf_plugin_info(1000, &plugin) == RTF_FAIL &&
		rtf_task_info(100000, &task) == RTF_FAIL);
	CHECK(rtf_plugin_cpu_info(0, 10000, &cpu) == RTF_FAIL);
	struct rtf_client_info client;
	int found = 0;
	for (int i = 0; i < rtf_connections_info(); i++)
		found += rtf_connection_info(i, &client) == RTF_OK && client.pid == getpid() &&
			 client.state == CONNECTED;
	CHECK(found == 1);

	/* To another plugin, without being unscheduled. */
	rtf_params_set_scheduler(&p, "RR");
	CHECK(rtf_task_change(&t, &p) == RTF_OK);
	CHECK(becomes(SCHED_RR));
	/* A change that fails changes nothing. */
	rtf_params_set_scheduler(&p, "none of that name");
	CHECK(rtf_task_change(&t, &p) == RTF_FAIL);
	CHECK(becomes(SCHED_RR));

	rtf_task_start(&t);
	for (int i = 0; i < 3; i++)
		rtf_task_wait_period(&t);
	CHECK(rtf_task_detach(&t) == RTF_OK);
	CHECK(policy() == before);
	CHECK(rtf_task_detach(&t) == RTF_FAIL);
	CHECK(rtf_task_release(&t) == RTF_OK);
	CHECK(rtf_task_release(&t) == RTF_FAIL);
	CHECK(find(self, &task) == -1);
	puts("all is so");
	return 0;
}
