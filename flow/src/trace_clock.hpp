// SPDX-License-Identifier: MIT OR Apache-2.0
//
// CLOCK_MONOTONIC for the trace, at half the cost where the kernel's clock is the processor's time
// stamp counter (x86): the counter is read directly, and corrected by the real clock every
// millisecond. Elsewhere it is the real clock. Reading the clock is most of an event's cost.
//
// All threads share one clock, read under the scheduler's lock. Readings strictly increase, also
// across corrections, and also if the processor reads the counter before it takes the lock. The
// error is what the real clock is slewed in a millisecond (at most half a microsecond), and a few
// microseconds if an interrupt hits a correction.
#ifndef PUNCTUAL_FLOW_TRACE_CLOCK_HPP
#define PUNCTUAL_FLOW_TRACE_CLOCK_HPP

#include <cstdint>
#include <cstdio>
#include <cstring>

namespace punctual::flow {

class TraceClock {
public:
	// `real` reads CLOCK_MONOTONIC. No other thread may use the clock yet.
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
		// If the counter went back, this unsigned difference is huge.
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
	// Some microseconds: a pair of readings that are further apart is useless.
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
		// After a pause the machine may have been suspended, during which only one of the
		// two clocks goes on.
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

	// Measures the counter's rate: the longer, the better. A rate that differs from the last
	// one by more than any slewing comes from a jump: drop it, and begin measuring again.
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
	// Where measuring began, and the result: nanoseconds per count, also in units of 2⁻³² (0:
	// unknown).
	std::uint64_t first_ns_ = 0;
	std::uint64_t first_count_ = 0;
	double rate_ = 0;
	std::uint64_t ns_per_count_ = 0;
	// The last correction, and for how many counts it is valid.
	std::uint64_t ns_ = 0;
	std::uint64_t count_ = 0;
	std::uint64_t valid_ = 0;
#endif
};

} // namespace punctual::flow

#endif
