// SPDX-License-Identifier: MIT OR Apache-2.0
#include "tracing.hpp"

#include <cstdio>
#include <cstdlib>

namespace punctual::flow {

#if PUNCTUAL_FLOW_TRACE

namespace {

const char *name_of(Policy policy) noexcept
{
	switch (policy) {
	case Policy::fifo: return "fifo";
	case Policy::lifo: return "lifo";
	case Policy::priority: return "priority";
	}
	return "";
}

// Memory for `count` elements until the end of the block; null where there is none.
template <typename Element> struct Array {
	explicit Array(std::size_t count) noexcept : elements(static_cast<Element *>(std::calloc(count != 0 ? count : 1, sizeof(Element)))) {}
	~Array() { std::free(elements); }
	Array(const Array &) = delete;
	Array &operator=(const Array &) = delete;
	Element *elements;
};

} // namespace

TraceClock Trace::clock;

Status Trace::begin(Scheduler &scheduler, const Settings &settings) noexcept
{
	std::size_t tasks = 0, channels = 0, connections = 0;
	for (Channel *channel = scheduler.channels_; channel != nullptr; channel = channel->next_)
		++channels;
	for (Task *task = scheduler.tasks_; task != nullptr; task = task->next_) {
		++tasks;
		for (Input *input = task->first_input_; input != nullptr; input = input->next_of_task_)
			++connections;
	}
	const unsigned timer = scheduler.timer_number(), producers = timer + 2;
	struct Label {
		char text[16];
	};
	Array<punctual_trace_name> task_names(tasks), channel_names(channels);
	Array<punctual_trace_connection> connected(connections);
	Array<Label> labels(producers);
	Array<const char *> producer_names(producers);
	if (task_names.elements == nullptr || channel_names.elements == nullptr || connected.elements == nullptr || labels.elements == nullptr
	    || producer_names.elements == nullptr)
		return {Error::memory, "the trace"};

	std::size_t place = 0;
	for (Channel *channel = scheduler.channels_; channel != nullptr; channel = channel->next_)
		channel_names.elements[place++] = {channel->id(), channel->name()};
	place = connections = 0;
	for (Task *task = scheduler.tasks_; task != nullptr; task = task->next_) {
		task_names.elements[place++] = {task->id(), task->name()};
		for (Input *input = task->first_input_; input != nullptr; input = input->next_of_task_)
			if (!connects_already(task->first_input_, input))
				connected.elements[connections++] = {input->channel_->id(), task->id()};
	}
	for (unsigned producer = 0; producer < producers; ++producer) {
		Label &label = labels.elements[producer];
		if (producer < timer)
			std::snprintf(label.text, sizeof label.text, scheduler.executors_ != 0 ? "executor %u" : "caller", producer);
		else
			std::snprintf(label.text, sizeof label.text, "%s", producer == timer ? "timer" : "program");
		producer_names.elements[producer] = label.text;
	}

	punctual_trace_config config = {};
	config.tasks = task_names.elements;
	config.task_count = tasks;
	config.channels = channel_names.elements;
	config.channel_count = channels;
	config.connections = connected.elements;
	config.connection_count = connections;
	config.program = settings.program;
	config.policy = name_of(settings.policy);
	config.executors = timer;
	config.producers = producers;
	config.producer_names = producer_names.elements;
	config.folder = settings.trace;
	if (punctual_trace_begin(&config) != PUNCTUAL_TRACE_OK)
		return {Error::trace, punctual_trace_message()};

	Locked locked(scheduler.lock_);
	clock.begin([]() noexcept -> std::uint64_t { return punctual_flow_read_clock(); });
	for (Channel *channel = scheduler.channels_; channel != nullptr; channel = channel->next_)
		channel->object_.number = 0;
	for (Task *task = scheduler.tasks_; task != nullptr; task = task->next_)
		task->object_.number = 0;
	scheduler.traced_ = true;
	return {};
}

void Trace::tell_thread() noexcept
{
	context.is_told = true;
	punctual_trace_set_producer(context.number);
	(void)punctual_trace_current_producer();
}

// Whether an input before this one connects the same channel.
bool Trace::connects_already(const Input *first, const Input *input) noexcept
{
	for (; first != input; first = first->next_of_task_)
		if (first->channel_ == input->channel_)
			return true;
	return false;
}

Status Trace::end(Scheduler &scheduler) noexcept
{
	{
		// The program's own threads may push still.
		Locked locked(scheduler.lock_);
		scheduler.traced_ = false;
	}
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
