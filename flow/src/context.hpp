// SPDX-License-Identifier: MIT OR Apache-2.0
#ifndef PUNCTUAL_FLOW_CONTEXT_HPP
#define PUNCTUAL_FLOW_CONTEXT_HPP

#include <cstdint>

namespace punctual::flow {

class Scheduler;

// The scheduler that the calling thread belongs to, and its number there: executors first, then the
// timer. The program's own threads belong to none.
struct Context {
	Scheduler *scheduler;
	std::uint32_t number;
	// When it last read the clock for the trace.
	std::uint64_t now;
	// Whether the trace has the thread's TID.
	bool is_told;
};
inline thread_local Context context{nullptr, 0, 0, false};

} // namespace punctual::flow

#endif
