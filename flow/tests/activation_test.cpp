// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Rows A to E of the tables in docs/flow.md.
#include "probe_task.hpp"

using flow::Arming;
using flow::Barrier;
using flow::Channel;
using flow::Group;
using flow::Input;

class Activation : public Manual {
protected:
	Channel a{scheduler, "a"};
	Channel b{scheduler, "b"};
	Channel c{scheduler, "c"};
	Logged task{scheduler, log, "t"};
};

TEST_F(Activation, A1_synchronised_counts_while_idle)
{
	Input input(task, a, Arming().pushes(3));
	start();
	push(a, 2);
	EXPECT_EQ(run(), "");
	push(a, 1);
	EXPECT_EQ(run(), "t");
}

TEST_F(Activation, A1_synchronised_counts_for_the_next_instance_while_ready)
{
	Input input(task, a, Arming().pushes(2));
	start();
	// Ready after the second; three more for the next instances.
	push(a, 5);
	EXPECT_EQ(run(), "t t");
	push(a, 1);
	EXPECT_EQ(run(), "t");
	EXPECT_EQ(run(), "");
}

TEST_F(Activation, A1_synchronised_counts_for_the_next_instance_while_running)
{
	Input input(task, a);
	task.body = [this] {
		if (task.runs == 1)
			push(a, 2);
	};
	start();
	push(a, 1);
	EXPECT_EQ(run(), "t t t");
}

TEST_F(Activation, A1_synchronised_counts_for_the_next_instance_while_held)
{
	Logged other(scheduler, log, "o");
	Input input(task, a), others(other, b);
	Group group(scheduler);
	ASSERT_TRUE(group.join(task));
	ASSERT_TRUE(group.join(other));
	start();
	push(a, 1);
	EXPECT_EQ(run(), "t");
	push(a, 1);
	EXPECT_EQ(run(), "");
	push(b, 1);
	EXPECT_EQ(run(), "o t");
}

TEST_F(Activation, A1_holds_for_optional_and_final_inputs_too)
{
	Input optional(task, a, Arming().optional()), final(task, b, Arming().final());
	start();
	push(a, 3);
	std::uint32_t taken = 0;
	task.body = [&] { taken += optional.taken(); };
	for (int instance = 0; instance < 4; ++instance) {
		push(b, 1);
		EXPECT_EQ(run(), "t");
	}
	EXPECT_EQ(taken, 3u);
	push(b, 3);
	EXPECT_EQ(run(), "t t t");
}

TEST_F(Activation, A2_unsynchronised_counts_up_to_the_threshold_while_idle)
{
	// Armed by a, the task stays idle until b.
	Input first(task, a, Arming().pushes(2).unsynchronised()), second(task, b);
	start();
	push(a, 7);
	push(b, 1);
	EXPECT_EQ(run(), "t");
	push(b, 1);
	EXPECT_EQ(run(), "");
	push(a, 1);
	EXPECT_EQ(run(), "");
	push(a, 1);
	EXPECT_EQ(run(), "t");
}

TEST_F(Activation, A2_unsynchronised_is_dropped_while_ready)
{
	Input input(task, a, Arming().unsynchronised());
	start();
	push(a, 5);
	EXPECT_EQ(run(), "t");
}

TEST_F(Activation, A2_unsynchronised_is_dropped_while_running)
{
	Input input(task, a, Arming().unsynchronised());
	task.body = [this] { push(a, 1); };
	start();
	push(a, 1);
	EXPECT_EQ(run(), "t");
	EXPECT_EQ(run(), "");
}

TEST_F(Activation, A2_unsynchronised_is_dropped_while_held)
{
	Logged other(scheduler, log, "o");
	Input input(task, a, Arming().unsynchronised()), others(other, b);
	Group group(scheduler);
	ASSERT_TRUE(group.join(task));
	ASSERT_TRUE(group.join(other));
	start();
	push(a, 1);
	EXPECT_EQ(run(), "t");
	push(a, 1);
	push(b, 1);
	EXPECT_EQ(run(), "o");
}

TEST_F(Activation, A2_drops_the_count_and_not_the_data)
{
	flow::Queue<int, 4> queue(scheduler, "queue");
	Input input(task, queue, Arming().unsynchronised());
	start();
	ASSERT_TRUE(queue.push(1));
	ASSERT_TRUE(queue.push(2));
	EXPECT_EQ(run(), "t");
	EXPECT_EQ(queue.size(), 2u);
}

