/*
 * An example plugin: rate monotonic for harmonic periods.
 *
 * Where of any two periods on a processor one divides the other, rate-monotonic priorities meet all
 * deadlines exactly if the processor is not overloaded: the bound is 1 and not ln 2, so the sum of
 * utilizations is an exact test, in constant time. What is not harmonic is refused. Specs go to the
 * first processor where they fit (first fit).
 *
 *     cc -std=c11 -O2 -fPIC -shared -I crates/daemon/include -o harmonic.so
 * crates/daemon/examples/plugin/harmonic.c
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include "punctual-plugin.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* A share of a processor in units of 2^-64, rounded up: sums are exact, and never too low. */
typedef unsigned __int128 share_t;

#define WHOLE ((share_t)1 << 64)

/* No spec: the daemon counts them up, and does not come this far. */
#define NONE UINT64_MAX

struct spec {
	uint64_t number;
	uint64_t period_ns;
	share_t share;
	uint32_t processor;
};

struct harmonic {
	uint32_t *processors;
	uint32_t processor_count;
	uint32_t priority_min, priority_max;
	share_t threshold;
	struct spec *specs;
	size_t count, room;
	int shifted;
};

static share_t share_of(uint64_t runtime_ns, uint64_t period_ns)
{
	return (((share_t)runtime_ns << 64) + period_ns - 1) / period_ns;
}

__attribute__((format(printf, 3, 4))) static void say(
	char *text, size_t room, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, room, format, arguments);
	va_end(arguments);
}

static void *init(const struct punctual_configuration *configuration, char *error, size_t room)
{
	struct harmonic *self = calloc(1, sizeof *self);
	uint32_t *processors = calloc(configuration->processor_count, sizeof *processors);

	if (!self || !processors) {
		say(error, room, "there is no memory");
		free(self);
		free(processors);
		return NULL;
	}
	for (uint32_t at = 0; at < configuration->processor_count; at++)
		processors[at] = configuration->processors[at];
	self->processors = processors;
	self->processor_count = configuration->processor_count;
	self->priority_min = configuration->priority_min;
	self->priority_max = configuration->priority_max;
	/* 2^-44 more than written, since 0.7 is no binary fraction; but never more than a
	 * processor. */
	self->threshold = (share_t)(configuration->threshold * 0x1p64) + ((share_t)1 << 20);
	if (self->threshold > WHOLE)
		self->threshold = WHOLE;
	return self;
}

static void destroy(void *instance)
{
	struct harmonic *self = instance;

	free(self->processors);
	free(self->specs);
	free(self);
}

/* Why a spec does not fit a processor, in the order in which it is looked at. */
enum fit { FITS, NOT_HARMONIC, TOO_MANY_PERIODS, OVERLOADED };

/* Whether a spec fits a processor, `replacing` not counted; and how much of the processor is taken.
 */
static enum fit fits(const struct harmonic *self, uint32_t processor, uint64_t period_ns,
	share_t share, uint64_t replacing, share_t *taken)
{
	uint32_t levels = 1; /* different periods, each of which needs a priority of its own */

	*taken = 0;
	for (size_t at = 0; at < self->count; at++) {
		const struct spec *spec = &self->specs[at];
		int first = 1;

		if (spec->processor != processor || spec->number == replacing)
			continue;
		*taken += spec->share;
		if (spec->period_ns % period_ns && period_ns % spec->period_ns)
			return NOT_HARMONIC;
		for (size_t before = 0; before < at && first; before++)
			first = self->specs[before].processor != processor ||
				self->specs[before].number == replacing ||
				self->specs[before].period_ns != spec->period_ns;
		if (first && spec->period_ns != period_ns)
			levels++;
	}
	if (levels > self->priority_max - self->priority_min + 1)
		return TOO_MANY_PERIODS;
	return *taken + share > self->threshold ? OVERLOADED : FITS;
}

