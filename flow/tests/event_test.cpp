// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Rows G of the tables in docs/flow.md. Nothing here depends on how long something takes: pushes
// are waited for, and what must not come is given every chance to.
#include <semaphore.h>
#include <vector>

#include "probe_task.hpp"

using namespace std::chrono_literals;
using flow::Error;
using flow::Input;

// Lets a thread wait until a channel has been pushed on.
class Pushed : public flow::Task {
public:
	Pushed(flow::Scheduler &scheduler, const char *name, flow::Channel &channel)
	    : Task(scheduler, name), input_(*this, channel)
	{
		sem_init(&pushed_, 0, 0);
	}
	~Pushed() override
	{
		sem_destroy(&pushed_);
	}
	void execute() override
	{
		sem_post(&pushed_);
	}
	void wait(int times = 1)
	{
		while (times > 0)
			if (sem_wait(&pushed_) == 0)
				--times;
	}
	int left()
	{
		int value;
		sem_getvalue(&pushed_, &value);
		return value;
	}

private:
	sem_t pushed_;
	Input input_;
};

class Events : public testing::Test {
protected:
	~Events() override
	{
		EXPECT_TRUE(scheduler.stop());
	}
	flow::Scheduler scheduler;
};

TEST_F(Events, G1_a_periodic_event_pushes_and_pushes)
{
	flow::PeriodicEvent event(scheduler, "event", 1ms);
	Pushed pushed(scheduler, "pushed", event);
	ASSERT_TRUE(scheduler.start());
	pushed.wait(20);
	ASSERT_TRUE(scheduler.stop());
}

TEST_F(Events, G1_the_offset_comes_first)
{
	flow::PeriodicEvent early(scheduler, "early", 1h), late(scheduler, "late", 1h, 50ms),
		never(scheduler, "never", 1ms, 1h);
	Pushed first(scheduler, "first", early), second(scheduler, "second", late),
		third(scheduler, "third", never);
	auto begin = std::chrono::steady_clock::now();
	ASSERT_TRUE(scheduler.start());
	first.wait();
	second.wait();
	EXPECT_GE(std::chrono::steady_clock::now() - begin, 50ms);
	ASSERT_TRUE(scheduler.stop());
	EXPECT_EQ(first.left() + second.left() + third.left(), 0);
}

TEST_F(Events, G1_pushes_come_in_the_order_of_time)
{
	flow::OneShotEvent a(scheduler, "a"), b(scheduler, "b"), c(scheduler, "c"),
		d(scheduler, "d");
	Log log;
	Logged of_a(scheduler, log, "a"), of_b(scheduler, log, "b"), of_c(scheduler, log, "c"),
		of_d(scheduler, log, "d");
	Input input_a(of_a, a), input_b(of_b, b), input_c(of_c, c), input_d(of_d, d);
	Pushed last(scheduler, "last", d);
	ASSERT_TRUE(scheduler.start());
	ASSERT_TRUE(d.start(80ms));
	ASSERT_TRUE(b.start(40ms));
	ASSERT_TRUE(c.start(60ms));
	ASSERT_TRUE(a.start(20ms));
	last.wait();
	ASSERT_TRUE(scheduler.stop());
	EXPECT_EQ(log.take(), "a b c d");
}

TEST(Expiry, G1_G2_the_next_push_is_on_the_grid_and_missed_ones_are_counted)
{
	struct Case {
		std::int64_t due, period, now, next;
		std::uint64_t missed;
	};
	for (const Case &one : {Case{100, 10, 100, 110, 0}, Case{100, 10, 109, 110, 0},
		     Case{100, 10, 110, 120, 1}, Case{100, 10, 119, 120, 1},
		     Case{100, 10, 120, 130, 2}, Case{100, 10, 1005, 1010, 90},
		     Case{0, 1, 1'000'000'000'000, 1'000'000'000'001, 1'000'000'000'000}}) {
		flow::NextExpiry next = flow::next_expiry(one.due, one.period, one.now);
		EXPECT_EQ(next.due_ns, one.next);
		EXPECT_EQ(next.missed, one.missed);
		EXPECT_GT(next.due_ns, one.now);
	}
}

TEST_F(Events, G2_periods_that_nobody_can_keep_up_with_are_counted)
{
	flow::PeriodicEvent event(scheduler, "event", 1ns);
	Pushed pushed(scheduler, "pushed", event);
	ASSERT_TRUE(scheduler.start());
	pushed.wait(10);
	ASSERT_TRUE(scheduler.stop());
	EXPECT_GT(event.overruns(), 0u);
}

TEST_F(Events, G3_a_one_shot_event_pushes_once)
{
	flow::OneShotEvent event(scheduler, "event"), after(scheduler, "after");
	Pushed pushed(scheduler, "pushed", event), later(scheduler, "later", after);
	ASSERT_TRUE(scheduler.start());
	ASSERT_TRUE(event.start(0ns));
	pushed.wait();
	ASSERT_TRUE(after.start(5ms));
	later.wait();
	EXPECT_EQ(pushed.left(), 0);
	ASSERT_TRUE(event.start(1ms));
	pushed.wait();
}

TEST_F(Events, G3_a_task_starts_an_event)
{
	flow::OneShotEvent event(scheduler, "event");
	Log log;
	Logged task(scheduler, log, "t");
	Input input(task, event);
	Pushed pushed(scheduler, "pushed", event);
	/* The last instance starts none: that would race with the scheduler's stop. */
	int starts = 0;
	task.body = [&] {
		if (++starts < 10) {
			EXPECT_TRUE(event.start(100us));
		}
	};
	ASSERT_TRUE(scheduler.start());
	ASSERT_TRUE(event.start(0ns));
	pushed.wait(10);
	ASSERT_TRUE(scheduler.stop());
}

