// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Rows F, H and I of the tables in docs/flow.md, and what a start refuses.
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <sched.h>
#include <semaphore.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "probe_task.hpp"

using flow::Arming;
using flow::Channel;
using flow::Error;
using flow::Input;

class Life : public Manual {
protected:
	Channel a{scheduler, "a"};
	Channel b{scheduler, "b"};
};

// Counts the runs of something, and lets a thread wait for them.
class Runs {
public:
	Runs()
	{
		sem_init(&runs_, 0, 0);
	}
	~Runs()
	{
		sem_destroy(&runs_);
	}
	void add()
	{
		sem_post(&runs_);
	}
	void wait(int times = 1)
	{
		while (times > 0)
			if (sem_wait(&runs_) == 0)
				--times;
	}
	int left()
	{
		int value;
		sem_getvalue(&runs_, &value);
		return value;
	}

private:
	sem_t runs_;
};

TEST_F(Life, F1_pushes_before_the_start_count_and_activate_nothing)
{
	Logged task(scheduler, log, "t");
	Input input(task, a, Arming().pushes(2));
	push(a, 3);
	EXPECT_EQ(run(), "");
	start();
	EXPECT_EQ(run(), "t");
	push(a, 1);
	EXPECT_EQ(run(), "t");
	stop();
	push(a, 2);
	EXPECT_EQ(run(), "");
	start();
	EXPECT_EQ(run(), "t");
}

TEST_F(Life, F1_unsynchronised_ones_count_up_to_the_threshold)
{
	Logged task(scheduler, log, "t");
	Input input(task, a, Arming().unsynchronised());
	push(a, 3);
	start();
	EXPECT_EQ(run(), "t");
}

TEST_F(Life, F2_the_start_activates_in_the_order_of_construction)
{
	Logged first(scheduler, log, "t"), second(scheduler, log, "u");
	Input of_second(second, a), of_first(first, b);
	push(a, 1);
	push(b, 1);
	start();
	EXPECT_EQ(run(), "t u");
}

TEST_F(Life, F3_stop_runs_what_is_ready_and_activates_nothing_more)
{
	Logged first(scheduler, log, "t"), second(scheduler, log, "u");
	Input of_first(first, a), of_second(second, b);
	first.body = [this] { push(b, 1); };
	start();
	push(a, 2);
	stop();
	// One instance of the first was ready. The push to the second, and the second push to the
	// first, count.
	EXPECT_EQ(log.take(), "t");
	EXPECT_EQ(run(), "");
	start();
	EXPECT_EQ(run(), "t u u");
}

TEST_F(Life, F3_a_cycle_ends)
{
	Logged task(scheduler, log, "t");
	Input input(task, a);
	task.body = [this] { push(a, 2); };
	settings.executors = 2;
	ASSERT_TRUE(scheduler.start(settings));
	push(a, 1);
	stop();
	EXPECT_FALSE(scheduler.running());
}

TEST_F(Life, F4_a_task_stops_and_does_not_wait)
{
	Logged task(scheduler, log, "t");
	Input input(task, a);
	Runs runs;
	Error error{};
	task.body = [&] {
		error = scheduler.stop().error();
		EXPECT_EQ(scheduler.start(settings).error(), Error::by_task);
		runs.add();
	};
	settings.executors = 2;
	ASSERT_TRUE(scheduler.start(settings));
	push(a, 3);
	runs.wait();
	stop();
	EXPECT_EQ(error, Error::by_task);
	EXPECT_EQ(log.take(), "t");
}

TEST_F(Life, F4_a_start_finishes_what_a_task_has_stopped)
{
	Logged task(scheduler, log, "t");
	Input input(task, a);
	Runs runs;
	task.body = [&] {
		EXPECT_FALSE(scheduler.stop());
		runs.add();
	};
	settings.executors = 1;
	for (int round = 0; round < 3; ++round) {
		ASSERT_TRUE(scheduler.start(settings));
		push(a, 1);
		runs.wait();
	}
	stop();
	EXPECT_EQ(log.take(), "t t t");
}

