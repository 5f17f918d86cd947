// SPDX-License-Identifier: MIT OR Apache-2.0
//
// How long a sleeping executor takes from a push to the beginning of the task: on another
// processor, there with work of low priority, and on the pusher's own processor, where it preempts
// the pusher. Beside it the floor, in turn, in the same run: a thread that sleeps on a futex and is
// woken by a bare system call.
//
//   flow-bench-wakeup [PUSHES]
//
// Prints lines "name value unit": medians. Executor and bare thread are under SCHED_FIFO, the
// pusher is not.
#include <algorithm>
#include <atomic>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <linux/futex.h>
#include <pthread.h>
#include <punctual/flow.hpp>
#include <sched.h>
#include <semaphore.h>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace flow = punctual::flow;

constexpr int priority = 50;

static double now_ns()
{
	timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

static bool pin(unsigned processor)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(processor, &set);
	return pthread_setaffinity_np(pthread_self(), sizeof set, &set) == 0;
}

static void wait_for(sem_t &semaphore)
{
	while (sem_wait(&semaphore) != 0) {
	}
}

// The thread that is woken when it has slept for a while, and notes when it runs.
class Sleeper {
public:
	Sleeper()
	{
		sem_init(&done_, 0, 0);
	}
	Sleeper(const Sleeper &) = delete;
	Sleeper &operator=(const Sleeper &) = delete;
	virtual ~Sleeper()
	{
		sem_destroy(&done_);
	}

	// Nanoseconds from the call to the first instruction after it.
	double call()
	{
		const timespec pause = {0, 200'000};
		nanosleep(&pause, nullptr);
		const double called = now_ns();
		wake();
		wait_for(done_);
		return ran_ - called;
	}

protected:
	virtual void wake() = 0;
	void runs()
	{
		ran_ = now_ns();
		sem_post(&done_);
	}

private:
	sem_t done_;
	double ran_ = 0;
};

class Executor : public Sleeper {
public:
	flow::Status start(unsigned processor)
	{
		const flow::ThreadSettings thread =
			flow::ThreadSettings(SCHED_FIFO, priority).on(processor);
		flow::Settings settings;
		settings.threads = &thread;
		settings.spin = {};
		return scheduler_.start(settings);
	}

private:
	void wake() override
	{
		signal_.push();
	}

	flow::Scheduler scheduler_;
	flow::Channel signal_{scheduler_, "signal"};
	struct Run : flow::Task {
		explicit Run(Executor &executor) : Task(executor.scheduler_, "task"), of(executor)
		{
		}
		void execute() override
		{
			of.runs();
		}
		Executor &of;
		flow::Input input{*this, of.signal_};
	} task_{*this};
};

class Bare : public Sleeper {
public:
	explicit Bare(unsigned processor) : thread_([this, processor] { run(processor); })
	{
	}
	~Bare() override
	{
		is_over_ = true;
		wake();
		thread_.join();
	}

private:
	void run(unsigned processor)
	{
		const sched_param parameters{priority};
		if (!pin(processor) ||
			pthread_setschedparam(pthread_self(), SCHED_FIFO, &parameters) != 0) {
			std::perror("the bare thread");
			std::exit(1);
		}
		for (std::uint32_t seen = 0;; ++seen) {
			while (calls_.load(std::memory_order_acquire) == seen)
				syscall(SYS_futex, &calls_, FUTEX_WAIT_PRIVATE, seen, nullptr,
					nullptr, 0);
			if (is_over_)
				return;
			runs();
		}
	}
	void wake() override
	{
		calls_.fetch_add(1, std::memory_order_release);
		syscall(SYS_futex, &calls_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
	}

	std::atomic<std::uint32_t> calls_{0};
	std::atomic<bool> is_over_{false};
	std::thread thread_;
};

static double median(std::vector<double> &times)
{
	std::sort(times.begin(), times.end());
	return times[times.size() / 2];
}

static int measure(const char *name, unsigned pushes, unsigned processor, bool loaded)
{
	Executor executor;
	if (flow::Status status = executor.start(processor); !status)
		return status.print(stderr);
	Bare bare(processor);
	std::atomic<bool> is_over{false};
	std::thread load;
	if (loaded)
		load = std::thread([&] {
			pin(processor);
			while (!is_over)
				__asm__ __volatile__("" ::: "memory");
		});
	std::vector<double> ours, floor;
	for (unsigned push = 0; push < pushes; ++push) {
		ours.push_back(executor.call());
		floor.push_back(bare.call());
	}
	is_over = true;
	if (loaded)
		load.join();
	std::printf(
		"wakeup_%s %.0f ns\nfloor_%s %.0f ns\n", name, median(ours), name, median(floor));
	std::fflush(stdout);
	return 0;
}

int main(int count, char **arguments)
{
	const unsigned pushes = count > 1 ? static_cast<unsigned>(std::atoi(arguments[1])) : 5'000;
	if (count > 2 || pushes == 0) {
		std::fprintf(stderr, "Usage: %s [PUSHES]\n", arguments[0]);
		return 2;
	}
	if (!pin(0) || sysconf(_SC_NPROCESSORS_ONLN) < 2) {
		std::fprintf(stderr, "not measured: this needs processors 0 and 1\n");
		return 0;
	}
	const int other = measure("other_processor", pushes, 1, false);
	const int loaded = measure("other_processor_with_work", pushes, 1, true);
	return other | loaded | measure("own_processor", pushes, 0, false);
}
