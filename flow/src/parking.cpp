// SPDX-License-Identifier: MIT OR Apache-2.0
#include <punctual/flow/internal.hpp>

#include "futex.hpp"

namespace punctual::flow {

void Parking::wait(std::int64_t spin_ns) noexcept
{
	if (spin_ns > 0) {
		std::int64_t until = monotonic_ns() + spin_ns;
		do {
			for (int look = 0; look < 16; ++look) {
				if (word_.load(std::memory_order_acquire) == woken)
					return;
				pause();
			}
		} while (monotonic_ns() < until);
	}
	std::uint32_t expected = waiting;
	if (!word_.compare_exchange_strong(expected, asleep, std::memory_order_acquire))
		return;
	while (word_.load(std::memory_order_acquire) == asleep)
		futex_wait(word_, asleep);
}

void Parking::wake() noexcept
{
	if (word_.exchange(woken, std::memory_order_release) == asleep)
		futex_wake(word_, 1);
}

} // namespace punctual::flow