TEST_F(Life, F5_stop_twice_and_by_several_threads)
{
	stop();
	settings.executors = 3;
	ASSERT_TRUE(scheduler.start(settings));
	std::vector<std::thread> threads;
	for (int thread = 0; thread < 4; ++thread)
		threads.emplace_back([this] {
			EXPECT_TRUE(scheduler.stop());
			EXPECT_FALSE(scheduler.running());
		});
	for (std::thread &thread : threads)
		thread.join();
	stop();
}

TEST_F(Life, F6_a_start_goes_on)
{
	Logged task(scheduler, log, "t"), held(scheduler, log, "h");
	flow::Barrier barrier(scheduler, "barrier", 3);
	Input input(task, barrier, Arming().pushes(2)), of_held(held, a);
	flow::Group group(scheduler);
	ASSERT_TRUE(group.join(task));
	ASSERT_TRUE(group.join(held));
	start();
	ASSERT_TRUE(barrier.set_count(2));
	push(barrier, 3);
	push(a, 2);
	EXPECT_EQ(run(), "h");
	stop();
	start();
	EXPECT_EQ(run(), "");
	push(barrier, 1);
	EXPECT_EQ(run(), "t h");
}

TEST_F(Life, F7_reset_makes_everything_as_at_the_beginning)
{
	Logged task(scheduler, log, "t"), held(scheduler, log, "h");
	flow::Barrier barrier(scheduler, "barrier", 2);
	flow::Queue<int, 4> queue(scheduler, "queue");
	flow::Latest<int> latest(scheduler, "latest", 17);
	Input input(task, barrier), second(task, queue, Arming().pushes(2)), of_held(held, a);
	flow::Group group(scheduler);
	ASSERT_TRUE(group.join(held));
	ASSERT_TRUE(group.join(task));
	start();
	ASSERT_TRUE(barrier.set_count(5));
	push(barrier, 4);
	ASSERT_TRUE(queue.push(1));
	latest.push(18);
	push(a, 2);
	EXPECT_EQ(run(), "h");
	stop();
	ASSERT_TRUE(scheduler.reset());
	EXPECT_EQ(queue.size(), 0u);
	EXPECT_EQ(latest.read(), 17);
	start();
	EXPECT_EQ(run(), "");
	push(a, 1);
	EXPECT_EQ(run(), "h");
	ASSERT_TRUE(queue.push(1));
	push(barrier, 2);
	EXPECT_EQ(run(), "");
	ASSERT_TRUE(queue.push(2));
	EXPECT_EQ(run(), "t");
	EXPECT_EQ(held.instance(), 2u);
}

TEST_F(Life, F8_reset_while_running_is_refused)
{
	Logged task(scheduler, log, "t");
	Input input(task, a, Arming().pushes(2));
	start();
	push(a, 1);
	EXPECT_EQ(scheduler.reset().error(), Error::running);
	push(a, 1);
	EXPECT_EQ(run(), "t");
}

TEST_F(Life, F9_start_while_running_is_refused)
{
	Logged task(scheduler, log, "t");
	Input input(task, a);
	start();
	EXPECT_EQ(scheduler.start(settings).error(), Error::running);
	push(a, 1);
	EXPECT_EQ(run(), "t");
}

TEST_F(Life, F10_a_start_that_cannot_be_has_run_nothing)
{
	Logged task(scheduler, log, "t");
	Input input(task, a);
	push(a, 1);
	flow::ThreadSettings threads[2];
	threads[1].on(CPU_SETSIZE - 1);
	settings.threads = threads;
	settings.executors = 2;
	flow::Status status = scheduler.start(settings);
	EXPECT_EQ(status.error(), Error::affinity);
	EXPECT_EQ(status.os_error(), EINVAL);
	EXPECT_FALSE(scheduler.running());
	EXPECT_EQ(log.take(), "");
	settings.threads = nullptr;
	settings.executors = 0;
	ASSERT_TRUE(scheduler.start(settings));
	EXPECT_EQ(run(), "t");
}

