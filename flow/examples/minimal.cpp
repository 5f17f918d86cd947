// SPDX-License-Identifier: MIT OR Apache-2.0
//
// The smallest program: ten times a second a task counts, and another prints the numbers. Runs for
// a second. With an argument, it traces to that folder.
#include <cstdio>
#include <punctual/flow.hpp>
#include <unistd.h>

namespace flow = punctual::flow;

static flow::Scheduler scheduler;
static flow::PeriodicEvent tick(scheduler, "tick", std::chrono::milliseconds(100));
static flow::Queue<unsigned, 4> numbers(scheduler, "numbers");

class Count : public flow::Task {
public:
	Count() noexcept : Task(scheduler, "count")
	{
	}

	void execute() override
	{
		if (flow::Status status = numbers.push(instance()); !status)
			status.print(stderr);
	}

private:
	flow::Input tick_{*this, tick};
};

class Print : public flow::Task {
public:
	Print() noexcept : Task(scheduler, "print")
	{
	}

	void execute() override
	{
		unsigned number;
		if (numbers.pop(number))
			std::printf("%u\n", number);
	}

private:
	flow::Input number_{*this, numbers};
};

int main(int count, char **arguments)
{
	Count counting;
	Print printing;
	flow::Settings settings;
	settings.program = "minimal";
	settings.trace = count > 1 ? arguments[1] : nullptr;
	if (flow::Status status = scheduler.start(settings); !status)
		return status.print(stderr);
	sleep(1);
	if (flow::Status status = scheduler.stop(); !status)
		return status.print(stderr);
	return 0;
}
