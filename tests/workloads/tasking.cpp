// A program whose functions have the names, arguments and memory layout that the probes for DLR's
// Tasking Framework 1.2 expect, and as much of its behaviour: channels, inputs, barriers, tasks,
// and scheduling policies.
//
// `tasking ROUNDS` runs two tasks in a row, executed by two threads in turn, and prints counts of
// events; with `alone` by one, and the time of an activation. `tasking ROUNDS graph [POLICY]` runs
// the program of the paper's Figure 2 on one executor, with a barrier behind it, and prints what it
// has done. `tasking ROUNDS silent` is the same with a barrier that never completes. `forever` in
// place of ROUNDS runs it until SIGTERM, a round each millisecond.
#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <deque>
#include <thread>
#include <vector>

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

struct InputImpl;
struct SchedulerImpl;

struct Channel {
	explicit Channel(uint32_t number) : number(number)
	{
	}
	virtual ~Channel() = default;
	KEPT virtual void push();
	uint32_t number;
	std::vector<InputImpl *> inputs;
};

// Notifies its inputs when as many pushes have come as it counts down.
struct Barrier : Channel {
	Barrier(uint32_t number, unsigned count) : Channel(number), counter(count), start(count)
	{
	}
	KEPT void push() override;
	void reset()
	{
		counter = start;
	}
	unsigned counter, start;
};

struct Task {
	explicit Task(uint32_t number) : number(number)
	{
	}
	virtual ~Task() = default;
	virtual void execute()
	{
	}
	uint32_t number;
};

struct TaskImpl {
	Task &task;
	std::vector<InputImpl *> inputs;
	bool is_active = false;
	unsigned instances = 0;
	KEPT void finalizeExecution();
	void activate();
};

struct Input;

struct InputImpl {
	Input *parent;
	TaskImpl *task;
	Channel *channel;
	bool is_final;
	bool is_synchronised;
	volatile unsigned notifications;
	volatile unsigned missed;
	unsigned threshold;

	InputImpl(TaskImpl &task, Channel &channel, unsigned threshold, bool synchronised)
	    : parent(nullptr), task(&task), channel(&channel), is_final(false),
	      is_synchronised(synchronised), notifications(0), missed(0), threshold(threshold)
	{
		task.inputs.push_back(this);
		channel.inputs.push_back(this);
	}
	bool is_activated() const
	{
		return notifications >= threshold;
	}
	KEPT void notifyInput();
};
static_assert(offsetof(InputImpl, task) == 8 && offsetof(InputImpl, channel) == 16 &&
		      offsetof(InputImpl, is_synchronised) == 25 &&
		      offsetof(InputImpl, threshold) == 36,
	"the layout of the framework");

struct SchedulePolicy {
	virtual ~SchedulePolicy() = default;
	virtual bool queue(TaskImpl &task) = 0;
	std::deque<TaskImpl *> ready;
	bool add(TaskImpl &task)
	{
		activations++;
		ready.push_back(&task);
		return ready.size() == 1;
	}
};

#define POLICY(name) \
	struct name : SchedulePolicy { \
		KEPT bool queue(TaskImpl &task) override; \
	}; \
	bool name::queue(TaskImpl &task) \
	{ \
		return add(task); \
	}
POLICY(SchedulePolicyFifo)
POLICY(SchedulePolicyLifo)
POLICY(SchedulePolicyPriority)
POLICY(SchedulePolicyPSlot)

static SchedulePolicy *policy;

struct SchedulerImpl {
	KEPT void execute(TaskImpl &task) const;
};

void Channel::push()
{
	pushes++;
	for (InputImpl *input : inputs)
		input->notifyInput();
}

void Barrier::push()
{
	if (counter > 0 && --counter == 0)
		Channel::push();
	else
		pushes++;
}

void InputImpl::notifyInput()
{
	if (is_synchronised && is_activated()) {
		missed = missed + 1;
		return;
	}
	notifications = notifications + 1;
	if (is_activated())
		task->activate();
}

void TaskImpl::activate()
{
	if (is_active)
		return;
	for (InputImpl *input : inputs)
		if (!input->is_activated())
			return;
	is_active = true;
	policy->queue(*this);
}

void TaskImpl::finalizeExecution()
{
	executions++;
	instances++;
	is_active = false;
	for (InputImpl *input : inputs) {
		const unsigned taken =
			input->missed < input->threshold ? input->missed : input->threshold;
		input->notifications = input->is_synchronised ? taken : 0;
		input->missed = input->missed - (input->is_synchronised ? taken : 0);
	}
	if (!inputs.empty())
		activate();
}

void SchedulerImpl::execute(TaskImpl &task) const
{
	task.task.execute();
	task.finalizeExecution();
}

} // namespace Tasking

using namespace Tasking;

// A task that pushes on channels.
struct Pusher : Task {
	Pusher(uint32_t number, std::vector<Channel *> outputs) : Task(number), outputs(outputs)
	{
	}
	void execute() override
	{
		for (Channel *channel : outputs)
			channel->push();
	}
	std::vector<Channel *> outputs;
};