TEST_F(Life, F10_settings_that_make_no_sense)
{
	settings.executors = flow::max_executors + 1;
	EXPECT_EQ(scheduler.start(settings).error(), Error::executors);
	settings.executors = 1;
	flow::ThreadSettings odd(SCHED_FIFO, 1000);
	settings.threads = &odd;
	EXPECT_EQ(scheduler.start(settings).error(), Error::thread_policy);
	settings.threads = nullptr;
	settings.executors = flow::max_executors;
	EXPECT_TRUE(scheduler.start(settings));
}

TEST_F(Life, executors_have_the_policy_and_the_processors_that_they_were_given)
{
	flow::ThreadSettings thread(SCHED_FIFO, 7);
	thread.on(0);
	settings.threads = &thread;
	settings.executors = 1;
	Logged task(scheduler, log, "t");
	Input input(task, a);
	Runs runs;
	int policy = -1;
	sched_param parameters{};
	cpu_set_t processors;
	task.body = [&] {
		pthread_getschedparam(pthread_self(), &policy, &parameters);
		pthread_getaffinity_np(pthread_self(), sizeof processors, &processors);
		runs.add();
	};
	flow::Status status = scheduler.start(settings);
	if (status.error() == Error::thread_policy && status.os_error() == EPERM)
		GTEST_SKIP() << "needs CAP_SYS_NICE";
	ASSERT_TRUE(status);
	push(a, 1);
	runs.wait();
	stop();
	EXPECT_EQ(policy, SCHED_FIFO);
	EXPECT_EQ(parameters.sched_priority, 7);
	EXPECT_EQ(CPU_COUNT(&processors), 1);
	EXPECT_TRUE(CPU_ISSET(0, &processors));
}

namespace {

// Whether the kernel looks that threads under SCHED_DEADLINE have room.
bool kernel_admits_deadlines()
{
	long runtime_us = -1;
	if (std::FILE *file = std::fopen("/proc/sys/kernel/sched_rt_runtime_us", "re");
		file != nullptr) {
		if (std::fscanf(file, "%ld", &runtime_us) != 1)
			runtime_us = -1;
		std::fclose(file);
	}
	return runtime_us != -1;
}

} // namespace

TEST_F(Life, executors_and_timer_are_under_deadline)
{
	using std::chrono::milliseconds;
	flow::ThreadSettings thread =
		flow::ThreadSettings::deadline(milliseconds(1), milliseconds(5), milliseconds(10));
	settings.threads = &thread;
	settings.executors = 1;
	settings.timer =
		flow::ThreadSettings::deadline(milliseconds(1), milliseconds(2), milliseconds(20));
	flow::PeriodicEvent tick(scheduler, "tick", milliseconds(1));
	Logged task(scheduler, log, "t");
	Input input(task, tick);
	Runs runs;
	struct {
		std::uint32_t size, policy;
		std::uint64_t flags;
		std::int32_t nice;
		std::uint32_t priority;
		std::uint64_t runtime_ns, deadline_ns, period_ns;
	} attributes{};
	task.body = [&] {
		syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0);
		runs.add();
	};
	flow::Status status = scheduler.start(settings);
	// The next test, in another build of this program that runs at the same time, may have
	// taken all that there is for a moment.
	const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(20);
	for (; status.os_error() == EBUSY && std::chrono::steady_clock::now() < patience;
		status = scheduler.start(settings))
		sched_yield();
	if (status.os_error() == EBUSY)
		GTEST_SKIP() << "the kernel has no time left for SCHED_DEADLINE: other programs "
				"have it all, or it has lost count";
	if (status.error() == Error::deadline_permission)
		GTEST_SKIP() << "needs CAP_SYS_NICE";
	ASSERT_TRUE(status);
	runs.wait();
	stop();
	EXPECT_EQ(attributes.policy, static_cast<std::uint32_t>(SCHED_DEADLINE));
	EXPECT_EQ(attributes.runtime_ns, 1'000'000u);
	EXPECT_EQ(attributes.deadline_ns, 5'000'000u);
	EXPECT_EQ(attributes.period_ns, 10'000'000u);
}

