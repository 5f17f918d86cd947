// SPDX-License-Identifier: MIT OR Apache-2.0
//
// The executor's traces, as babeltrace2 reads them: every event is there or counted, instances are
// told apart, and the order of time is that of causes.
//
//   flow-trace-test FOLDER
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <punctual/flow.hpp>
#include <semaphore.h>
#include <string>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#include <vector>

extern "C" {
#include "../trace/tests/reading.h"
}

namespace flow = punctual::flow;

namespace {

std::string folder;

#define CHECK(condition) \
	do { \
		if (!(condition)) { \
			std::fprintf( \
				stderr, "%s:%d: FAILED: %s\n", __FILE__, __LINE__, #condition); \
			std::exit(1); \
		} \
	} while (0)

void must(flow::Status status)
{
	if (!status)
		std::exit(status.print(stderr));
}

class Node : public flow::Task {
public:
	Node(flow::Scheduler &scheduler, const std::string &name, flow::Channel &input,
		unsigned pushes, flow::Channel *output)
	    : Task(scheduler, name.c_str()), input_(*this, input, flow::Arming().pushes(pushes)),
	      output_(output)
	{
		sem_init(&ran_, 0, 0);
	}
	void execute() override
	{
		if (output_ != nullptr)
			output_->push();
		sem_post(&ran_);
	}
	void wait(unsigned times)
	{
		while (times != 0)
			times -= sem_wait(&ran_) == 0;
	}

private:
	flow::Input input_;
	flow::Channel *output_;
	sem_t ran_;
};

// source 0…2 ─► first 0…2 ─► middle ─► second (two pushes); tick ─► third
struct Graph {
	flow::Scheduler scheduler;
	flow::Channel source[3]{
		{scheduler, "source0"}, {scheduler, "source1"}, {scheduler, "source2"}};
	flow::Channel middle{scheduler, "middle"};
	flow::PeriodicEvent tick{scheduler, "tick", std::chrono::microseconds(200)};
	std::vector<std::unique_ptr<Node>> tasks;

	Graph()
	{
		for (unsigned number = 0; number < 3; ++number)
			tasks.emplace_back(new Node(scheduler, "first" + std::to_string(number),
				source[number], 1, &middle));
		tasks.emplace_back(new Node(scheduler, "second", middle, 2, nullptr));
		tasks.emplace_back(new Node(scheduler, "third", tick, 1, nullptr));
	}
	~Graph()
	{
		must(scheduler.stop());
	}
};

// The order of causes at the same tick, as docs/flow-traces.md has it.
int rank(const seen &event)
{
	switch (event.kind) {
	case STOP:
		return 0;
	case PUSH:
		return 1;
	case ACTIVATION:
		return 2;
	case START:
		return 3;
	}
	return 4;
}

// How many instances each task has had.
std::vector<std::uint32_t> instances(const Graph &graph)
{
	std::vector<std::uint32_t> numbers;
	for (const auto &task : graph.tasks)
		numbers.push_back(task->instance());
	return numbers;
}

// `before`: what the tasks had when the trace began.
void check_events(reading &read, unsigned executors, const Graph &graph,
	const std::vector<std::uint32_t> &before = std::vector<std::uint32_t>(5))
{
	std::stable_sort(
		read.events, read.events + read.count, [](const seen &one, const seen &other) {
			return one.ticks != other.ticks ? one.ticks < other.ticks
							: rank(one) < rank(other);
		});
	std::vector<std::uint32_t> pushes(16), activations(16), starts(16), stops(16);
	std::vector<std::uint32_t> by(16);
	// The tick of the last push, or end of a run: what an activation comes from. Before the
	// first one, what was pushed before the start activates.
	std::uint64_t cause = 0;
	std::uint32_t early = 0;
	for (std::size_t index = 0; index < read.count; ++index) {
		const seen &event = read.events[index];
		std::uint32_t object = event.object;
		CHECK(object < 16);
		switch (event.kind) {
		case PUSH:
			CHECK(event.number == pushes[object]++ % 16384);
			cause = event.ticks;
			break;
		case ACTIVATION:
			early += cause == 0;
			CHECK(event.ticks == cause || cause == 0);
			CHECK(activations[object] == stops[object]);
			CHECK(event.number == activations[object]++ % 16384);
			break;
		case START:
			CHECK(event.number == starts[object]++ % 16384);
			CHECK(starts[object] == activations[object]);
			CHECK(event.producer < executors);
			by[object] = event.producer;
			break;
		case STOP:
			CHECK(event.number == stops[object]++ % 16384);
			CHECK(stops[object] == starts[object]);
			CHECK(event.producer == by[object]);
			cause = event.ticks;
			break;
		}
	}
	std::vector<std::uint32_t> ran = instances(graph);
	for (std::size_t task = 0; task < ran.size(); ++task) {
		ran[task] -= before[task];
		CHECK(starts[graph.tasks[task]->id()] == ran[task]);
		CHECK(stops[graph.tasks[task]->id()] == ran[task]);
	}
	CHECK(pushes[graph.middle.id()] == ran[0] + ran[1] + ran[2]);
	CHECK(pushes[graph.tick.id()] + early >= ran[4]);
}

void everything_is_there(unsigned executors)
{
	Graph graph;
	remove_trace(folder.c_str());
	flow::Settings settings;
	settings.executors = executors;
	settings.trace = folder.c_str();
	settings.program = "flow-trace-test";
	must(graph.scheduler.start(settings));
	std::thread pushers[2];
	for (std::thread &pusher : pushers)
		pusher = std::thread([&] {
			for (int push = 0; push < 3000; ++push)
				graph.source[push % 3].push();
		});
	for (std::thread &pusher : pushers)
		pusher.join();
	for (int task = 0; task < 3; ++task)
		graph.tasks[task]->wait(2000);
	graph.tasks[3]->wait(3000);
	graph.tasks[4]->wait(5);
	must(graph.scheduler.stop());
	// Nobody traces any more.
	graph.source[0].push();

	reading read = read_trace(folder.c_str());
	CHECK(read.complaints == 0 && read.discarded == 0);
	check_events(read, executors, graph);
	CHECK(graph.tasks[3]->instance() == 3000);
	free_reading(&read);
}

// Pushes its number again and again, as soon as the other one does.
class Pusher : public flow::Task {
public:
	static constexpr int times = 3000;
	using Values = flow::Queue<int, 2 * times>;

	Pusher(flow::Scheduler &scheduler, const char *name, flow::Channel &input, Values &values,
		int number, std::atomic<int> &begun)
	    : Task(scheduler, name), input_(*this, input), values_(values), number_(number),
	      begun_(begun)
	{
	}
	void execute() override
	{
		++begun_;
		while (begun_ != 2)
			continue;
		for (int push = 0; push < times; ++push)
			must(values_.push(number_));
	}

private:
	flow::Input input_;
	Values &values_;
	int number_;
	std::atomic<int> &begun_;
};

// The k-th value that is popped is that of the k-th push, whoever pushes.
void values_are_in_the_order_of_their_events()
{
	flow::Scheduler scheduler;
	Pusher::Values queue(scheduler, "queue");
	flow::Channel signal(scheduler, "signal");
	std::atomic<int> begun{0};
	Pusher one(scheduler, "one", signal, queue, 0, begun),
		other(scheduler, "other", signal, queue, 1, begun);
	remove_trace(folder.c_str());
	flow::Settings settings;
	settings.executors = 2;
	settings.trace = folder.c_str();
	must(scheduler.start(settings));
	signal.push();
	must(scheduler.stop());

	reading read = read_trace(folder.c_str());
	CHECK(read.complaints == 0 && read.discarded == 0);
	std::vector<std::uint32_t> producers(2 * Pusher::times, UINT32_MAX);
	for (std::size_t index = 0; index < read.count; ++index) {
		const seen &event = read.events[index];
		if (event.kind == PUSH && event.object == queue.id())
			producers.at(event.number) = event.producer;
	}
	std::uint32_t of[2] = {UINT32_MAX, UINT32_MAX};
	int value = 0;
	for (std::uint32_t producer : producers) {
		CHECK(queue.pop(value));
		if (of[value] == UINT32_MAX)
			of[value] = producer;
		CHECK(producer == of[value]);
	}
	CHECK(of[0] != of[1]);
	free_reading(&read);
}

void what_has_no_room_is_counted()
{
	Graph graph;
	remove_trace(folder.c_str());
	flow::Settings settings;
	settings.executors = 2;
	settings.trace = folder.c_str();
	must(graph.scheduler.start(settings));
	constexpr unsigned many = 300'000;
	for (unsigned push = 0; push < many * 3; ++push)
		graph.source[push % 3].push();
	for (int task = 0; task < 3; ++task)
		graph.tasks[task]->wait(many);
	graph.tasks[3]->wait(many * 3 / 2);
	must(graph.scheduler.stop());
	reading read = read_trace(folder.c_str());
	CHECK(read.complaints == 0 && read.uncounted == 0);
	// The ticks of the timer are not known beforehand: none of theirs is missing, their
	// producer has hardly any.
	std::uint64_t others = 0;
	std::uint64_t expected = many * 3 + many * 3 + (many * 3 + many * 3 / 2) * 3ull,
		      seen_events = 0;
	for (std::size_t index = 0; index < read.count; ++index) {
		const seen &event = read.events[index];
		bool of_tick = event.kind == PUSH ? event.object == graph.tick.id()
						  : event.object == graph.tasks[4]->id();
		others += of_tick;
		seen_events += !of_tick;
	}
	// Only the third task's events on the executors may be among those that are missing.
	CHECK(seen_events + read.discarded >= expected);
	CHECK(seen_events + read.discarded <= expected + 3ull * graph.tasks[4]->instance());
	std::printf("%zu events in the trace, %llu discarded\n", read.count,
		static_cast<unsigned long long>(read.discarded));
	free_reading(&read);
}

std::string printed(const flow::Status &status)
{
	char text[512] = "";
	std::FILE *file = fmemopen(text, sizeof text, "w");
	CHECK(file != nullptr);
	(void)status.print(file);
	std::fclose(file);
	return text;
}

// Its numbers begin with 0; the program's own go on, as without a trace.
void each_start_has_a_trace_of_its_own()
{
	Graph graph;
	flow::Settings settings;
	settings.trace = folder.c_str();
	for (unsigned run = 0; run < 3; ++run) {
		settings.trace = run != 1 ? folder.c_str() : nullptr;
		remove_trace(folder.c_str());
		const std::vector<std::uint32_t> before = instances(graph);
		CHECK(before[0] == run);
		// As the timer may push while the scheduler stops.
		graph.tick.push();
		must(graph.scheduler.start(settings));
		graph.source[0].push();
		graph.tasks[0]->wait(1);
		must(graph.scheduler.stop());
		CHECK(graph.tasks[0]->instance() == run + 1);
		if (settings.trace == nullptr)
			continue;
		reading read = read_trace(folder.c_str());
		check_events(read, 1, graph, before);
		free_reading(&read);
	}
	// A start more has a folder of its own, since that one is not empty.
	const std::string next = folder + "-2";
	remove_trace(next.c_str());
	const std::vector<std::uint32_t> before = instances(graph);
	must(graph.scheduler.start(settings));
	graph.source[0].push();
	graph.tasks[0]->wait(1);
	must(graph.scheduler.stop());
	reading read = read_trace(next.c_str());
	check_events(read, 1, graph, before);
	free_reading(&read);
	remove_trace(next.c_str());
	// As has another scheduler, for that a program has started again makes no difference.
	Graph other;
	must(other.scheduler.start(settings));
	must(other.scheduler.stop());
	CHECK(access((next + "/metadata").c_str(), F_OK) == 0);
	remove_trace(next.c_str());
	// But what is no trace is in the way.
	remove_trace(folder.c_str());
	CHECK(mkdir(folder.c_str(), 0700) == 0);
	std::FILE *note = std::fopen((folder + "/note").c_str(), "w");
	CHECK(note != nullptr && std::fclose(note) == 0);
	flow::Status refused = other.scheduler.start(settings);
	CHECK(refused.error() == flow::Error::trace);
	CHECK(printed(refused) ==
		"punctual-flow: cannot make the trace " + folder +
			": Directory not empty; name another folder, or remove that one\n");
	CHECK(unlink((folder + "/note").c_str()) == 0 && rmdir(folder.c_str()) == 0);
	CHECK(!other.scheduler.running());
}

std::vector<std::string> env_lines()
{
	std::vector<std::string> lines;
	std::FILE *file = std::fopen((folder + "/metadata").c_str(), "r");
	CHECK(file != nullptr);
	char line[256];
	while (std::fgets(line, sizeof line, file) != nullptr)
		for (const char *key :
			{"\tprogram", "\texecutors", "\tproducer", "\tconnection", "\tbarrier"})
			if (std::strncmp(line, key, std::strlen(key)) == 0)
				lines.emplace_back(line + 1, std::strcspn(line + 1, ";"));
	std::fclose(file);
	return lines;
}

// Each input of each task, with what it keeps from before the start; a second one between the same
// two, as well.
void inputs_are_described()
{
	flow::Scheduler scheduler;
	flow::Queue<int, 8> queue(scheduler, "queue");
	flow::Channel signal(scheduler, "signal");
	flow::Barrier barrier(scheduler, "barrier", 3), single(scheduler, "single", 1);
	struct Sink : flow::Task {
		using Task::Task;
		void execute() override
		{
		}
	} first(scheduler, "first"), second(scheduler, "second");
	flow::Input inputs[] = {{first, queue, flow::Arming().pushes(2)},
		{first, queue, flow::Arming().pushes(7).final()},
		{first, signal, flow::Arming().unsynchronised()},
		{second, barrier, flow::Arming().optional().final().unsynchronised()},
		{second, single, flow::Arming().optional()}, {second, signal}};
	for (int value = 0; value < 3; ++value)
		must(queue.push(value));
	for (int push = 0; push < 2; ++push)
		barrier.push();
	remove_trace(folder.c_str());
	flow::Settings settings;
	settings.executors = 0;
	settings.trace = folder.c_str();
	must(scheduler.start(settings));
	int value;
	CHECK(queue.pop(value));
	must(queue.push(3));
	must(scheduler.stop());
	(void)inputs;
	const std::vector<std::string> expected{
		std::string("program = \"") + program_invocation_short_name + '"', "executors = 0",
		"producer_0 = \"caller\"", "producer_1 = \"timer\"", "producer_2 = \"program\"",
		"connection_0 = \"0 0 threshold=2 synchronised pending=3\"",
		"connection_1 = \"0 0 threshold=7 synchronised final pending=3\"",
		"connection_2 = \"1 0 threshold=1 unsynchronised\"",
		"connection_3 = \"2 1 threshold=1 unsynchronised optional final\"",
		"connection_4 = \"3 1 threshold=1 synchronised optional\"",
		"connection_5 = \"1 1 threshold=1 synchronised\"", "connections = \"all\"",
		"barrier_0 = \"2 3 2\"", "barrier_1 = \"3 1 0\""};
	CHECK(env_lines() == expected);
	reading read = read_trace(folder.c_str());
	// The last push, alone.
	CHECK(read.complaints == 0 && read.count == 1 && read.events[0].kind == PUSH &&
		read.events[0].number == 0);
	free_reading(&read);
}

// Rows E3 to E6: each change is in the trace, once, before the activations that it makes.
void counts_of_barriers_are_noted()
{
	flow::Scheduler scheduler;
	// So that the barrier's number is not 0.
	flow::Channel other(scheduler, "other");
	flow::Barrier barrier(scheduler, "barrier", 3);
	struct Sink : flow::Task {
		using Task::Task;
		void execute() override
		{
		}
	} task(scheduler, "task");
	flow::Input input(task, barrier);
	remove_trace(folder.c_str());
	flow::Settings settings;
	settings.executors = 0;
	settings.trace = folder.c_str();
	must(barrier.set_count(4));
	must(scheduler.start(settings));
	barrier.push();
	must(barrier.set_count(4));
	barrier.raise_count(2);
	barrier.raise_count(0);
	barrier.push();
	must(barrier.set_count(3));
	must(barrier.set_count(1));
	CHECK(!barrier.set_count(0));
	barrier.raise_count(UINT32_MAX);
	barrier.raise_count(1);
	must(scheduler.stop());
	must(barrier.set_count(2));

	CHECK(env_lines().back() == "barrier_0 = \"1 4 0\"");
	reading read = read_trace(folder.c_str());
	CHECK(read.complaints == 0);
	std::string seen_there;
	for (std::size_t index = 0; index < read.count; ++index) {
		const seen &event = read.events[index];
		count noted;
		CHECK(index == 0 || event.ticks >= read.events[index - 1].ticks);
		if (!read_count(&read, index, &noted)) {
			seen_there += "PASX"[event.kind];
			continue;
		}
		CHECK(noted.channel == barrier.id());
		seen_there += " " + std::to_string(noted.count) + " ";
		index += 3;
		// What it causes happens when it does; the four parts are at one time.
		CHECK(read.events[index].ticks == event.ticks);
		if (noted.count == 1)
			CHECK(read.events[index + 1].kind == ACTIVATION &&
				read.events[index + 1].ticks == event.ticks);
	}
	CHECK(seen_there == "P 6 P 3  1 A 4294967295 SX");
	free_reading(&read);
}

unsigned number_after(const std::string &line, const char *word)
{
	std::size_t place = line.find(word);
	return place == std::string::npos
		       ? 0
		       : static_cast<unsigned>(std::atoi(line.c_str() + place + std::strlen(word)));
}

// While other threads push all the time, each push is either in the trace or in what it says of its
// beginning.
void each_push_is_before_the_trace_or_in_it()
{
	flow::Scheduler scheduler;
	flow::Channel channel(scheduler, "channel");
	flow::Barrier barrier(scheduler, "barrier", 1'000'000'000);
	struct Sink : flow::Task {
		using Task::Task;
		void execute() override
		{
		}
	} task(scheduler, "task");
	flow::Input input(task, channel, flow::Arming().pushes(1'000'000'000)),
		other(task, barrier);
	flow::Settings settings;
	settings.trace = folder.c_str();
	for (int round = 0; round < 20; ++round) {
		must(scheduler.reset());
		remove_trace(folder.c_str());
		std::atomic<bool> started{false};
		std::atomic<unsigned> pushed{0};
		std::thread pusher([&] {
			// Some more after the start, so that there are some in the trace.
			for (unsigned more = 0; more < 100; more += started.load()) {
				channel.push();
				barrier.push();
				++pushed;
			}
		});
		while (pushed.load() < 100)
			std::this_thread::yield();
		must(scheduler.start(settings));
		started.store(true);
		pusher.join();
		must(scheduler.stop());
		const std::vector<std::string> lines = env_lines();
		// The program, one executor, three producers; what follows is of the graph.
		CHECK(lines.size() == 9);
		reading read = read_trace(folder.c_str());
		CHECK(read.complaints == 0 && read.uncounted == 0);
		std::size_t on_channel = 0;
		for (std::size_t index = 0; index < read.count; ++index)
			on_channel += read.events[index].kind == PUSH &&
				      read.events[index].object == channel.id();
		const unsigned pending = number_after(lines[5], "pending="),
			       arrived = number_after(lines[8], "1000000000 ");
		CHECK(pending >= 100 && arrived >= 100 && on_channel >= 99);
		// Nothing was discarded, or all were on both.
		CHECK(read.discarded != 0 || on_channel + pending == pushed.load());
		CHECK(pending + arrived + read.count + read.discarded ==
			2 * std::size_t{pushed.load()});
		free_reading(&read);
	}
}

void there_is_one_trace_at_a_time()
{
	Graph graph, other;
	flow::Settings settings;
	settings.trace = folder.c_str();
	remove_trace(folder.c_str());
	must(graph.scheduler.start(settings));
	CHECK(other.scheduler.start(settings).error() == flow::Error::trace);
	// Beside it, without: the events of the other one are not in the trace.
	must(other.scheduler.start());
	other.source[0].push();
	other.tasks[0]->wait(1);
	graph.source[0].push();
	graph.tasks[0]->wait(1);
	must(other.scheduler.stop());
	must(graph.scheduler.stop());
	reading read = read_trace(folder.c_str());
	check_events(read, 1, graph);
	free_reading(&read);
}

} // namespace

int main(int count, char **arguments)
{
	CHECK(count == 2);
	folder = arguments[1];
	for (unsigned executors : {1u, 2u, 4u})
		everything_is_there(executors);
	values_are_in_the_order_of_their_events();
	what_has_no_room_is_counted();
	each_start_has_a_trace_of_its_own();
	inputs_are_described();
	counts_of_barriers_are_noted();
	each_push_is_before_the_trace_or_in_it();
	there_is_one_trace_at_a_time();
	return 0;
}
