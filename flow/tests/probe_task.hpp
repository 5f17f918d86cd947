// SPDX-License-Identifier: MIT OR Apache-2.0
//
// What the tests of single rows share: a scheduler without executors, so that a test says when what
// runs, and tasks that write down that they ran.
#ifndef PROBE_TASK_HPP
#define PROBE_TASK_HPP

#include <functional>
#include <gtest/gtest.h>
#include <punctual/flow.hpp>
#include <string>

namespace flow = punctual::flow;

// The names of tasks in the order in which they ran, separated by spaces.
struct Log {
	std::string text;
	std::string take()
	{
		std::string taken;
		taken.swap(text);
		return taken;
	}
};

class Logged : public flow::Task {
public:
	Logged(flow::Scheduler &scheduler, Log &log, const char *name, unsigned priority = 255)
	    : Task(scheduler, name, priority), log_(log)
	{
	}

	void execute() override
	{
		log_.text += (log_.text.empty() ? "" : " ") + std::string(name());
		++runs;
		if (body)
			body();
	}

	int runs = 0;
	// What it does besides.
	std::function<void()> body;

private:
	Log &log_;
};

// A task under a test's control, on a scheduler that runs when told.
class Manual : public testing::Test {
protected:
	void start(flow::Policy policy = flow::Policy::fifo)
	{
		settings.policy = policy;
		settings.executors = 0;
		flow::Status status = scheduler.start(settings);
		ASSERT_TRUE(status) << static_cast<int>(status.error()) << ' ' << status.subject();
	}
	void stop()
	{
		ASSERT_TRUE(scheduler.stop());
	}
	// Runs all that is ready; the names in order.
	std::string run()
	{
		scheduler.run_ready();
		return log.take();
	}
	static void push(flow::Channel &channel, int times)
	{
		while (times-- > 0)
			channel.push();
	}

	flow::Settings settings;
	flow::Scheduler scheduler;
	Log log;
};

#endif
