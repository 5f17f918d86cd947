// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Random graphs. Without executors, against a second executor that is as simple as the tables of
// docs/flow.md are to read; with executors, against what must be kept.
#include <algorithm>
#include <atomic>
#include <deque>
#include <random>
#include <semaphore.h>
#include <thread>
#include <vector>

#include "probe_task.hpp"

using flow::Arming;
using flow::Barrier;
using flow::Channel;
using flow::Input;

namespace {

// What a graph is made of, for both.
struct Plan {
	struct Wire {
		unsigned task, channel, threshold;
		bool optional, final, synchronised;
	};
	unsigned tasks, channels;
	std::vector<unsigned> counts;		    // of each channel: a barrier's, or 1
	std::vector<unsigned> priorities;	    // of each task
	std::vector<int> groups;		    // of each task, or -1
	std::vector<std::vector<unsigned>> outputs; // of each task: channels on which it pushes
	std::vector<Wire> wires;

	explicit Plan(std::mt19937 &random)
	{
		auto up_to = [&](unsigned most) {
			return static_cast<unsigned>(random() % (most + 1));
		};
		tasks = 1 + up_to(5);
		channels = 1 + up_to(5);
		for (unsigned channel = 0; channel < channels; ++channel)
			counts.push_back(up_to(3) == 0 ? 1 + up_to(3) : 1);
		for (unsigned task = 0; task < tasks; ++task) {
			priorities.push_back(1 + up_to(2) * up_to(1) * 50);
			groups.push_back(static_cast<int>(up_to(3)) - 2);
			outputs.emplace_back();
			for (unsigned output = up_to(2); output != 0; --output)
				outputs.back().push_back(up_to(channels - 1));
			for (unsigned input = 1 + up_to(2); input != 0; --input)
				wires.push_back({task, up_to(channels - 1), 1 + up_to(2),
					up_to(3) == 0, up_to(4) == 0, up_to(2) != 0});
		}
	}
};

// The tables, read aloud.
struct Model {
	enum State { idle, ready, held };
	struct In {
		Plan::Wire wire;
		unsigned pushes = 0, taken = 0;
	};

	explicit Model(const Plan &of, flow::Policy with)
	    : plan(of), policy(with), states(of.tasks, idle), counts(of.counts),
	      arrived(of.channels, 0), runs(of.tasks, 0)
	{
		for (const Plan::Wire &wire : plan.wires)
			inputs.push_back({wire});
	}
	void push(unsigned channel)
	{
		if (++arrived[channel] < counts[channel])
			return;
		pass(channel);
	}
	void pass(unsigned channel)
	{
		arrived[channel] = 0;
		for (In &input : inputs) {
			if (input.wire.channel != channel)
				continue;
			bool is_idle = states[input.wire.task] == idle;
			if (!input.wire.synchronised &&
				(!is_idle || input.pushes == input.wire.threshold))
				continue;
			++input.pushes;
			if (is_idle)
				consider(input.wire.task);
		}
	}
	void set_count(unsigned channel, unsigned count)
	{
		counts[channel] = count;
		if (arrived[channel] >= count)
			pass(channel);
	}
	void consider(unsigned task)
	{
		bool any_final = false, required = false, all = true;
		for (const In &input : inputs) {
			if (input.wire.task != task)
				continue;
			bool armed = input.pushes >= input.wire.threshold;
			any_final |= armed && input.wire.final;
			required |= !input.wire.optional;
			all &= armed || input.wire.optional;
		}
		if (!running || !(any_final || (required && all)))
			return;
		for (In &input : inputs) {
			if (input.wire.task != task)
				continue;
			input.taken =
				input.pushes >= input.wire.threshold ? input.wire.threshold : 0;
			input.pushes = input.wire.synchronised ? input.pushes - input.taken : 0;
		}
		states[task] = ready;
		queue.push_back(task);
	}
	bool run_one()
	{
		if (queue.empty())
			return false;
		auto next = queue.begin();
		if (policy == flow::Policy::lifo)
			next = queue.end() - 1;
		if (policy == flow::Policy::priority)
			next = std::min_element(
				queue.begin(), queue.end(), [this](unsigned one, unsigned other) {
					return plan.priorities[one] < plan.priorities[other];
				});
		unsigned task = *next;
		queue.erase(next);
		log += std::to_string(task);
		for (const In &input : inputs)
			if (input.wire.task == task)
				log += ',' + std::to_string(input.taken);
		log += ' ';
		for (unsigned channel : plan.outputs[task])
			push(channel);
		++runs[task];
		if (plan.groups[task] < 0) {
			states[task] = idle;
			consider(task);
			return true;
		}
		states[task] = held;
		for (unsigned member = 0; member < plan.tasks; ++member)
			if (plan.groups[member] == plan.groups[task] && states[member] != held)
				return true;
		for (unsigned member = 0; member < plan.tasks; ++member)
			if (plan.groups[member] == plan.groups[task])
				states[member] = idle;
		for (unsigned member = 0; member < plan.tasks; ++member)
			if (plan.groups[member] == plan.groups[task])
				consider(member);
		return true;
	}
	void start()
	{
		running = true;
		for (unsigned task = 0; task < plan.tasks; ++task)
			if (states[task] == idle)
				consider(task);
	}
	void stop()
	{
		running = false;
		while (run_one()) {
		}
	}
	void reset()
	{
		for (In &input : inputs)
			input.pushes = input.taken = 0;
		counts = plan.counts;
		arrived.assign(plan.channels, 0);
		states.assign(plan.tasks, idle);
	}

