// SPDX-License-Identifier: MIT OR Apache-2.0
#include <punctual/flow/internal.hpp>

#include "futex.hpp"

namespace punctual::flow {

bool Parking::spin(std::int64_t spin_ns) const noexcept
{
	if (spin_ns <= 0)
		return false;
	std::int64_t until = monotonic_ns() + spin_ns;
	do {
		for (int look = 0; look < 16; ++look) {
			if ((word_.load(std::memory_order_acquire) & state_bits) != waiting)
				return true;
			pause();
		}
	} while (monotonic_ns() < until);
	return false;
}

void Parking::wait(std::int64_t spin_ns) noexcept
{
	const std::uint32_t turn = turn_of(word_.load(std::memory_order_relaxed));
	std::uint32_t expected = turn | waiting;
	if (spin(spin_ns) ||
		!word_.compare_exchange_strong(expected, turn | asleep, std::memory_order_acquire))
		return;
	while (word_.load(std::memory_order_acquire) == (turn | asleep))
		futex_wait(word_, turn | asleep);
}

bool Parking::call() noexcept
{
	std::uint32_t word = word_.load(std::memory_order_relaxed), then;
	do
		then = turn_of(word) | ((word & state_bits) == asleep ? called : woken);
	while (!word_.compare_exchange_weak(
		word, then, std::memory_order_release, std::memory_order_relaxed));
	return (then & state_bits) == called;
}

void Parking::wake() noexcept
{
	std::uint32_t word = word_.load(std::memory_order_relaxed);
	if ((word & state_bits) != called)
		return;
	futex_wake(word_, 1);
	// Unless the executor waits again, and somebody else has called it.
	word_.compare_exchange_strong(word, turn_of(word) | woken, std::memory_order_relaxed);
}

} // namespace punctual::flow
