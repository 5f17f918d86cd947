// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Optical navigation of a lander, after ATON as in Fig. 2 of Jungmann et al. (ERTS 2024), with
// loops in the place of image processing:
//
//   tick1 ─► cam1 ─image1─► craT ─craters──┐            ┌─► ter1
//                                          ├─► navi ─pose
//   tick2 ─► cam2 ─image2─► feaT ─features─┘            └─► ter2
//
// cam1 finds craters, cam2 tracks features; navi is activated when it has something new of both;
// ter1 and ter2 match the terrain. The execution times are pseudo-random, and those of the k-th
// instance of a task are the same in every run, whatever the policy. They are processor time: a
// loop that is preempted takes longer.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <getopt.h>
#include <punctual/flow.hpp>

namespace flow = punctual::flow;
using namespace std::chrono_literals;

static double scale = 1;
static flow::Scheduler scheduler;

// Periods that are no multiples of one another, so that navi waits now for the one, now for the
// other.
static flow::PeriodicEvent tick1(scheduler, "tick1", 100ms);
static flow::PeriodicEvent tick2(scheduler, "tick2", 80ms, 10ms);

static flow::Latest<std::uint32_t> image1(scheduler, "image1");
static flow::Latest<std::uint32_t> image2(scheduler, "image2");
static flow::Latest<std::uint32_t> craters(scheduler, "craters");
static flow::Latest<std::uint32_t> features(scheduler, "features");
static flow::Latest<std::uint32_t> pose(scheduler, "pose");

// A task that is busy for a while, then says so.
class Stage : public flow::Task {
public:
	Stage(const char *name, unsigned priority, unsigned from_us, unsigned to_us,
		flow::Latest<std::uint32_t> *output) noexcept
	    : Task(scheduler, name, priority), output_(output), from_us_(from_us), to_us_(to_us)
	{
		// A generator of its own, which its name begins (FNV-1a).
		for (; *name != '\0'; ++name)
			random_ = (random_ ^ static_cast<unsigned char>(*name)) * 0x100'0000'01b3;
	}

	void execute() override
	{
		// xorshift64
		random_ ^= random_ << 13;
		random_ ^= random_ >> 7;
		random_ ^= random_ << 17;
		be_busy(scale * (from_us_ + static_cast<double>(random_ % (to_us_ - from_us_))));
		if (output_ != nullptr)
			output_->push(instance());
	}

private:
	static double processor_us() noexcept
	{
		timespec used;
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
		return static_cast<double>(used.tv_sec) * 1e6 +
		       static_cast<double>(used.tv_nsec) * 1e-3;
	}

	static void be_busy(double us) noexcept
	{
		double end = processor_us() + us;
		while (processor_us() < end) {
		}
	}

	flow::Latest<std::uint32_t> *output_;
	unsigned from_us_;
	unsigned to_us_;
	std::uint64_t random_ = 0xcbf2'9ce4'8422'2325;
};

// A stage with one input.
class Simple : public Stage {
public:
	Simple(const char *name, unsigned priority, flow::Channel &input, unsigned from_us,
		unsigned to_us, flow::Latest<std::uint32_t> *output) noexcept
	    : Stage(name, priority, from_us, to_us, output), input_(*this, input)
	{
	}

private:
	flow::Input input_;
};

class Navigation : public Stage {
public:
	Navigation(unsigned priority, unsigned from_us, unsigned to_us) noexcept
	    : Stage("navi", priority, from_us, to_us, &pose)
	{
	}

private:
	// The newest of each: what comes while it computes is not caught up with.
	flow::Input craters_{*this, craters, flow::Arming().unsynchronised()};
	flow::Input features_{*this, features, flow::Arming().unsynchronised()};
};

// Priorities as in Table I of the paper.
static Simple cam1("cam1", 1, tick1, 1'000, 3'000, &image1);
static Simple cam2("cam2", 1, tick2, 1'000, 3'000, &image2);
static Simple craT("craT", 3, image1, 10'000, 20'000, &craters);
static Simple feaT("feaT", 2, image2, 5'000, 15'000, &features);
static Navigation navi(4, 2'000, 8'000);
static Simple ter1("ter1", 5, pose, 1'000, 4'000, nullptr);
static Simple ter2("ter2", 5, pose, 1'000, 4'000, nullptr);

