// SPDX-License-Identifier: MIT OR Apache-2.0
#include <cstdio>
#include <punctual/flow.hpp>

namespace flow = punctual::flow;

static flow::Scheduler scheduler;
static flow::Latest<int> image(scheduler, "image");

struct Show : flow::Task {
	Show() : Task(scheduler, "show")
	{
	}
	void execute() override
	{
		std::printf("image %d\n", image.read());
	}
	flow::Input images{*this, image};
} static show;

int main(int count, char **arguments)
{
	flow::Settings settings;
	settings.executors = 2;
	settings.trace = count > 1 ? arguments[1] : nullptr;
	if (flow::Status status = scheduler.start(settings); !status)
		return status.print(stderr);
	image.push(1);
	if (flow::Status status = scheduler.stop(); !status)
		return status.print(stderr);
	return 0;
}