static int consider(struct harmonic *self, uint64_t replacing,
	const struct punctual_parameters *parameters, struct punctual_offer *offer, char *reason,
	size_t room)
{
	static const char *const why[] = {
		[NOT_HARMONIC] =
			"its period neither divides nor is a multiple of all that are there",
		[TOO_MANY_PERIODS] = "there are as many different periods as priorities",
		[OVERLOADED] = "it would be overloaded",
	};
	const uint32_t needed = PUNCTUAL_PLUGIN_RUNTIME | PUNCTUAL_PLUGIN_PERIOD;
	enum fit fit = FITS;
	share_t share, taken = 0;
	uint32_t at;

	if ((parameters->declared & needed) != needed) {
		say(reason, room, "it needs runtime_ns and period_ns");
		return PUNCTUAL_PLUGIN_NO;
	}
	if ((parameters->declared & PUNCTUAL_PLUGIN_DEADLINE) &&
		parameters->deadline_ns < parameters->period_ns) {
		say(reason, room, "it takes deadlines at the end of the period only");
		return PUNCTUAL_PLUGIN_NO;
	}
	share = share_of(parameters->runtime_ns, parameters->period_ns);
	for (at = 0; at < self->processor_count; at++) {
		fit = fits(self, self->processors[at], parameters->period_ns, share, replacing,
			&taken);
		if (fit == FITS)
			break;
	}
	if (fit != FITS && !parameters->ignore_admission) {
		say(reason, room,
			"harmonic test: on processor %u %s (%.6f are taken, %.6f are needed)",
			self->processors[self->processor_count - 1], why[fit],
			(double)taken / (double)WHOLE, (double)share / (double)WHOLE);
		return PUNCTUAL_PLUGIN_NO;
	}
	offer->processor = self->processors[fit == FITS ? at : 0];
	offer->accepted_runtime_ns = parameters->runtime_ns;
	offer->ignored = fit != FITS;
	if (fit == FITS && (parameters->declared & PUNCTUAL_PLUGIN_DESIRED_RUNTIME)) {
		/* As much of what is desired as the processor has. What is left is less than 2^64,
		 * or the period's whole. */
		share_t left = self->threshold - taken;
		uint64_t most = left >= WHOLE ? parameters->period_ns
					      : (uint64_t)((left * parameters->period_ns) >> 64);

		if (most > parameters->desired_runtime_ns)
			most = parameters->desired_runtime_ns;
		if (most > parameters->runtime_ns)
			offer->accepted_runtime_ns = most;
	}
	return PUNCTUAL_PLUGIN_OK;
}

static int accept_spec(void *self, const struct punctual_parameters *parameters,
	struct punctual_offer *offer, char *reason, size_t room)
{
	return consider(self, NONE, parameters, offer, reason, room);
}

static int change(void *self, uint64_t number, const struct punctual_parameters *parameters,
	struct punctual_offer *offer, char *reason, size_t room)
{
	return consider(self, number, parameters, offer, reason, room);
}

static void schedule(void *instance, uint64_t number, const struct punctual_parameters *parameters,
	const struct punctual_offer *offer)
{
	struct harmonic *self = instance;

	if (self->count == self->room) {
		size_t room = self->room ? 2 * self->room : 16;
		struct spec *specs = realloc(self->specs, room * sizeof *specs);

		if (!specs)
			return; /* Then it has no assignment, and the daemon refuses it. */
		self->specs = specs;
		self->room = room;
	}
	self->specs[self->count++] = (struct spec){
		.number = number,
		.period_ns = parameters->period_ns,
		.share = share_of(offer->accepted_runtime_ns, parameters->period_ns),
		.processor = offer->processor,
	};
	self->shifted = 1;
}

static void release(void *instance, uint64_t number)
{
	struct harmonic *self = instance;

	for (size_t at = 0; at < self->count; at++) {
		if (self->specs[at].number != number)
			continue;
		self->specs[at] = self->specs[--self->count];
		self->shifted = 1;
		return;
	}
}

/* The shortest period has the highest priority, the next one the one below, and so on; where they
 * do not suffice, the lowest is shared. */
static int assignment(void *instance, uint64_t number, struct punctual_assignment *out)
{
	const struct harmonic *self = instance;
	const struct spec *spec = NULL;
	uint32_t shorter = 0;

	for (size_t at = 0; at < self->count && !spec; at++)
		if (self->specs[at].number == number)
			spec = &self->specs[at];
	if (!spec)
		return -1;
	for (size_t at = 0; at < self->count; at++) {
		const struct spec *other = &self->specs[at];
		int first =
			other->processor == spec->processor && other->period_ns < spec->period_ns;

		for (size_t before = 0; before < at && first; before++)
			first = self->specs[before].processor != spec->processor ||
				self->specs[before].period_ns != other->period_ns;
		shorter += (uint32_t)first;
	}
	if (shorter > self->priority_max - self->priority_min)
		shorter = self->priority_max - self->priority_min;
	out->processor = spec->processor;
	out->policy = PUNCTUAL_PLUGIN_POLICY_FIFO;
	out->priority = self->priority_max - shorter;
	return 0;
}

static int shifted(void *instance)
{
	struct harmonic *self = instance;
	int shifted = self->shifted;

	self->shifted = 0;
	return shifted;
}

static size_t loads(void *instance, struct punctual_load *loads, size_t room)
{
	const struct harmonic *self = instance;
	size_t count = room < self->processor_count ? room : self->processor_count;

	for (size_t at = 0; at < count; at++) {
		share_t taken = 0;

		loads[at] = (struct punctual_load){.processor = self->processors[at]};
		for (size_t spec = 0; spec < self->count; spec++) {
			if (self->specs[spec].processor != self->processors[at])
				continue;
			taken += self->specs[spec].share;
			loads[at].specs++;
		}
		loads[at].utilization = (double)taken / (double)WHOLE;
	}
	return count;
}

const struct punctual_plugin_description *punctual_plugin(void)
{
	static const struct punctual_plugin_description plugin = {
		.abi_version = PUNCTUAL_PLUGIN_ABI,
		.size = sizeof plugin,
		.init = init,
		.destroy = destroy,
		.accept = accept_spec,
		.change = change,
		.schedule = schedule,
		.release = release,
		.assignment = assignment,
		.shifted = shifted,
		.loads = loads,
	};

	return &plugin;
}
