// SPDX-License-Identifier: MIT OR Apache-2.0
#include <punctual/flow.hpp>

#include <cstring>

namespace punctual::flow {

namespace {

// Why, and what to do.
const char *explanation(Error error) noexcept
{
	switch (error) {
	case Error::none:
		return "no error";
	case Error::running:
		return "is running. Stop it first";
	case Error::not_running:
		return "its scheduler is not running. Start that first";
	case Error::by_task:
		return "was stopped by one of its own tasks, which cannot wait for the end. It is "
		       "stopping; wait for it, or start it, from another thread";
	case Error::name:
		return "has an invalid name. Use 1 to 23 bytes of printable ASCII without space, "
		       "comma, quotes and backslash";
	case Error::name_length:
		return "is the beginning of a name that is too long: names have up to 23 bytes";
	case Error::name_twice:
		return "is the name of two objects. Give each its own";
	case Error::too_many:
		return "there are more than 65,535, counting those that were destroyed";
	case Error::built_while_running:
		return "was constructed while the scheduler was running. Build the graph before "
		       "the start";
	case Error::other_scheduler:
		return "connects tasks and channels of different schedulers";
	case Error::no_input:
		return "has no input, or one whose channel was destroyed, so nothing can activate "
		       "it. Give it an Input";
	case Error::threshold:
		return "has the threshold 0. Make it 1 or more, and optional() if it is not to "
		       "be waited for";
	case Error::priority:
		return "has a priority that is not from 1 (highest) to 255";
	case Error::period:
		return "has a period of 0 or less, a negative offset, or either is longer than "
		       "a hundred years";
	case Error::group_twice:
		return "is already in a group";
	case Error::count:
		return "the count of a barrier cannot be 0";
	case Error::delay:
		return "the delay is negative, or longer than a hundred years";
	case Error::task_deadline:
		return "has a deadline of 0 or less, or longer than a hundred years";
	case Error::executors:
		return "there cannot be more than 64 executors";
	case Error::affinity:
		return "cannot run on these processors: the machine or container has none of them";
	case Error::thread_policy:
		return "cannot have this scheduling policy and priority. Real-time policies need "
		       "CAP_SYS_NICE or a limit (ulimit -r) as high as the priority";
	case Error::deadline:
		return "cannot have this runtime, deadline and period. 1,024 ns <= runtime <= "
		       "deadline <= period must hold, and the processors must have that much time "
		       "left";
	case Error::deadline_permission:
		return "cannot be under SCHED_DEADLINE. That needs CAP_SYS_NICE, and all "
		       "processors of its root domain: leave out on(), and start the program "
		       "without taskset, in a cpuset of its own, or with the kernel's admission "
		       "test switched off (sysctl kernel.sched_rt_runtime_us=-1)";
	case Error::thread:
		return "cannot create a thread";
	case Error::memory:
		return "there is too little memory";
	case Error::trace:
		return "";
	case Error::trace_not_built:
		return "cannot be traced to: this library was built without tracing. Build it with "
		       "-DPUNCTUAL_FLOW_TRACE=ON";
	case Error::full:
		return "is full. The value was not taken";
	}
	return "unknown error";
}

} // namespace

int Status::print(std::FILE *file) const noexcept
{
	std::fprintf(file, "punctual-flow: %s", subject_);
	if (number_ >= 0)
		std::fprintf(file, " %d", number_);
	// The tracer's message says why, and what to do.
	if (error_ != Error::trace)
		std::fprintf(file, ": %s", explanation(error_));
	if (os_error_ != 0)
		std::fprintf(file, " (%s)", std::strerror(os_error_));
	std::fprintf(file, "\n");
	return 1;
}

} // namespace punctual::flow
