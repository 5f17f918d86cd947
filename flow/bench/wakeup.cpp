// SPDX-License-Identifier: MIT OR Apache-2.0
//
// How long a sleeping executor takes from a push to the beginning of the task: on another processor,
// there with work of low priority, and on the pusher's own processor, where it preempts the pusher.
//
//   flow-bench-wakeup [PUSHES]
//
// Prints lines "name value unit": medians. The executor is under SCHED_FIFO, the pusher is not.
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
#include <thread>
#include <unistd.h>
#include <vector>

namespace flow = punctual::flow;

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

// Pushes when the executor has slept for a while, and notes when its task begins.
static int measure(const char *name, unsigned pushes, unsigned executor, bool loaded)
{
	flow::Scheduler scheduler;
	flow::Channel signal(scheduler, "signal");
	sem_t done;
	sem_init(&done, 0, 0);
	double began = 0;
	flow::Call task(scheduler, "task", [&] {
		began = now_ns();
		sem_post(&done);
	});
	flow::Input input(task, signal);
	const flow::ThreadSettings thread = flow::ThreadSettings(SCHED_FIFO, 50).on(executor);
	flow::Settings settings;
	settings.threads = &thread;
	settings.spin = {};
	if (flow::Status status = scheduler.start(settings); !status)
		return status.print(stderr);
	std::atomic<bool> is_over{false};
	std::thread load;
	if (loaded)
		load = std::thread([&] {
			pin(executor);
			while (!is_over)
				__asm__ __volatile__("" ::: "memory");
		});
	std::vector<double> times;
	for (unsigned push = 0; push < pushes; ++push) {
		const timespec pause = {0, 200'000};
		nanosleep(&pause, nullptr);
		const double pushed = now_ns();
		signal.push();
		while (sem_wait(&done) != 0)
			;
		times.push_back(began - pushed);
	}
	is_over = true;
	if (loaded)
		load.join();
	if (flow::Status status = scheduler.stop(); !status)
		return status.print(stderr);
	std::sort(times.begin(), times.end());
	std::printf("wakeup_%s %.0f ns\n", name, times[times.size() / 2]);
	std::fflush(stdout);
	sem_destroy(&done);
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
