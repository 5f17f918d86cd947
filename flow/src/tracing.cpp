// SPDX-License-Identifier: MIT OR Apache-2.0
#include "tracing.hpp"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

namespace punctual::flow {

#if PUNCTUAL_FLOW_TRACE

namespace {

const char *name_of(Policy policy) noexcept
{
	switch (policy) {
	case Policy::fifo:
		return "fifo";
	case Policy::lifo:
		return "lifo";
	case Policy::priority:
		return "priority";
	}
	return "";
}

// Memory for `count` elements until the end of the block; null if there is not enough.
template <typename Element> struct Array {
	explicit Array(std::size_t count) noexcept
	    : elements(static_cast<Element *>(std::calloc(count != 0 ? count : 1, sizeof(Element))))
	{
	}
	~Array()
	{
		std::free(elements);
	}
	Array(const Array &) = delete;
	Array &operator=(const Array &) = delete;
	Element *elements;
};

} // namespace

TraceClock Trace::clock;

// Describes the graph in the trace.
struct Trace::Tables {
	struct Size {
		std::size_t tasks = 0, channels = 0, inputs = 0, barriers = 0;
		unsigned producers;
		explicit Size(const Scheduler &scheduler) noexcept
		    : producers(scheduler.timer_number() + 2)
		{
			for (const Channel *channel = scheduler.channels_; channel != nullptr;
				channel = channel->next_) {
				++channels;
				barriers += channel->is_barrier_;
			}
			for (const Task *task = scheduler.tasks_; task != nullptr;
				task = task->next_) {
				++tasks;
				for (const Input *input = task->first_input_; input != nullptr;
					input = input->next_of_task_)
					++inputs;
			}
		}
	};
	struct Label {
		char text[16];
	};

	Scheduler &scheduler;
	const Size size;
	Array<punctual_trace_name> tasks, channels;
	Array<punctual_trace_connection> connections;
	Array<punctual_trace_barrier> barriers;
	Array<Label> labels;
	Array<const char *> producers;

