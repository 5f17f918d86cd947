// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Where the executor says what happens (docs/flow-traces.md). Without PUNCTUAL_FLOW_TRACE, nothing is left of it.
//
// A push and an activation are traced with the scheduler's lock, so that the times in a trace are in the order in which things happened. That also makes one producer
// enough for all threads that are not the scheduler's.
#ifndef PUNCTUAL_FLOW_TRACING_HPP
#define PUNCTUAL_FLOW_TRACING_HPP

#include <punctual/flow.hpp>

#if PUNCTUAL_FLOW_TRACE
#define PUNCTUAL_TRACE 1
// Two functions have names of structures, as C allows.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
#include <punctual/trace.h>
#pragma GCC diagnostic pop

#include "context.hpp"
#endif

namespace punctual::flow {

struct Trace {
	// From here on, numbers count from 0. All threads wait for work meanwhile.
	static Status begin(Scheduler &scheduler, const Settings &settings) noexcept;
	// The scheduler's threads have ended.
	static Status end(Scheduler &scheduler) noexcept;

#if PUNCTUAL_FLOW_TRACE
	static void push(Scheduler &scheduler, const Object &channel) noexcept
	{
		if (scheduler.traced_)
			punctual_trace_push_by(producer(scheduler), channel.id, channel.number);
	}
	static void activation(Scheduler &scheduler, const Object &task) noexcept
	{
		if (scheduler.traced_)
			punctual_trace_activation_by(producer(scheduler), task.id, task.number);
	}
	static void start(Scheduler &scheduler, const Object &task) noexcept
	{
		if (scheduler.traced_)
			punctual_trace_start_by(context.number, task.id, task.number);
	}
	static void stop(Scheduler &scheduler, const Object &task) noexcept
	{
		if (scheduler.traced_)
			punctual_trace_stop_by(context.number, task.id, task.number);
	}

private:
	static bool connects_already(const Input *first, const Input *input) noexcept;
	static std::uint32_t producer(Scheduler &scheduler) noexcept
	{
		return context.scheduler == &scheduler ? context.number : scheduler.timer_number() + 1;
	}
#else
	static void push(Scheduler &, const Object &) noexcept {}
	static void activation(Scheduler &, const Object &) noexcept {}
	static void start(Scheduler &, const Object &) noexcept {}
	static void stop(Scheduler &, const Object &) noexcept {}
#endif
};

} // namespace punctual::flow

#endif
