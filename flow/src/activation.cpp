// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Activation, as docs/flow.md specifies it. Everything runs under the scheduler's lock, unless
// noted.
//
#include "activation.hpp"
#include "futex.hpp"
#include "tracing.hpp"

namespace punctual::flow {

void Input::count_push() noexcept
{
	Task &task = *task_;
	if (!arming_.synchronised_ && (task.state_ != Task::State::idle || armed()))
		return;
	if (pushes_ == UINT32_MAX)
		return;
	if (++pushes_ == arming_.threshold_)
		count_armed();
	if (task.state_ == Task::State::idle)
		task.activate_if_ready();
}

// The task counts its armed inputs, so that a push need not look at all of them.
void Input::count_armed() noexcept
{
	task_->required_armed_ += !arming_.optional_;
	task_->finals_armed_ += arming_.final_;
}

void Input::take() noexcept
{
	taken_ = armed() ? arming_.threshold_ : 0;
	pushes_ = arming_.synchronised_ ? pushes_ - taken_ : 0;
	if (armed())
		count_armed();
}

void Task::activate_if_ready() noexcept
{
	if (scheduler_->state_.load(std::memory_order_relaxed) == Scheduler::State::running &&
		ready())
		Activation::activate(&object_);
}

void Task::rearm() noexcept
{
	state_ = State::idle;
	activate_if_ready();
}

void Group::ran(Task &task) noexcept
{
	task.state_ = Task::State::held;
	if (--to_run_ != 0)
		return;
	to_run_ = members_;
	// Make all idle before activating the first: it must not find another task of this round
	// held.
	for (Task *member = first_; member != nullptr; member = member->next_of_group_)
		member->state_ = Task::State::idle;
	for (Task *member = first_; member != nullptr; member = member->next_of_group_)
		member->activate_if_ready();
}

void Channel::pass() noexcept
{
	arrived_ = 0;
	for (Input *input = first_input_; input != nullptr; input = input->next_of_channel_)
		input->count_push();
}

// Called without the lock.
void Channel::push() noexcept
{
	begin_push();
	end_push();
}

void Channel::begin_push() noexcept
{
	scheduler_->lock_.lock();
}

void Channel::end_push() noexcept
{
	Activation::push(&object_);
	scheduler_->unlock_and_wake();
}

void Channel::cancel_push() noexcept
{
	scheduler_->lock_.unlock();
}

// Called without the lock.
Status Barrier::set_count(std::uint32_t count) noexcept
{
	if (count == 0)
		return {Error::count, name()};
	scheduler_->lock_.lock();
	change_count(count);
	if (arrived_ >= count_)
		pass();
	scheduler_->unlock_and_wake();
	return {};
}

// Called without the lock.
void Barrier::raise_count(std::uint32_t by) noexcept
{
	Locked locked(scheduler_->lock_);
	change_count(by > UINT32_MAX - count_ ? UINT32_MAX : count_ + by);
}

void Barrier::change_count(std::uint32_t count) noexcept
{
	if (count == count_)
		return;
	Trace::look(*scheduler_);
	Trace::count(*scheduler_, object_, count);
	count_ = count;
}

void Scheduler::unlock_and_wake() noexcept
{
	// Executors that are waking up count: each takes tasks until there are none.
	while (idle_ != 0 && ready_.size() > waking_)
		call(static_cast<unsigned>(__builtin_ctzll(idle_)));
	unlock_and_wake(ready_.size() != 0 ? asleep_ : 0);
}

void Scheduler::call(unsigned executor) noexcept
{
	const std::uint64_t bit = std::uint64_t{1} << executor;
	idle_ &= ~bit;
	++waking_;
	if (parking_[executor].call())
		asleep_ |= bit;
}

// Without the lock, so that they do not find it held. Some may have been called by a thread that
// was preempted before it came here: what became ready since then does not wait for that one.
void Scheduler::unlock_and_wake(std::uint64_t executors) noexcept
{
	lock_.unlock();
	for (; executors != 0; executors &= executors - 1)
		parking_[__builtin_ctzll(executors)].wake();
}

Channel &Activation::channel_of(Object *object) noexcept
{
	return static_cast<Channel &>(*reinterpret_cast<Watched *>(object));
}

Task &Activation::task_of(Object *object) noexcept
{
	return static_cast<Task &>(*reinterpret_cast<Watched *>(object));
}

void Activation::push(Object *object) noexcept
{
	Channel &channel = channel_of(object);
	Trace::look(*channel.scheduler_);
	Trace::push(*channel.scheduler_, *object);
	++object->number;
	if (++channel.arrived_ >= channel.count_)
		channel.pass();
}

void Activation::activate(Object *object) noexcept
{
	Task &task = task_of(object);
	Trace::activation(*task.scheduler_, *object);
	task.state_ = Task::State::active;
	task.required_armed_ = 0;
	task.finals_armed_ = 0;
	if (task.deadline_ns_ != 0)
		task.note_activation();
	for (Input *input = task.first_input_; input != nullptr; input = input->next_of_task_)
		input->take();
	task.scheduler_->ready_.add(task);
}

void Activation::start(Object *object) noexcept
{
	Task &task = task_of(object);
	Trace::start(*task.scheduler_, *object);
	task.execute();
	if (task.deadline_ns_ != 0)
		task.judge();
}

Task *Activation::stop(Object *object) noexcept
{
	Task &task = task_of(object);
	Scheduler &scheduler = *task.scheduler_;
	scheduler.lock_.lock();
	Trace::look(scheduler);
	Trace::stop(scheduler, *object);
	++object->number;
	if (task.group_ != nullptr)
		task.group_->ran(task);
	else
		task.rearm();
	Task *next = scheduler.executors_ != 0 ? scheduler.ready_.take() : nullptr;
	scheduler.unlock_and_wake();
	return next;
}

} // namespace punctual::flow