	explicit Tables(Scheduler &of) noexcept
	    : scheduler(of), size(of), tasks(size.tasks), channels(size.channels),
	      connections(size.inputs), barriers(size.barriers), labels(size.producers),
	      producers(size.producers)
	{
	}
	bool there() const noexcept
	{
		return tasks.elements != nullptr && channels.elements != nullptr &&
		       connections.elements != nullptr && barriers.elements != nullptr &&
		       labels.elements != nullptr && producers.elements != nullptr;
	}
};

void Trace::describe(Tables &tables) noexcept
{
	const Scheduler &scheduler = tables.scheduler;
	punctual_trace_name *name = tables.channels.elements;
	for (const Channel *channel = scheduler.channels_; channel != nullptr;
		channel = channel->next_)
		*name++ = {channel->id(), channel->name()};
	name = tables.tasks.elements;
	for (const Task *task = scheduler.tasks_; task != nullptr; task = task->next_)
		*name++ = {task->id(), task->name()};
	const unsigned timer = scheduler.timer_number();
	for (unsigned producer = 0; producer < tables.size.producers; ++producer) {
		Tables::Label &label = tables.labels.elements[producer];
		if (producer < timer)
			std::snprintf(label.text, sizeof label.text,
				scheduler.executors_ != 0 ? "executor %u" : "caller", producer);
		else
			std::snprintf(label.text, sizeof label.text, "%s",
				producer == timer ? "timer" : "program");
		tables.producers.elements[producer] = label.text;
	}
}

void Trace::count_pushes(Tables &tables) noexcept
{
	const Scheduler &scheduler = tables.scheduler;
	punctual_trace_connection *connection = tables.connections.elements;
	for (const Task *task = scheduler.tasks_; task != nullptr; task = task->next_)
		for (const Input *input = task->first_input_; input != nullptr;
			input = input->next_of_task_) {
			const Arming &arming = input->arming_;
			std::uint32_t flags = 0;
			if (!arming.synchronised_)
				flags |= PUNCTUAL_TRACE_UNSYNCHRONISED;
			if (arming.optional_)
				flags |= PUNCTUAL_TRACE_OPTIONAL;
			if (arming.final_)
				flags |= PUNCTUAL_TRACE_FINAL;
			*connection++ = {input->channel_->id(), task->id(), arming.threshold_,
				flags, arming.synchronised_ ? input->pushes_ : 0};
		}
	punctual_trace_barrier *barrier = tables.barriers.elements;
	for (const Channel *channel = scheduler.channels_; channel != nullptr;
		channel = channel->next_)
		if (channel->is_barrier_)
			*barrier++ = {channel->id(), channel->count_, channel->arrived_};
}

// Called in punctual_trace_begin, when the program's own threads may already push. A push before
// this takes the lock is in the tables; a later one is traced.
void Trace::look_at_inputs(void *of_trace) noexcept
{
	Tables &tables = *static_cast<Tables *>(of_trace);
	Scheduler &scheduler = tables.scheduler;
	clock.begin([]() noexcept -> std::uint64_t { return punctual_flow_read_clock(); });
	Locked locked(scheduler.lock_);
	count_pushes(tables);
	for (Channel *channel = scheduler.channels_; channel != nullptr; channel = channel->next_)
		channel->object_.first_traced = channel->object_.number;
	for (Task *task = scheduler.tasks_; task != nullptr; task = task->next_)
		task->object_.first_traced = task->object_.number;
	scheduler.traced_ = true;
}

namespace {

bool has_trace(const char *folder, char *path, std::size_t size) noexcept
{
	std::snprintf(path, size, "%s/metadata", folder);
	return access(path, F_OK) == 0;
}

// The folder for a trace: that of the settings, or the first free one of FOLDER-2, FOLDER-3, … if
// an earlier start has traced there, of this process or another one. Null: no memory.
char *free_folder(const char *folder) noexcept
{
	const std::size_t size = std::strlen(folder) + 32;
	char *name = static_cast<char *>(std::malloc(size));
	char *path = static_cast<char *>(std::malloc(size));
	if (name != nullptr && path != nullptr) {
		std::snprintf(name, size, "%s", folder);
		for (unsigned start = 2; start != 0 && has_trace(name, path, size); ++start)
			std::snprintf(name, size, "%s-%u", folder, start);
	} else {
		std::free(name);
		name = nullptr;
	}
	std::free(path);
	return name;
}

} // namespace

Status Trace::begin(Scheduler &scheduler, const Settings &settings) noexcept
{
	Tables tables(scheduler);
	char *folder = free_folder(settings.trace);
	if (!tables.there() || folder == nullptr) {
		std::free(folder);
		return {Error::memory, "the trace"};
	}
	describe(tables);

	punctual_trace_config config = {};
	config.tasks = tables.tasks.elements;
	config.task_count = tables.size.tasks;
	config.channels = tables.channels.elements;
	config.channel_count = tables.size.channels;
	config.connections = tables.connections.elements;
	config.connection_count = tables.size.inputs;
	config.connections_are_all = true;
	config.barriers = tables.barriers.elements;
	config.barrier_count = tables.size.barriers;
	config.look = look_at_inputs;
	config.look_context = &tables;
	// `compare` takes only runs of one program for runs of one configuration.
	config.program =
		settings.program != nullptr ? settings.program : program_invocation_short_name;
	config.policy = name_of(settings.policy);
	config.executors = scheduler.executors_;
	config.no_executors = scheduler.executors_ == 0;
	config.producers = tables.size.producers;
	config.producer_names = tables.producers.elements;
	config.folder = folder;
	const bool has_begun = punctual_trace_begin(&config) == PUNCTUAL_TRACE_OK;
	std::free(folder);
	if (has_begun)
		return {};
	stop_tracing(scheduler);
	return {Error::trace, punctual_trace_message()};
}

void Trace::tell_thread() noexcept
{
	context.is_told = true;
	punctual_trace_set_producer(context.number);
	(void)punctual_trace_current_producer();
}

// The program's own threads may still push.
void Trace::stop_tracing(Scheduler &scheduler) noexcept
{
	Locked locked(scheduler.lock_);
	scheduler.traced_ = false;
}

Status Trace::end(Scheduler &scheduler) noexcept
{
	stop_tracing(scheduler);
	if (punctual_trace_end(nullptr) != PUNCTUAL_TRACE_OK)
		return {Error::trace, punctual_trace_message()};
	return {};
}

#else

Status Trace::begin(Scheduler &, const Settings &settings) noexcept
{
	return {Error::trace_not_built, settings.trace};
}

Status Trace::end(Scheduler &) noexcept
{
	return {};
}

#endif

} // namespace punctual::flow
