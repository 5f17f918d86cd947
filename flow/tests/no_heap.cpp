// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Nothing is allocated or freed between the start and the stop of a scheduler: this program's
// malloc ends it there.
//
//   flow-no-heap [FOLDER]    traces to FOLDER
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <punctual/flow.hpp>
#include <semaphore.h>
#include <unistd.h>

namespace flow = punctual::flow;

static std::atomic<bool> forbidden{false};
static std::atomic<unsigned> calls{0};

static void look()
{
	calls.fetch_add(1, std::memory_order_relaxed);
	if (forbidden.load()) {
		static const char message[] = "FAILED: the heap was used between start and stop\n";
		(void)!write(STDERR_FILENO, message, sizeof message - 1);
		abort();
	}
}

extern "C" {
void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);
void __libc_free(void *);

void *malloc(size_t size)
{
	look();
	return __libc_malloc(size);
}
void *calloc(size_t count, size_t size)
{
	look();
	return __libc_calloc(count, size);
}
void *realloc(void *memory, size_t size)
{
	look();
	return __libc_realloc(memory, size);
}
void *memalign(size_t alignment, size_t size)
{
	look();
	return __libc_memalign(alignment, size);
}
void *aligned_alloc(size_t alignment, size_t size)
{
	look();
	return __libc_memalign(alignment, size);
}
int posix_memalign(void **memory, size_t alignment, size_t size)
{
	look();
	*memory = __libc_memalign(alignment, size);
	return 0;
}
void free(void *memory)
{
	if (memory != nullptr)
		look();
	__libc_free(memory);
}
}

static flow::Scheduler scheduler;
static flow::PeriodicEvent tick(scheduler, "tick", std::chrono::microseconds(100));
static flow::OneShotEvent timeout(scheduler, "timeout");
static flow::Queue<int, 8> queue(scheduler, "queue");
static flow::Latest<long> latest(scheduler, "latest");
static flow::Barrier barrier(scheduler, "barrier", 2);
static sem_t done;

class Source : public flow::Task {
public:
	Source() : Task(scheduler, "source", 3)
	{
	}
	void execute() override
	{
		(void)queue.push(1);
		latest.push(2);
		barrier.push();
		(void)timeout.start(std::chrono::microseconds(50));
		(void)barrier.set_count(1 + instance() % 3);
		if (instance() % 7 == 0)
			(void)timeout.cancel();
	}

private:
	flow::Input input_{*this, tick};
};

class Sink : public flow::Task {
public:
	Sink(const char *name, flow::Channel &input)
	    : Task(scheduler, name, 2), input_(*this, input),
	      timeout_(*this, timeout, flow::Arming().optional().final())
	{
	}
	void execute() override
	{
		int value;
		(void)queue.pop(value);
		(void)latest.read();
		sem_post(&done);
	}

private:
	flow::Input input_;
	flow::Input timeout_;
};

int main(int count, char **arguments)
{
	sem_init(&done, 0, 0);
	Source source;
	Sink of_queue("of_queue", queue), of_latest("of_latest", latest),
		of_barrier("of_barrier", barrier);
	flow::Group group(scheduler);
	if (!group.join(of_queue) || !group.join(of_latest) || !group.join(of_barrier))
		return 1;
	flow::Settings settings;
	settings.trace = count > 1 ? arguments[1] : nullptr;
	for (flow::Policy policy :
		{flow::Policy::fifo, flow::Policy::lifo, flow::Policy::priority}) {
		settings.policy = policy;
		settings.executors = 2;
		if (flow::Status status = scheduler.start(settings); !status)
			return status.print(stderr);
		settings.trace = nullptr;
		forbidden.store(true);
		(void)queue.push(3);
		for (int runs = 0; runs < 500;)
			runs += sem_wait(&done) == 0;
		forbidden.store(false);
		if (flow::Status status = scheduler.stop(); !status)
			return status.print(stderr);
	}
	// That this can tell.
	if (calls.load() == 0) {
		std::fprintf(stderr, "FAILED: this program's malloc was never called\n");
		return 1;
	}
	return 0;
}
