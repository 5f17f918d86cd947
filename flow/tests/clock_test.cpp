// SPDX-License-Identifier: MIT OR Apache-2.0
//
// The trace's clock beside the real one, and beside one that does as it likes.
#include <ctime>
#include <gtest/gtest.h>

#include "trace_clock.hpp"

using punctual::flow::TraceClock;

namespace {

// What it may be off by, as it says itself: an interrupt of some microseconds, slewing. Preemption
// of this thread makes the bracket wider, not the clock worse.
constexpr std::uint64_t tolerance_ns = 20'000;

std::uint64_t real() noexcept
{
	timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
	       static_cast<std::uint64_t>(now.tv_nsec);
}

std::uint64_t jump;
std::uint64_t jumping() noexcept
{
	return real() + jump;
}

// For this long, or until something is wrong.
void compare(TraceClock &clock, std::uint64_t (*with)() noexcept, std::uint64_t for_ns)
{
	std::uint64_t last = 0;
	for (std::uint64_t end = real() + for_ns; real() < end;) {
		std::uint64_t before = with(), now = clock.now(), after = with();
		ASSERT_GT(now, last);
		ASSERT_GE(now + tolerance_ns, before);
		ASSERT_LE(now, after + tolerance_ns);
		last = now;
	}
}

} // namespace

TEST(TraceClock, is_the_real_clock)
{
	TraceClock clock;
	clock.begin(real);
	compare(clock, real, 400'000'000);
}

TEST(TraceClock, is_the_real_clock_in_the_next_trace_and_after_a_pause)
{
	TraceClock clock;
	for (int trace = 0; trace < 3; ++trace) {
		clock.begin(real);
		compare(clock, real, 50'000'000);
		timespec pause{trace, 20'000'000};
		nanosleep(&pause, nullptr);
	}
	compare(clock, real, 50'000'000);
}

// As after the machine was suspended: the counter and the clock have not gone on by the same.
TEST(TraceClock, follows_a_clock_that_jumps)
{
	TraceClock clock;
	jump = 0;
	clock.begin(jumping);
	compare(clock, jumping, 100'000'000);
	for (std::uint64_t by : {std::uint64_t{5'000'000'000}, std::uint64_t{700'000'000},
		     std::uint64_t{30'000'000}}) {
		jump += by;
		// It notices at the next correction; until then it is behind.
		std::uint64_t end = real() + 3'000'000;
		while (real() < end)
			(void)clock.now();
		clock.now();
		compare(clock, jumping, 100'000'000);
	}
}
