// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Starts, runs and stops the scheduler and its executors.
#include <cerrno>
#include <csignal>
#include <cstdio>

#include "activation.hpp"
#include "context.hpp"
#include "deadline.hpp"
#include "futex.hpp"
#include "tracing.hpp"

namespace punctual::flow {

Scheduler::~Scheduler()
{
	(void)stop();
	for (Channel *channel = channels_; channel != nullptr; channel = channel->next_)
		channel->scheduler_ = nullptr;
	for (Task *task = tasks_; task != nullptr; task = task->next_)
		task->scheduler_ = nullptr;
	for (Group *group = groups_; group != nullptr; group = group->next_)
		group->scheduler_ = nullptr;
}

Status Scheduler::start(const Settings &settings) noexcept
{
	if (context.scheduler == this)
		return {Error::by_task, "the scheduler"};
	Locked control(control_);
	if (running())
		return {Error::running, "the scheduler"};
	// Finish a stop that a task has begun.
	if (Status status = finish_stop(); !status)
		return status;
	if (Status status = check(); !status)
		return status;
	if (settings.executors > max_executors)
		return {Error::executors, "the settings"};

	lock_.lock();
	ready_.set_policy(settings.policy);
	executors_ = settings.executors;
	spin_ns_ = sysconf(_SC_NPROCESSORS_ONLN) > 1 ? settings.spin.count() : 0;
	// From here on threads may wait for work; no task is activated yet.
	state_.store(State::starting, std::memory_order_relaxed);
	lock_.unlock();

	Status status = create_threads(settings);
	if (status && settings.trace != nullptr)
		status = Trace::begin(*this, settings);
	if (!status) {
		begin_stop();
		(void)finish_stop();
		return status;
	}

	lock_.lock();
	state_.store(State::running, std::memory_order_relaxed);
	Trace::look(*this);
	std::int64_t now = monotonic_ns();
	for (Event *event = events_; event != nullptr; event = event->next_event_)
		if (event->period_ns_ != 0)
			timer_.add(*event, now + event->offset_ns_);
	for (Task *task = tasks_; task != nullptr; task = task->next_)
		if (task->state_ == Task::State::idle)
			task->activate_if_ready();
	unlock_and_wake();
	timer_.wake();
	return {};
}

Status Scheduler::create_threads(const Settings &settings) noexcept
{
	std::size_t events = 0;
	for (Event *event = events_; event != nullptr; event = event->next_event_)
		++events;
	if (!timer_.reserve(events))
		return {Error::memory, "the timer"};
	for (unsigned executor = 0; executor < executors_; ++executor)
		if (Status status = create_thread(executor, settings.threads != nullptr
								    ? settings.threads[executor]
								    : ThreadSettings());
			!status)
			return status;
	return events != 0 ? create_thread(timer_number(), settings.timer) : Status();
}

Status Scheduler::create_thread(unsigned number, const ThreadSettings &settings) noexcept
{
	const char *subject = number < executors_ ? "executor" : "the timer";
	int shown = number < executors_ ? static_cast<int>(number) : -1;
	pthread_attr_t attributes;
	if (int error = pthread_attr_init(&attributes); error != 0)
		return {Error::thread, subject, shown, error};
	Error failed = Error::thread;
	int error = 0;
	if (CPU_COUNT(&settings.processors) != 0) {
		error = pthread_attr_setaffinity_np(
			&attributes, sizeof settings.processors, &settings.processors);
		failed = Error::affinity;
	}
	const bool by_deadline = settings.policy == SCHED_DEADLINE;
	if (error == 0 && settings.policy != -1 && !by_deadline) {
		sched_param parameters{};
		parameters.sched_priority = settings.priority;
		failed = Error::thread_policy;
		error = pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED);
		if (error == 0)
			error = pthread_attr_setschedpolicy(&attributes, settings.policy);
		if (error == 0)
			error = pthread_attr_setschedparam(&attributes, &parameters);
	}
	if (error == 0) {
		Place &place = places_[threads_];
		place.scheduler = this;
		place.number = number;
		place.deadline = by_deadline ? &settings : nullptr;
		creation_.enter();
		// Leave signals to the program's own threads.
		sigset_t all, before;
		sigfillset(&all);
		pthread_sigmask(SIG_SETMASK, &all, &before);
		error = pthread_create(&place.thread, &attributes, enter_thread, &place);
		pthread_sigmask(SIG_SETMASK, &before, nullptr);
		// glibc does not say which of the two was refused.
		if (error == EPERM)
			failed = Error::thread_policy;
		else if (error == EINVAL && CPU_COUNT(&settings.processors) != 0)
			failed = Error::affinity;
		else if (error == EAGAIN || error == ENOMEM)
			failed = Error::thread;
		if (error == 0 && by_deadline) {
			creation_.wait();
			error = place.error;
			failed = error == EPERM ? Error::deadline_permission : Error::deadline;
			if (error != 0)
				pthread_join(place.thread, nullptr);
		}
	}
	pthread_attr_destroy(&attributes);
	if (error != 0)
		return {failed, subject, shown, error};
	++threads_;
	return {};
}

