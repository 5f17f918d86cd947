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

// Where an executor waits for work: it spins for a while, then sleeps. Callers hold the scheduler's
// lock.
//
// A sleeping executor is woken after unlocking: on the caller's own processor it would preempt the
// caller, and find the lock held. A caller of low priority may be preempted in between, for as long
// as others like. Until it has woken the executor, anyone else can.
class alignas(64) Parking {
public:
	// The executor calls this under the scheduler's lock,
	void enter() noexcept
	{
		word_.store(turn_of(word_.load(std::memory_order_relaxed)) + one_turn,
			std::memory_order_relaxed);
	}
	// then this without it, which returns when it has been called since it entered.
	void wait(std::int64_t spin_ns = 0) noexcept;
	// Once after it entered, under the lock. True: it sleeps, and wake() is to follow when the
	// lock is free.
	bool call() noexcept;
	// Any number of threads, without the lock.
	void wake() noexcept;

private:
	bool spin(std::int64_t spin_ns) const noexcept;
	static std::uint32_t turn_of(std::uint32_t word) noexcept
	{
		return word & ~state_bits;
	}

	// The state, and above it how often the executor has entered.
	static constexpr std::uint32_t waiting = 0, asleep = 1, called = 2, woken = 3;
	static constexpr std::uint32_t state_bits = 3, one_turn = 4;
	std::atomic<std::uint32_t> word_{woken};
};

// The waiting events, in a heap. All functions but run() and wake() need the scheduler's lock.
class Timer {
public:
	~Timer()
	{
		release();
	}
	// Allocates room for all events. False: no memory.
	bool reserve(std::size_t events) noexcept;
	void release() noexcept;

	// Another event may be the first then: is_late() tells.
	void add(Event &event, std::int64_t due_ns) noexcept;
	void remove(Event &event) noexcept;
	void remove_all() noexcept;
	// Whether the timer's thread does not know of the first event yet: wake() is to follow when
	// the lock is free, by whoever sees this.
	bool is_late() const noexcept
	{
		return late_;
	}
	// Makes the timer's thread look at the heap again. Without the lock, for the same reason as
	// Parking::wake.
	void wake() noexcept;
	// The timer's thread: pushes due events until the scheduler stops.
	void run(Scheduler &scheduler) noexcept;

private:
	void put(std::size_t place, Event &event) noexcept;
	void settle(std::size_t place) noexcept;

	Event **heap_ = nullptr;
	std::size_t size_ = 0;
	bool late_ = false;
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
