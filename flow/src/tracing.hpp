// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Where the executor says what happens (docs/flow-traces.md). Without PUNCTUAL_FLOW_TRACE, nothing
// is left of it.
//
// The clock (trace_clock.hpp) is read with the scheduler's lock: when a push has it, and when the
// end of an instance has it. Activations have the time of what caused them, and an instance that
// begins where another ended has that one's. So the order of times in a trace is the order of what
// happened, and an activation costs two looks at the clock, not four.
//
// Pushes are traced with the lock held, too, so that one producer is enough for all threads that
// are not the scheduler's.
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
	// From here on, numbers in the trace count from 0. All threads wait for work meanwhile.
	static Status begin(Scheduler &scheduler, const Settings &settings) noexcept;
	// The scheduler's threads have ended.
	static Status end(Scheduler &scheduler) noexcept;

#if PUNCTUAL_FLOW_TRACE
	// What the calling thread traces next happens now. With the scheduler's lock.
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
	// Of the scheduler that traces, of which there is one at a time; with its lock.
	static TraceClock clock;

	struct Tables;
	static void describe(Tables &tables) noexcept;
	// How the inputs count, and what they have now. With the scheduler's lock.
	static void count_pushes(Tables &tables) noexcept;
	// Does that, and has all traced from then on.
	static void look_at_inputs(void *of_trace) noexcept;
	static void stop_tracing(Scheduler &scheduler) noexcept;
	// Which of the kernel's threads this executor is: for whoever looks at what the kernel did
	// with it meanwhile. Once, at its first instance.
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