TEST_F(Life, F10_deadlines_that_the_kernel_refuses)
{
	using std::chrono::milliseconds;
	Logged task(scheduler, log, "t");
	Input input(task, a);
	push(a, 1);
	flow::ThreadSettings threads[flow::max_executors];
	settings.threads = threads;
	auto refused = [&](Error error, int os_error) {
		flow::Status status = scheduler.start(settings);
		if (status.error() == Error::deadline_permission &&
			error != Error::deadline_permission)
			return false;
		EXPECT_EQ(status.error(), error);
		EXPECT_EQ(status.os_error(), os_error);
		EXPECT_FALSE(scheduler.running());
		EXPECT_EQ(log.take(), "");
		return true;
	};
	settings.executors = 2;
	threads[1] =
		flow::ThreadSettings::deadline(milliseconds(2), milliseconds(1), milliseconds(10));
	if (!refused(Error::deadline, EINVAL))
		GTEST_SKIP() << "needs CAP_SYS_NICE";
	threads[1] =
		flow::ThreadSettings::deadline(milliseconds(-2), milliseconds(1), milliseconds(10));
	refused(Error::deadline, EINVAL);
	if (!kernel_admits_deadlines())
		GTEST_SKIP() << "sched_rt_runtime_us is -1: the kernel admits all";
	// More than any machine has processors that this many executors could fill.
	if (sysconf(_SC_NPROCESSORS_ONLN) < static_cast<long>(flow::max_executors)) {
		settings.executors = flow::max_executors;
		for (flow::ThreadSettings &thread : threads)
			thread = flow::ThreadSettings::deadline(
				milliseconds(10), milliseconds(10), milliseconds(10));
		refused(Error::deadline, EBUSY);
	}
	if (sysconf(_SC_NPROCESSORS_ONLN) > 1) {
		settings.executors = 1;
		threads[0] = flow::ThreadSettings::deadline(
			milliseconds(1), milliseconds(5), milliseconds(10))
				     .on(0);
		refused(Error::deadline_permission, EPERM);
	}
	settings.threads = nullptr;
	settings.executors = 0;
	ASSERT_TRUE(scheduler.start(settings));
	EXPECT_EQ(run(), "t");
}

TEST_F(Life, what_is_wrong_with_a_graph_is_said)
{
	struct Case {
		Error error;
		std::function<void(flow::Scheduler &, const std::function<void()> &)> build;
	};
	Log unused;
	const Case cases[] = {
		{Error::name,
			[](auto &s, auto &then) {
				Channel bad(s, "");
				then();
			}},
		{Error::name,
			[](auto &s, auto &then) {
				Channel bad(s, nullptr);
				then();
			}},
		{Error::name,
			[](auto &s, auto &then) {
				Channel bad(s, "a b");
				then();
			}},
		{Error::name,
			[](auto &s, auto &then) {
				Channel bad(s, "quote\"");
				then();
			}},
		{Error::name,
			[](auto &s, auto &then) {
				Channel bad(s, "one,two");
				then();
			}},
		{Error::name_length,
			[](auto &s, auto &then) {
				Channel bad(s, "123456789012345678901234");
				then();
			}},
		{Error::none,
			[](auto &s, auto &then) {
				Channel good(s, "12345678901234567890123");
				then();
			}},
		{Error::name_twice,
			[](auto &s, auto &then) {
				Channel one(s, "c"), two(s, "c");
				then();
			}},
		{Error::name_twice,
			[&](auto &s, auto &then) {
				Channel c(s, "c");
				Logged one(s, unused, "t"), two(s, unused, "t");
				Input i(one, c), j(two, c);
				then();
			}},
		{Error::none,
			[&](auto &s, auto &then) {
				Channel c(s, "same");
				Logged t(s, unused, "same");
				Input i(t, c);
				then();
			}},
		{Error::no_input,
			[&](auto &s, auto &then) {
				Logged t(s, unused, "t");
				then();
			}},
		{Error::threshold,
			[&](auto &s, auto &then) {
				Channel c(s, "c");
				Logged t(s, unused, "t");
				Input i(t, c, Arming().pushes(0));
				then();
			}},
		{Error::priority,
			[&](auto &s, auto &then) {
				Channel c(s, "c");
				Logged t(s, unused, "t", 0);
				Input i(t, c);
				then();
			}},
		{Error::priority,
			[&](auto &s, auto &then) {
				Channel c(s, "c");
				Logged t(s, unused, "t", 256);
				Input i(t, c);
				then();
			}},
		{Error::other_scheduler,
			[&](auto &s, auto &then) {
				flow::Scheduler o;
				Channel c(o, "c");
				Logged t(s, unused, "t");
				Input i(t, c);
				then();
			}},
		{Error::period,
			[](auto &s, auto &then) {
				flow::PeriodicEvent bad(s, "e", std::chrono::nanoseconds(0));
				then();
			}},
		{Error::period,
			[](auto &s, auto &then) {
				flow::PeriodicEvent bad(s, "e", std::chrono::seconds(1),
					std::chrono::nanoseconds(-1));
				then();
			}},
		{Error::period,
			[](auto &s, auto &then) {
				flow::PeriodicEvent bad(s, "e", std::chrono::nanoseconds::max());
				then();
			}},
		{Error::count,
			[](auto &s, auto &then) {
				flow::Barrier bad(s, "b", 0);
				then();
			}},
	};
	for (const Case &one : cases) {
		flow::Scheduler fresh;
		one.build(fresh, [&] {
			flow::Status status = fresh.start();
			EXPECT_EQ(status.error(), one.error) << "case " << &one - cases;
			EXPECT_EQ(fresh.running(), one.error == Error::none);
			EXPECT_TRUE(fresh.stop());
		});
	}
}

