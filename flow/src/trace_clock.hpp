// SPDX-License-Identifier: MIT OR Apache-2.0
//
// CLOCK_MONOTONIC for the trace, at half the cost where the kernel itself takes it from the
// processor's time stamp counter (x86): the counter is read, and what it says is corrected with the
// real clock every millisecond. Elsewhere it is the real clock. Reading the clock is most of what
// an event costs.
//
// One clock for all threads: it is read with the scheduler's lock. No two readings are the same,
// and none is before another, not where a correction would make it so, and not where the processor
// reads the counter before the lock is taken. It is off by what the real clock is slewed in a
// millisecond (half a microsecond at most), and by a few microseconds where a correction was hit by
// an interrupt.
#ifndef PUNCTUAL_FLOW_TRACE_CLOCK_HPP
#define PUNCTUAL_FLOW_TRACE_CLOCK_HPP

#include <cstdint>
#include <cstdio>
#include <cstring>

namespace punctual::flow {

class TraceClock {
public:
	// `real` reads CLOCK_MONOTONIC. With no other thread around.
	void begin(std::uint64_t (*real)() noexcept) noexcept
	{
		real_ = real;
		last_ = 0;
#if defined(__x86_64__)
		counts_ = kernel_counts();
		due();
#endif
	}

	std::uint64_t now() noexcept
	{
#if defined(__x86_64__)
		// A counter that went back has passed very much, as an unsigned number.
		std::uint64_t passed = __builtin_ia32_rdtsc() - count_;
		std::uint64_t ns =
			passed < valid_ ? ns_ + (passed * ns_per_count_ >> shift) : correct();
#else
		std::uint64_t ns = real_();
#endif
		return last_ = ns > last_ ? ns : last_ + 1;
	}

private:
	std::uint64_t (*real_)() noexcept = nullptr;
	std::uint64_t last_ = 0;

#if defined(__x86_64__)
	static constexpr unsigned shift = 32;
	static constexpr std::uint64_t correct_every_ns = 1'000'000, measure_for_ns = 20'000'000,
				       gap_ns = 1'000'000'000;
	// Some microseconds: a pair of readings that are further apart tells nothing.
	static constexpr std::uint64_t most_apart = 10'000;

	// The next reading is a correction.
	void due() noexcept
	{
		count_ = __builtin_ia32_rdtsc() - valid_;
	}

	__attribute__((noinline)) std::uint64_t correct() noexcept
	{
		std::uint64_t before = __builtin_ia32_rdtsc(), ns = real_(),
			      after = __builtin_ia32_rdtsc();
		if (!counts_)
			return ns;
		if (after - before > most_apart) {
			due();
			return ns;
		}
		std::uint64_t count = before + (after - before) / 2;
		// After a while without any reading the machine may have been suspended, where the
		// one clock goes on and the other does not.
		if (first_ns_ == 0 || count < first_count_ || ns - ns_ > gap_ns) {
			first_ns_ = ns;
			first_count_ = count;
		} else if (ns - first_ns_ >= measure_for_ns) {
			measure(count - first_count_, ns - first_ns_);
		}
		count_ = count;
		ns_ = ns;
		return ns;
	}

	// How fast the counter is: the longer the time, the better. A rate that is another than
	// before, by more than any slewing, comes from a jump: it is not taken, and measuring
	// begins anew.
	void measure(std::uint64_t counts, std::uint64_t ns) noexcept
	{
		double rate = static_cast<double>(ns) / static_cast<double>(counts);
		bool jumped = rate_ != 0 && (rate > rate_ * 1.001 || rate < rate_ * 0.999);
		if (jumped)
			first_ns_ = 0;
		rate_ = jumped ? 0 : rate;
		ns_per_count_ = static_cast<std::uint64_t>(
			rate_ * static_cast<double>(std::uint64_t{1} << shift));
		valid_ = jumped ? 0
				: static_cast<std::uint64_t>(
					  static_cast<double>(correct_every_ns) / rate_);
	}

	static bool kernel_counts() noexcept
	{
		char name[8] = "";
		if (std::FILE *file = std::fopen(
			    "/sys/devices/system/clocksource/clocksource0/current_clocksource",
			    "re");
			file != nullptr) {
			if (std::fgets(name, sizeof name, file) == nullptr)
				name[0] = '\0';
			std::fclose(file);
		}
		return std::strcmp(name, "tsc\n") == 0;
	}

	bool counts_ = false;
	// Where measuring began, and what came of it: nanoseconds for a count, also in 2⁻³² (0: not
	// known yet).
	std::uint64_t first_ns_ = 0;
	std::uint64_t first_count_ = 0;
	double rate_ = 0;
	std::uint64_t ns_per_count_ = 0;
	// The last correction, and for how many counts it is good.
	std::uint64_t ns_ = 0;
	std::uint64_t count_ = 0;
	std::uint64_t valid_ = 0;
#endif
};

} // namespace punctual::flow

#endif
