// SPDX-License-Identifier: MIT OR Apache-2.0
//
// The same ring of eight empty tasks on this executor and on the flow graph of oneTBB, on one and
// on two threads, each of which has a processor. Rounds alternate; of two threads only those count
// in which both did a fifth of the work at least (as in activation.cpp, where alone one of them is
// the fastest). Prints lines "name value unit": medians, of one thread the least.
#include "ring.hpp"

#include <memory>
#include <tbb/flow_graph.h>
#include <tbb/global_control.h>
#include <tbb/task_arena.h>
#include <tbb/task_scheduler_observer.h>
#include <tuple>

constexpr unsigned tasks = 8;
// Enough that the first wake-up of a sleeping executor, which oneTBB does not need, does not
// matter.
constexpr std::uint32_t activations = 400'000;

// Gives each thread a processor while it is in an arena.
class Pinning : tbb::task_scheduler_observer {
public:
	explicit Pinning(tbb::task_arena &arena)
	    : tbb::task_scheduler_observer(arena), on_(processors())
	{
		observe(true);
	}
	~Pinning() override
	{
		observe(false);
	}

private:
	void on_scheduler_entry(bool) override
	{
		const auto number =
			static_cast<unsigned>(tbb::this_task_arena::current_thread_index());
		cpu_set_t set;
		CPU_ZERO(&set);
		CPU_SET(on_[number % on_.size()], &set);
		pthread_setaffinity_np(pthread_self(), sizeof set, &set);
	}
	void on_scheduler_exit(bool) override
	{
		cpu_set_t set;
		CPU_ZERO(&set);
		for (const unsigned processor : on_)
			CPU_SET(processor, &set);
		pthread_setaffinity_np(pthread_self(), sizeof set, &set);
	}
	const std::vector<unsigned> on_;
};

// Serial nodes, so that none runs in parallel with itself. All pass the token on; the last one ends
// it.
class TbbRing {
	using Node = tbb::flow::function_node<int, int>;
	using Last = tbb::flow::multifunction_node<int, std::tuple<int>>;

public:
	TbbRing()
	    : last_(graph_, tbb::flow::serial, [this](int token, Last::output_ports_type &ports) {
		      count(tasks - 1);
		      if (left_ != 0) {
			      if (left_ == activations / tasks)
				      begin_ = now_ns();
			      --left_;
			      std::get<0>(ports).try_put(token);
		      }
	      })
	{
		for (unsigned task = 0; task + 1 < tasks; ++task)
			nodes_.emplace_back(
				new Node(graph_, tbb::flow::serial, [this, task](int token) {
					count(task);
					return token;
				}));
		for (unsigned task = 0; task + 2 < tasks; ++task)
			tbb::flow::make_edge(*nodes_[task], *nodes_[task + 1]);
		tbb::flow::make_edge(*nodes_.back(), last_);
		tbb::flow::make_edge(tbb::flow::output_port<0>(last_), *nodes_.front());
	}

	// Nanoseconds for one activation, after as many laps as ours has before it counts. Within
	// the arena.
	double measure(unsigned tokens)
	{
		left_ = activations / tasks + Ring::warm_up_laps;
		for (Counts &counts : counts_)
			counts.ran_by[0] = counts.ran_by[1] = 0;
		for (unsigned token = 0; token < tokens; ++token)
			nodes_[token * tasks / tokens]->try_put(1);
		graph_.wait_for_all();
		return (now_ns() - begin_) / activations;
	}

	bool both_ran() const
	{
		std::uint64_t ran[2] = {0, 0};
		for (const Counts &counts : counts_)
			for (unsigned thread = 0; thread < 2; ++thread)
				ran[thread] += counts.ran_by[thread];
		return std::min(ran[0], ran[1]) * 5 >= ran[0] + ran[1];
	}

private:
	struct alignas(128) Counts {
		std::uint32_t ran_by[2];
	};

	void count(unsigned task)
	{
		++counts_[task].ran_by[tbb::this_task_arena::current_thread_index() % 2];
	}

	tbb::flow::graph graph_;
	Last last_;
	std::vector<std::unique_ptr<Node>> nodes_;
	Counts counts_[tasks] = {};
	std::uint32_t left_ = 0;
	double begin_ = 0;
};

// Of one thread the least: whatever else runs on the machine only adds to it.
static double figure(unsigned threads, std::vector<double> &rounds)
{
	std::sort(rounds.begin(), rounds.end());
	return rounds[threads == 1 ? 0 : rounds.size() / 2];
}

static void compare(unsigned threads, unsigned tokens, const char *name)
{
	tbb::global_control limit(tbb::global_control::max_allowed_parallelism, threads);
	tbb::task_arena arena(static_cast<int>(threads));
	Pinning pinning(arena);
	Ring ring(tasks, 0);
	std::vector<double> ours, theirs;
	std::unique_ptr<TbbRing> tbb;
	arena.execute([&] { tbb.reset(new TbbRing); });
	for (int round = 0; round < 200 && std::min(ours.size(), theirs.size()) < 21; ++round) {
		double ns = ring.measure(threads, tokens, activations, nullptr);
		if (threads == 1 || ring.both_ran())
			ours.push_back(ns);
		arena.execute([&] { ns = tbb->measure(tokens); });
		if (threads == 1 || tbb->both_ran())
			theirs.push_back(ns);
	}
	arena.execute([&] { tbb.reset(); });
	if (ours.empty() || theirs.empty())
		return void(std::fprintf(stderr,
			"%s: in no round did both threads run; is the machine busy?\n", name));
	std::printf("ours_%s %.1f ns\ntbb_%s %.1f ns\n", name, figure(threads, ours), name,
		figure(threads, theirs));
	std::fflush(stdout);
}

int main()
{
	compare(1, 1, "one_thread_one_token");
	if (processors().size() < 2) {
		std::fprintf(stderr,
			"two threads are not compared: this program may use one processor "
			"only\n");
		return 0;
	}
	compare(2, 1, "two_threads_one_token");
	compare(2, 2, "two_threads_two_tokens");
	compare(2, 4, "two_threads_four_tokens");
	return 0;
}