TEST_F(Life, what_is_built_while_it_runs_is_said_at_the_next_start)
{
	start();
	Channel late(scheduler, "late");
	late.push();
	stop();
	EXPECT_EQ(scheduler.start(settings).error(), Error::built_while_running);
}

TEST_F(Life, an_input_without_its_channel_is_said)
{
	Logged task(scheduler, log, "t");
	auto channel = std::make_unique<Channel>(scheduler, "gone");
	Input input(task, *channel);
	channel.reset();
	EXPECT_EQ(scheduler.start(settings).error(), Error::no_input);
}

TEST_F(Life, a_graph_can_be_changed_between_runs)
{
	Logged task(scheduler, log, "t");
	Input input(task, a);
	{
		Logged other(scheduler, log, "o");
		Input of_other(other, a), second(task, b);
		start();
		push(a, 1);
		EXPECT_EQ(run(), "o");
		stop();
	}
	start();
	EXPECT_EQ(run(), "t");
	stop();
	Logged after(scheduler, log, "after");
	Input of_after(after, a);
	start();
	push(a, 1);
	EXPECT_EQ(run(), "t after");
}

TEST_F(Life, every_error_says_what_to_do)
{
	for (int error = 0; error <= static_cast<int>(Error::full); ++error) {
		char *text = nullptr;
		std::size_t size = 0;
		std::FILE *file = open_memstream(&text, &size);
		EXPECT_EQ(flow::Status(static_cast<Error>(error), "subject", 3, EPERM).print(file),
			1);
		std::fclose(file);
		EXPECT_EQ(std::string(text).find("unknown error"), std::string::npos) << error;
		// The subject of a trace's failure is what the tracer says of it, all of it.
		const char *begin = static_cast<Error>(error) == Error::trace
					    ? "punctual-flow: subject 3 ("
					    : "punctual-flow: subject 3: ";
		EXPECT_EQ(std::string(text).find(begin), 0u) << text;
		free(text);
	}
}

class Order : public Manual {
protected:
	Order()
	{
		for (int task = 0; task < 4; ++task) {
			static const char *const names[] = {"t", "u", "v", "w"};
			static const char *const channel_names[] = {"ct", "cu", "cv", "cw"};
			channels.emplace_back(new Channel(scheduler, channel_names[task]));
			tasks.emplace_back(
				new Logged(scheduler, log, names[task], priorities[task]));
			inputs.emplace_back(new Input(*tasks.back(), *channels.back()));
		}
	}
	~Order() override
	{
		EXPECT_TRUE(scheduler.stop());
		inputs.clear();
		tasks.clear();
	}
	void push_all()
	{
		for (auto &channel : channels)
			channel->push();
	}