	const Plan &plan;
	flow::Policy policy;
	std::vector<State> states;
	std::vector<In> inputs;
	std::vector<unsigned> counts, arrived;
	std::vector<unsigned> runs;
	std::deque<unsigned> queue;
	std::string log;
	bool running = false;
};

// The same with the executor.
struct Real {
	struct Node : flow::Task {
		Node(Real &of, unsigned number)
		    : Task(of.scheduler, ("t" + std::to_string(number)).c_str(),
			      of.plan.priorities[number]),
		      real(of), me(number)
		{
			for (const Plan::Wire &wire : real.plan.wires) {
				if (wire.task != me)
					continue;
				Arming arming = Arming().pushes(wire.threshold);
				if (wire.optional)
					arming = arming.optional();
				if (wire.final)
					arming = arming.final();
				if (!wire.synchronised)
					arming = arming.unsynchronised();
				inputs.emplace_back(
					new Input(*this, *real.channels[wire.channel], arming));
			}
		}
		void execute() override
		{
			EXPECT_FALSE(inside.exchange(true));
			if (real.logging) {
				real.log += std::to_string(me);
				for (auto &input : inputs)
					real.log += ',' + std::to_string(input->taken());
				real.log += ' ';
			}
			for (std::size_t input = 0; input < inputs.size(); ++input)
				taken[input] += inputs[input]->taken();
			for (unsigned channel : real.plan.outputs[me])
				real.push(channel);
			++runs;
			inside.store(false);
		}
		Real &real;
		unsigned me;
		unsigned runs = 0;
		std::atomic<bool> inside{false};
		std::uint64_t taken[3] = {};
		std::vector<std::unique_ptr<Input>> inputs;
	};

	explicit Real(const Plan &of) : plan(of), pushes(of.channels)
	{
		for (unsigned channel = 0; channel < plan.channels; ++channel)
			channels.emplace_back(new Barrier(scheduler,
				("c" + std::to_string(channel)).c_str(), plan.counts[channel]));
		for (unsigned task = 0; task < plan.tasks; ++task)
			nodes.emplace_back(new Node(*this, task));
		for (int group = 0; group < 2; ++group) {
			groups.emplace_back(new flow::Group(scheduler));
			for (unsigned task = 0; task < plan.tasks; ++task)
				if (plan.groups[task] == group) {
					EXPECT_TRUE(groups.back()->join(*nodes[task]));
				}
		}
	}
	void push(unsigned channel)
	{
		pushes[channel].fetch_add(1, std::memory_order_relaxed);
		channels[channel]->push();
	}

	const Plan &plan;
	std::vector<std::atomic<std::uint64_t>> pushes;
	bool logging = true;
	std::string log;
	flow::Scheduler scheduler;
	std::vector<std::unique_ptr<Barrier>> channels;
	std::vector<std::unique_ptr<flow::Group>> groups;
	std::vector<std::unique_ptr<Node>> nodes;
};

} // namespace