static double now()
{
	timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return 1e9 * double(time.tv_sec) + double(time.tv_nsec);
}

// Data on `image` while the camera runs makes the navigation ready.
static Channel begin(id("go  ")), image(id("img "));
static Pusher camera(id("cam1"), {&image}), navigation(id("navi"), {});
static TaskImpl camera_impl{camera, {}}, navigation_impl{navigation, {}};

static void run_next(const SchedulerImpl &scheduler)
{
	TaskImpl *task = policy->ready.front();
	policy->ready.pop_front();
	scheduler.execute(*task);
}

static int two_tasks(unsigned rounds, bool alone)
{
	static SchedulePolicyFifo fifo;
	static InputImpl of_camera(camera_impl, begin, 1, true),
		of_navigation(navigation_impl, image, 1, true);
	const SchedulerImpl scheduler;
	policy = &fifo;
	if (alone) {
		const double began = now();
		for (unsigned round = 0; round < rounds; round++) {
			begin.push();
			run_next(scheduler);
			run_next(scheduler);
		}
		printf("%.1f ns\n", (now() - began) / activations.load());
		return 0;
	}
	std::atomic<unsigned> turn{0};
	auto executor = [&](unsigned mine) {
		for (unsigned round = 0; round < rounds; round++) {
			while (turn != 2 * round + mine)
				std::this_thread::yield();
			if (mine == 0)
				begin.push();
			run_next(scheduler);
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

static volatile sig_atomic_t is_over;

static SchedulePolicy *named(const char *name)
{
	static SchedulePolicyFifo fifo;
	static SchedulePolicyLifo lifo;
	static SchedulePolicyPriority priority;
	static SchedulePolicyPSlot pslot;
	if (strcmp(name, "lifo") == 0)
		return &lifo;
	if (strcmp(name, "priority") == 0)
		return &priority;
	return strcmp(name, "pslot") == 0 ? static_cast<SchedulePolicy *>(&pslot) : &fifo;
}

// The optical navigation of the paper. On one executor, the crater tracker's data always come
// before the feature tracker's, so they never make the navigation ready.
static int graph(unsigned rounds, const char *policy_name, unsigned barrier)
{
	Channel tick1(id("tik1")), tick2(id("tik2")), img1(id("img1")), img2(id("img2"));
	Channel crater(id("crat")), feature(id("feat")), pose(id("pose")), status(id("stat"));
	Barrier done(id("done"), barrier);
	Pusher cam1(id("cam1"), {&img1}), cam2(id("cam2"), {&img2}), craT(id("craT"), {&crater}),
		feaT(id("feaT"), {&feature}), navi(id("navi"), {&status, &pose}),
		ter1(id("ter1"), {&done}), ter2(id("ter2"), {&done}), log(id("log "), {});
	TaskImpl cam1_impl{cam1, {}}, cam2_impl{cam2, {}}, craT_impl{craT, {}}, feaT_impl{feaT, {}},
		navi_impl{navi, {}}, ter1_impl{ter1, {}}, ter2_impl{ter2, {}}, log_impl{log, {}};
	InputImpl inputs[] = {{cam1_impl, tick1, 1, true}, {cam2_impl, tick2, 1, true},
		{craT_impl, img1, 1, true}, {feaT_impl, img2, 1, true},
		{navi_impl, crater, 1, true}, {navi_impl, feature, 1, true},
		{ter1_impl, pose, 1, true}, {ter2_impl, pose, 1, true},
		{ter2_impl, status, 1, false}, {log_impl, done, 1, true}};
	(void)inputs;
	policy = named(policy_name);
	const SchedulerImpl scheduler;
	std::thread executor([&] {
		for (unsigned round = 0; (rounds == 0 || round < rounds) && !is_over; round++) {
			tick1.push();
			tick2.push();
			while (!policy->ready.empty())
				run_next(scheduler);
			if (done.counter == 0)
				done.reset();
			if (rounds == 0) {
				const timespec pause = {0, 1000000};
				nanosleep(&pause, nullptr);
			}
		}
	});
	executor.join();
	printf("cam1 %u, navi %u, ter1 %u, log %u\n", cam1_impl.instances, navi_impl.instances,
		ter1_impl.instances, log_impl.instances);
	return 0;
}

int main(int argc, char **argv)
{
	const char *first = argc > 1 ? argv[1] : "100";
	const unsigned rounds = strcmp(first, "forever") == 0 ? 0 : unsigned(atoi(first));
	const char *mode = argc > 2 ? argv[2] : "";
	signal(SIGTERM, [](int) { is_over = 1; });
	if (strcmp(mode, "graph") == 0)
		return graph(rounds, argc > 3 ? argv[3] : "fifo", 2);
	if (strcmp(mode, "silent") == 0)
		return graph(rounds, argc > 3 ? argv[3] : "fifo", 1u << 30);
	return two_tasks(rounds, strcmp(mode, "alone") == 0);
}
