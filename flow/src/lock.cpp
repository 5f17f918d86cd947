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

// Some microseconds: longer than a section takes, shorter than to sleep and to be woken. Who holds the lock for longer has been preempted, and needs our priority.
constexpr int spins = 100;

} // namespace

std::uint32_t Lock::ask_thread_id() noexcept
{
	// A child of fork(2) is another thread.
	static const int registered = pthread_atfork(nullptr, nullptr, [] { thread_id = 0; });
	(void)registered;
	thread_id = static_cast<std::uint32_t>(syscall(SYS_gettid));
	return thread_id;
}

void Lock::wait(std::uint32_t self) noexcept
{
	for (int spin = 0; spin < spins; ++spin) {
		std::uint32_t holder = word_.load(std::memory_order_relaxed);
		if (holder == 0 && word_.compare_exchange_weak(holder, self, std::memory_order_acquire, std::memory_order_relaxed))
			return;
		// Where threads sleep, the kernel decides who is next.
		if ((holder & FUTEX_WAITERS) != 0)
			break;
		pause();
	}
	for (;;) {
		if (syscall(SYS_futex, &word_, FUTEX_LOCK_PI_PRIVATE, 0, nullptr, nullptr, 0) == 0) {
			// The kernel wrote the word. This read is for the memory model: it sees what the holder before wrote (hand_over).
			word_.fetch_or(0, std::memory_order_acquire);
			return;
		}
		if (errno == EINTR || errno == EAGAIN)
			continue;
		if (errno == EDEADLK)
			std::fprintf(stderr, "punctual-flow: a push, or another call of the scheduler, within Task::ready(): it can only look\n");
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
