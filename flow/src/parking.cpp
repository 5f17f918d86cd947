// SPDX-License-Identifier: MIT OR Apache-2.0
#include <punctual/flow/internal.hpp>
#include <punctual/flow/lock.hpp>

#include <sched.h>

#include "futex.hpp"

namespace punctual::flow {

bool Parking::spin(std::int64_t spin_ns) const noexcept
{
	if (spin_ns <= 0)
		return false;
	std::int64_t until = monotonic_ns() + spin_ns;
	do {
		for (int look = 0; look < 16; ++look) {
			if (word_.load(std::memory_order_acquire) == woken)
				return true;
			pause();
		}
	} while (monotonic_ns() < until);
	return false;
}

void Parking::wait(std::int64_t spin_ns, Lock &lock) noexcept
{
	std::uint32_t expected = waiting;
	if (spin(spin_ns) ||
		!word_.compare_exchange_strong(expected, asleep, std::memory_order_acquire))
		return lock.lock();
	while (word_.load(std::memory_order_acquire) == asleep)
		futex_wait(word_, asleep);
	if (urgent_ && caller_.load(std::memory_order_relaxed) == sched_getcpu())
		lock.lock_asleep();
	else
		lock.lock();
}

bool Parking::call() noexcept
{
	if (urgent_)
		caller_.store(sched_getcpu(), std::memory_order_relaxed);
	if (word_.exchange(woken, std::memory_order_release) != asleep)
		return false;
	if (urgent_)
		wake();
	return !urgent_;
}

void Parking::wake() noexcept
{
	futex_wake(word_, 1);
}

void Parking::wait() noexcept
{
	std::uint32_t expected = waiting;
	if (!word_.compare_exchange_strong(expected, asleep, std::memory_order_acquire))
		return;
	while (word_.load(std::memory_order_acquire) == asleep)
		futex_wait(word_, asleep);
}

void Parking::release() noexcept
{
	if (word_.exchange(woken, std::memory_order_release) == asleep)
		futex_wake(word_, 1);
}

} // namespace punctual::flow
