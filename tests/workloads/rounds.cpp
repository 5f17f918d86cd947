// A dataflow program with a barrier whose count changes, and which logs what each instance takes
// from it: `rounds TRACE`. It has no executors, so every run is the same.
#include <cstdio>
#include <punctual/flow.hpp>

namespace flow = punctual::flow;

static flow::Scheduler scheduler;
static flow::Channel go(scheduler, "go");
static flow::Channel command(scheduler, "command");
static flow::Barrier barrier(scheduler, "barrier", 2);

static struct Source : flow::Task {
	Source() : Task(scheduler, "source")
	{
	}
	void execute() override
	{
		if (instance() % 3 != 1)
			barrier.push();
		if (instance() % 7 == 3)
			(void)barrier.set_count(1 + instance() % 5);
		if (instance() % 11 == 5)
			barrier.raise_count(1);
	}
	flow::Input in{*this, go};
} source;

struct Sink : flow::Task {
	Sink(const char *name, flow::Arming arming)
	    : Task(scheduler, name), in(*this, barrier, arming)
	{
	}
	void execute() override
	{
		std::printf("%s %u %u\n", name(), instance(), in.taken());
	}
	flow::Input in;
};

// One that a command activates, whether or not a round has ended; one that a command activates
// instead of a round; and one that needs two rounds.
static Sink with("with", flow::Arming().optional());
static flow::Input with_command(with, command);
static Sink instead("instead", flow::Arming());
static flow::Input instead_command(instead, command, flow::Arming().final());
static Sink twice("twice", flow::Arming().pushes(2));

int main(int count, char **arguments)
{
	if (count != 2)
		return std::fprintf(stderr, "rounds TRACE\n"), 2;
	flow::Settings settings;
	settings.executors = 0;
	settings.trace = arguments[1];
	if (flow::Status status = scheduler.start(settings); !status)
		return status.print(stderr);
	for (int round = 0; round < 60; round++) {
		go.push();
		scheduler.run_ready();
		if (round % 4 != 0)
			command.push();
		// Sometimes a task is still busy in the next round.
		scheduler.run_ready(round % 5 != 0 ? 100 : 1);
	}
	scheduler.run_ready();
	if (flow::Status status = scheduler.stop(); !status)
		return status.print(stderr);
	return 0;
}
