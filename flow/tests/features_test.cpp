// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Tasks from lambdas, inputs that know their channel, deadlines, and names in messages.
#include <chrono>
#include <punctual/flow/internal.hpp>
#include <semaphore.h>
#include <string>
#include <thread>
#include <vector>

#include "probe_task.hpp"

using namespace std::chrono_literals;

class Features : public Manual {};

TEST_F(Features, a_lambda_is_a_task)
{
	flow::Latest<int> image(scheduler, "image");
	std::vector<int> seen;
	flow::Call show(scheduler, "show", [&] { seen.push_back(image.read()); });
	flow::Input images(show, image);
	start();
	image.push(7);
	scheduler.run_ready();
	image.push(8);
	scheduler.run_ready();
	stop();
	EXPECT_EQ(seen, (std::vector<int>{7, 8}));
	EXPECT_EQ(show.instance(), 2u);
}

TEST_F(Features, inputs_know_what_their_channel_holds)
{
	flow::Latest<int> gain(scheduler, "gain", 3);
	flow::Queue<int, 4> values(scheduler, "values");
	struct Scale : flow::Task {
		Scale(flow::Scheduler &scheduler, flow::Latest<int> &gain,
			flow::Queue<int, 4> &values)
		    : Task(scheduler, "scale"),
		      gain_(*this, gain, flow::Arming().unsynchronised().optional()),
		      values_(*this, values)
		{
		}
		void execute() override
		{
			int value = 0;
			if (values_.pop(value))
				scaled.push_back(value * gain_.read());
		}
		flow::LatestInput<int> gain_;
		flow::QueueInput<int, 4> values_;
		std::vector<int> scaled;
	} scale(scheduler, gain, values);
	start();
	ASSERT_TRUE(values.push(2));
	ASSERT_TRUE(values.push(5));
	scheduler.run_ready();
	gain.push(10);
	ASSERT_TRUE(values.push(1));
	scheduler.run_ready();
	stop();
	EXPECT_EQ(scale.scaled, (std::vector<int>{6, 15, 10}));
}

TEST_F(Features, a_lambda_takes_the_inputs_of_its_channels)
{
	flow::Latest<int> gain(scheduler, "gain", 3);
	flow::Queue<int, 4> values(scheduler, "values");
	flow::Channel go(scheduler, "go");
	std::vector<int> scaled;
	flow::Call scale(
		scheduler, "scale",
		[&](flow::QueueInput<int, 4> &queue, const flow::LatestInput<int> &latest,
			flow::Input &) {
			int value = 0;
			while (queue.pop(value))
				scaled.push_back(value * latest.read());
		},
		values, gain, go);
	start();
	ASSERT_TRUE(values.push(2));
	gain.push(10);
	EXPECT_EQ(scale.instance(), 0u);
	go.push();
	scheduler.run_ready();
	ASSERT_TRUE(values.push(5));
	gain.push(100);
	go.push();
	scheduler.run_ready();
	stop();
	EXPECT_EQ(scaled, (std::vector<int>{20, 500}));
	EXPECT_EQ(scale.instance(), 2u);
}

TEST_F(Features, a_lambda_of_wrong_priority_is_refused)
{
	flow::Call task(
		scheduler, "task", [] {}, 7);
	flow::Call wrong(
		scheduler, "wrong", [] {}, 256);
	settings.executors = 0;
	flow::Status refused = scheduler.start(settings);
	EXPECT_EQ(refused.error(), flow::Error::priority);
	EXPECT_STREQ(refused.subject(), "wrong");
}

TEST_F(Features, a_long_name_is_told_as_far_as_it_is_kept)
{
	flow::Channel channel(scheduler, "averyveryveryverylongname");
	flow::Status refused = scheduler.start(settings);
	EXPECT_EQ(refused.error(), flow::Error::name_length);
	EXPECT_STREQ(refused.subject(), "averyveryveryverylongna");
}

