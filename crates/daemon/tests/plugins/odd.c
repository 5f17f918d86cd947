/*
 * A plugin that does whatever its name says, so that tests see what the daemon makes of it. With -D
 * it is odd before it has a name.
 */
#include "punctual-plugin.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct odd {
	char name[32];
	uint32_t processor;
	uint64_t spec;
	uint32_t threads;
};

static int is(const void *self, const char *name)
{
	return strcmp(((const struct odd *)self)->name, name) == 0;
}

static void *init(const struct punctual_configuration *configuration, char *error, size_t room)
{
	struct odd *self = calloc(1, sizeof *self);

	snprintf(self->name, sizeof self->name, "%s", configuration->name);
	self->processor = configuration->processors[0];
	if (is(self, "silent-init") || is(self, "failing-init")) {
		if (is(self, "failing-init"))
			snprintf(error, room, "no %s:\nnever", "luck");
		free(self);
		return NULL;
	}
	if (is(self, "checks-configuration") &&
		(configuration->size != sizeof *configuration ||
			configuration->priority_min != 10 || configuration->priority_max != 20 ||
			configuration->processor_count != 2 || configuration->processors[1] != 3 ||
			configuration->threshold != 0.5 || configuration->exact != 1 ||
			configuration->least_runtime_ns != 1024)) {
		snprintf(error, room, "the configuration is not what it should be");
		free(self);
		return NULL;
	}
	return self;
}

static int accept_spec(void *self, const struct punctual_parameters *parameters,
	struct punctual_offer *offer, char *reason, size_t room)
{
	if (is(self, "refuses")) {
		memset(reason, 'x', room); /* No zero at the end. */
		return PUNCTUAL_PLUGIN_NO;
	}
	if (is(self, "refuses-silently"))
		return PUNCTUAL_PLUGIN_NO;
	if (is(self, "unknown-answer"))
		return 17;
	offer->processor = is(self, "foreign-processor") ? 4711 : ((struct odd *)self)->processor;
	offer->accepted_runtime_ns = is(self, "too-short")  ? parameters->runtime_ns - 1
				     : is(self, "too-long") ? parameters->desired_runtime_ns + 1
							    : parameters->runtime_ns;
	offer->ignored = is(self, "ignores-unasked");
	return is(self, "partial") ? PUNCTUAL_PLUGIN_PARTIAL : PUNCTUAL_PLUGIN_OK;
}

static int change(void *self, uint64_t spec, const struct punctual_parameters *parameters,
	struct punctual_offer *offer, char *reason, size_t room)
{
	(void)spec;
	return accept_spec(self, parameters, offer, reason, room);
}

static void schedule(void *self, uint64_t spec, const struct punctual_parameters *parameters,
	const struct punctual_offer *offer)
{
	(void)parameters, (void)offer;
	((struct odd *)self)->spec = spec;
}

static void release(void *self, uint64_t spec)
{
	if (((struct odd *)self)->spec == spec)
		((struct odd *)self)->spec = 0;
}

static int assignment(void *self, uint64_t spec, struct punctual_assignment *out)
{
	if (((struct odd *)self)->spec != spec)
		return -1;
	out->processor = is(self, "assigns-foreign") ? 4711 : ((struct odd *)self)->processor;
	out->policy = is(self, "unknown-policy") ? 3
		      : is(self, "deadline") || is(self, "short-deadline")
			      ? PUNCTUAL_PLUGIN_POLICY_DEADLINE
			      : PUNCTUAL_PLUGIN_POLICY_RR;
	out->priority = is(self, "too-urgent") ? 99 : 15;
	out->runtime_ns = is(self, "short-deadline") ? 1023 : 2000;
	out->deadline_ns = out->period_ns = 1000000;
	return 0;
}

static int shifted(void *self)
{
	return is(self, "shifts");
}

static size_t loads(void *self, struct punctual_load *loads, size_t room)
{
	loads[0] = (struct punctual_load){.processor = ((struct odd *)self)->processor,
		.specs = ((struct odd *)self)->threads,
		.utilization = 0.25};
	return is(self, "many-loads") ? SIZE_MAX : room ? 1 : 0;
}

static void attach(void *self, uint64_t spec, uint32_t thread)
{
	if (((struct odd *)self)->spec == spec)
		((struct odd *)self)->threads += thread;
}

static void detach(void *self, uint64_t spec)
{
	(void)spec;
	((struct odd *)self)->threads = 0;
}

#ifndef SYMBOL
#define SYMBOL punctual_plugin
#endif
#ifndef VERSION
#define VERSION PUNCTUAL_PLUGIN_ABI
#endif
#ifndef SIZE
#define SIZE sizeof plugin
#endif
#ifndef CHANGE
#define CHANGE change
#endif

const struct punctual_plugin_description *SYMBOL(void)
{
	static const struct punctual_plugin_description plugin = {VERSION, SIZE, init, free,
		accept_spec, CHANGE, schedule, release, assignment, shifted, loads, attach, detach};

	(void)change;
#ifdef NOTHING
	return NULL;
#endif
	return &plugin;
}
