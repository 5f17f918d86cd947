// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Builds, checks and dismantles a graph. One thread at a time, while the scheduler is stopped.
#include "futex.hpp"
#include <punctual/flow.hpp>

#include <cstring>

namespace punctual::flow {

namespace {

// Whether all of the name fits.
bool set_name(char (&to)[name_size], const char *name) noexcept
{
	std::memset(to, 0, name_size);
	if (name == nullptr)
		return true;
	const std::size_t length = strnlen(name, name_size);
	std::memcpy(to, name, length < name_size ? length : name_size - 1);
	return length < name_size;
}

bool valid(const char *name) noexcept
{
	if (*name == '\0')
		return false;
	for (; *name != '\0'; ++name)
		if (*name <= ' ' || *name > '~' || std::strchr("\"\\,", *name) != nullptr)
			return false;
	return true;
}

// Removes an element from a list that is linked through `next`; `end`, if there is one, is where
// the next element will be linked.
template <typename Element, typename List>
void unlink(List *&first, Element &element, List *Element::*next, List ***end = nullptr) noexcept
{
	for (List **place = &first; *place != nullptr; place = &((*place)->*next)) {
		if (*place != &element)
			continue;
		*place = element.*next;
		if (end != nullptr && *place == nullptr)
			*end = place;
		return;
	}
}

} // namespace

void Scheduler::flaw(Error error, const char *subject) noexcept
{
	if (flaw_)
		flaw_ = Status(error, subject);
}

// The object with this name is destroyed.
void Scheduler::forget_name(const char *name, const char *kind) noexcept
{
	if (flaw_.subject() == name)
		flaw_ = Status(flaw_.error(), kind);
}

namespace {

const char *named(const char *name, const char *kind) noexcept
{
	return *name != '\0' ? name : kind;
}

} // namespace

Channel::Channel(Scheduler &scheduler, const char *name) noexcept : scheduler_(&scheduler)
{
	const bool fits = set_name(object_.name, name);
	if (!scheduler.is_stopped()) {
		scheduler.flaw(Error::built_while_running, "a channel");
		return;
	}
	if (!fits)
		scheduler.flaw(Error::name_length, object_.name);
	else if (!valid(object_.name))
		scheduler.flaw(Error::name, named(object_.name, "a channel"));
	if (scheduler.next_channel_ >= UINT16_MAX) {
		scheduler.flaw(Error::too_many, "channels");
		return;
	}
	object_.id = static_cast<std::uint16_t>(scheduler.next_channel_++);
	*scheduler.channels_end_ = this;
	scheduler.channels_end_ = &next_;
}

Channel::~Channel()
{
	if (scheduler_ == nullptr)
		return;
	(void)scheduler_->stop();
	scheduler_->forget_name(object_.name, "a channel");
	unlink(scheduler_->channels_, *this, &Channel::next_, &scheduler_->channels_end_);
	for (Input *input = first_input_; input != nullptr; input = input->next_of_channel_)
		input->channel_ = nullptr;
}

Barrier::Barrier(Scheduler &scheduler, const char *name, std::uint32_t count) noexcept
    : Channel(scheduler, name)
{
	count_ = first_count_ = count;
	is_barrier_ = true;
	if (count == 0)
		scheduler.flaw(Error::count, named(this->name(), "a barrier"));
}

Event::Event(Scheduler &scheduler, const char *name) noexcept : Channel(scheduler, name)
{
	if (!scheduler.is_stopped())
		return;
	known_ = true;
	next_event_ = scheduler.events_;
	scheduler.events_ = this;
}

Event::~Event()
{
	if (scheduler_ == nullptr)
		return;
	(void)scheduler_->stop();
	unlink(scheduler_->events_, *this, &Event::next_event_);
}

PeriodicEvent::PeriodicEvent(Scheduler &scheduler, const char *name,
	std::chrono::nanoseconds period, std::chrono::nanoseconds offset) noexcept
    : Event(scheduler, name)
{
	period_ns_ = period.count();
	offset_ns_ = offset.count();
	if (period_ns_ <= 0 || offset_ns_ < 0 || period_ns_ > max_time_ns ||
		offset_ns_ > max_time_ns) {
		period_ns_ = max_time_ns;
		offset_ns_ = 0;
		scheduler.flaw(Error::period, named(this->name(), "a periodic event"));
	}
}

Input::Input(Task &task, Channel &channel, Arming arming) noexcept
    : task_(&task), channel_(&channel), arming_(arming)
{
	Scheduler &scheduler = *task.scheduler_;
	if (!scheduler.is_stopped() || !channel.scheduler_->is_stopped()) {
		channel_ = nullptr;
		task_ = nullptr;
		scheduler.flaw(Error::built_while_running, "an input");
		return;
	}
	if (channel.scheduler_ != &scheduler)
		scheduler.flaw(Error::other_scheduler, named(task.name(), "an input"));
	if (arming.threshold_ == 0)
		scheduler.flaw(Error::threshold, named(task.name(), "an input"));
	Input **place = &task.first_input_;
	while (*place != nullptr)
		place = &(*place)->next_of_task_;
	*place = this;
	place = &channel.first_input_;
	while (*place != nullptr)
		place = &(*place)->next_of_channel_;
	*place = this;
	task.required_ += !arming.optional_;
}

Input::~Input()
{
	if (task_ != nullptr) {
		if (task_->scheduler_ != nullptr)
			(void)task_->scheduler_->stop();
		unlink(task_->first_input_, *this, &Input::next_of_task_);
		task_->required_ -= !arming_.optional_;
		task_->count_armed();
	}
	if (channel_ != nullptr)
		unlink(channel_->first_input_, *this, &Input::next_of_channel_);
}

Task::Task(Scheduler &scheduler, const char *name, unsigned priority) noexcept
    : scheduler_(&scheduler), priority_(static_cast<std::uint8_t>(priority))
{
	const bool fits = set_name(object_.name, name);
	if (!scheduler.is_stopped()) {
		scheduler.flaw(Error::built_while_running, "a task");
		return;
	}
	if (!fits)
		scheduler.flaw(Error::name_length, object_.name);
	else if (!valid(object_.name))
		scheduler.flaw(Error::name, named(object_.name, "a task"));
	if (priority < 1 || priority > 255)
		scheduler.flaw(Error::priority, named(object_.name, "a task"));
	if (scheduler.next_task_ >= UINT16_MAX) {
		scheduler.flaw(Error::too_many, "tasks");
		return;
	}
	object_.id = static_cast<std::uint16_t>(scheduler.next_task_++);
	*scheduler.tasks_end_ = this;
	scheduler.tasks_end_ = &next_;
}

Task::~Task()
{
	for (Input *input = first_input_; input != nullptr; input = input->next_of_task_)
		input->task_ = nullptr;
	if (scheduler_ == nullptr)
		return;
	(void)scheduler_->stop();
	scheduler_->forget_name(object_.name, "a task");
	if (group_ != nullptr)
		group_->leave(*this);
	unlink(scheduler_->tasks_, *this, &Task::next_, &scheduler_->tasks_end_);
}

// Here, since activations of tasks without a deadline look at no clock, which a test sees.
void Task::note_activation() noexcept
{
	activated_ns_ = monotonic_ns();
}

// Called without the lock, at the end of an instance.
void Task::judge() noexcept
{
	std::int64_t late = monotonic_ns() - activated_ns_ - deadline_ns_;
	if (late <= 0)
		return;
	missed_deadlines_.fetch_add(1, std::memory_order_relaxed);
	if (missed_ != nullptr)
		missed_(*this, std::chrono::nanoseconds(late), missed_argument_);
}

Status Task::set_deadline(std::chrono::nanoseconds deadline, Missed missed, void *argument) noexcept
{
	if (scheduler_ == nullptr || !scheduler_->is_stopped())
		return {Error::running, name()};
	if (deadline.count() <= 0 || deadline.count() > max_time_ns)
		return {Error::task_deadline, name()};
	deadline_ns_ = deadline.count();
	missed_ = missed;
	missed_argument_ = argument;
	return {};
}

void Task::count_armed() noexcept
{
	required_armed_ = finals_armed_ = 0;
	for (Input *input = first_input_; input != nullptr; input = input->next_of_task_)
		if (input->armed())
			input->count_armed();
}

Group::Group(Scheduler &scheduler) noexcept : scheduler_(&scheduler), next_(scheduler.groups_)
{
	scheduler.groups_ = this;
}

Group::~Group()
{
	while (first_ != nullptr)
		leave(*first_);
	if (scheduler_ != nullptr) {
		(void)scheduler_->stop();
		unlink(scheduler_->groups_, *this, &Group::next_);
	}
}

Status Group::join(Task &task) noexcept
{
	if (!scheduler_->is_stopped())
		return {Error::running, task.name()};
	if (task.scheduler_ != scheduler_)
		return {Error::other_scheduler, task.name()};
	if (task.group_ != nullptr)
		return {Error::group_twice, task.name()};
	Task **place = &first_;
	while (*place != nullptr)
		place = &(*place)->next_of_group_;
	*place = &task;
	task.group_ = this;
	task.next_of_group_ = nullptr;
	++members_;
	++to_run_;
	return {};
}

void Group::leave(Task &task) noexcept
{
	unlink(first_, task, &Task::next_of_group_);
	--members_;
	to_run_ -= task.state_ != Task::State::held;
	task.group_ = nullptr;
	task.state_ = Task::State::idle;
	if (to_run_ != 0)
		return;
	to_run_ = members_;
	for (Task *member = first_; member != nullptr; member = member->next_of_group_)
		member->state_ = Task::State::idle;
}

Status Scheduler::check() const noexcept
{
	if (!flaw_)
		return flaw_;
	for (const Channel *channel = channels_; channel != nullptr; channel = channel->next_)
		for (const Channel *other = channels_; other != channel; other = other->next_)
			if (std::strcmp(channel->name(), other->name()) == 0)
				return {Error::name_twice, channel->name()};
	for (const Task *task = tasks_; task != nullptr; task = task->next_) {
		for (const Task *other = tasks_; other != task; other = other->next_)
			if (std::strcmp(task->name(), other->name()) == 0)
				return {Error::name_twice, task->name()};
		if (task->first_input_ == nullptr)
			return {Error::no_input, task->name()};
		for (const Input *input = task->first_input_; input != nullptr;
			input = input->next_of_task_)
			if (input->channel_ == nullptr)
				return {Error::no_input, task->name()};
	}
	return {};
}

Status Scheduler::reset() noexcept
{
	Locked control(control_);
	if (state_.load(std::memory_order_relaxed) != State::stopped)
		return {Error::running, "the scheduler"};
	for (Channel *channel = channels_; channel != nullptr; channel = channel->next_)
		channel->clear();
	Locked locked(lock_);
	for (Channel *channel = channels_; channel != nullptr; channel = channel->next_) {
		channel->arrived_ = 0;
		channel->count_ = channel->first_count_;
	}
	for (Task *task = tasks_; task != nullptr; task = task->next_) {
		for (Input *input = task->first_input_; input != nullptr;
			input = input->next_of_task_)
			input->pushes_ = input->taken_ = 0;
		task->required_armed_ = task->finals_armed_ = 0;
		task->state_ = Task::State::idle;
	}
	for (Group *group = groups_; group != nullptr; group = group->next_)
		group->to_run_ = group->members_;
	return {};
}

} // namespace punctual::flow
