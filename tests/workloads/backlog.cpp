// A dataflow program whose inputs buffer data, and which logs what each instance reads:
// `backlog TRACE MILLISECONDS`.
//
// At each tick the source pushes one to eight values: to a queue, from which the sink takes two at
// a time, more slowly than they arrive; and to a channel that holds the newest, which the view
// reads. A value is the number of the instance that pushed it.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <punctual/flow.hpp>
#include <thread>
#include <vector>

namespace flow = punctual::flow;

struct Read {
	std::uint32_t instance, source;
};

static flow::Scheduler scheduler;
static flow::PeriodicEvent tick(scheduler, "tick", std::chrono::milliseconds(4));
static flow::Queue<std::uint32_t, 4096> values(scheduler, "values");
static flow::Latest<std::uint32_t> newest(scheduler, "newest");
static std::vector<Read> of_sink, of_view;

// Gives executors something to be late with.
static void work(std::chrono::microseconds span)
{
	const auto until = std::chrono::steady_clock::now() + span;
	while (std::chrono::steady_clock::now() < until)
		;
}

static struct Source : flow::Task {
	Source() : Task(scheduler, "source")
	{
	}
	void execute() override
	{
		for (std::uint32_t value = 0; value <= instance() * 5 % 8; value++) {
			if (flow::Status status = values.push(instance()); !status)
				std::exit(status.print(stderr));
			newest.push(instance());
		}
	}
	flow::Input in{*this, tick};
} source;

static struct Sink : flow::Task {
	Sink() : Task(scheduler, "sink")
	{
	}
	void execute() override
	{
		std::uint32_t value = 0;
		for (unsigned taken = 0; taken < in.taken(); taken++)
			if (!values.pop(value))
				std::abort();
		of_sink.push_back({instance(), value});
		work(std::chrono::microseconds(1500));
	}
	flow::Input in{*this, values, flow::Arming().pushes(2)};
} sink;

static struct View : flow::Task {
	View() : Task(scheduler, "view")
	{
	}
	void execute() override
	{
		of_view.push_back({instance(), newest.read()});
		work(std::chrono::microseconds(700));
	}
	flow::Input in{*this, newest, flow::Arming().unsynchronised()};
} view;

int main(int count, char **arguments)
{
	if (count != 3)
		return std::fprintf(stderr, "backlog TRACE MILLISECONDS\n"), 2;
	flow::Settings settings;
	settings.executors = 2;
	settings.trace = arguments[1];
	if (flow::Status status = scheduler.start(settings); !status)
		return status.print(stderr);
	std::this_thread::sleep_for(std::chrono::milliseconds(std::atoi(arguments[2])));
	if (flow::Status status = scheduler.stop(); !status)
		return status.print(stderr);
	for (Read read : of_sink)
		std::printf("sink %u %u\n", read.instance, read.source);
	for (Read read : of_view)
		std::printf("view %u %u\n", read.instance, read.source);
	return 0;
}