	static constexpr unsigned priorities[] = {255, 5, 1, 5};
	std::vector<std::unique_ptr<Channel>> channels;
	std::vector<std::unique_ptr<Logged>> tasks;
	std::vector<std::unique_ptr<Input>> inputs;
};

TEST_F(Order, H1_fifo)
{
	start(flow::Policy::fifo);
	push_all();
	EXPECT_EQ(run(), "t u v w");
	tasks[0]->body = [this] { channels[2]->push(); };
	channels[0]->push();
	channels[1]->push();
	EXPECT_EQ(run(), "t u v");
}

TEST_F(Order, H2_lifo)
{
	start(flow::Policy::lifo);
	push_all();
	EXPECT_EQ(run(), "w v u t");
	tasks[0]->body = [this] { channels[2]->push(); };
	channels[1]->push();
	channels[0]->push();
	EXPECT_EQ(run(), "t v u");
}

TEST_F(Order, H3_priority_1_is_the_highest_and_equals_are_first_in_first_out)
{
	start(flow::Policy::priority);
	push_all();
	EXPECT_EQ(run(), "v u w t");
	tasks[1]->body = [this] { channels[2]->push(); };
	channels[0]->push();
	channels[3]->push();
	channels[1]->push();
	EXPECT_EQ(run(), "w u v t");
}

TEST_F(Order, run_ready_runs_as_many_as_it_is_told)
{
	start();
	push_all();
	EXPECT_EQ(scheduler.run_ready(3), 3u);
	EXPECT_EQ(log.take(), "t u v");
	EXPECT_EQ(scheduler.run_ready(3), 1u);
}

// All of a number of tasks run at once, or this does not end: no executor idles while a task is
// ready.
TEST(Executors, I1_none_idles_while_a_task_is_ready)
{
	constexpr int tasks = 8;
	flow::Scheduler scheduler;
	Channel channel(scheduler, "channel");
	struct Meets : flow::Task {
		Meets(flow::Scheduler &to, const char *name, Channel &input,
			pthread_barrier_t &barrier, Runs &runs)
		    : Task(to, name), input_(*this, input), barrier_(barrier), runs_(runs)
		{
		}
		void execute() override
		{
			pthread_barrier_wait(&barrier_);
			runs_.add();
		}
		Input input_;
		pthread_barrier_t &barrier_;
		Runs &runs_;
	};
	pthread_barrier_t barrier;
	pthread_barrier_init(&barrier, nullptr, tasks);
	Runs runs;
	std::vector<std::unique_ptr<Meets>> all;
	for (int task = 0; task < tasks; ++task)
		all.emplace_back(new Meets(scheduler, ("task" + std::to_string(task)).c_str(),
			channel, barrier, runs));
	flow::Settings settings;
	settings.executors = tasks;
	for (auto spin : {std::chrono::nanoseconds(0), std::chrono::nanoseconds(5000)}) {
		settings.spin = spin;
		ASSERT_TRUE(scheduler.start(settings));
		for (int round = 0; round < 200; ++round) {
			channel.push();
			runs.wait(tasks);
		}
		ASSERT_TRUE(scheduler.stop());
	}
	all.clear();
	pthread_barrier_destroy(&barrier);
}

TEST(Executors, I1_also_right_after_a_start)
{
	flow::Scheduler scheduler;
	Channel channel(scheduler, "channel");
	Log log;
	Logged task(scheduler, log, "t");
	Input input(task, channel);
	Runs runs;
	task.body = [&] {
		log.take();
		runs.add();
	};
	flow::Settings settings;
	settings.executors = 3;
	for (int round = 0; round < 500; ++round) {
		settings.spin = std::chrono::nanoseconds(round % 2 * 5000);
		ASSERT_TRUE(scheduler.start(settings));
		for (int push = 0; push < 4; ++push) {
			channel.push();
			runs.wait();
		}
		ASSERT_TRUE(scheduler.stop());
	}
}

