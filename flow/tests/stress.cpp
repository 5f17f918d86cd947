// SPDX-License-Identifier: MIT OR Apache-2.0
//
//   flow-stress PUSHES [EXECUTORS…]
//
// No activation is lost, no wake-up is lost, and stop returns: with each number of executors (1 to
// 8 unless said otherwise) two threads push as fast as they can, a third one stops and starts the
// scheduler now and then; all of it must come out at the other end, exactly. PUSHES are those on
// all channels together, for each number of executors. What is lost is waited for in vain: run it
// with a time limit. Half of the pushes come as fast as can be, so that the executors are busy;
// half of them wait for the first tasks to catch up, so that they fall asleep and are woken all the
// time.
//
// Eight tasks with one push each, four with three of these, one with whatever these make:
//
//   source 0…7 ─► first 0…7 ─► middle 0…3 (three pushes) ─► second 0…3 ─► last ─► third
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <punctual/flow.hpp>
#include <semaphore.h>
#include <thread>

namespace flow = punctual::flow;

namespace {

constexpr unsigned sources = 8, middles = 4, threshold = 3;

[[noreturn]] void fail(const char *what, std::uint64_t is, std::uint64_t should)
{
	std::fprintf(stderr, "FAILED: %s: %llu, and should be %llu\n", what,
		static_cast<unsigned long long>(is), static_cast<unsigned long long>(should));
	std::_Exit(1);
}

void check(flow::Status status)
{
	if (!status)
		std::_Exit(status.print(stderr));
}

class Stage : public flow::Task {
public:
	Stage(flow::Scheduler &scheduler, const char *name, flow::Channel &input, unsigned pushes,
		flow::Channel *output)
	    : Task(scheduler, name), input_(*this, input, flow::Arming().pushes(pushes)),
	      output_(output)
	{
		sem_init(&done_, 0, 0);
	}

	void execute() override
	{
		if (inside_.exchange(true, std::memory_order_relaxed))
			fail("instances of one task at a time", 2, 1);
		if (input_.taken() == 0)
			fail("pushes that an instance has taken", 0, 1);
		if (output_ != nullptr)
			output_->push();
		std::uint64_t ran = ran_.load(std::memory_order_relaxed) + 1;
		ran_.store(ran, std::memory_order_relaxed);
		inside_.store(false, std::memory_order_relaxed);
		if (ran == expected_)
			sem_post(&done_);
	}

	void expect(std::uint64_t runs)
	{
		expected_ = runs;
		ran_ = 0;
	}
	void wait()
	{
		if (expected_ == 0)
			return;
		while (sem_wait(&done_) != 0) {
		}
	}
	std::uint64_t ran() const
	{
		return ran_.load(std::memory_order_relaxed);
	}
	void check_runs() const
	{
		if (ran_ != expected_)
			fail(name(), ran_, expected_);
	}

private:
	flow::Input input_;
	flow::Channel *output_;
	std::atomic<bool> inside_{false};
	std::atomic<std::uint64_t> ran_{0};
	std::uint64_t expected_ = 0;
	sem_t done_;
};

// Channels and tasks of one kind, named by number.
template <typename Kind, unsigned count> struct Many {
	Kind *elements[count];
	~Many()
	{
		for (Kind *element : elements)
			delete element;
	}
	Kind &operator[](std::size_t index)
	{
		return *elements[index];
	}
};

struct Graph {
	flow::Scheduler scheduler;
	Many<flow::Channel, sources> source;
	Many<flow::Channel, middles> middle;
	flow::Channel end{scheduler, "end"};
	Many<Stage, sources> first;
	Many<Stage, middles> second;
	Stage *third;

