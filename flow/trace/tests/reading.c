/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define _POSIX_C_SOURCE 200809L

#include "reading.h"
#include "test.h"

#include <string.h>
#include <sys/wait.h>

void remove_trace(const char *folder)
{
	char command[512];

	(void)snprintf(command, sizeof command, "rm -rf '%s'", folder);
	CHECK(system(command) == 0, "%s", command);
}

static int kind_of(const char *name)
{
	static const char *const names[] = {"push", "activation", "start", "stop"};

	for (int kind = 0; kind < 4; kind++) {
		if (strcmp(name, names[kind]) == 0)
			return kind;
	}
	return -1;
}

/* `channel = ( "img" : container = 3 )`, `task = ( <unknown> : container = 3 )` or, without names,
 * `task = 3`. */
static int parse_object(const char *text, struct seen *seen)
{
	const char *const container = strstr(text, " : container = ");
	const char *const value = strstr(text, " = ");
	const char *begin;

	seen->name[0] = '\0';
	if (!value)
		return 0;
	if (!container)
		return sscanf(value, " = %u }", &seen->object) == 1;
	begin = strchr(text, '"');
	if (begin && begin < container) {
		const size_t length = (size_t)(container - begin) - 2;

		CHECK(length < sizeof seen->name, "%s", text);
		memcpy(seen->name, begin + 1, length);
		seen->name[length] = '\0';
	}
	return sscanf(container, " : container = %u ) }", &seen->object) == 1;
}

static int parse(const char *line, struct seen *seen)
{
	unsigned long long ticks;
	char kind[16];
	int object = 0;
	int known;

	if (sscanf(line, "[%llu] %15[a-z]: { producer = %u, zero = 0 }, { number = %u, %n", &ticks,
		    kind, &seen->producer, &seen->number, &object) != 4)
		return 0;
	known = kind_of(kind);
	if (!object || known < 0)
		return 0;
	seen->ticks = ticks;
	seen->kind = (enum kind)known;
	return parse_object(line + object, seen);
}

static void read_events(struct reading *reading, FILE *text)
{
	size_t room = 0;
	char line[512];

	while (fgets(line, sizeof line, text)) {
		if (reading->count == room) {
			room = room ? 2 * room : 1024;
			reading->events = realloc(reading->events, room * sizeof *reading->events);
			CHECK(reading->events, "no memory for %lu events", (unsigned long)room);
		}
		CHECK(parse(line, &reading->events[reading->count]), "%s", line);
		reading->count++;
	}
}

static void read_complaints(struct reading *reading, FILE *text)
{
	char line[1024];

	while (fgets(line, sizeof line, text)) {
		unsigned long long discarded;

		if (sscanf(line, "WARNING: Tracer discarded %llu event", &discarded) == 1)
			reading->discarded += discarded;
		else if (strstr(line, "Tracer may have discarded events"))
			reading->uncounted++;
		else if (line[0] != '\n') {
			fputs(line, stderr);
			reading->complaints++;
		}
	}
}

struct reading read_trace(const char *folder)
{
	struct reading reading = {0};
	char command[1024];
	char said[512];
	FILE *text;
	int status;

	if (system("command -v babeltrace2 >/dev/null 2>&1") != 0) {
		puts("SKIPPED: there is no babeltrace2 here");
		exit(77);
	}
	(void)snprintf(said, sizeof said, "%s.said", folder);
	(void)snprintf(command, sizeof command, "babeltrace2 --clock-cycles --no-delta '%s' 2>'%s'",
		folder, said);
	text = popen(command, "r");
	CHECK(text, "%s", command);
	read_events(&reading, text);
	status = pclose(text);
	text = fopen(said, "r");
	CHECK(text, "%s", said);
	read_complaints(&reading, text);
	(void)fclose(text);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s: status %d", command, status);
	return reading;
}

void free_reading(struct reading *reading)
{
	free(reading->events);
	reading->events = NULL;
	reading->count = 0;
}

int read_count(const struct reading *reading, size_t first, struct count *count)
{
	uint64_t note = 0;

	if (reading->count < 4 || first > reading->count - 4)
		return 0;
	for (unsigned part = 0; part < 4; part++) {
		const struct seen *const seen = &reading->events[first + part];

		if (seen->kind != PUSH || seen->object != 65535 ||
			seen->producer != reading->events[first].producer)
			return 0;
		note |= (uint64_t)seen->number << 14 * part;
	}
	count->channel = (uint32_t)(note & 0xffff);
	count->count = (uint32_t)(note >> 16 & UINT32_MAX);
	return note >> 48 == 1;
}
