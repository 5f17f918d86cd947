// SPDX-License-Identifier: MIT OR Apache-2.0
#include <punctual/flow.hpp>

namespace punctual::flow {

void ReadyQueue::add(Task &task) noexcept
{
	++size_;
	switch (policy_) {
	case Policy::fifo:
		append(all_, task);
		break;
	case Policy::lifo:
		task.next_ready_ = all_.first;
		all_.first = &task;
		break;
	case Policy::priority:
		append(of_priority_[task.priority_], task);
		occupied_[task.priority_ / 64] |= std::uint64_t{1} << task.priority_ % 64;
		break;
	}
}

Task *ReadyQueue::take() noexcept
{
	if (size_ == 0)
		return nullptr;
	--size_;
	if (policy_ != Policy::priority)
		return take_first(all_);
	unsigned word = 0;
	while (occupied_[word] == 0)
		++word;
	unsigned bit = static_cast<unsigned>(__builtin_ctzll(occupied_[word]));
	List &list = of_priority_[word * 64 + bit];
	Task *task = take_first(list);
	if (list.first == nullptr)
		occupied_[word] &= ~(std::uint64_t{1} << bit);
	return task;
}

void ReadyQueue::append(List &list, Task &task) noexcept
{
	task.next_ready_ = nullptr;
	if (list.first == nullptr)
		list.first = &task;
	else
		list.last->next_ready_ = &task;
	list.last = &task;
}

Task *ReadyQueue::take_first(List &list) noexcept
{
	Task *task = list.first;
	list.first = task->next_ready_;
	return task;
}

} // namespace punctual::flow
