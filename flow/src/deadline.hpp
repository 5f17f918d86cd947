// SPDX-License-Identifier: MIT OR Apache-2.0
//
// SCHED_DEADLINE: threads cannot be created with it, so each sets itself by sched_setattr(2).
#ifndef PUNCTUAL_FLOW_DEADLINE_HPP
#define PUNCTUAL_FLOW_DEADLINE_HPP

#include <cerrno>
#include <cstdint>
#include <punctual/flow.hpp>
#include <sys/syscall.h>
#include <unistd.h>

namespace punctual::flow {

// Puts the calling thread under SCHED_DEADLINE. Returns 0 or errno. Threads that it creates are
// ordinary: otherwise the kernel would not let it create any.
inline int be_under_deadline(const ThreadSettings &settings) noexcept
{
	// The first version of the kernel's structure, which older C libraries do not declare.
	struct {
		std::uint32_t size, policy;
		std::uint64_t flags;
		std::int32_t nice;
		std::uint32_t priority;
		std::uint64_t runtime_ns, deadline_ns, period_ns;
	} attributes{};
	static_assert(sizeof attributes == 48);
	constexpr std::uint64_t reset_on_fork = 1;
	attributes.size = sizeof attributes;
	attributes.policy = SCHED_DEADLINE;
	attributes.flags = reset_on_fork;
	attributes.runtime_ns = static_cast<std::uint64_t>(settings.runtime_ns);
	attributes.deadline_ns = static_cast<std::uint64_t>(settings.deadline_ns);
	attributes.period_ns = static_cast<std::uint64_t>(settings.period_ns);
	return syscall(SYS_sched_setattr, 0, &attributes, 0) == 0 ? 0 : errno;
}

} // namespace punctual::flow

#endif