	Graph()
	{
		char name[16];
		for (unsigned number = 0; number < sources; ++number) {
			std::snprintf(name, sizeof name, "source%u", number);
			source.elements[number] = new flow::Channel(scheduler, name);
		}
		for (unsigned number = 0; number < middles; ++number) {
			std::snprintf(name, sizeof name, "middle%u", number);
			middle.elements[number] = new flow::Channel(scheduler, name);
		}
		for (unsigned number = 0; number < sources; ++number) {
			std::snprintf(name, sizeof name, "first%u", number);
			first.elements[number] = new Stage(
				scheduler, name, source[number], 1, &middle[number % middles]);
		}
		for (unsigned number = 0; number < middles; ++number) {
			std::snprintf(name, sizeof name, "second%u", number);
			second.elements[number] =
				new Stage(scheduler, name, middle[number], threshold, &end);
		}
		third = new Stage(scheduler, "third", end, 1, nullptr);
	}
	~Graph()
	{
		check(scheduler.stop());
		delete third;
	}
};

void run(std::uint64_t pushes, const flow::Settings &settings, bool paced)
{
	Graph graph;
	// Each outer push makes one on a middle channel, and every third of these one on the end.
	const std::uint64_t outer = pushes * threshold / (2 * threshold + 1) / (sources * 2) *
				    (sources * 2),
			    each = outer / sources;
	std::uint64_t passed = 0;
	for (unsigned number = 0; number < sources; ++number)
		graph.first[number].expect(each);
	for (unsigned number = 0; number < middles; ++number) {
		std::uint64_t runs = each * (sources / middles) / threshold;
		graph.second[number].expect(runs);
		passed += runs;
	}
	graph.third->expect(passed);

	check(graph.scheduler.start(settings));
	std::atomic<bool> over{false};
	std::thread pushers[2], stopper;
	for (std::thread &pusher : pushers)
		pusher = std::thread([&] {
			for (std::uint64_t push = 0; push < outer / 2; ++push) {
				graph.source[push % sources].push();
				// Both threads have pushed so often on it, or the other one has not
				// yet.
				while (paced && graph.first[push % sources].ran() < push / sources)
					sched_yield();
			}
		});
	unsigned stops = 0;
	stopper = std::thread([&] {
		for (std::uint32_t random = 1; !over.load(std::memory_order_relaxed);
			random = random * 1664525 + 1013904223) {
			check(graph.scheduler.stop());
			if (graph.scheduler.running())
				fail("running after a stop", 1, 0);
			check(graph.scheduler.start(settings));
			++stops;
			timespec pause{0, static_cast<long>(random % 20'000'000)};
			nanosleep(&pause, nullptr);
		}
	});
	for (std::thread &pusher : pushers)
		pusher.join();
	for (unsigned number = 0; number < sources; ++number)
		graph.first[number].wait();
	for (unsigned number = 0; number < middles; ++number)
		graph.second[number].wait();
	graph.third->wait();
	over.store(true);
	stopper.join();
	check(graph.scheduler.stop());
	// Nothing came twice.
	for (unsigned number = 0; number < sources; ++number)
		graph.first[number].check_runs();
	for (unsigned number = 0; number < middles; ++number)
		graph.second[number].check_runs();
	graph.third->check_runs();
	std::printf("%u executors, policy %u, %s: %llu pushes, %llu activations, %u stops\n",
		settings.executors, static_cast<unsigned>(settings.policy),
		paced ? "paced" : "as fast as can be",
		static_cast<unsigned long long>(outer * 2 + passed),
		static_cast<unsigned long long>(outer + 2 * passed), stops);
	std::fflush(stdout);
}

} // namespace

int main(int count, char **arguments)
{
	const std::uint64_t pushes = count > 1 ? std::strtoull(arguments[1], nullptr, 10) : 0;
	if (pushes == 0) {
		std::fprintf(stderr, "Usage: %s PUSHES [EXECUTORS...]\n", arguments[0]);
		return 2;
	}
	flow::Settings settings;
	auto run_with = [&](unsigned executors) {
		settings.executors = executors;
		settings.policy = static_cast<flow::Policy>(executors % 3);
		run(pushes / 2, settings, false);
		run(pushes / 2, settings, true);
	};
	for (int argument = 2; argument < count; ++argument)
		run_with(static_cast<unsigned>(std::atoi(arguments[argument])));
	for (unsigned executors = 1; count == 2 && executors <= 8; ++executors)
		run_with(executors);
	return 0;
}
