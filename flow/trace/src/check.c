/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Checks a configuration, and replaces its zeros by defaults.
 */
#include "core.h"

static int invalid(const char *what, const char *on, const char *why, const char *remedy)
{
	return punctual_trace_fail(PUNCTUAL_TRACE_INVALID, what, on, why, remedy);
}

static int no_table(const char *of_what)
{
	return invalid(
		"no table of", of_what, "its count is not 0", "give the table, or the count 0");
}

/* Whether readers can show a name, and users can enter it. */
static int is_name(const char *name)
{
	const char *last = name;

	if (*name == ' ')
		return 0;
	for (; *name; name++) {
		if ((unsigned char)*name < ' ' || *name == 0x7f || *name == ',')
			return 0;
		last = name;
	}
	return *last != ' ';
}

/* Checks that each has a name, and a unique number. */
static int check_names(const char *of_what, const struct punctual_trace_name *names, size_t count)
{
	if (count && !names)
		return no_table(of_what);
	if (count > UINT16_MAX + 1u)
		return invalid("too many", of_what, "numbers in events go up to 65,535",
			"leave some out: events may have numbers that are not in the table");
	for (size_t i = 0; i < count; i++) {
		if (!names[i].name || !names[i].name[0])
			return invalid("a name is missing in the table of", of_what, NULL,
				"give each one");
		if (!is_name(names[i].name))
			return invalid(
				"a control character, a comma or a space at an end in the name",
				names[i].name, NULL, "use others");
		for (size_t before = 0; before < i; before++) {
			if (names[before].id == names[i].id)
				return invalid("two have the same number in the table of", of_what,
					names[i].name, "give each its own");
		}
	}
	return PUNCTUAL_TRACE_OK;
}

/* Pushes on this number are notes. */
static int is_channel(uint16_t number)
{
	return number != PUNCTUAL_TRACE_NO_CHANNEL;
}

static int no_channel(const char *of_what)
{
	return invalid("a channel has the number 65,535 in the table of", of_what,
		"this number means no channel", "use a lower one");
}

static int check_channels(const struct punctual_trace_name *channels, size_t count)
{
	const int result = check_names("channels", channels, count);

	if (result != PUNCTUAL_TRACE_OK)
		return result;
	for (size_t i = 0; i < count; i++) {
		if (!is_channel(channels[i].id))
			return no_channel("channels");
	}
	return PUNCTUAL_TRACE_OK;
}

/* Checks that the fields of a connection are consistent. */
static int check_connections(const struct punctual_trace_connection *connections, size_t count)
{
	const uint32_t flags =
		PUNCTUAL_TRACE_UNSYNCHRONISED | PUNCTUAL_TRACE_OPTIONAL | PUNCTUAL_TRACE_FINAL;

	if (count && !connections)
		return no_table("connections");
	for (size_t i = 0; i < count; i++) {
		const struct punctual_trace_connection *const connection = &connections[i];

		if (!is_channel(connection->channel))
			return no_channel("connections");
		if (connection->threshold == 0 && (connection->flags || connection->pending))
			return invalid("flags or pending pushes in the table of", "connections",
				"the input has no threshold", "set one, or leave them out");
		if (connection->flags & ~flags)
			return invalid("unknown flags in the table of", "connections", NULL,
				"use those of enum punctual_trace_input");
		if (connection->flags & PUNCTUAL_TRACE_UNSYNCHRONISED && connection->pending)
			return invalid("pending pushes in the table of", "connections",
				"only synchronised inputs have them", "leave them out");
	}
	return PUNCTUAL_TRACE_OK;
}

static int check_barriers(const struct punctual_trace_barrier *barriers, size_t count)
{
	if (count && !barriers)
		return no_table("barriers");
	for (size_t i = 0; i < count; i++) {
		if (!is_channel(barriers[i].channel))
			return no_channel("barriers");
		if (barriers[i].arrived >= barriers[i].count)
			return invalid("a count is too low in the table of", "barriers", NULL,
				"make it at least 1, and more than the pending pushes");
		for (size_t before = 0; before < i; before++) {
			if (barriers[before].channel == barriers[i].channel)
				return invalid("two have the same channel in the table of",
					"barriers", NULL, "leave out one");
		}
	}
	return PUNCTUAL_TRACE_OK;
}

static int check_graph(const struct punctual_trace_config *config)
{
	const int result = check_connections(config->connections, config->connection_count);

	return result == PUNCTUAL_TRACE_OK ? check_barriers(config->barriers, config->barrier_count)
					   : result;
}

int punctual_trace_look(const struct punctual_trace_config *config)
{
	if (!config->look)
		return PUNCTUAL_TRACE_OK;
	config->look(config->look_context);
	return check_graph(config);
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
		result = check_channels(config->channels, config->channel_count);
	/* Otherwise it is not complete yet. */
	if (result == PUNCTUAL_TRACE_OK && !config->look)
		result = check_graph(config);
	if (result != PUNCTUAL_TRACE_OK)
		return result;
	if (config->producers == 0 || config->producers < config->executors)
		return invalid("producers", "are too few", "each executor is one",
			"give at least one, and at least as many as executors");
	if (config->no_executors && config->executors)
		return invalid("no_executors", "contradicts the number of executors", NULL,
			"leave out one of them");
	if (config->packet_size < 128 || config->packet_size > 131072 || config->packet_size % 64)
		return invalid("packet_size", "is out of range", NULL,
			"give a multiple of 64, from 128 to 131,072");
	if (config->packets < 2 || config->packets > 1u << 30 ||
		config->packets & (config->packets - 1u))
		return invalid(
			"packets", "are out of range", NULL, "give a power of two, from 2 to 2^30");
	if (config->ticks_per_second > 10000000000u || config->epoch_ns >= 1000000000u)
		return invalid("the clock", "is out of range", NULL,
			"give at most 10^10 ticks_per_second, and an epoch_ns below 10^9");
	/* The size of the memory must fit a size_t, even on 16-bit machines. */
	if ((uint64_t)config->packet_size * config->packets + 128u >
		(SIZE_MAX - 64u) / config->producers)
		return punctual_trace_fail(PUNCTUAL_TRACE_MEMORY,
			"producers, packets and packet_size", "are too large",
			"they exceed the address space", "make one of them smaller");
	if (config->memory && config->memory_size < PUNCTUAL_TRACE_MEMORY_SIZE(config->producers,
							    config->packet_size, config->packets))
		return punctual_trace_fail(PUNCTUAL_TRACE_MEMORY, "memory_size", "is too small",
			NULL,
			"give PUNCTUAL_TRACE_MEMORY_SIZE(producers, packet_size, packets) bytes");
	return PUNCTUAL_TRACE_OK;
}
