/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The file `metadata`: TSDL, which describes the packets to readers of CTF, with the names of tasks
 * and channels and the properties of the whole trace.
 */
#include "core.h"

/* Buffered text on its way to the sink, without a heap. */
struct text {
	const struct punctual_trace_sink *sink;
	int failed;
	size_t used;
	char piece[200];
};

static void send(struct text *text)
{
	if (text->used && !text->failed)
		text->failed =
			text->sink->metadata(text->sink->context, text->piece, text->used) != 0;
	text->used = 0;
}

static void put_character(struct text *text, char character)
{
	if (text->used == sizeof text->piece)
		send(text);
	text->piece[text->used++] = character;
}

static void put(struct text *text, const char *string)
{
	for (; *string; string++)
		put_character(text, *string);
}

static void put_number(struct text *text, uint64_t number)
{
	char digits[20];
	size_t count = 0;

	do
		digits[count++] = (char)('0' + number % 10u);
	while (number /= 10u);
	while (count)
		put_character(text, digits[--count]);
}

/* A string literal of TSDL, as in C. */
static void put_quoted(struct text *text, const char *string)
{
	put_character(text, '"');
	for (; *string; string++) {
		const unsigned char character = (unsigned char)*string;

		if (character < ' ' || character == 0x7f) {
			put_character(text, '\\');
			put_character(text, (char)('0' + (character >> 6)));
			put_character(text, (char)('0' + (character >> 3 & 7)));
			put_character(text, (char)('0' + (character & 7)));
			continue;
		}
		if (character == '"' || character == '\\')
			put_character(text, '\\');
		put_character(text, *string);
	}
	put_character(text, '"');
}

static void put_env(struct text *text, const char *key, const char *value)
{
	if (!value)
		return;
	put(text, "\t");
	put(text, key);
	put(text, " = ");
	put_quoted(text, value);
	put(text, ";\n");
}

static void put_key(struct text *text, const char *key, size_t number)
{
	put(text, "\t");
	put(text, key);
	put_number(text, number);
	put(text, " = ");
}

/* How an input counts: words after its channel and task. */
static void put_input(struct text *text, const struct punctual_trace_connection *connection)
{
	if (connection->threshold == 0)
		return;
	put(text, " threshold=");
	put_number(text, connection->threshold);
	put(text, connection->flags & PUNCTUAL_TRACE_UNSYNCHRONISED ? " unsynchronised"
								    : " synchronised");
	if (connection->flags & PUNCTUAL_TRACE_OPTIONAL)
		put(text, " optional");
	if (connection->flags & PUNCTUAL_TRACE_FINAL)
		put(text, " final");
	if (connection->pending) {
		put(text, " pending=");
		put_number(text, connection->pending);
	}
}

static void put_graph(struct text *text, const struct punctual_trace_config *config)
{
	for (size_t number = 0; number < config->connection_count; number++) {
		put_key(text, "connection_", number);
		put(text, "\"");
		put_number(text, config->connections[number].channel);
		put(text, " ");
		put_number(text, config->connections[number].task);
		put_input(text, &config->connections[number]);
		put(text, "\";\n");
	}
	if (config->connections_are_all)
		put_env(text, "connections", "all");
	for (size_t number = 0; number < config->barrier_count; number++) {
		put_key(text, "barrier_", number);
		put(text, "\"");
		put_number(text, config->barriers[number].channel);
		put(text, " ");
		put_number(text, config->barriers[number].count);
		put(text, " ");
		put_number(text, config->barriers[number].arrived);
		put(text, "\";\n");
	}
}

static void put_trace_and_env(struct text *text, const struct punctual_trace_config *config)
{
	put(text, "/* CTF 1.8 */\n\n/* A trace of a dataflow program by Punctual: pushes on "
		  "channels, activations, starts and stops of tasks. */\n\n");
	put(text, "trace {\n\tmajor = 1;\n\tminor = 8;\n\tbyte_order = ");
	put(text, PUNCTUAL_TRACE_BIG_ENDIAN ? "be" : "le");
	put(text, ";\n\tpacket.header := struct {\n"
		  "\t\tinteger { size = 32; align = 8; signed = false; base = 16; } magic;\n"
		  "\t\tinteger { size = 32; align = 8; signed = false; } stream_id;\n"
		  "\t};\n};\n\nenv {\n");
	put_env(text, "domain", "dataflow");
	put_env(text, "tracer_name", "punctual");
	put(text, "\ttracer_major = 1;\n\ttracer_minor = 1;\n");
	put_env(text, "program", config->program);
	put_env(text, "platform", config->platform);
	put_env(text, "policy", config->policy);
	if (config->executors || config->no_executors) {
		put(text, "\texecutors = ");
		put_number(text, config->executors);
		put(text, ";\n");
	}
	for (uint32_t number = 0; number < config->producers; number++) {
		if (config->producer_names && config->producer_names[number]) {
			put_key(text, "producer_", number);
			put_quoted(text, config->producer_names[number]);
			put(text, ";\n");
		} else if (number < config->executors) {
			put_key(text, "producer_", number);
			put(text, "\"executor ");
			put_number(text, number);
			put(text, "\";\n");
		}
	}
	put_graph(text, config);
}

