/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * ReTiF's interface, for programs that were written for it: compiled with this header and linked
 * with -lpunctual, they run under punctuald(8) unchanged. New programs use <punctual.h>.
 *
 * Both of ReTiF's vocabularies are here: that of its paper (rtf_spec_*, rtf_param_set_*,
 * RTF_SCHEDULE_FAIL, RTF_ACL_FAIL, RTF_CONNECTION_ERR) and that of its published code (rtf_task_*,
 * rtf_params_*, RTF_FAIL, RTF_ERROR). They are the same functions, and differ in one code: what the
 * rules do not allow is RTF_ACL_FAIL from the paper's functions and RTF_FAIL from the others.
 *
 * Times are microseconds. In parameters, 0 and "" are what was not declared. A time that is more
 * than 64 bits of nanoseconds is an error, as if it had not been admitted. After a failure,
 * punctual_last_error_message() of <punctual.h> says why.
 *
 * A process has one connection, which its threads share; they may call these functions at the same
 * time, for different tasks. Structures for tasks and parameters are plain data of the caller's,
 * without anything to free; fields that are not named here are the library's. A child of fork calls
 * rtf_connect before anything else, and has none of its parent's tasks: copies of them are refused.
 */
#ifndef RETIF_H
#define RETIF_H

#include <sched.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PLUGIN_MAX_NAME 32

/* Done; also where a recommended parameter was missing, which punctual_list_specs tells. */
#define RTF_OK 1
/* Not done: not admitted, not permitted, out of bounds, no such task or thread. */
#define RTF_FAIL 0
/* Not done, since the daemon cannot be asked. */
#define RTF_ERROR -1
/* The answers of ReTiF's plugins; no function here returns them in that meaning. */
#define RTF_PARTIAL 0
#define RTF_NO	    -1
/* The paper's names. */
#define RTF_SCHEDULE_FAIL  RTF_FAIL
#define RTF_SCHEDULER_FAIL RTF_FAIL
#define RTF_ACL_FAIL	   -2
#define RTF_CONNECTION_ERR RTF_ERROR

typedef int rtf_result_t;

enum CLIENT_STATE { EMPTY, CONNECTED, DISCONNECTED, ERROR };

struct rtf_params {
	uint64_t runtime;
	uint64_t des_runtime;
	uint64_t period;
	uint64_t deadline;
	uint32_t priority;
	char sched_plugin[PLUGIN_MAX_NAME];
	uint8_t ignore_admission;
};

/* What the paper calls a spec and the published code a task. */
struct rtf_task {
	/* The daemon's number for it, as far as it fits. */
	uint32_t task_id;
	/* How many jobs have missed their deadlines since rtf_task_start. */
	uint32_t dmiss;
	/* The accepted runtime. */
	uint64_t acc_runtime;
	uint64_t private_spec;
	/* What was declared. */
	struct rtf_params p;
	/* The next release and the absolute deadline of the job at hand, on CLOCK_MONOTONIC. */
	struct timespec at;
	struct timespec dl;
	uint64_t private_loop[4];
	uint64_t private_owner;
};
#define rtf_spec rtf_task

#ifdef __cplusplus
#define RTF_PARAM_INIT (rtf_params{})
#define RTF_TASK_INIT  (rtf_task{})
#else
#define RTF_PARAM_INIT ((struct rtf_params){0})
#define RTF_TASK_INIT  ((struct rtf_task){0})
#endif
#define RTF_SPEC_INIT RTF_TASK_INIT

struct rtf_client_info {
	pid_t pid;
	int state;
};

struct rtf_plugin_info {
	char name[PLUGIN_MAX_NAME];
	/* How many processors it has. Programs know it by either name. */
	union {
		int cputot;
		int cpunum;
	};
};

struct rtf_task_info {
	pid_t tid;
	pid_t ppid;
	/* The kernel's, else the declared one, else 0. */
	int priority;
	/* In microseconds, rounded down. */
	int period;
	float util;
	/* The plugin's place in the list; -1: it is gone. */
	int pluginid;
};

struct rtf_cpu_info {
	int cpunum;
	/* What is left of the plugin's threshold. */
	float freeu;
	int ntask;
};

/* Nothing is declared. */
void rtf_params_init(struct rtf_params *p);

