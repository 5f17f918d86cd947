// SPDX-License-Identifier: MIT OR Apache-2.0
//
// A lock of four bytes with priority inheritance: while a thread holds it, it runs with the
// priority of the most urgent one that waits. Without contention, locking and unlocking are one
// atomic operation each; else a thread spins for a moment, then sleeps in the kernel (futex(2),
// FUTEX_LOCK_PI), which hands the lock over by priority.
//
// For sections of some tens of nanoseconds. Not recursive. A thread that waits for a lock that it
// holds ends the program, with a message.
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
	bool spin(std::uint32_t self) noexcept;
	void hand_over() noexcept;
	static std::uint32_t ask_thread_id() noexcept;

	// The kernel's number of this thread; 0 where it has not been asked yet.
	static inline thread_local std::uint32_t thread_id = 0;

	// 0: free. Else the kernel's number of the holder; bit 31 says that threads sleep for it.
	// The format is the kernel's.
	std::atomic<std::uint32_t> word_{0};
};

// Holds a lock as long as it lives.
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
