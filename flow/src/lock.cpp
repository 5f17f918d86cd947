// SPDX-License-Identifier: MIT OR Apache-2.0
#include <punctual/flow/lock.hpp>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "futex.hpp"

namespace punctual::flow {

namespace {

// Longer than a section takes, and longer than most threads take to wake up: who sleeps because the
// lock was handed to a thread that is just waking up will be one in turn, and so on, with two calls
// of the kernel for each section. Who holds the lock for longer than this has been preempted, and
// needs our priority.
constexpr std::int64_t spin_ns = 10'000;

// Between two looks at the word: a tenth of a microsecond or some, then half a microsecond or a
// few. Each look takes the cache line from who holds the lock, who has to get it back to unlock:
// looks that are further apart make threads that need the lock all the time take turns of several
// sections each, at a third of the cost. (`flow-bench-activation`)
constexpr int first_pauses = 16;
constexpr int most_pauses = 64;

// On one processor, nobody can unlock meanwhile.
const bool spins = sysconf(_SC_NPROCESSORS_ONLN) > 1;

} // namespace

std::uint32_t Lock::ask_thread_id() noexcept
{
	// A child of fork(2) is another thread.
	static const int registered = pthread_atfork(nullptr, nullptr, [] { thread_id = 0; });
	(void)registered;
	thread_id = static_cast<std::uint32_t>(syscall(SYS_gettid));
	return thread_id;
}

bool Lock::spin(std::uint32_t self) noexcept
{
	std::int64_t until = 0;
	for (int pauses = first_pauses;; pauses = pauses < most_pauses ? 2 * pauses : pauses) {
		// Those who sleep come first: the word is not 0 before the kernel has handed the
		// lock to all of them. Bit 31 does not say that somebody sleeps: it is set after
		// each handing over.
		std::uint32_t holder = word_.load(std::memory_order_relaxed);
		if (holder == 0 && word_.compare_exchange_weak(holder, self,
					   std::memory_order_acquire, std::memory_order_relaxed))
			return true;
		for (int waited = 0; waited < pauses; ++waited)
			pause();
		if (pauses < most_pauses)
			continue;
		std::int64_t now = monotonic_ns();
		if (until == 0)
			until = now + spin_ns;
		else if (now >= until)
			return false;
	}
}

void Lock::wait(std::uint32_t self) noexcept
{
	if (spins && spin(self))
		return;
	for (;;) {
		if (syscall(SYS_futex, &word_, FUTEX_LOCK_PI_PRIVATE, 0, nullptr, nullptr, 0) ==
			0) {
			// The kernel wrote the word. This read is for the memory model: it sees
			// what the holder before wrote (hand_over).
			word_.fetch_or(0, std::memory_order_acquire);
			return;
		}
		if (errno == EINTR || errno == EAGAIN)
			continue;
		if (errno == EDEADLK)
			std::fprintf(stderr, "punctual-flow: a push, or another call of the "
					     "scheduler, within Task::ready(): it can only look\n");
		else
			std::perror("punctual-flow: waiting for a lock");
		std::abort();
	}
}

void Lock::hand_over() noexcept
{
	word_.fetch_or(0, std::memory_order_release);
	if (syscall(SYS_futex, &word_, FUTEX_UNLOCK_PI_PRIVATE, 0, nullptr, nullptr, 0) != 0) {
		std::perror("punctual-flow: handing over a lock");
		std::abort();
	}
}

} // namespace punctual::flow
