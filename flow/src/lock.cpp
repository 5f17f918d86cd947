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

// Longer than a section takes, and longer than most threads take to wake up. Otherwise a thread
// that sleeps because the lock was handed to a waking thread becomes a waking thread itself, and so
// on, with two system calls per section. A holder that keeps the lock for longer has been
// preempted, and needs our priority.
constexpr std::int64_t spin_ns = 10'000;

// Pauses between two reads of the word: at first a tenth of a microsecond or more, then half a
// microsecond or more. Each read takes the cache line from the holder, who needs it back to unlock.
// With longer pauses, threads that need the lock all the time take turns of several sections, at a
// third of the cost (measured by `flow-bench-activation`).
constexpr int first_pauses = 16;
constexpr int most_pauses = 64;

// On a single processor, spinning keeps the holder from unlocking.
const bool spins = sysconf(_SC_NPROCESSORS_ONLN) > 1;

} // namespace

std::uint32_t Lock::ask_thread_id() noexcept
{
	// After fork(2), the child has another thread ID.
	static const int registered = pthread_atfork(nullptr, nullptr, [] { thread_id = 0; });
	(void)registered;
	thread_id = static_cast<std::uint32_t>(syscall(SYS_gettid));
	return thread_id;
}

bool Lock::spin(std::uint32_t self) noexcept
{
	std::int64_t until = 0;
	for (int pauses = first_pauses;; pauses = pauses < most_pauses ? 2 * pauses : pauses) {
		// Sleeping threads come first: the word is not 0 before the kernel has handed the
		// lock to all of them. Bit 31 does not mean that a thread sleeps: it is also set
		// after each handover.
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
	if (!spins || !spin(self))
		sleep();
}

void Lock::sleep() noexcept
{
	for (;;) {
		if (syscall(SYS_futex, &word_, FUTEX_LOCK_PI_PRIVATE, 0, nullptr, nullptr, 0) ==
			0) {
			// The kernel wrote the word. The memory model needs this read to see what
			// the previous holder wrote (hand_over).
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
