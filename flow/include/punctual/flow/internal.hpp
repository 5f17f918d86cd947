// SPDX-License-Identifier: MIT OR Apache-2.0
//
// What a scheduler is made of. In a header since its size must be known; not for users.
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

// The ready tasks, linked through themselves: nothing to allocate, and all in constant time.
class ReadyQueue {
public:
	void be(Policy policy) noexcept
	{
		policy_ = policy;
	}
	std::uint32_t size() const noexcept
	{
		return size_;
	}
	void add(Task &task) noexcept;
	// Null where there is none.
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
	// FIFO and LIFO have this one.
	List all_;
	// Priorities have one each; a bit says where there is something.
	std::uint64_t occupied_[levels / 64] = {};
	List of_priority_[levels];
};

// Where one executor waits for work: it spins for a while, then sleeps. Wakers hold the scheduler's
// lock.
class alignas(64) Parking {
public:
	// By the executor, with the scheduler's lock.
	void enter() noexcept
	{
		word_.store(waiting, std::memory_order_relaxed);
	}
	// And then without: returns when it was woken since it entered.
	void wait(std::int64_t spin_ns) noexcept;
	void wake() noexcept;

private:
	static constexpr std::uint32_t waiting = 0, woken = 1, asleep = 2;
	std::atomic<std::uint32_t> word_{woken};
};

// Events that wait for their time, in a heap. All but run() with the scheduler's lock.
class Timer {
public:
	~Timer()
	{
		release();
	}
	// Room for all events, beforehand. False: no memory.
	bool reserve(std::size_t events) noexcept;
	void release() noexcept;

	void add(Event &event, std::int64_t due_ns) noexcept;
	void remove(Event &event) noexcept;
	void remove_all() noexcept;
	// Makes its thread look anew.
	void wake() noexcept;
	// The thread: pushes what is due until the scheduler stops.
	void run(Scheduler &scheduler) noexcept;

private:
	void put(std::size_t place, Event &event) noexcept;
	void settle(std::size_t place) noexcept;

	Event **heap_ = nullptr;
	std::size_t size_ = 0;
	std::atomic<std::uint32_t> changes_{0};
};

// When a periodic event is due after it was pushed at `now_ns` for `due_ns`, and how many periods
// were missed.
struct NextExpiry {
	std::int64_t due_ns;
	std::uint64_t missed;
};
NextExpiry next_expiry(std::int64_t due_ns, std::int64_t period_ns, std::int64_t now_ns) noexcept;

} // namespace punctual::flow

#endif
