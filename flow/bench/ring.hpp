// SPDX-License-Identifier: MIT OR Apache-2.0
//
// A ring of tasks that pass tokens on, and what its benchmarks share.
#ifndef PUNCTUAL_FLOW_BENCH_RING_HPP
#define PUNCTUAL_FLOW_BENCH_RING_HPP

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <pthread.h>
#include <punctual/flow.hpp>
#include <sched.h>
#include <semaphore.h>
#include <string>
#include <vector>

namespace flow = punctual::flow;

inline double now_ns()
{
	timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

__attribute__((noinline)) inline void work(std::uint64_t loops)
{
	for (std::uint64_t loop = 0; loop < loops; ++loop)
		__asm__ __volatile__("" ::: "memory");
}

// Up to two processors that this program may use.
inline std::vector<unsigned> processors()
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

// Which of a round's executors the calling thread is.
inline std::atomic<unsigned> executors_met{0};
inline thread_local unsigned executor = executors_met++ % 2;

// A ring of tasks, each of which pushes to the next, with some tokens in it.
class Ring {
public:
	static constexpr std::uint32_t warm_up_laps = 10;

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

	// Nanoseconds for one activation. The first laps do not count: threads start in them, and
	// caches fill.
	double measure(
		unsigned executors, unsigned tokens, std::uint32_t activations, const char *trace)
	{
		laps_ = activations / static_cast<std::uint32_t>(members_.size());
		for (Member *member : members_) {
			member->left = laps_ + warm_up_laps;
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
		begin_ = 0;
		for (unsigned token = 0; token < tokens; ++token)
			channels_[token * channels_.size() / tokens]->push();
		for (unsigned token = 0; token < tokens; ++token)
			while (sem_wait(&done_) != 0) {
			}
		double ns = (now_ns() - begin_) / static_cast<double>(laps_ * members_.size());
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
			if (left == ring_.laps_ && ring_.begin_ == 0)
				ring_.begin_ = now_ns();
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
	std::uint32_t laps_ = 0;
	std::atomic<double> begin_{0};
	sem_t done_;
	std::vector<flow::Channel *> channels_;
	std::vector<Member *> members_;
};

#endif
