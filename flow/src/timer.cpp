// SPDX-License-Identifier: MIT OR Apache-2.0
#include <cstdlib>

#include "activation.hpp"
#include "futex.hpp"

namespace punctual::flow {

NextExpiry next_expiry(std::int64_t due_ns, std::int64_t period_ns, std::int64_t now_ns) noexcept
{
	std::int64_t next = due_ns + period_ns;
	if (next > now_ns)
		return {next, 0};
	std::int64_t missed = (now_ns - next) / period_ns + 1;
	return {next + missed * period_ns, static_cast<std::uint64_t>(missed)};
}

bool Event::cancel() noexcept
{
	Locked locked(scheduler_->lock_);
	if (place_ == not_waiting)
		return false;
	scheduler_->timer_.remove(*this);
	return true;
}

std::uint64_t PeriodicEvent::overruns() const noexcept
{
	Locked locked(scheduler_->lock_);
	return overruns_;
}

Status OneShotEvent::start(std::chrono::nanoseconds delay) noexcept
{
	if (delay.count() < 0 || delay.count() > max_time_ns)
		return {Error::delay, name()};
	if (!known_)
		return {Error::built_while_running, name()};
	std::int64_t due_ns = monotonic_ns() + delay.count();
	bool is_late;
	{
		Locked locked(scheduler_->lock_);
		if (!scheduler_->running())
			return {Error::not_running, name()};
		scheduler_->timer_.add(*this, due_ns);
		is_late = scheduler_->timer_.is_late();
	}
	if (is_late)
		scheduler_->timer_.wake();
	return {};
}

bool Timer::reserve(std::size_t events) noexcept
{
	release();
	if (events == 0)
		return true;
	heap_ = static_cast<Event **>(std::calloc(events, sizeof(Event *)));
	return heap_ != nullptr;
}

void Timer::release() noexcept
{
	std::free(heap_);
	heap_ = nullptr;
	size_ = 0;
}

void Timer::add(Event &event, std::int64_t due_ns) noexcept
{
	event.due_ns_ = due_ns;
	if (event.place_ == Event::not_waiting)
		event.place_ = size_++;
	heap_[event.place_] = &event;
	settle(event.place_);
	// The thread sleeps until the first event is due.
	late_ |= event.place_ == 0;
}

void Timer::remove(Event &event) noexcept
{
	std::size_t place = event.place_;
	Event &last = *heap_[--size_];
	event.place_ = Event::not_waiting;
	if (&last != &event) {
		put(place, last);
		settle(place);
	}
}

void Timer::remove_all() noexcept
{
	while (size_ != 0)
		remove(*heap_[size_ - 1]);
}

void Timer::wake() noexcept
{
	changes_.fetch_add(1, std::memory_order_relaxed);
	futex_wake(changes_, 1);
}

void Timer::run(Scheduler &scheduler) noexcept
{
	scheduler.lock_.lock();
	while (scheduler.state_.load(std::memory_order_relaxed) != Scheduler::State::stopping) {
		std::int64_t now = monotonic_ns();
		if (size_ != 0 && heap_[0]->due_ns_ <= now) {
			Event &event = *heap_[0];
			if (event.period_ns_ == 0) {
				remove(event);
			} else {
				NextExpiry next = next_expiry(event.due_ns_, event.period_ns_, now);
				event.overruns_ += next.missed;
				event.due_ns_ = next.due_ns;
				settle(0);
			}
			Activation::push(&event.object_);
			// One push at a time, so that nobody waits for the lock for longer.
			scheduler.unlock_and_wake();
			scheduler.lock_.lock();
			continue;
		}
		std::uint32_t changes = changes_.load(std::memory_order_relaxed);
		late_ = false;
		timespec until{};
		bool limited = size_ != 0;
		if (limited) {
			until.tv_sec = static_cast<time_t>(heap_[0]->due_ns_ / 1'000'000'000);
			until.tv_nsec = static_cast<long>(heap_[0]->due_ns_ % 1'000'000'000);
		}
		scheduler.lock_.unlock();
		futex_wait(changes_, changes, limited ? &until : nullptr);
		scheduler.lock_.lock();
	}
	scheduler.lock_.unlock();
}

void Timer::put(std::size_t place, Event &event) noexcept
{
	heap_[place] = &event;
	event.place_ = place;
}

// Moves an event up or down until the heap is in order again.
void Timer::settle(std::size_t place) noexcept
{
	Event &event = *heap_[place];
	while (place != 0 && event.due_ns_ < heap_[(place - 1) / 2]->due_ns_) {
		put(place, *heap_[(place - 1) / 2]);
		place = (place - 1) / 2;
	}
	for (;;) {
		std::size_t child = 2 * place + 1;
		if (child + 1 < size_ && heap_[child + 1]->due_ns_ < heap_[child]->due_ns_)
			++child;
		if (child >= size_ || event.due_ns_ <= heap_[child]->due_ns_)
			break;
		put(place, *heap_[child]);
		place = child;
	}
	put(place, event);
}

} // namespace punctual::flow
