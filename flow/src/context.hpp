// SPDX-License-Identifier: MIT OR Apache-2.0
#ifndef PUNCTUAL_FLOW_CONTEXT_HPP
#define PUNCTUAL_FLOW_CONTEXT_HPP

#include <cstdint>

namespace punctual::flow {

class Scheduler;

// Whose thread the calling one is: of which scheduler, and its number there, executors first, then
// the timer. No scheduler's: the program's own.
struct Context {
	Scheduler *scheduler;
	std::uint32_t number;
	// When it last read the clock for the trace.
	std::uint64_t now;
	// Whether the trace knows which of the kernel's threads it is.
	bool is_told;
};
inline thread_local Context context{nullptr, 0, 0, false};

} // namespace punctual::flow

#endif
