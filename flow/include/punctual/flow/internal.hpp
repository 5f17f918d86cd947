// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Parts of a scheduler; internal. They are in a header because their sizes must be known.
#ifndef PUNCTUAL_FLOW_INTERNAL_HPP
#define PUNCTUAL_FLOW_INTERNAL_HPP

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <pthread.h>

namespace punctual::flow {

class Event;
class Lock;
class Scheduler;
class Task;
enum class Policy : std::uint8_t;

// The ready tasks, in intrusive lists: no allocation, and constant time.
class ReadyQueue {
public:
	void set_policy(Policy policy) noexcept
	{
		policy_ = policy;
	}
	std::uint32_t size() const noexcept
	{
		return size_;
	}
	void add(Task &task) noexcept;
	// Null if there is none.
	Task *take() noexcept;

private:
	struct List {
		Task *first = nullptr;
		Task *last = nullptr;
	};
	static constexpr unsigned levels = 256;

	void append(List &list, Task &task) noexcept;
	static Task *take_first(List &list) noexcept;

	std::uint32_t size_ = 0;
	Policy policy_{};
	// For FIFO and LIFO.
	List all_;
	// For priorities, one list each; a bit is set if the list is not empty.
	std::uint64_t occupied_[levels / 64] = {};
	List of_priority_[levels];
};

// Where an executor waits for work: it spins for a while, then sleeps. Wakers hold the scheduler's
// lock.
//
// A sleeping executor is woken after unlocking, so that it does not find the lock held. One under a
// real-time policy is woken before: a waker of low priority could be preempted in between, for as
// long as others like. On the waker's own processor it has preempted the waker, so it does not spin
// for the lock, but sleeps, which lends the waker its priority.
class alignas(64) Parking {
public:
	// Whether the executor is under a real-time policy. It sets this before it waits.
	void set_urgent(bool urgent) noexcept
	{
		urgent_ = urgent;
	}
	// The executor calls this under the scheduler's lock,
	void enter() noexcept
	{
		word_.store(waiting, std::memory_order_relaxed);
	}
	// then this without it, which returns with the lock when it has been called since it
	// entered.
	void wait(std::int64_t spin_ns, Lock &lock) noexcept;
	// Under the lock. True: wake() is to follow when the lock is free.
	bool call() noexcept;
	void wake() noexcept;

	// The same without a lock.
	void wait() noexcept;
	void release() noexcept;

private:
	bool spin(std::int64_t spin_ns) const noexcept;

	static constexpr std::uint32_t waiting = 0, woken = 1, asleep = 2;
	std::atomic<std::uint32_t> word_{woken};
	bool urgent_ = false;
	// The processor of whoever called it.
	std::atomic<int> caller_{-1};
};

// The waiting events, in a heap. All functions but run() need the scheduler's lock.
class Timer {
public:
	~Timer()
	{
		release();
	}
	// Allocates room for all events. False: no memory.
	bool reserve(std::size_t events) noexcept;
	void release() noexcept;

	void add(Event &event, std::int64_t due_ns) noexcept;
	void remove(Event &event) noexcept;
	void remove_all() noexcept;
	// Makes the timer's thread look at the heap again.
	void wake() noexcept;
	// The timer's thread: pushes due events until the scheduler stops.
	void run(Scheduler &scheduler) noexcept;

private:
	void put(std::size_t place, Event &event) noexcept;
	void settle(std::size_t place) noexcept;

	Event **heap_ = nullptr;
	std::size_t size_ = 0;
	std::atomic<std::uint32_t> changes_{0};
};

// When a periodic event that was due at `due_ns` and pushed at `now_ns` is due next, and how many
// periods were missed.
struct NextExpiry {
	std::int64_t due_ns;
	std::uint64_t missed;
};
NextExpiry next_expiry(std::int64_t due_ns, std::int64_t period_ns, std::int64_t now_ns) noexcept;

} // namespace punctual::flow

#endif
