// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Traces the executor (docs/flow-traces.md). Without PUNCTUAL_FLOW_TRACE, no code of it is left.
//
// The clock (trace_clock.hpp) is read under the scheduler's lock, once for a push and once for the
// end of an instance. An activation has the time of its cause, and an instance that starts when
// another one ends has that time. So times are in causal order, and an activation costs two clock
// readings instead of four.
//
// Pushes are also traced under the lock, so that one producer is enough for all of the program's
// own threads.
#ifndef PUNCTUAL_FLOW_TRACING_HPP
#define PUNCTUAL_FLOW_TRACING_HPP

#include <punctual/flow.hpp>

#if PUNCTUAL_FLOW_TRACE
#define PUNCTUAL_TRACE	    1
#define PUNCTUAL_TRACE_PORT "trace_port.h"
#include <punctual/trace.h>

#include "context.hpp"

inline std::uint64_t punctual_trace_port_clock()
{
	return punctual::flow::context.now;
}
#include "trace_clock.hpp"
#endif

namespace punctual::flow {

struct Trace {
	// From here on, numbers in the trace count from 0. Meanwhile all threads wait for work.
	static Status begin(Scheduler &scheduler, const Settings &settings) noexcept;
	// The scheduler's threads have ended.
	static Status end(Scheduler &scheduler) noexcept;

#if PUNCTUAL_FLOW_TRACE
	// Sets the time of what the calling thread traces next. Under the scheduler's lock.
	static void look(const Scheduler &scheduler) noexcept
	{
		if (scheduler.traced_)
			context.now = clock.now();
	}
	static void push(Scheduler &scheduler, const Object &channel) noexcept
	{
		if (scheduler.traced_)
			punctual_trace_push_by(producer(scheduler), channel.id, number_of(channel));
	}
	// A barrier's count from here on.
	static void count(Scheduler &scheduler, const Object &barrier, std::uint32_t count) noexcept
	{
		if (scheduler.traced_)
			punctual_trace_count_by(producer(scheduler), barrier.id, count);
	}
	static void activation(Scheduler &scheduler, const Object &task) noexcept
	{
		if (scheduler.traced_)
			punctual_trace_activation_by(producer(scheduler), task.id, number_of(task));
	}
	static void start(Scheduler &scheduler, const Object &task) noexcept
	{
		if (!scheduler.traced_)
			return;
		if (!context.is_told)
			tell_thread();
		punctual_trace_start_by(context.number, task.id, number_of(task));
	}
	static void stop(Scheduler &scheduler, const Object &task) noexcept
	{
		if (scheduler.traced_)
			punctual_trace_stop_by(context.number, task.id, number_of(task));
	}

private:
	// Of the one scheduler that traces; under its lock.
	static TraceClock clock;

	struct Tables;
	static void describe(Tables &tables) noexcept;
	// Records how the inputs count and their current counts. Under the scheduler's lock.
	static void count_pushes(Tables &tables) noexcept;
	// The same, and enables tracing from then on.
	static void look_at_inputs(void *of_trace) noexcept;
	static void stop_tracing(Scheduler &scheduler) noexcept;
	// Records the executor's TID, for readers that combine the trace with the kernel's events.
	// Once, at its first instance.
	static void tell_thread() noexcept;
	static std::uint32_t number_of(const Object &object) noexcept
	{
		return object.number - object.first_traced;
	}
	static std::uint32_t producer(Scheduler &scheduler) noexcept
	{
		return context.scheduler == &scheduler ? context.number
						       : scheduler.timer_number() + 1;
	}
#else
	static void look(const Scheduler &) noexcept
	{
	}
	static void push(Scheduler &, const Object &) noexcept
	{
	}
	static void count(Scheduler &, const Object &, std::uint32_t) noexcept
	{
	}
	static void activation(Scheduler &, const Object &) noexcept
	{
	}
	static void start(Scheduler &, const Object &) noexcept
	{
	}
	static void stop(Scheduler &, const Object &) noexcept
	{
	}
#endif
};

} // namespace punctual::flow

#endif
