/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Begin, flush and end without files and threads: the caller's sink takes everything, when the
 * caller asks for it.
 */
#include "core.h"

#include <string.h>

static struct {
	struct punctual_trace_sink sink;
	uint32_t producers;
	uint64_t errors;
	int begun;
} trace;

static int no_trace(void)
{
	return punctual_trace_fail(PUNCTUAL_TRACE_STATE, "no trace has begun", NULL, NULL,
		"call punctual_trace_begin first");
}

int punctual_trace_begin(const struct punctual_trace_config *wanted)
{
	struct punctual_trace_config config = *wanted;
	int result;

	if (trace.begun)
		return punctual_trace_fail(PUNCTUAL_TRACE_STATE, "a trace has already begun", NULL,
			NULL, "end it first: a program has one trace at a time");
	result = punctual_trace_check(&config);
	if (result != PUNCTUAL_TRACE_OK)
		return result;
	if (!config.sink.metadata || !config.sink.packet)
		return punctual_trace_fail(PUNCTUAL_TRACE_INVALID, "the sink has no function for",
			config.sink.metadata ? "packets" : "metadata", NULL, "give it both");
	if (!config.memory)
		return punctual_trace_fail(PUNCTUAL_TRACE_MEMORY,
			"there is no memory: none was given, and there is no heap", NULL, NULL,
			"give config.memory");
	punctual_trace_open(&config);
	result = punctual_trace_look(&config);
	if (result == PUNCTUAL_TRACE_OK && (punctual_trace_write_env(&config) != 0 ||
						   punctual_trace_write_layout(&config) != 0))
		result =
			punctual_trace_fail(PUNCTUAL_TRACE_IO, "the sink did not take the metadata",
				NULL, NULL, "find out why its function did not return 0");
	if (result != PUNCTUAL_TRACE_OK) {
		(void)punctual_trace_close();
		punctual_trace_forget();
		return result;
	}
	trace.sink = config.sink;
	trace.producers = config.producers;
	trace.errors = 0;
	trace.begun = 1;
	return PUNCTUAL_TRACE_OK;
}

/* Returns whether the sink took everything. */
static int drain_all(int last)
{
	int all = 1;

	for (uint32_t producer = 0; producer < trace.producers; producer++) {
		uint32_t handed;

		if (!punctual_trace_drain(producer, &trace.sink, last, &handed)) {
			trace.errors++;
			all = 0;
		}
	}
	return all;
}

int punctual_trace_flush(void)
{
	if (!trace.begun)
		return no_trace();
	return drain_all(0)
		       ? PUNCTUAL_TRACE_OK
		       : punctual_trace_fail(PUNCTUAL_TRACE_IO, "the sink did not take a packet",
				 NULL, NULL, "the packet is kept; flush again");
}

struct punctual_trace_statistics punctual_trace_get_statistics(void)
{
	struct punctual_trace_statistics sum = punctual_trace_sum(0);

	sum.write_errors = trace.begun ? trace.errors : 0;
	return sum;
}

int punctual_trace_end(struct punctual_trace_statistics *statistics)
{
	struct punctual_trace_statistics sum;

	if (!trace.begun)
		return no_trace();
	(void)punctual_trace_close();
	if (drain_all(1)) {
		punctual_trace_account();
		(void)drain_all(1);
	}
	sum = punctual_trace_sum(1);
	sum.write_errors = trace.errors;
	punctual_trace_forget();
	trace.begun = 0;
	if (statistics)
		*statistics = sum;
	return trace.errors
		       ? punctual_trace_fail(PUNCTUAL_TRACE_IO, "the sink did not take a packet",
				 NULL, NULL, "the statistics count the events it did not take")
		       : PUNCTUAL_TRACE_OK;
}
