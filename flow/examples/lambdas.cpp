// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Tasks from lambdas, which take the inputs of their channels, and a deadline: ten times a second a
// speed is measured, and scaled by a gain that another thread may change at any time. Runs for a
// second. With an argument, it traces to that folder.
#include <atomic>
#include <cstdio>
#include <punctual/flow.hpp>
#include <unistd.h>

namespace flow = punctual::flow;
using namespace std::chrono_literals;

static void tell(flow::Task &task, std::chrono::nanoseconds late, void *)
{
	std::fprintf(stderr, "instance %u is %lld us late\n", task.instance(),
		static_cast<long long>(late.count() / 1000));
}

int main(int count, char **arguments)
{
	flow::Scheduler scheduler;
	flow::PeriodicEvent tick(scheduler, "tick", 100ms);
	flow::Queue<int, 8> speeds(scheduler, "speeds");
	flow::Latest<int> gain(scheduler, "gain", 2);
	int speed = 0;
	std::atomic<unsigned> lost{0};

	flow::Call measure(
		scheduler, "measure",
		[&](flow::Input &) {
			if (!speeds.push(++speed))
				++lost;
		},
		tick);
	flow::Call scale(
		scheduler, "scale",
		[&](flow::QueueInput<int, 8> &values) {
			int value;
			if (values.pop(value))
				std::printf("%d\n", value * gain.read());
		},
		speeds);
	flow::LatestInput<int> gain_of_scale(
		scale, gain, flow::Arming().unsynchronised().optional());
	if (flow::Status status = scale.set_deadline(50ms, tell); !status)
		return status.print(stderr);

	flow::Settings settings;
	settings.program = "lambdas";
	settings.trace = count > 1 ? arguments[1] : nullptr;
	if (flow::Status status = scheduler.start(settings); !status)
		return status.print(stderr);
	usleep(500'000);
	gain.push(10);
	usleep(500'000);
	if (flow::Status status = scheduler.stop(); !status)
		return status.print(stderr);
	return lost != 0;
}
