/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Whether a configuration makes sense, and what its zeros stand for.
 */
#include "core.h"

static int invalid(const char *what, const char *on, const char *why)
{
	return punctual_trace_fail(PUNCTUAL_TRACE_INVALID, what, on, why);
}

/* Each has a name, and a number of its own. */
static int check_names(const char *of_what, const struct punctual_trace_name *names, size_t count)
{
	if (count && !names)
		return invalid("no table of", of_what, "its count is not 0");
	if (count > UINT16_MAX + 1u)
		return invalid("too many", of_what, "events have room for numbers up to 65,535");
	for (size_t i = 0; i < count; i++) {
		if (!names[i].name || !names[i].name[0])
			return invalid("a name is missing in the table of", of_what, NULL);
		for (size_t before = 0; before < i; before++) {
			if (names[before].id == names[i].id)
				return invalid("two have the same number in the table of", of_what, names[i].name);
		}
	}
	return PUNCTUAL_TRACE_OK;
}

int punctual_trace_check(struct punctual_trace_config *config)
{
	int result;

	if (!config->ticks_per_second)
		config->ticks_per_second = 1000000000u;
	if (!config->packet_size)
		config->packet_size = 4096;
	if (!config->packets)
		config->packets = 256;

	result = check_names("tasks", config->tasks, config->task_count);
	if (result == PUNCTUAL_TRACE_OK)
		result = check_names("channels", config->channels, config->channel_count);
	if (result != PUNCTUAL_TRACE_OK)
		return result;
	if (config->connection_count && !config->connections)
		return invalid("no table of", "connections", "its count is not 0");
	if (config->producers == 0 || config->producers < config->executors)
		return invalid("producers", "are too few", "at least one, and each executor is one");
	if (config->packet_size < 128 || config->packet_size > 131072 || config->packet_size % 64)
		return invalid("packet_size", "is out of range", "a multiple of 64, from 128 to 131,072");
	if (config->packets < 2 || config->packets > 1u << 30 || config->packets & (config->packets - 1u))
		return invalid("packets", "are out of range", "a power of two, from 2 to 2^30");
	if (config->ticks_per_second > 10000000000u || config->epoch_ns >= 1000000000u)
		return invalid("the clock", "is out of range", "at most 10^10 ticks per second, and epoch_ns below 10^9");
	/* The size of the memory must be a number, on machines of 16 bits too. */
	if ((uint64_t)config->packet_size * config->packets + 128u > (SIZE_MAX - 64u) / config->producers)
		return punctual_trace_fail(PUNCTUAL_TRACE_MEMORY, "producers, packets and packet_size", "are too much", "no memory is that large");
	if (config->memory && config->memory_size < PUNCTUAL_TRACE_MEMORY_SIZE(config->producers, config->packet_size, config->packets))
		return punctual_trace_fail(PUNCTUAL_TRACE_MEMORY, "memory_size", "is too small", "see PUNCTUAL_TRACE_MEMORY_SIZE");
	return PUNCTUAL_TRACE_OK;
}