TEST_F(Events, G4_a_new_delay_replaces_the_old_one)
{
	flow::OneShotEvent event(scheduler, "event"), after(scheduler, "after");
	Pushed pushed(scheduler, "pushed", event), later(scheduler, "later", after);
	ASSERT_TRUE(scheduler.start());
	ASSERT_TRUE(event.start(1h));
	ASSERT_TRUE(event.start(1ms));
	pushed.wait();
	ASSERT_TRUE(event.start(10ms));
	ASSERT_TRUE(event.start(1h));
	ASSERT_TRUE(after.start(20ms));
	later.wait();
	EXPECT_EQ(pushed.left(), 0);
	EXPECT_TRUE(event.cancel());
}

TEST_F(Events, G5_G6_what_is_cancelled_does_not_come)
{
	flow::OneShotEvent event(scheduler, "event"), after(scheduler, "after");
	flow::PeriodicEvent periodic(scheduler, "periodic", 1h, 1h);
	Pushed pushed(scheduler, "pushed", event), later(scheduler, "later", after),
		of_periodic(scheduler, "of_periodic", periodic);
	EXPECT_FALSE(event.cancel());
	ASSERT_TRUE(scheduler.start());
	EXPECT_FALSE(event.cancel());
	ASSERT_TRUE(event.start(10ms));
	EXPECT_TRUE(event.cancel());
	EXPECT_FALSE(event.cancel());
	EXPECT_TRUE(periodic.cancel());
	EXPECT_FALSE(periodic.cancel());
	ASSERT_TRUE(after.start(20ms));
	later.wait();
	EXPECT_EQ(pushed.left(), 0);
	ASSERT_TRUE(scheduler.stop());
	ASSERT_TRUE(scheduler.start());
	EXPECT_TRUE(periodic.cancel());
}

TEST_F(Events, G7_a_start_that_makes_no_sense_is_refused)
{
	flow::OneShotEvent event(scheduler, "event");
	Pushed pushed(scheduler, "pushed", event);
	EXPECT_EQ(event.start(1ms).error(), Error::not_running);
	ASSERT_TRUE(scheduler.start());
	EXPECT_EQ(event.start(-1ns).error(), Error::delay);
	EXPECT_EQ(event.start(std::chrono::nanoseconds::max()).error(), Error::delay);
	EXPECT_FALSE(event.cancel());
	ASSERT_TRUE(scheduler.stop());
	EXPECT_EQ(event.start(1ms).error(), Error::not_running);
}

TEST_F(Events, G7_an_event_that_was_built_while_it_runs_is_refused)
{
	ASSERT_TRUE(scheduler.start());
	flow::OneShotEvent late(scheduler, "late");
	EXPECT_EQ(late.start(1ms).error(), Error::built_while_running);
	EXPECT_FALSE(late.cancel());
	late.push();
}

TEST_F(Events, G8_stop_cancels_and_a_start_begins_anew)
{
	flow::OneShotEvent event(scheduler, "event");
	flow::PeriodicEvent periodic(scheduler, "periodic", 1h);
	Pushed pushed(scheduler, "pushed", event), of_periodic(scheduler, "of_periodic", periodic);
	for (int round = 0; round < 3; ++round) {
		ASSERT_TRUE(scheduler.start());
		of_periodic.wait();
		ASSERT_TRUE(event.start(1h));
		ASSERT_TRUE(scheduler.stop());
		EXPECT_FALSE(event.cancel());
		EXPECT_FALSE(periodic.cancel());
	}
	EXPECT_EQ(pushed.left(), 0);
}

TEST_F(Events, an_event_can_be_pushed_on_by_hand)
{
	flow::OneShotEvent event(scheduler, "event");
	Pushed pushed(scheduler, "pushed", event);
	ASSERT_TRUE(scheduler.start());
	event.push();
	pushed.wait();
}

// Many events, started, moved and cancelled at random: the heap must never lose one.
TEST_F(Events, many_events_at_random)
{
	std::vector<std::unique_ptr<flow::OneShotEvent>> events;
	std::vector<std::unique_ptr<Pushed>> tasks;
	for (int event = 0; event < 100; ++event) {
		events.emplace_back(new flow::OneShotEvent(
			scheduler, ("event" + std::to_string(event)).c_str()));
		tasks.emplace_back(new Pushed(
			scheduler, ("task" + std::to_string(event)).c_str(), *events.back()));
	}
	ASSERT_TRUE(scheduler.start());
	std::uint32_t random = 1;
	for (int round = 0; round < 20; ++round) {
		std::vector<bool> waits(events.size());
		for (int step = 0; step < 500; ++step) {
			random = random * 1664525 + 1013904223;
			std::size_t event = random / 65536 % events.size();
			if (random / 256 % 3 == 0) {
				EXPECT_EQ(events[event]->cancel(), waits[event]);
				waits[event] = false;
			} else {
				ASSERT_TRUE(events[event]->start(
					1h + std::chrono::nanoseconds(random)));
				waits[event] = true;
			}
		}
		for (std::size_t event = 0; event < events.size(); ++event)
			if (waits[event]) {
				ASSERT_TRUE(events[event]->start(
					std::chrono::microseconds(event * 7919 % 1000)));
			}
		for (std::size_t event = 0; event < events.size(); ++event)
			if (waits[event])
				tasks[event]->wait();
	}
	ASSERT_TRUE(scheduler.stop());
	for (auto &task : tasks)
		EXPECT_EQ(task->left(), 0);
}
