/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A little framework that traces itself, or, with WITHOUT_CALLS, does not even say so: for off.sh.
 */
#ifndef WITHOUT_CALLS
#include "punctual/trace.h"
#define CALL(call) call
#else
#define CALL(call) ((void)0)
#endif

#include <stdint.h>

struct channel {
	uint32_t pushes;
	uint16_t id;
};

struct task {
	void (*run)(struct task *task);
	uint32_t instances;
	uint16_t id;
};

int begin(void);
void push(struct channel *channel, struct task *task);
void execute(uint32_t executor, struct task *task);
int end(void);

int begin(void)
{
#ifndef WITHOUT_CALLS
	struct punctual_trace_config config = {0};

	config.producers = 1;
	config.folder = "trace";
	if (punctual_trace_begin(&config) != PUNCTUAL_TRACE_OK)
		return punctual_trace_message()[0];
#endif
	CALL(punctual_trace_set_producer(0));
	return 0;
}

void push(struct channel *channel, struct task *task)
{
	CALL(punctual_trace_push(channel->id, channel->pushes));
	channel->pushes++;
	CALL(punctual_trace_activation(task->id, task->instances));
	task->instances++;
}

void execute(uint32_t executor, struct task *task)
{
	const uint32_t instance = task->instances;

	(void)executor;
	(void)instance;
	CALL(punctual_trace_start(task->id, instance));
	CALL(punctual_trace_push_by(executor, task->id, instance));
	CALL(punctual_trace_activation_by(executor, task->id, instance));
	CALL(punctual_trace_start_by(executor, task->id, instance));
	task->run(task);
	CALL(punctual_trace_stop_by(executor, task->id, instance));
	CALL(punctual_trace_stop(task->id, instance));
	CALL(punctual_trace_count(task->id, instance));
	CALL(punctual_trace_count_by(executor, task->id, instance));
}

int end(void)
{
#ifndef WITHOUT_CALLS
	struct punctual_trace_statistics statistics;

	if (punctual_trace_flush() != PUNCTUAL_TRACE_OK ||
		punctual_trace_end(&statistics) != PUNCTUAL_TRACE_OK ||
		punctual_trace_get_statistics().discarded)
		return (int)statistics.discarded;
#endif
	return 0;
}
