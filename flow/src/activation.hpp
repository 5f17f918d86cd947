// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Every activation passes through these four functions, which do the actual work. So a library that
// does not trace can be probed from outside (uprobes; docs/flow.md, "Probes") at no cost when
// nobody does. Their symbols and arguments are part of the interface.
//
// They keep their names whatever the optimiser does, and begin with `nop`, which the kernel
// emulates. It single-steps other instructions at ten times the cost, including endbr64, so
// activation.cpp is compiled without that.
#ifndef PUNCTUAL_FLOW_ACTIVATION_HPP
#define PUNCTUAL_FLOW_ACTIVATION_HPP

#include <punctual/flow.hpp>

#if defined(__clang__)
#define PUNCTUAL_FLOW_PROBE(symbol) \
	__asm__(symbol) __attribute__(( \
		noinline, used, visibility("default"), patchable_function_entry(1, 0)))
#else
#define PUNCTUAL_FLOW_PROBE(symbol) \
	__asm__(symbol) __attribute__((noinline, noclone, noipa, used, visibility("default"), \
		patchable_function_entry(1, 0)))
#endif

namespace punctual::flow {

struct Activation {
	// Data is on a channel: counts the push and signals the inputs. Under the scheduler's lock.
	static void push(Object *channel) noexcept PUNCTUAL_FLOW_PROBE("punctual_flow_push");
	// An idle task becomes ready: takes from its inputs, and queues it. Under the scheduler's
	// lock.
	static void activate(Object *task) noexcept PUNCTUAL_FLOW_PROBE("punctual_flow_activate");
	// Runs an instance.
	static void start(Object *task) noexcept PUNCTUAL_FLOW_PROBE("punctual_flow_start");
	// Ends it, and returns the task that the executor runs next: null if none is ready, or if
	// there are no executors (Scheduler::run_ready has a limit).
	static Task *stop(Object *task) noexcept PUNCTUAL_FLOW_PROBE("punctual_flow_stop");

private:
	static Channel &channel_of(Object *object) noexcept;
	static Task &task_of(Object *object) noexcept;
};

} // namespace punctual::flow

#endif