TEST_F(Features, a_missed_deadline_is_counted_and_told)
{
	flow::Channel go(scheduler, "go");
	flow::Call task(scheduler, "task", [] {});
	flow::Input input(task, go);
	struct Told {
		std::string name;
		std::chrono::nanoseconds late{};
		int times = 0;
	} told;
	auto tell = [](flow::Task &missed, std::chrono::nanoseconds late, void *argument) {
		Told &to = *static_cast<Told *>(argument);
		to = {missed.name(), late, to.times + 1};
	};
	// Nothing ends within a nanosecond, and anything within a day.
	ASSERT_TRUE(task.set_deadline(1ns, tell, &told));
	start();
	go.push();
	scheduler.run_ready();
	EXPECT_FALSE(task.set_deadline(24h));
	stop();
	EXPECT_EQ(told.name, "task");
	EXPECT_GT(told.late.count(), 0);
	EXPECT_EQ(told.times, 1);
	ASSERT_TRUE(task.set_deadline(24h, tell, &told));
	start();
	go.push();
	scheduler.run_ready();
	stop();
	EXPECT_EQ(told.times, 1);
	EXPECT_EQ(task.missed_deadlines(), 1u);
	flow::Status refused = task.set_deadline(0ns);
	EXPECT_EQ(refused.error(), flow::Error::task_deadline);
	EXPECT_STREQ(refused.subject(), "task");
}

TEST_F(Features, messages_about_names_and_periods_have_the_name)
{
	{
		flow::Scheduler other;
		flow::Channel channel(other, "two words");
		EXPECT_STREQ(other.start().subject(), "two words");
	}
	{
		flow::Scheduler other;
		flow::PeriodicEvent event(other, "never", 0ns);
		flow::Status status = other.start();
		EXPECT_EQ(status.error(), flow::Error::period);
		EXPECT_STREQ(status.subject(), "never");
	}
	{
		flow::Scheduler other;
		flow::Channel channel(other, "");
		EXPECT_STREQ(other.start().subject(), "a channel");
	}
	flow::Scheduler other;
	{
		flow::Channel channel(other, "a,b");
	}
	// Its name is gone with it.
	EXPECT_STREQ(other.start().subject(), "a channel");
}

// Whichever of them have just fallen asleep, or are about to.
TEST_F(Features, sleeping_executors_run_what_is_pushed)
{
	for (unsigned executors : {1u, 2u, 4u}) {
		flow::Scheduler with;
		flow::Channel go(with, "go");
		sem_t done;
		sem_init(&done, 0, 0);
		flow::Call one(with, "one", [&] { sem_post(&done); });
		flow::Call two(with, "two", [&] { sem_post(&done); });
		flow::Input of_one(one, go), of_two(two, go);
		flow::Settings asleep;
		asleep.executors = executors;
		asleep.spin = {};
		ASSERT_TRUE(with.start(asleep));
		for (int push = 0; push < 2'000; ++push) {
			go.push();
			for (int task = 0; task < 2; ++task)
				while (sem_wait(&done) != 0)
					;
		}
		ASSERT_TRUE(with.stop());
		EXPECT_EQ(one.instance(), 2'000u);
		EXPECT_EQ(two.instance(), 2'000u);
		sem_destroy(&done);
	}
}

// A caller of low priority may be preempted before it wakes the executor.
TEST(Parking, anyone_wakes_whom_a_preempted_caller_has_called)
{
	flow::Parking parking;
	for (int tries = 0, left_asleep = 0; left_asleep < 20; ++tries) {
		ASSERT_LT(tries, 100'000) << "the thread never slept";
		parking.enter();
		std::thread executor([&] { parking.wait(); });
		for (int look = 0; look < tries % 100; ++look)
			std::this_thread::yield();
		if (parking.call()) {
			++left_asleep;
			std::thread([&] { parking.wake(); }).join();
		}
		executor.join();
		// The caller comes back: the executor waits for the next call.
		parking.enter();
		parking.wake();
		EXPECT_FALSE(parking.call());
		parking.wait();
	}
}