void rtf_params_set_runtime(struct rtf_params *p, uint64_t runtime);
uint64_t rtf_params_get_runtime(const struct rtf_params *p);
void rtf_params_set_des_runtime(struct rtf_params *p, uint64_t runtime);
uint64_t rtf_params_get_des_runtime(const struct rtf_params *p);
void rtf_params_set_period(struct rtf_params *p, uint64_t period);
uint64_t rtf_params_get_period(const struct rtf_params *p);
void rtf_params_set_deadline(struct rtf_params *p, uint64_t deadline);
uint64_t rtf_params_get_deadline(const struct rtf_params *p);
void rtf_params_set_priority(struct rtf_params *p, uint32_t priority);
uint32_t rtf_params_get_priority(const struct rtf_params *p);
/* The one plugin to ask. Of a longer name the first 31 bytes are taken. The getter fills
 * PLUGIN_MAX_NAME bytes at most. */
void rtf_params_set_scheduler(struct rtf_params *p, const char *sched_plugin);
void rtf_params_get_scheduler(const struct rtf_params *p, char *sched_plugin);
void rtf_params_ignore_admission(struct rtf_params *p, uint8_t ignore_admission);

/* The setters as the paper's Listing 1 spells them. */
void rtf_param_set_runtime(struct rtf_params *p, uint64_t runtime);
void rtf_param_set_des_runtime(struct rtf_params *p, uint64_t runtime);
void rtf_param_set_period(struct rtf_params *p, uint64_t period);
void rtf_param_set_deadline(struct rtf_params *p, uint64_t deadline);
void rtf_param_set_priority(struct rtf_params *p, uint32_t priority);
void rtf_param_set_scheduler(struct rtf_params *p, const char *sched_plugin);
void rtf_param_ignore_admission(struct rtf_params *p, uint8_t ignore_admission);

/* Connects the process, which all other functions below need. RTF_OK (also if it is connected
 * already) or RTF_CONNECTION_ERR. */
int rtf_connect(void);

/*
 * RTF_OK, RTF_SCHEDULE_FAIL, RTF_ACL_FAIL or RTF_CONNECTION_ERR. After a failed change all is as it
 * was.
 */
int rtf_spec_create(struct rtf_spec *s, const struct rtf_params *p);
int rtf_spec_change(struct rtf_spec *s, const struct rtf_params *p);
/* The PID or TID of the thread to schedule; 0: the calling thread. */
int rtf_spec_attach(struct rtf_spec *s, pid_t thread);
int rtf_spec_detach(struct rtf_spec *s);
int rtf_spec_release(struct rtf_spec *s);
uint64_t rtf_spec_get_accepted_runtime(const struct rtf_spec *s);

/* The same, with RTF_OK, RTF_FAIL or RTF_ERROR. */
void rtf_task_init(struct rtf_task *t);
int rtf_task_create(struct rtf_task *t, const struct rtf_params *p);
int rtf_task_change(struct rtf_task *t, const struct rtf_params *p);
int rtf_task_attach(struct rtf_task *t, pid_t pid);
int rtf_task_detach(struct rtf_task *t);
int rtf_task_release(struct rtf_task *t);
uint64_t rtf_task_get_accepted_runtime(const struct rtf_task *t);

/* The first job is released now. */
void rtf_task_start(struct rtf_task *t);
/* The job at hand is done; sleeps until the release of the next one, a period after the last
 * release. */
void rtf_task_wait_period(struct rtf_task *t);

/* How many clients, plugins and tasks there are, or RTF_ERROR. */
int rtf_connections_info(void);
int rtf_plugins_info(void);
int rtf_tasks_info(void);

/*
 * About the one at place `desc` (and processor at place `cpu` of that plugin), from 0 on: RTF_OK,
 * RTF_FAIL where there is none, or RTF_ERROR. Each asks the daemon anew, so places may have shifted
 * since they were counted.
 */
int rtf_connection_info(unsigned int desc, struct rtf_client_info *data);
int rtf_plugin_info(unsigned int desc, struct rtf_plugin_info *data);
int rtf_plugin_cpu_info(unsigned int desc, unsigned int cpu, struct rtf_cpu_info *data);
int rtf_task_info(unsigned int desc, struct rtf_task_info *data);

#ifdef __cplusplus
}
#endif

#endif