TEST_F(Activation, B1_required_inputs_are_all_waited_for)
{
	Input first(task, a), second(task, b), third(task, c, Arming().pushes(2));
	start();
	push(a, 1);
	push(c, 2);
	EXPECT_EQ(run(), "");
	push(b, 1);
	EXPECT_EQ(run(), "t");
	EXPECT_EQ(run(), "");
}

TEST_F(Activation, B1_two_inputs_may_have_the_same_channel)
{
	Input first(task, a), second(task, a, Arming().pushes(2));
	start();
	push(a, 1);
	EXPECT_EQ(run(), "");
	push(a, 1);
	EXPECT_EQ(run(), "t");
}

TEST_F(Activation, B2_optional_inputs_are_not_waited_for)
{
	Input required(task, a), optional(task, b, Arming().optional());
	std::string taken;
	task.body = [&] { taken += std::to_string(optional.taken()); };
	start();
	push(a, 1);
	EXPECT_EQ(run(), "t");
	push(b, 1);
	EXPECT_EQ(run(), "");
	push(a, 1);
	EXPECT_EQ(run(), "t");
	EXPECT_EQ(taken, "01");
}

TEST_F(Activation, B3_a_final_input_activates_whatever_the_others)
{
	Input required(task, a), final(task, b, Arming().final().pushes(2));
	start();
	push(b, 1);
	EXPECT_EQ(run(), "");
	push(b, 1);
	EXPECT_EQ(run(), "t");
}

TEST_F(Activation, B3_a_final_input_that_is_not_optional_is_waited_for)
{
	Input required(task, a), final(task, b, Arming().final());
	start();
	push(a, 3);
	EXPECT_EQ(run(), "");
	push(b, 1);
	EXPECT_EQ(run(), "t");
}

TEST_F(Activation, B4_any_of_several_final_inputs_activates)
{
	Input first(task, a, Arming().final()), second(task, b, Arming().final());
	start();
	push(b, 1);
	EXPECT_EQ(run(), "t");
	push(a, 1);
	EXPECT_EQ(run(), "t");
}

TEST_F(Activation, B5_optional_inputs_alone_never_activate)
{
	Input first(task, a, Arming().optional()),
		second(task, b, Arming().optional().unsynchronised());
	start();
	push(a, 3);
	push(b, 3);
	EXPECT_EQ(run(), "");
}

TEST_F(Activation, B6_required_ones_or_the_one_that_is_final_and_optional)
{
	Input first(task, a), second(task, b), timeout(task, c, Arming().final().optional());
	start();
	push(a, 1);
	push(b, 1);
	EXPECT_EQ(run(), "t");
	push(a, 1);
	EXPECT_EQ(run(), "");
	push(c, 1);
	EXPECT_EQ(run(), "t");
}

TEST_F(Activation, B7_among_optional_ones_the_final_ones_activate)
{
	Input optional(task, a, Arming().optional()), final(task, b, Arming().optional().final());
	start();
	push(a, 1);
	EXPECT_EQ(run(), "");
	push(b, 1);
	EXPECT_EQ(run(), "t");
}

// Two of three inputs are enough.
class Majority : public Logged {
public:
	Majority(flow::Scheduler &scheduler, Log &log, Channel &first, Channel &second,
		Channel &third)
	    : Logged(scheduler, log, "majority"), first_(*this, first), second_(*this, second),
	      third_(*this, third)
	{
	}

protected:
	bool ready() const override
	{
		return first_.armed() + second_.armed() + third_.armed() >= 2;
	}

private:
	Input first_, second_, third_;
};

TEST_F(Activation, B8_a_custom_condition_decides)
{
	Input ignored(task, a, Arming().optional());
	Majority majority(scheduler, log, a, b, c);
	start();
	push(b, 1);
	EXPECT_EQ(run(), "");
	push(a, 1);
	EXPECT_EQ(run(), "majority");
	push(c, 2);
	EXPECT_EQ(run(), "");
	push(a, 1);
	EXPECT_EQ(run(), "majority");
	// Asked again after the run: c has one left.
	push(b, 2);
	EXPECT_EQ(run(), "majority");
	push(a, 1);
	EXPECT_EQ(run(), "majority");
}

