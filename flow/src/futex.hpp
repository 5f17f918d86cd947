// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Sleeping and waking by futex(2).
#ifndef PUNCTUAL_FLOW_FUTEX_HPP
#define PUNCTUAL_FLOW_FUTEX_HPP

#include <atomic>
#include <cstdint>
#include <ctime>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace punctual::flow {

// Tells the processor that this is a spin loop.
inline void pause() noexcept
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	// `yield` does nothing on most of these; this takes about as long as x86's.
	__asm__ __volatile__("isb" ::: "memory");
#elif defined(__arm__)
	__asm__ __volatile__("yield" ::: "memory");
#endif
}

inline std::int64_t monotonic_ns() noexcept
{
	timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

// Sleeps while *word is `value`, until woken or, if `until` is given, until that time of
// CLOCK_MONOTONIC. May return early.
inline void futex_wait(std::atomic<std::uint32_t> &word, std::uint32_t value,
	const timespec *until = nullptr) noexcept
{
	syscall(SYS_futex, &word, FUTEX_WAIT_BITSET_PRIVATE, value, until, nullptr,
		FUTEX_BITSET_MATCH_ANY);
}

// Wakes one, or all.
inline void futex_wake(std::atomic<std::uint32_t> &word, int count) noexcept
{
	syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, count, nullptr, nullptr, 0);
}

} // namespace punctual::flow

#endif
