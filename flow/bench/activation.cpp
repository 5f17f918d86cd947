// SPDX-License-Identifier: MIT OR Apache-2.0
//
// What an activation costs, from the push to the run of an empty task, on one and two executors;
// and what tracing adds to tasks of 1 µs and 10 µs. Beside it, what a cache line costs on its way
// from one processor to another, which is most of what a second executor adds.
//
//   flow-bench-activation [--trace FOLDER]
//
// Prints lines "name value unit". Times are the least of many rounds: whatever else runs on the
// machine only adds to them. Two executors have a processor each; theirs is the median of those
// rounds in which both did their part, since the fastest are those in which one of them could not
// run. What tracing adds is a ratio of rounds with and without it, in turn, in this one run. Every
// round's trace goes to a folder of its own in FOLDER; without FOLDER, tracing is not measured.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <pthread.h>
#include <punctual/flow.hpp>
#include <sched.h>
#include <semaphore.h>
#include <string>
#include <thread>
#include <vector>

namespace flow = punctual::flow;

static double now_ns()
{
	timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

__attribute__((noinline)) static void work(std::uint64_t loops)
{
	for (std::uint64_t loop = 0; loop < loops; ++loop)
		__asm__ __volatile__("" ::: "memory");
}

// How many loops take a microsecond.
static double loops_per_us()
{
	double least = 1e18;
	for (int round = 0; round < 20; ++round) {
		double begin = now_ns();
		work(1'000'000);
		least = std::min(least, now_ns() - begin);
	}
	return 1e9 / least;
}

// Up to two processors that this program may use.
static std::vector<unsigned> processors()
{
	cpu_set_t allowed;
	std::vector<unsigned> found;
	if (sched_getaffinity(0, sizeof allowed, &allowed) == 0)
		for (unsigned processor = 0; processor < CPU_SETSIZE && found.size() < 2;
			++processor)
			if (CPU_ISSET(processor, &allowed))
				found.push_back(processor);
	return found;
}

// Nanoseconds from a store on the one processor to a load on the other that sees it.
static double one_way_ns(const std::vector<unsigned> &between)
{
	constexpr std::uint32_t times = 20'000;
	alignas(128) std::atomic<std::uint32_t> line{0};
	auto play = [&](unsigned side) {
		cpu_set_t set;
		CPU_ZERO(&set);
		CPU_SET(between[side], &set);
		pthread_setaffinity_np(pthread_self(), sizeof set, &set);
		for (std::uint32_t turn = side; turn < 2 * times; turn += 2) {
			while (line.load(std::memory_order_acquire) != turn) {
			}
			line.store(turn + 1, std::memory_order_release);
		}
	};
	double best = 1e18;
	for (int round = 0; round < 20; ++round) {
		line = 0;
		double begin = now_ns();
		std::thread one(play, 0), other(play, 1);
		one.join();
		other.join();
		best = std::min(best, (now_ns() - begin) / (2 * times));
	}
	return best;
}

// Which of a round's executors the calling thread is.
static std::atomic<unsigned> executors_met{0};
static thread_local unsigned executor = executors_met++ % 2;

// A ring of tasks, each of which pushes to the next, with some tokens in it.
class Ring {
public:
	Ring(unsigned tasks, std::uint64_t loops) : loops_(loops)
	{
		sem_init(&done_, 0, 0);
		for (unsigned task = 0; task < tasks; ++task)
			channels_.emplace_back(new flow::Channel(
				scheduler_, ("channel" + std::to_string(task)).c_str()));
		for (unsigned task = 0; task < tasks; ++task)
			members_.emplace_back(new Member(*this, task));
	}
	~Ring()
	{
		for (Member *member : members_)
			delete member;
		for (flow::Channel *channel : channels_)
			delete channel;
	}

	// Nanoseconds for one activation.
	double measure(
		unsigned executors, unsigned tokens, std::uint32_t activations, const char *trace)
	{
		for (Member *member : members_) {
			member->left = activations / static_cast<std::uint32_t>(members_.size());
			member->ran_by[0] = member->ran_by[1] = 0;
		}
		const std::vector<unsigned> on = processors();
		flow::ThreadSettings threads[2];
		if (executors == 2)
			for (unsigned number = 0; number < 2; ++number)
				threads[number].on(on[number]);
		flow::Settings settings;
		settings.executors = executors;
		settings.threads = threads;
		settings.trace = trace;
		if (flow::Status status = scheduler_.reset(); !status)
			std::exit(status.print(stderr));
		if (flow::Status status = scheduler_.start(settings); !status)
			std::exit(status.print(stderr));
		double begin = now_ns();
		for (unsigned token = 0; token < tokens; ++token)
			channels_[token * channels_.size() / tokens]->push();
		for (unsigned token = 0; token < tokens; ++token)
			while (sem_wait(&done_) != 0) {
			}
		double ns = (now_ns() - begin) / activations;
		if (flow::Status status = scheduler_.stop(); !status)
			std::exit(status.print(stderr));
		return ns;
	}

	// Whether both of two executors did a fifth of the last measurement at least.
	bool both_ran() const
	{
		std::uint64_t ran[2] = {0, 0};
		for (const Member *member : members_)
			for (unsigned number = 0; number < 2; ++number)
				ran[number] += member->ran_by[number];
		return std::min(ran[0], ran[1]) * 5 >= ran[0] + ran[1];
	}

private:
	struct Member : flow::Task {
		Member(Ring &ring, unsigned number)
		    : Task(ring.scheduler_, ("task" + std::to_string(number)).c_str()), ring_(ring),
		      input_(*this, *ring.channels_[number]),
		      next_(*ring.channels_[(number + 1) % ring.channels_.size()])
		{
		}
		void execute() override
		{
			work(ring_.loops_);
			++ran_by[executor];
			if (left == 0)
				return void(sem_post(&ring_.done_));
			--left;
			next_.push();
		}
		Ring &ring_;
		flow::Input input_;
		flow::Channel &next_;
		std::uint32_t left = 0;
		std::uint32_t ran_by[2] = {0, 0};
	};

	flow::Scheduler scheduler_;
	std::uint64_t loops_;
	sem_t done_;
	std::vector<flow::Channel *> channels_;
	std::vector<Member *> members_;
};

static double least(Ring &ring)
{
	double best = 1e18;
	for (int round = 0; round < 40; ++round)
		best = std::min(best, ring.measure(1, 1, 50'000, nullptr));
	return best;
}

static void two_executors(Ring &ring, unsigned tokens, const char *name)
{
	std::vector<double> rounds;
	for (int tries = 0; rounds.size() < 41 && tries < 1000; ++tries) {
		double ns = ring.measure(2, tokens, 50'000, nullptr);
		if (ring.both_ran())
			rounds.push_back(ns);
	}
	if (rounds.empty())
		return void(std::fprintf(stderr,
			"%s: in no round did both executors run; is the machine busy?\n", name));
	std::sort(rounds.begin(), rounds.end());
	std::printf("activation_two_executors_%s %.1f ns\n", name, rounds[rounds.size() / 2]);
}

int main(int count, char **arguments)
{
	const char *folder =
		count == 3 && std::strcmp(arguments[1], "--trace") == 0 ? arguments[2] : nullptr;
	if (count != 1 && folder == nullptr) {
		std::fprintf(stderr, "Usage: %s [--trace FOLDER]\n", arguments[0]);
		return 2;
	}
	{
		Ring empty(8, 0);
		std::printf("activation_one_executor %.1f ns\n", least(empty));
		if (const std::vector<unsigned> two = processors(); two.size() == 2) {
			std::printf("cache_line_one_way %.1f ns\n", one_way_ns(two));
			two_executors(empty, 1, "one_token");
			two_executors(empty, 2, "two_tokens");
			two_executors(empty, 4, "four_tokens");
		} else {
			std::fprintf(stderr, "two executors are not measured: this program may use "
					     "one processor only\n");
		}
		std::fflush(stdout);
	}
	if (folder == nullptr)
		return 0;
	double per_us = loops_per_us();
	int trace = 0;
	for (unsigned us : {1u, 10u}) {
		Ring busy(8, static_cast<std::uint64_t>(per_us * us));
		double with = 1e18, without = 1e18;
		// Rounds of some milliseconds: of so many, some have the processor for themselves.
		const std::uint32_t activations = 3'000 / us;
		for (int round = 0; round < 200; ++round) {
			without = std::min(without, busy.measure(1, 1, activations, nullptr));
			with = std::min(
				with, busy.measure(1, 1, activations,
					      (std::string(folder) + "/" + std::to_string(trace++))
						      .c_str()));
		}
		std::printf("task_%u_us %.1f ns\n", us, without);
		std::printf(
			"tracing_added_to_%u_us_task %.2f %%\n", us, (with / without - 1) * 100);
		std::fflush(stdout);
	}
	return 0;
}
