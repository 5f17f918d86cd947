// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Where every activation passes: four functions that do the work themselves rather than to announce
// it. So a library that does not trace can be probed from outside (uprobes; docs/flow.md,
// "Probes"), and nothing is paid for that. Their symbols and arguments are part of the interface.
//
// They are there under their own names whatever the optimiser thinks, and begin with `nop`: the
// kernel emulates that instruction, where it single-steps others at ten times the cost (endbr64
// among them, so activation.cpp is compiled without).
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
	// Data is on a channel: counts it, and tells the inputs. With the scheduler's lock.
	static void push(Object *channel) noexcept PUNCTUAL_FLOW_PROBE("punctual_flow_push");
	// An idle task is ready: takes what it needs of its inputs, and queues it. With the
	// scheduler's lock.
	static void activate(Object *task) noexcept PUNCTUAL_FLOW_PROBE("punctual_flow_activate");
	// Runs an instance.
	static void start(Object *task) noexcept PUNCTUAL_FLOW_PROBE("punctual_flow_start");
	// Ends it, and returns what the executor runs next: null where nothing is ready, or where
	// there are no executors (Scheduler::run_ready has a limit).
	static Task *stop(Object *task) noexcept PUNCTUAL_FLOW_PROBE("punctual_flow_stop");

private:
	static Channel &channel_of(Object *object) noexcept;
	static Task &task_of(Object *object) noexcept;
};

} // namespace punctual::flow

#endif
