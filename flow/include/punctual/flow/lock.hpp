// SPDX-License-Identifier: MIT OR Apache-2.0
//
// A lock of four bytes with priority inheritance: its holder runs with the priority of the most
// urgent waiter. Without contention, locking and unlocking are one atomic operation each. Otherwise
// a thread spins for a moment, then sleeps in the kernel (futex(2), FUTEX_LOCK_PI), which hands the
// lock over by priority.
//
// For sections of some tens of nanoseconds. Not recursive: a thread that locks it twice ends the
// program with a message.
#ifndef PUNCTUAL_FLOW_LOCK_HPP
#define PUNCTUAL_FLOW_LOCK_HPP

#include <atomic>
#include <cstdint>

namespace punctual::flow {

class Lock {
public:
	void lock() noexcept
	{
		std::uint32_t expected = 0;
		std::uint32_t self = thread_id != 0 ? thread_id : ask_thread_id();
		if (!word_.compare_exchange_strong(
			    expected, self, std::memory_order_acquire, std::memory_order_relaxed))
			wait(self);
	}

	void unlock() noexcept
	{
		std::uint32_t expected = thread_id;
		if (!word_.compare_exchange_strong(
			    expected, 0, std::memory_order_release, std::memory_order_relaxed))
			hand_over();
	}

private:
	void wait(std::uint32_t self) noexcept;
	void sleep() noexcept;
	bool spin(std::uint32_t self) noexcept;
	void hand_over() noexcept;
	static std::uint32_t ask_thread_id() noexcept;

	// This thread's TID; 0 if not known yet.
	static inline thread_local std::uint32_t thread_id = 0;

	// 0 if free, else the holder's TID; bit 31 is set if threads may sleep for it. The kernel
	// defines this format.
	std::atomic<std::uint32_t> word_{0};
};

// Holds a lock during its lifetime.
class Locked {
public:
	explicit Locked(Lock &lock) noexcept : lock_(lock)
	{
		lock_.lock();
	}
	~Locked()
	{
		lock_.unlock();
	}
	Locked(const Locked &) = delete;
	Locked &operator=(const Locked &) = delete;

private:
	Lock &lock_;
};

} // namespace punctual::flow

#endif