void *Scheduler::enter_thread(void *argument)
{
	Place &place = *static_cast<Place *>(argument);
	Scheduler &scheduler = *place.scheduler;
	context = {&scheduler, place.number, 0, false};
	if (place.deadline != nullptr) {
		int error = place.error = be_under_deadline(*place.deadline);
		if (scheduler.creation_.call())
			scheduler.creation_.wake();
		if (error != 0)
			return nullptr;
	}
	if (place.number < scheduler.executors_) {
		// The kernel keeps 15 bytes of it.
		char name[16];
		std::snprintf(name, sizeof name, "executor %u", place.number % max_executors);
		pthread_setname_np(pthread_self(), name);
		scheduler.run_executor(place.number);
	} else {
		pthread_setname_np(pthread_self(), "timer");
		scheduler.timer_.run(scheduler);
	}
	return nullptr;
}

void Scheduler::run_executor(unsigned number) noexcept
{
	const std::uint64_t self = std::uint64_t{1} << number;
	lock_.lock();
	for (;;) {
		Task *task = ready_.take();
		if (task == nullptr) {
			if (state_.load(std::memory_order_relaxed) == State::stopping)
				break;
			idle_ |= self;
			parking_[number].enter();
			lock_.unlock();
			parking_[number].wait(spin_ns_);
			lock_.lock();
			--waking_;
			asleep_ &= ~self;
			continue;
		}
		Trace::look(*this);
		unlock_and_wake();
		do {
			Activation::start(&task->object_);
			task = Activation::stop(&task->object_);
		} while (task != nullptr);
		lock_.lock();
	}
	lock_.unlock();
}

std::size_t Scheduler::run_ready(std::size_t limit) noexcept
{
	if (executors_ != 0 || context.scheduler == this)
		return 0;
	Context outside = context;
	// Each call may come from another thread, so the trace does not name it.
	context = {this, 0, 0, true};
	std::size_t ran = 0;
	while (ran < limit) {
		lock_.lock();
		Task *task = ready_.take();
		Trace::look(*this);
		lock_.unlock();
		if (task == nullptr)
			break;
		Activation::start(&task->object_);
		Activation::stop(&task->object_);
		++ran;
	}
	context = outside;
	return ran;
}

Status Scheduler::stop() noexcept
{
	if (context.scheduler == this) {
		begin_stop();
		return {Error::by_task, "the scheduler"};
	}
	Locked control(control_);
	begin_stop();
	return finish_stop();
}

void Scheduler::begin_stop() noexcept
{
	lock_.lock();
	State state = state_.load(std::memory_order_relaxed);
	if (state == State::starting || state == State::running) {
		state_.store(State::stopping, std::memory_order_relaxed);
		timer_.remove_all();
		while (idle_ != 0)
			call(static_cast<unsigned>(__builtin_ctzll(idle_)));
	}
	unlock_and_wake(asleep_);
	timer_.wake();
}

// Under control_.
Status Scheduler::finish_stop() noexcept
{
	if (state_.load(std::memory_order_relaxed) != State::stopping)
		return {};
	run_ready();
	for (; threads_ != 0; --threads_)
		pthread_join(places_[threads_ - 1].thread, nullptr);
	Status status = traced_ ? Trace::end(*this) : Status();
	timer_.release();
	state_.store(State::stopped, std::memory_order_relaxed);
	return status;
}

} // namespace punctual::flow