TEST(Random, the_executor_does_what_the_tables_say)
{
	std::uint64_t ran = 0;
	for (unsigned seed = 0; seed < 4000; ++seed) {
		std::mt19937 random(seed);
		Plan plan(random);
		flow::Settings settings;
		settings.executors = 0;
		settings.policy = static_cast<flow::Policy>(seed % 3);
		Model model(plan, settings.policy);
		Real real(plan);
		for (int step = 0; step < 150; ++step) {
			switch (random() % 16) {
			case 0:
				if (model.running) {
					model.stop();
					ASSERT_TRUE(real.scheduler.stop());
				} else {
					model.start();
					ASSERT_TRUE(real.scheduler.start(settings));
				}
				break;
			case 1:
				if (!model.running && random() % 4 == 0) {
					model.reset();
					ASSERT_TRUE(real.scheduler.reset());
				}
				break;
			case 2: {
				unsigned channel = static_cast<unsigned>(random() % plan.channels),
					 count = static_cast<unsigned>(1 + random() % 4);
				model.set_count(channel, count);
				ASSERT_TRUE(real.channels[channel]->set_count(count));
				break;
			}
			case 3:
			case 4:
			case 5: {
				std::size_t most = random() % 4, ran_now = 0;
				while (ran_now < most && model.run_one())
					++ran_now;
				ASSERT_EQ(real.scheduler.run_ready(most), ran_now)
					<< "seed " << seed << " step " << step;
				ran += ran_now;
				break;
			}
			default: {
				unsigned channel = static_cast<unsigned>(random() % plan.channels);
				model.push(channel);
				real.push(channel);
			}
			}
			ASSERT_EQ(real.log, model.log) << "seed " << seed << " step " << step;
			real.log.clear();
			model.log.clear();
		}
		for (unsigned task = 0; task < plan.tasks; ++task)
			ASSERT_EQ(real.nodes[task]->instance(), model.runs[task])
				<< "seed " << seed;
	}
	// Or the graphs are dull.
	EXPECT_GT(ran, 30'000u);
}

// With executors, orders differ; but what a task has taken of a synchronised input and what it
// could still take are together the pushes that there were.
TEST(Random, no_push_is_lost_with_executors)
{
	for (unsigned seed = 0; seed < 150; ++seed) {
		std::mt19937 random(seed);
		Plan plan(random);
		for (unsigned &count : plan.counts)
			count = 1;
		for (Plan::Wire &wire : plan.wires)
			wire.synchronised = true;
		Real real(plan);
		real.logging = false;
		flow::Settings settings;
		settings.executors = 1 + seed % 4;
		settings.policy = static_cast<flow::Policy>(seed % 3);
		settings.spin = std::chrono::nanoseconds(seed % 2 * 5000);
		ASSERT_TRUE(real.scheduler.start(settings));
		std::vector<std::thread> threads;
		for (unsigned thread = 0; thread < 2; ++thread)
			threads.emplace_back([&, thread] {
				std::mt19937 mine(seed * 2 + thread);
				for (int push = 0; push < 500; ++push)
					real.push(static_cast<unsigned>(mine() % plan.channels));
			});
		for (std::thread &thread : threads)
			thread.join();
		ASSERT_TRUE(real.scheduler.stop());
		for (auto &node : real.nodes) {
			ASSERT_EQ(node->instance(), node->runs);
			std::size_t input = 0;
			for (const Plan::Wire &wire : plan.wires) {
				if (wire.task != node->me)
					continue;
				ASSERT_EQ(node->taken[input] + node->inputs[input]->pushes(),
					real.pushes[wire.channel].load())
					<< "seed " << seed;
				++input;
			}
		}
	}
}

// Whatever several threads ask of a scheduler at once, each call returns, and says something that
// can be.
TEST(Random, start_stop_and_reset_by_several_threads)
{
	flow::Scheduler scheduler;
	Channel channel(scheduler, "channel");
	flow::PeriodicEvent tick(scheduler, "tick", std::chrono::microseconds(20));
	flow::OneShotEvent timeout(scheduler, "timeout");
	Barrier barrier(scheduler, "barrier", 2);
	struct Busy : flow::Task {
		Busy(flow::Scheduler &to, const char *name, flow::Channel &input,
			flow::Channel &output)
		    : Task(to, name), input_(*this, input), output_(output)
		{
		}
		void execute() override
		{
			EXPECT_FALSE(inside_.exchange(true));
			output_.push();
			inside_.store(false);
		}
		Input input_;
		flow::Channel &output_;
		std::atomic<bool> inside_{false};
	} first(scheduler, "first", channel, barrier), second(scheduler, "second", tick, timeout),
		third(scheduler, "third", timeout, channel),
		fourth(scheduler, "fourth", barrier, barrier);
	struct Ends : flow::Task {
		Ends(flow::Scheduler &to, flow::Channel &input)
		    : Task(to, "ends"), scheduler_(to), input_(*this, input, Arming().pushes(300))
		{
		}
		void execute() override
		{
			EXPECT_EQ(scheduler_.stop().error(), flow::Error::by_task);
		}
		flow::Scheduler &scheduler_;
		Input input_;
	} ends(scheduler, channel);
	std::vector<std::thread> threads;
	for (unsigned thread = 0; thread < 4; ++thread)
		threads.emplace_back([&, thread] {
			std::mt19937 random(thread);
			flow::Settings settings;
			for (int step = 0; step < 1500; ++step) {
				flow::Status status;
				switch (random() % 10) {
				case 0:
				case 1:
					settings.executors =
						static_cast<unsigned>(random() % 4) + 1;
					settings.policy = static_cast<flow::Policy>(random() % 3);
					status = scheduler.start(settings);
					ASSERT_TRUE(
						status || status.error() == flow::Error::running);
					break;
				case 2:
					ASSERT_TRUE(scheduler.stop());
					break;
				case 3:
					status = scheduler.reset();
					ASSERT_TRUE(
						status || status.error() == flow::Error::running);
					break;
				case 4:
					status = timeout.start(
						std::chrono::microseconds(random() % 100));
					ASSERT_TRUE(status ||
						    status.error() == flow::Error::not_running);
					break;
				case 5:
					timeout.cancel();
					break;
				case 6:
					tick.cancel();
					break;
				case 7:
					ASSERT_TRUE(barrier.set_count(
						static_cast<std::uint32_t>(random() % 5) + 1));
					break;
				default:
					channel.push();
				}
			}
		});
	for (std::thread &thread : threads)
		thread.join();
	ASSERT_TRUE(scheduler.stop());
}