static int usage(const char *program)
{
	std::fprintf(stderr,
		"Usage: %s [--policy fifo|lifo|priority] [--executors N] [--seconds S] [--scale F] "
		"[--realtime PRIORITY] [--trace FOLDER]\n"
		"  --policy     which ready task runs next (fifo)\n"
		"  --executors  how many threads run tasks, 1 to %u (1)\n"
		"  --seconds    for how long (5)\n"
		"  --scale      all execution times multiplied by this (1)\n"
		"  --realtime   executors under SCHED_FIFO with this priority, the timer one "
		"above\n"
		"  --trace      where to trace to: a folder that does not exist\n",
		program, flow::max_executors);
	return 2;
}

int main(int count, char **arguments)
{
	static const option options[] = {{"policy", required_argument, nullptr, 'p'},
		{"executors", required_argument, nullptr, 'e'},
		{"seconds", required_argument, nullptr, 's'},
		{"scale", required_argument, nullptr, 'x'},
		{"realtime", required_argument, nullptr, 'r'},
		{"trace", required_argument, nullptr, 't'}, {nullptr, 0, nullptr, 0}};
	flow::Settings settings;
	settings.program = "optical_navigation";
	double seconds = 5;
	int priority = 0;
	for (int chosen; (chosen = getopt_long(count, arguments, "", options, nullptr)) != -1;) {
		if (chosen == 'p' && std::strcmp(optarg, "fifo") == 0)
			settings.policy = flow::Policy::fifo;
		else if (chosen == 'p' && std::strcmp(optarg, "lifo") == 0)
			settings.policy = flow::Policy::lifo;
		else if (chosen == 'p' && std::strcmp(optarg, "priority") == 0)
			settings.policy = flow::Policy::priority;
		else if (chosen == 'e' && std::atoi(optarg) >= 1)
			settings.executors = static_cast<unsigned>(std::atoi(optarg));
		else if (chosen == 's' && std::atof(optarg) > 0 && std::atof(optarg) < 1e6)
			seconds = std::atof(optarg);
		else if (chosen == 'x' && std::atof(optarg) > 0 && std::atof(optarg) < 1e6)
			scale = std::atof(optarg);
		else if (chosen == 'r' && std::atoi(optarg) >= 1 && std::atoi(optarg) <= 98)
			priority = std::atoi(optarg);
		else if (chosen == 't')
			settings.trace = optarg;
		else
			return usage(arguments[0]);
	}
	if (optind != count)
		return usage(arguments[0]);
	flow::ThreadSettings executors[flow::max_executors];
	if (priority != 0) {
		for (flow::ThreadSettings &executor : executors)
			executor = flow::ThreadSettings(SCHED_FIFO, priority);
		settings.threads = executors;
		settings.timer = flow::ThreadSettings(SCHED_FIFO, priority + 1);
	}

	if (flow::Status status = scheduler.start(settings); !status)
		return status.print(stderr);
	timespec rest{static_cast<time_t>(seconds),
		static_cast<long>(
			(seconds - static_cast<double>(static_cast<time_t>(seconds))) * 1e9)};
	while (nanosleep(&rest, &rest) != 0) {
	}
	flow::Status status = scheduler.stop();

	const flow::Task *const tasks[] = {&cam1, &cam2, &craT, &feaT, &navi, &ter1, &ter2};
	std::printf("instances:");
	for (const flow::Task *task : tasks)
		std::printf(" %s %u", task->name(), task->instance());
	std::printf("\n");
	if (std::uint64_t late = tick1.overruns() + tick2.overruns(); late != 0)
		std::printf("The timer was late by a period or more: %llu ticks are missing.\n",
			static_cast<unsigned long long>(late));
	return status ? 0 : status.print(stderr);
}
