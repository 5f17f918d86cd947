// SPDX-License-Identifier: MIT OR Apache-2.0
//
// What an activation costs, from the push to the run of an empty task, on one and two executors;
// and what tracing adds to tasks of 1 µs and 10 µs. Beside it, what a cache line costs on its way
// from one processor to another, which is most of what a second executor adds.
//
//   flow-bench-activation [--trace FOLDER]
//
// Prints lines "name value unit". Times are the least of many rounds: whatever else runs on the
// machine only adds to them. Two executors have a processor each; theirs is the median of those
// rounds in which both did their part, since the fastest are those in which one of them could not
// run. What tracing adds is a ratio of rounds with and without it, in turn, in this one run. Every
// round's trace goes to a folder of its own in FOLDER; without FOLDER, tracing is not measured.
#include "ring.hpp"

#include <cstring>
#include <thread>

// How many loops take a microsecond.
static double loops_per_us()
{
	double least = 1e18;
	for (int round = 0; round < 20; ++round) {
		double begin = now_ns();
		work(1'000'000);
		least = std::min(least, now_ns() - begin);
	}
	return 1e9 / least;
}

// Nanoseconds from a store on the one processor to a load on the other that sees it.
static double one_way_ns(const std::vector<unsigned> &between)
{
	constexpr std::uint32_t times = 20'000;
	alignas(128) std::atomic<std::uint32_t> line{0};
	auto play = [&](unsigned side) {
		cpu_set_t set;
		CPU_ZERO(&set);
		CPU_SET(between[side], &set);
		pthread_setaffinity_np(pthread_self(), sizeof set, &set);
		for (std::uint32_t turn = side; turn < 2 * times; turn += 2) {
			while (line.load(std::memory_order_acquire) != turn) {
			}
			line.store(turn + 1, std::memory_order_release);
		}
	};
	double best = 1e18;
	for (int round = 0; round < 20; ++round) {
		line = 0;
		double begin = now_ns();
		std::thread one(play, 0), other(play, 1);
		one.join();
		other.join();
		best = std::min(best, (now_ns() - begin) / (2 * times));
	}
	return best;
}

static double least(Ring &ring)
{
	double best = 1e18;
	for (int round = 0; round < 40; ++round)
		best = std::min(best, ring.measure(1, 1, 50'000, nullptr));
	return best;
}

static void two_executors(Ring &ring, unsigned tokens, const char *name)
{
	std::vector<double> rounds;
	for (int tries = 0; rounds.size() < 41 && tries < 1000; ++tries) {
		double ns = ring.measure(2, tokens, 50'000, nullptr);
		if (ring.both_ran())
			rounds.push_back(ns);
	}
	if (rounds.empty())
		return void(std::fprintf(stderr,
			"%s: in no round did both executors run; is the machine busy?\n", name));
	std::sort(rounds.begin(), rounds.end());
	std::printf("activation_two_executors_%s %.1f ns\n", name, rounds[rounds.size() / 2]);
}

int main(int count, char **arguments)
{
	const char *folder =
		count == 3 && std::strcmp(arguments[1], "--trace") == 0 ? arguments[2] : nullptr;
	if (count != 1 && folder == nullptr) {
		std::fprintf(stderr, "Usage: %s [--trace FOLDER]\n", arguments[0]);
		return 2;
	}
	{
		Ring empty(8, 0);
		std::printf("activation_one_executor %.1f ns\n", least(empty));
		if (const std::vector<unsigned> two = processors(); two.size() == 2) {
			std::printf("cache_line_one_way %.1f ns\n", one_way_ns(two));
			two_executors(empty, 1, "one_token");
			two_executors(empty, 2, "two_tokens");
			two_executors(empty, 4, "four_tokens");
		} else {
			std::fprintf(stderr, "two executors are not measured: this program may use "
					     "one processor only\n");
		}
		std::fflush(stdout);
	}
	if (folder == nullptr)
		return 0;
	double per_us = loops_per_us();
	int trace = 0;
	for (unsigned us : {1u, 10u}) {
		Ring busy(8, static_cast<std::uint64_t>(per_us * us));
		double with = 1e18, without = 1e18;
		// Rounds of some milliseconds: of so many, some have the processor for themselves.
		const std::uint32_t activations = 3'000 / us;
		for (int round = 0; round < 200; ++round) {
			without = std::min(without, busy.measure(1, 1, activations, nullptr));
			with = std::min(
				with, busy.measure(1, 1, activations,
					      (std::string(folder) + "/" + std::to_string(trace++))
						      .c_str()));
		}
		std::printf("task_%u_us %.1f ns\n", us, without);
		std::printf(
			"tracing_added_to_%u_us_task %.2f %%\n", us, (with / without - 1) * 100);
		std::fflush(stdout);
	}
	return 0;
}
