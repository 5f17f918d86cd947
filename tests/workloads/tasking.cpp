// A program whose functions have the names, arguments and memory layout that the probes for DLR's
// Tasking Framework 1.2 expect, and nothing else of it: two tasks in a row, executed by two threads
// in turn, or by one. `tasking ROUNDS [alone]` prints counts of events; with `alone`, also the time
// of an activation.
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <thread>

// Begins with an instruction at which a breakpoint is cheapest.
#define KEPT \
	__attribute__(( \
		noinline, noclone, used, visibility("default"), patchable_function_entry(1, 0)))

namespace Tasking {

constexpr uint32_t id(const char (&text)[5])
{
	return uint32_t(uint8_t(text[0])) << 24 | uint32_t(uint8_t(text[1])) << 16 |
	       uint32_t(uint8_t(text[2])) << 8 | uint8_t(text[3]);
}

std::atomic<unsigned> pushes, activations, executions;

struct Channel {
	explicit Channel(uint32_t number) : number(number)
	{
	}
	virtual ~Channel() = default;
	KEPT void push();
	uint32_t number;
};

struct Task {
	explicit Task(uint32_t number) : number(number)
	{
	}
	virtual ~Task() = default;
	uint32_t number;
};

struct TaskImpl {
	Task &task;
	KEPT void finalizeExecution();
};

struct SchedulePolicyFifo {
	virtual ~SchedulePolicyFifo() = default;
	KEPT bool queue(TaskImpl &task);
};

struct SchedulerImpl {
	KEPT void execute(TaskImpl &task) const;
};

void Channel::push()
{
	pushes++;
}
void TaskImpl::finalizeExecution()
{
	executions++;
}
bool SchedulePolicyFifo::queue(TaskImpl &)
{
	return activations++ == 0;
}

} // namespace Tasking

using namespace Tasking;

static Channel begin(id("go  ")), image(id("img "));
static Task camera(id("cam1")), navigation(id("navi"));
static TaskImpl camera_impl{camera}, navigation_impl{navigation};
static SchedulePolicyFifo policy;

// Data on `image` while the camera runs makes the navigation ready.
void SchedulerImpl::execute(TaskImpl &task) const
{
	if (&task == &camera_impl) {
		image.push();
		policy.queue(navigation_impl);
	}
	task.finalizeExecution();
}

int main(int argc, char **argv)
{
	const unsigned rounds = argc > 1 ? unsigned(atoi(argv[1])) : 100;
	const SchedulerImpl scheduler;
	if (argc > 2) {
		timespec begun, ended;
		clock_gettime(CLOCK_MONOTONIC, &begun);
		for (unsigned round = 0; round < rounds; round++) {
			begin.push();
			policy.queue(camera_impl);
			scheduler.execute(camera_impl);
			scheduler.execute(navigation_impl);
		}
		clock_gettime(CLOCK_MONOTONIC, &ended);
		const double ns = 1e9 * double(ended.tv_sec - begun.tv_sec) +
				  double(ended.tv_nsec - begun.tv_nsec);
		printf("%.1f ns\n", ns / activations.load());
		return 0;
	}
	std::atomic<unsigned> turn{0};
	auto executor = [&](unsigned mine) {
		for (unsigned round = 0; round < rounds; round++) {
			while (turn != 2 * round + mine)
				std::this_thread::yield();
			if (mine == 0) {
				begin.push();
				policy.queue(camera_impl);
				scheduler.execute(camera_impl);
			} else {
				scheduler.execute(navigation_impl);
			}
			turn++;
		}
	};
	std::thread one(executor, 0), two(executor, 1);
	one.join();
	two.join();
	printf("%u pushes, %u activations, %u executions\n", pushes.load(), activations.load(),
		executions.load());
	return 0;
}