TEST(Executors, I2_no_task_runs_concurrently_with_itself)
{
	flow::Scheduler scheduler;
	Channel channel(scheduler, "channel");
	Log log;
	Logged task(scheduler, log, "t");
	Input input(task, channel);
	std::atomic<bool> inside{false};
	Runs runs;
	task.body = [&] {
		EXPECT_FALSE(inside.exchange(true));
		// Others get their chance: on another processor, and now and then on this one,
		// which is gone for many milliseconds then if the machine has other things to do.
		if (task.runs % 64 == 0)
			sched_yield();
		bool alone = true;
		for (int look = 0; look < 200; ++look)
			alone &= inside.load(std::memory_order_relaxed);
		EXPECT_TRUE(alone);
		log.take();
		inside.store(false);
		runs.add();
	};
	flow::Settings settings;
	settings.executors = 4;
	ASSERT_TRUE(scheduler.start(settings));
	for (int times = 0; times < 5000; ++times)
		channel.push();
	runs.wait(5000);
	ASSERT_TRUE(scheduler.stop());
	EXPECT_EQ(runs.left(), 0);
}

// A thread of low priority has the lock; one in between keeps the only processor until one of high
// priority had the lock. Without inheritance, that is for ever.
struct Inheritance {
	flow::Lock lock;
	Runs taken, go;
	std::atomic<bool> served{false};
	pthread_t low, medium, high;

	// Under SCHED_FIFO, on one processor.
	int run(pthread_t &thread, int priority, void *(*body)(void *))
	{
		pthread_attr_t attributes;
		pthread_attr_init(&attributes);
		sched_param parameters{};
		parameters.sched_priority = priority;
		cpu_set_t processors;
		CPU_ZERO(&processors);
		CPU_SET(0, &processors);
		pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED);
		pthread_attr_setschedpolicy(&attributes, SCHED_FIFO);
		pthread_attr_setschedparam(&attributes, &parameters);
		pthread_attr_setaffinity_np(&attributes, sizeof processors, &processors);
		int error = pthread_create(&thread, &attributes, body, this);
		pthread_attr_destroy(&attributes);
		return error;
	}
	static void *be_low(void *argument)
	{
		Inheritance &test = *static_cast<Inheritance *>(argument);
		test.lock.lock();
		test.taken.add();
		test.go.wait();
		test.lock.unlock();
		return nullptr;
	}
	static void *be_medium(void *argument)
	{
		Inheritance &test = *static_cast<Inheritance *>(argument);
		// Now the low one could go on, if it had the processor.
		test.go.add();
		if (test.run(test.high, 3, be_high) != 0)
			abort();
		while (!test.served.load()) {
		}
		return nullptr;
	}
	static void *be_high(void *argument)
	{
		Inheritance &test = *static_cast<Inheritance *>(argument);
		test.lock.lock();
		test.served.store(true);
		test.lock.unlock();
		return nullptr;
	}
};

TEST(Lock, who_holds_it_inherits_the_priority_of_who_waits)
{
	Inheritance test;
	if (int error = test.run(test.low, 1, Inheritance::be_low);
		error == EPERM || error == EINVAL)
		GTEST_SKIP() << "needs CAP_SYS_NICE, and processor 0";
	else
		ASSERT_EQ(error, 0);
	test.taken.wait();
	ASSERT_EQ(test.run(test.medium, 2, Inheritance::be_medium), 0);
	pthread_join(test.medium, nullptr);
	pthread_join(test.high, nullptr);
	pthread_join(test.low, nullptr);
}

TEST(ConditionDeath, a_push_within_ready_ends_the_program_with_a_message)
{
	struct Bad : flow::Task {
		Bad(flow::Scheduler &to, Channel &channel)
		    : Task(to, "bad"), channel_(channel), input_(*this, channel)
		{
		}
		void execute() override
		{
		}
		bool ready() const override
		{
			channel_.push();
			return false;
		}
		Channel &channel_;
		Input input_;
	};
	EXPECT_DEATH(
		{
			flow::Scheduler scheduler;
			Channel channel(scheduler, "channel");
			Bad bad(scheduler, channel);
			(void)scheduler.start();
			channel.push();
		},
		"within Task::ready");
}