static void put_clock(struct text *text, const struct punctual_trace_config *config)
{
	put(text, "clock {\n\tname = monotonic;\n\tfreq = ");
	put_number(text, config->ticks_per_second);
	put(text, ";\n");
	if (config->epoch_s || config->epoch_ns) {
		/* Less than a second: below 2⁶⁴ for each clock of 18 GHz and less, and check() has
		 * no other. */
		put(text, "\toffset_s = ");
		put_number(text, config->epoch_s);
		put(text, ";\n\toffset = ");
		put_number(text, config->epoch_ns * config->ticks_per_second / 1000000000u);
		put(text, ";\n\tabsolute = TRUE;\n");
	}
	put(text, "};\n\n");
}

/* The type of an event's object: an enumeration, which must not be empty. */
static void put_names(
	struct text *text, const char *type, const struct punctual_trace_name *names, size_t count)
{
	if (count == 0)
		put(text, "typealias integer { size = 16; align = 1; signed = false; }");
	else {
		put(text, "typealias enum : integer { size = 16; align = 1; signed = false; } {\n");
		for (size_t i = 0; i < count; i++) {
			put(text, "\t");
			put_quoted(text, names[i].name);
			put(text, " = ");
			put_number(text, names[i].id);
			put(text, i + 1 < count ? ",\n" : "\n");
		}
		put(text, "}");
	}
	put(text, " := ");
	put(text, type);
	put(text, ";\n\n");
}

static void put_stream(struct text *text)
{
	static const char *const kinds[] = {"push", "activation", "start", "stop"};

	put(text, "stream {\n\tid = 0;\n\tpacket.context := struct {\n"
		  "\t\tinteger { size = 64; align = 8; signed = false; map = "
		  "clock.monotonic.value; } timestamp_begin;\n"
		  "\t\tinteger { size = 64; align = 8; signed = false; map = "
		  "clock.monotonic.value; } timestamp_end;\n"
		  "\t\tinteger { size = 32; align = 8; signed = false; } content_size;\n"
		  "\t\tinteger { size = 32; align = 8; signed = false; } packet_size;\n"
		  "\t\tinteger { size = 32; align = 8; signed = false; } packet_seq_num;\n"
		  "\t\tinteger { size = 32; align = 8; signed = false; } events_discarded;\n"
		  "\t\tinteger { size = 32; align = 8; signed = false; } producer;\n"
		  "\t\tinteger { size = 32; align = 8; signed = false; } zero;\n"
		  "\t};\n\tevent.header := struct {\n"
		  "\t\tinteger { size = 32; align = 8; signed = false; map = "
		  "clock.monotonic.value; } timestamp;\n"
		  "\t\tinteger { size = 2; align = 1; signed = false; } id;\n"
		  "\t};\n};\n");
	for (unsigned kind = 0; kind < 4; kind++) {
		put(text, "\nevent {\n\tid = ");
		put_number(text, kind);
		put(text, ";\n\tname = \"");
		put(text, kinds[kind]);
		put(text, "\";\n\tstream_id = 0;\n\tfields := struct {\n"
			  "\t\tinteger { size = 14; align = 1; signed = false; } number;\n\t\t");
		put(text, kind == 0 ? "channel_id channel" : "task_id task");
		put(text, ";\n\t};\n};\n");
	}
}

int punctual_trace_write_env(const struct punctual_trace_config *config)
{
	struct text text;

	text.sink = &config->sink;
	text.failed = 0;
	text.used = 0;
	put_trace_and_env(&text, config);
	send(&text);
	return text.failed;
}

int punctual_trace_write_layout(const struct punctual_trace_config *config)
{
	struct text text;

	text.sink = &config->sink;
	text.failed = 0;
	text.used = 0;
	put(&text, "};\n\n");
	put_clock(&text, config);
	put_names(&text, "channel_id", config->channels, config->channel_count);
	put_names(&text, "task_id", config->tasks, config->task_count);
	put_stream(&text);
	send(&text);
	return text.failed;
}