class Asked : public Logged {
public:
	Asked(flow::Scheduler &scheduler, Log &log, Channel &channel, Arming arming,
		const char *name = "asked")
	    : Logged(scheduler, log, name), input_(*this, channel, arming)
	{
	}
	mutable int times = 0;
	mutable std::uint32_t pushes = 0;

protected:
	bool ready() const override
	{
		++times;
		pushes = input_.pushes();
		return inputs_ready();
	}

private:
	Input input_;
};

TEST_F(Activation, B8_is_asked_at_the_start_after_pushes_that_count_and_after_runs)
{
	Input ignored(task, a, Arming().optional());
	Asked asked(scheduler, log, b, Arming().pushes(2));
	EXPECT_EQ(asked.times, 0);
	start();
	EXPECT_EQ(asked.times, 1);
	push(b, 1);
	EXPECT_EQ(asked.times, 2);
	push(b, 1);
	EXPECT_EQ(asked.times, 3);
	// It is ready: there is nothing to ask.
	push(b, 1);
	EXPECT_EQ(asked.times, 3);
	EXPECT_EQ(run(), "asked");
	EXPECT_EQ(asked.times, 4);
	stop();
	push(b, 5);
	EXPECT_EQ(asked.times, 4);
}

TEST_F(Activation, B8_sees_what_counts)
{
	Input ignored(task, a, Arming().optional());
	Asked all(scheduler, log, b, Arming().pushes(3).optional());
	Asked some(scheduler, log, c, Arming().pushes(3).optional().unsynchronised(), "some");
	Input ignored_too(some, b, Arming().optional());
	start();
	push(b, 5);
	push(c, 5);
	push(b, 1);
	EXPECT_EQ(all.pushes, 6u);
	EXPECT_EQ(some.pushes, 3u);
}

TEST_F(Activation, C1_an_armed_synchronised_input_gives_its_threshold)
{
	Input first(task, a, Arming().pushes(3)), second(task, b);
	std::string taken;
	task.body = [&] {
		taken += std::to_string(first.taken()) + std::to_string(second.taken()) + ' ';
	};
	start();
	push(a, 7);
	push(b, 1);
	EXPECT_EQ(run(), "t");
	push(b, 2);
	// Three more are there for the second instance, one for the third.
	EXPECT_EQ(run(), "t");
	push(a, 1);
	EXPECT_EQ(run(), "");
	push(a, 1);
	EXPECT_EQ(run(), "t");
	EXPECT_EQ(taken, "31 31 31 ");
}

TEST_F(Activation, C1_a_synchronised_input_that_is_not_armed_keeps_what_has_come)
{
	Input first(task, a, Arming().pushes(3)), final(task, b, Arming().final().optional());
	std::string taken;
	task.body = [&] {
		taken += std::to_string(first.taken()) + std::to_string(final.taken()) + ' ';
	};
	start();
	push(a, 2);
	push(b, 1);
	EXPECT_EQ(run(), "t");
	push(a, 1);
	EXPECT_EQ(run(), "t");
	EXPECT_EQ(taken, "01 30 ");
}

TEST_F(Activation, C1_all_armed_inputs_give_whichever_made_it_ready)
{
	Input first(task, a), second(task, b), final(task, c, Arming().final().optional());
	start();
	push(a, 1);
	push(c, 1);
	EXPECT_EQ(run(), "t");
	// a is used up.
	push(b, 1);
	EXPECT_EQ(run(), "");
	push(a, 1);
	EXPECT_EQ(run(), "t");
}

TEST_F(Activation, C2_an_unsynchronised_input_that_is_not_armed_forgets_what_has_come)
{
	Input first(task, a, Arming().pushes(3).unsynchronised()),
		final(task, b, Arming().final().optional());
	std::string taken;
	task.body = [&] { taken += std::to_string(first.taken()) + ' '; };
	start();
	push(a, 2);
	push(b, 1);
	EXPECT_EQ(run(), "t");
	push(a, 2);
	EXPECT_EQ(run(), "");
	push(a, 1);
	EXPECT_EQ(run(), "t");
	EXPECT_EQ(taken, "0 3 ");
}

TEST_F(Activation, D1_a_task_that_can_runs_again_behind_what_is_ready)
{
	Logged other(scheduler, log, "o");
	Input input(task, a), others(other, b);
	start();
	push(a, 2);
	push(b, 1);
	EXPECT_EQ(run(), "t o t");
}

