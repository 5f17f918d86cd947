// A dataflow program with a join, one input of which never arrives last: each round pushes the map,
// then the image, and the navigation needs both. The library is built without tracing, so only
// probes see it, and they never see the map activate anything. `joined ROUNDS`.
#include <cstdio>
#include <cstdlib>
#include <punctual/flow.hpp>

namespace flow = punctual::flow;

static flow::Scheduler scheduler;
static flow::Channel map(scheduler, "map");
static flow::Channel image(scheduler, "image");
static flow::Channel pose(scheduler, "pose");

static struct Navigation : flow::Task {
	Navigation() : Task(scheduler, "navi")
	{
	}
	void execute() override
	{
		pose.push();
	}
	flow::Input map_input{*this, map};
	flow::Input image_input{*this, image};
} navigation;

static struct Motor : flow::Task {
	Motor() : Task(scheduler, "moto")
	{
	}
	void execute() override
	{
	}
	flow::Input pose_input{*this, pose};
} motor;

int main(int count, char **arguments)
{
	const int rounds = count > 1 ? std::atoi(arguments[1]) : 100;
	flow::Settings settings;
	settings.executors = 0;
	if (flow::Status status = scheduler.start(settings); !status)
		return status.print(stderr);
	for (int round = 0; round < rounds; round++) {
		map.push();
		image.push();
		scheduler.run_ready();
	}
	if (flow::Status status = scheduler.stop(); !status)
		return status.print(stderr);
	std::printf("navi %u, moto %u\n", navigation.instance(), motor.instance());
	return 0;
}