TEST_F(Activation, D2_D3_no_member_of_a_group_runs_again_before_all_have_run)
{
	Logged second(scheduler, log, "u"), third(scheduler, log, "v");
	Input of_first(task, a), of_second(second, b), of_third(third, c);
	Group group(scheduler);
	// In another order than that of construction.
	ASSERT_TRUE(group.join(third));
	ASSERT_TRUE(group.join(second));
	ASSERT_TRUE(group.join(task));
	start();
	push(a, 2);
	push(b, 2);
	EXPECT_EQ(run(), "t u");
	push(c, 2);
	EXPECT_EQ(run(), "v v u t");
	push(a, 1);
	EXPECT_EQ(run(), "t");
	push(a, 1);
	EXPECT_EQ(run(), "");
	push(b, 1);
	push(c, 1);
	EXPECT_EQ(run(), "u v t");
}

TEST_F(Activation, D3_a_group_of_one_is_none)
{
	Input input(task, a);
	Group group(scheduler);
	ASSERT_TRUE(group.join(task));
	start();
	push(a, 3);
	EXPECT_EQ(run(), "t t t");
}

TEST_F(Activation, D_a_task_joins_one_group)
{
	Input input(task, a);
	Group group(scheduler), other(scheduler);
	ASSERT_TRUE(group.join(task));
	EXPECT_EQ(other.join(task).error(), flow::Error::group_twice);
	start();
	Logged late(scheduler, log, "late");
	EXPECT_EQ(other.join(late).error(), flow::Error::running);
	stop();
}

class Barriers : public Manual {
protected:
	Barrier barrier{scheduler, "barrier", 3};
	Logged task{scheduler, log, "t"};
	Input input{task, barrier};
};

TEST_F(Barriers, E1_pushes_that_do_not_complete_the_count_do_not_pass)
{
	start();
	push(barrier, 2);
	EXPECT_EQ(run(), "");
}

TEST_F(Barriers, E2_the_push_that_completes_the_count_passes_once_and_it_begins_anew)
{
	start();
	push(barrier, 3);
	EXPECT_EQ(run(), "t");
	push(barrier, 2);
	EXPECT_EQ(run(), "");
	push(barrier, 4);
	EXPECT_EQ(run(), "t t");
}

TEST_F(Barriers, E3_a_raised_count_waits_for_more_and_what_has_come_counts)
{
	start();
	push(barrier, 2);
	ASSERT_TRUE(barrier.set_count(5));
	push(barrier, 2);
	EXPECT_EQ(run(), "");
	push(barrier, 1);
	EXPECT_EQ(run(), "t");
	barrier.raise_count(2);
	push(barrier, 6);
	EXPECT_EQ(run(), "");
	push(barrier, 1);
	EXPECT_EQ(run(), "t");
	barrier.raise_count(UINT32_MAX);
	push(barrier, 100);
	EXPECT_EQ(run(), "");
}

TEST_F(Barriers, E4_a_count_lowered_to_what_has_come_passes_at_once_and_once)
{
	start();
	ASSERT_TRUE(barrier.set_count(10));
	push(barrier, 7);
	ASSERT_TRUE(barrier.set_count(3));
	EXPECT_EQ(run(), "t");
	// Nothing is left over.
	push(barrier, 2);
	EXPECT_EQ(run(), "");
	push(barrier, 1);
	EXPECT_EQ(run(), "t");
	ASSERT_TRUE(barrier.set_count(4));
	push(barrier, 2);
	ASSERT_TRUE(barrier.set_count(2));
	EXPECT_EQ(run(), "t");
}

TEST_F(Barriers, E5_a_count_lowered_to_more_than_has_come_waits_for_fewer)
{
	start();
	push(barrier, 1);
	ASSERT_TRUE(barrier.set_count(2));
	EXPECT_EQ(run(), "");
	push(barrier, 1);
	EXPECT_EQ(run(), "t");
}

TEST_F(Barriers, E6_a_count_of_0_is_refused)
{
	start();
	push(barrier, 2);
	flow::Status status = barrier.set_count(0);
	EXPECT_EQ(status.error(), flow::Error::count);
	EXPECT_STREQ(status.subject(), "barrier");
	EXPECT_EQ(run(), "");
	push(barrier, 1);
	EXPECT_EQ(run(), "t");
}
