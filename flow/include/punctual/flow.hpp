// SPDX-License-Identifier: MIT OR Apache-2.0
//
// An executor for dataflow programs: data on channels activates tasks, and a pool of threads runs
// them, without preempting one by another. docs/flow.md specifies what activates a task, case by
// case, and shows how to write a program.
//
// Building a graph: construct the scheduler first, then channels, tasks and their inputs, in any
// order that C++ allows. They cannot be moved. The library keeps no copies of them, and allocates
// memory in Scheduler::start only. Stop the scheduler before you destroy a task, channel or input.
//
// Threads: functions marked "Any thread" may be called from any thread, including from tasks, but
// not from signal handlers. Construct and destroy from one thread at a time, while the scheduler is
// stopped. Protect whatever else tasks share: two tasks may run at the same time, though one task
// never runs concurrently with itself.
//
// Errors: a function that can fail returns a Status, which must be checked; if it fails, it changes
// nothing. Scheduler::start finds mistakes in the graph. The library does not throw; tasks must not
// either.
#ifndef PUNCTUAL_FLOW_HPP
#define PUNCTUAL_FLOW_HPP

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <pthread.h>
#include <sched.h>
#include <tuple>

#include <punctual/flow/internal.hpp>
#include <punctual/flow/lock.hpp>

namespace punctual::flow {

class Channel;
class Event;
class Group;
class Input;
class Scheduler;
class Task;
struct Activation;
struct Trace;

enum class Error : std::uint8_t {
	none,
	// The scheduler is running, and the call needs it stopped.
	running,
	// The scheduler is not running.
	not_running,
	// A task called Scheduler::stop: the stop has begun, but the task cannot wait for its own
	// end.
	by_task,
	// Mistakes in the graph, found by Scheduler::start.
	name,
	name_length,
	name_twice,
	too_many,
	built_while_running,
	other_scheduler,
	no_input,
	threshold,
	priority,
	period,
	group_twice,
	// A barrier's count, a delay or a task's deadline is out of range.
	count,
	delay,
	task_deadline,
	// Mistakes in the settings.
	executors,
	affinity,
	thread_policy,
	deadline,
	deadline_permission,
	thread,
	memory,
	// The trace could not be started or, from Scheduler::stop, not be written completely.
	trace,
	trace_not_built,
	// The queue is full.
	full,
};

// The result of a call. True if it succeeded.
class [[nodiscard]] Status {
public:
	constexpr Status() noexcept = default;
	constexpr Status(
		Error error, const char *subject = "", int number = -1, int os_error = 0) noexcept
	    : subject_(subject), number_(number), os_error_(os_error), error_(error)
	{
	}

	constexpr explicit operator bool() const noexcept
	{
		return error_ == Error::none;
	}
	constexpr Error error() const noexcept
	{
		return error_;
	}
	// The errno of the system call that failed, else 0.
	constexpr int os_error() const noexcept
	{
		return os_error_;
	}
	// The name of the task, channel or thread that it is about; valid as long as that lives.
	constexpr const char *subject() const noexcept
	{
		return subject_;
	}

	// Prints what failed, on what, why and what to do, with a newline. Returns 1, as an exit
	// code for main().
	int print(std::FILE *file) const noexcept;

private:
	const char *subject_ = "";
	int number_ = -1;
	int os_error_ = 0;
	Error error_ = Error::none;
};

// The longest period, offset or delay: a hundred years.
inline constexpr std::int64_t max_time_ns = std::int64_t{36525} * 86'400 * 1'000'000'000;

// Size of a task's or channel's name, including its NUL.
inline constexpr std::size_t name_size = 24;

// The part of a task or channel that probes read from outside, at these offsets. They are part of
// the interface (docs/flow.md, "Probes").
struct Object {
	// In the order of construction, from 0, separately for tasks and channels. 65,535: not part
	// of the graph (Error::built_while_running).
	std::uint16_t id;
	std::uint16_t reserved;
	// A task's instances that have ended, which is the number of the current one; a channel's
	// pushes so far.
	std::uint32_t number;
	char name[name_size];
	// Not for probes: the number that is 0 in the trace.
	std::uint32_t first_traced;
};
static_assert(offsetof(Object, id) == 0 && offsetof(Object, number) == 4 &&
	      offsetof(Object, name) == 8 && offsetof(Object, first_traced) == 32);

// A base class, so that an Object's address leads to its task or channel.
struct Watched {
	Object object_{UINT16_MAX, 0, 0, {}, 0};
};

// --
// channels

// Activates tasks. A channel of this class is a signal, without data; Latest and Queue hold data.
class Channel : private Watched {
public:
	// The name is copied. It has up to 23 bytes of printable ASCII, without spaces, quotes,
	// backslashes and commas (`punctual chains --chain` separates names by commas), and is
	// unique among channels.
	Channel(Scheduler &scheduler, const char *name) noexcept;
	virtual ~Channel();
	Channel(const Channel &) = delete;
	Channel &operator=(const Channel &) = delete;

	const char *name() const noexcept
	{
		return object_.name;
	}
	std::uint16_t id() const noexcept
	{
		return object_.id;
	}

	// Signals the inputs that there is data. Any thread.
	void push() noexcept;

protected:
	// A push in two steps. What is stored between them and its event are one: no other push
	// comes between.
	void begin_push() noexcept;
	void end_push() noexcept;
	void cancel_push() noexcept;

	// Drops the data; called by Scheduler::reset.
	virtual void clear() noexcept
	{
	}

	Scheduler *scheduler_;
	// Every count_-th push reaches the inputs; first_count_ is the initial value.
	std::uint32_t count_ = 1;
	std::uint32_t first_count_ = 1;
	std::uint32_t arrived_ = 0;
	bool is_barrier_ = false;

private:
	friend class Barrier;
	friend class Event;
	friend class Input;
	friend class Scheduler;
	friend class Timer;
	friend struct Activation;
	friend struct Trace;

	void pass() noexcept;

	Input *first_input_ = nullptr;
	Channel *next_ = nullptr;
};

// Holds the newest value; each push overwrites it. Values are copied under the channel's own lock,
// so copying should be quick (for large values, use a Queue of pointers) and must not throw. Use it
// with unsynchronised inputs, where the newest value matters and not every one.
template <typename T> class Latest : public Channel {
public:
	Latest(Scheduler &scheduler, const char *name, const T &initial = T()) noexcept
	    : Channel(scheduler, name), initial_(initial), value_(initial)
	{
	}

	// Any thread.
	void push(const T &value) noexcept
	{
		begin_push();
		{
			Locked locked(lock_);
			value_ = value;
		}
		end_push();
	}

	// The newest value, or the initial one. Any thread.
	T read() const noexcept
	{
		Locked locked(lock_);
		return value_;
	}

protected:
	void clear() noexcept override
	{
		Locked locked(lock_);
		value_ = initial_;
	}

private:
	mutable Lock lock_;
	const T initial_;
	T value_;
};

// Holds up to `capacity` values; each is popped once, the oldest first. Copying and moving must not
// throw. With a synchronised input and one pop per instance, every value activates its task exactly
// once.
template <typename T, std::size_t capacity> class Queue : public Channel {
	static_assert(capacity > 0);

public:
	Queue(Scheduler &scheduler, const char *name) noexcept : Channel(scheduler, name)
	{
	}

	// Error::full if there is no room: the value is dropped, and the inputs see nothing. Any
	// thread.
	Status push(T value) noexcept
	{
		begin_push();
		if (!store(static_cast<T &&>(value))) {
			cancel_push();
			return {Error::full, name()};
		}
		end_push();
		return {};
	}

	// Takes the oldest value, if there is one. Any thread.
	bool pop(T &value) noexcept
	{
		Locked locked(lock_);
		if (size_ == 0)
			return false;
		value = static_cast<T &&>(values_[first_]);
		first_ = (first_ + 1) % capacity;
		--size_;
		return true;
	}

	// Number of values in the queue. Any thread.
	std::size_t size() const noexcept
	{
		Locked locked(lock_);
		return size_;
	}

protected:
	void clear() noexcept override
	{
		Locked locked(lock_);
		first_ = size_ = 0;
	}

private:
	bool store(T &&value) noexcept
	{
		Locked locked(lock_);
		if (size_ == capacity)
			return false;
		values_[(first_ + size_++) % capacity] = static_cast<T &&>(value);
		return true;
	}

	mutable Lock lock_;
	std::size_t first_ = 0;
	std::size_t size_ = 0;
	T values_[capacity]{};
};

// A channel that passes on one push in `count`, which can be changed at any time.
class Barrier : public Channel {
public:
	Barrier(Scheduler &scheduler, const char *name, std::uint32_t count) noexcept;

	// Pushes since the last one that was passed on still count; if they are enough, one is
	// passed on at once. Any thread.
	Status set_count(std::uint32_t count) noexcept;
	// Adds to the count: for threads that each announce how much they will push. Any thread.
	void raise_count(std::uint32_t by) noexcept;

private:
	void change_count(std::uint32_t count) noexcept;
};

// --
// events

// A channel that the scheduler's timer pushes on: PeriodicEvent or OneShotEvent.
class Event : public Channel {
public:
	~Event() override;

	// Cancels all pushes to come; a periodic event begins again at the next start. Returns
	// false if there were none to cancel. Any thread.
	bool cancel() noexcept;

protected:
	Event(Scheduler &scheduler, const char *name) noexcept;

	friend class Scheduler;
	friend class Timer;

	static constexpr std::size_t not_waiting = SIZE_MAX;

	// Time of the next push, in nanoseconds of CLOCK_MONOTONIC, and the event's place in the
	// timer's heap.
	std::int64_t due_ns_ = 0;
	std::size_t place_ = not_waiting;
	// 0 for one-shot events.
	std::int64_t period_ns_ = 0;
	std::int64_t offset_ns_ = 0;
	std::uint64_t overruns_ = 0;
	// The timer has room for it.
	bool known_ = false;
	Event *next_event_ = nullptr;
};

// Pushes at offset, offset + period, … after the scheduler's start.
class PeriodicEvent : public Event {
public:
	PeriodicEvent(Scheduler &scheduler, const char *name, std::chrono::nanoseconds period,
		std::chrono::nanoseconds offset = {}) noexcept;

	// Periods without a push, because the timer's thread was too late, since construction. Any
	// thread.
	std::uint64_t overruns() const noexcept;
};

// Pushes once, after a delay.
class OneShotEvent : public Event {
public:
	OneShotEvent(Scheduler &scheduler, const char *name) noexcept : Event(scheduler, name)
	{
	}

	// Starts the delay, or restarts it. Any thread.
	Status start(std::chrono::nanoseconds delay) noexcept;
};

// --
// tasks

// How pushes arm an input. Arming() is one push, required, synchronised. Chain the functions:
// Arming().pushes(3).optional().
class Arming {
public:
	// The threshold: this many pushes arm the input. At least 1.
	constexpr Arming pushes(std::uint32_t threshold) const noexcept
	{
		Arming changed = *this;
		changed.threshold_ = threshold;
		return changed;
	}
	// The task does not wait for it.
	constexpr Arming optional() const noexcept
	{
		Arming changed = *this;
		changed.optional_ = true;
		return changed;
	}
	// If it is armed, the task is activated, whatever the other inputs.
	constexpr Arming final() const noexcept
	{
		Arming changed = *this;
		changed.final_ = true;
		return changed;
	}
	// Pushes count only while the task is idle, only up to the threshold, and only for the next
	// instance.
	constexpr Arming unsynchronised() const noexcept
	{
		Arming changed = *this;
		changed.synchronised_ = false;
		return changed;
	}

private:
	friend class Input;
	friend struct Trace;
	std::uint32_t threshold_ = 1;
	bool optional_ = false;
	bool final_ = false;
	bool synchronised_ = true;
};

// Connects a channel to a task. Usually a member of the task's class.
class Input {
public:
	Input(Task &task, Channel &channel, Arming arming = Arming()) noexcept;
	~Input();
	Input(const Input &) = delete;
	Input &operator=(const Input &) = delete;

	// What the current instance took: the threshold, or 0 if the input was not armed. Only
	// within the task's execute().
	std::uint32_t taken() const noexcept
	{
		return taken_;
	}
	// Pushes that count for the next activation, and whether they are enough. Only within
	// Task::ready().
	std::uint32_t pushes() const noexcept
	{
		return pushes_;
	}
	bool armed() const noexcept
	{
		return pushes_ >= arming_.threshold_;
	}

private:
	friend class Channel;
	friend class Scheduler;
	friend class Task;
	friend struct Activation;
	friend struct Trace;

	void count_push() noexcept;
	void take() noexcept;
	void count_armed() noexcept;

	Task *task_;
	Channel *channel_;
	Arming arming_;
	std::uint32_t pushes_ = 0;
	std::uint32_t taken_ = 0;
	Input *next_of_channel_ = nullptr;
	Input *next_of_task_ = nullptr;
};

// Code that runs when its inputs activate it. Derive from this class.
class Task : private Watched {
public:
	// The name follows the rules of channels' names. The priority is for Policy::priority: 1 is
	// the highest, 255 the lowest.
	Task(Scheduler &scheduler, const char *name, unsigned priority = 255) noexcept;
	virtual ~Task();
	Task(const Task &) = delete;
	Task &operator=(const Task &) = delete;

	const char *name() const noexcept
	{
		return object_.name;
	}
	std::uint16_t id() const noexcept
	{
		return object_.id;
	}
	// Instances that have ended; within execute(), the number of the current one. It is not
	// reset by a start. Modulo 2³².
	std::uint32_t instance() const noexcept
	{
		return object_.number;
	}

	// Runs an instance, in any executor's thread, never in two at once. Must not throw.
	virtual void execute() = 0;

	// What to do when an instance has ended later than `deadline` after its activation: called
	// with the time by which it was late, in the executor's thread, before the instance counts
	// as ended. Null: only count it. Only while the scheduler is stopped.
	using Missed = void (*)(Task &task, std::chrono::nanoseconds late, void *argument);
	Status set_deadline(std::chrono::nanoseconds deadline, Missed missed = nullptr,
		void *argument = nullptr) noexcept;
	// Instances that have missed the deadline. Any thread.
	std::uint64_t missed_deadlines() const noexcept
	{
		return missed_deadlines_.load(std::memory_order_relaxed);
	}

protected:
	// Whether to activate the task. Called while it is idle: after each push at its inputs,
	// after its runs, and at the start. Override it for a condition of your own. It runs under
	// the scheduler's lock: it may look at inputs (Input::pushes, Input::armed) and must be
	// short; a push within it ends the program.
	virtual bool ready() const
	{
		return inputs_ready();
	}

	// A final input is armed, or there are required inputs and all of them are armed.
	bool inputs_ready() const noexcept
	{
		return finals_armed_ != 0 || (required_ != 0 && required_armed_ == required_);
	}

private:
	friend class Channel;
	friend class Group;
	friend class Input;
	friend class ReadyQueue;
	friend class Scheduler;
	friend struct Activation;
	friend struct Trace;

	// As in docs/flow.md; `active` is ready or running, which a push need not tell apart.
	enum class State : std::uint8_t { idle, active, held };

	void activate_if_ready() noexcept;
	void rearm() noexcept;
	void count_armed() noexcept;
	void note_activation() noexcept;
	void judge() noexcept;

	Scheduler *scheduler_;
	// 0: none. The time of the activation, on CLOCK_MONOTONIC, if there is one.
	std::int64_t deadline_ns_ = 0;
	std::int64_t activated_ns_ = 0;
	Missed missed_ = nullptr;
	void *missed_argument_ = nullptr;
	std::atomic<std::uint64_t> missed_deadlines_{0};
	Task *next_ready_ = nullptr;
	Input *first_input_ = nullptr;
	std::uint32_t required_ = 0;
	std::uint32_t required_armed_ = 0;
	std::uint32_t finals_armed_ = 0;
	State state_ = State::idle;
	std::uint8_t priority_;
	Group *group_ = nullptr;
	Task *next_of_group_ = nullptr;
	Task *next_ = nullptr;
};

// An input for the newest value of a channel. Unsynchronised, unless `arming` says otherwise.
template <typename T> class LatestInput : public Input {
public:
	LatestInput(
		Task &task, Latest<T> &channel, Arming arming = Arming().unsynchronised()) noexcept
	    : Input(task, channel, arming), values_(channel)
	{
	}

	// Any thread.
	T read() const noexcept
	{
		return values_.read();
	}

private:
	Latest<T> &values_;
};

// An input for the values of a queue, each of which makes one instance.
template <typename T, std::size_t capacity> class QueueInput : public Input {
public:
	QueueInput(Task &task, Queue<T, capacity> &channel, Arming arming = Arming()) noexcept
	    : Input(task, channel, arming), values_(channel)
	{
	}

	// Takes the oldest value, if there is one.
	bool pop(T &value) noexcept
	{
		return values_.pop(value);
	}

private:
	Queue<T, capacity> &values_;
};

// The input of a channel for a Call: one that knows what the channel holds.
template <typename Channel> struct InputOf {
	using type = Input;
};
template <typename T> struct InputOf<Latest<T>> {
	using type = LatestInput<T>;
};
template <typename T, std::size_t capacity> struct InputOf<Queue<T, capacity>> {
	using type = QueueInput<T, capacity>;
};

// A task that calls a function object, such as a lambda. It is copied or moved into the task. With
// channels, the task has an input for each, with the arming that its class has by default, and the
// function takes these inputs.
//
//	flow::Call show(scheduler, "show", [] { … });
//	flow::Input images(show, image);
//
//	flow::Call scale(scheduler, "scale",
//		[](flow::QueueInput<int, 4> &values, flow::LatestInput<int> &gain) { … },
//		values, gain);
template <typename Function, typename... Channels> class Call final : public Task {
public:
	Call(Scheduler &scheduler, const char *name, Function function,
		Channels &...channels) noexcept
	    : Task(scheduler, name), function_(static_cast<Function &&>(function)),
	      inputs_(From<Channels>{*this, channels}...)
	{
	}

	// Of this priority, from 1 to 255; see Task.
	Call(Scheduler &scheduler, const char *name, Function function, unsigned priority) noexcept
	    : Task(scheduler, name, priority), function_(static_cast<Function &&>(function))
	{
		static_assert(sizeof...(Channels) == 0);
	}

	void execute() override
	{
		std::apply([this](auto &...inputs) { function_(inputs.input...); }, inputs_);
	}

private:
	template <typename Channel> struct From {
		Task &task;
		Channel &channel;
	};
	template <typename Channel> struct In {
		In(From<Channel> from) noexcept : input(from.task, from.channel)
		{
		}
		typename InputOf<Channel>::type input;
	};

	Function function_;
	std::tuple<In<Channels>...> inputs_;
};

template <typename Function> Call(Scheduler &, const char *, Function, unsigned) -> Call<Function>;

// Tasks of which none runs again before all have run.
class Group {
public:
	explicit Group(Scheduler &scheduler) noexcept;
	~Group();
	Group(const Group &) = delete;
	Group &operator=(const Group &) = delete;

	// A task can be in one group.
	Status join(Task &task) noexcept;

private:
	friend struct Activation;
	friend class Scheduler;
	friend class Task;

	void ran(Task &task) noexcept;
	void leave(Task &task) noexcept;

	Scheduler *scheduler_;
	Task *first_ = nullptr;
	std::uint32_t members_ = 0;
	std::uint32_t to_run_ = 0;
	Group *next_ = nullptr;
};

// --
// scheduler

enum class Policy : std::uint8_t { fifo, lifo, priority };

// Settings of one thread.
struct ThreadSettings {
	// SCHED_OTHER, SCHED_FIFO, SCHED_RR, … and the priority; -1 for those of the thread that
	// calls Scheduler::start.
	int policy = -1;
	int priority = 0;
	// For SCHED_DEADLINE, in nanoseconds.
	std::int64_t runtime_ns = 0;
	std::int64_t deadline_ns = 0;
	std::int64_t period_ns = 0;
	// The processors it may use; empty for those of the thread that calls Scheduler::start.
	cpu_set_t processors{};

	ThreadSettings() noexcept = default;
	ThreadSettings(int with_policy, int with_priority) noexcept
	    : policy(with_policy), priority(with_priority)
	{
	}
	// SCHED_DEADLINE: `runtime` of processor time within `deadline` in each `period`. At least
	// 1,024 ns, and in ascending order. Do not combine it with on(): the kernel requires that
	// such a thread may use all processors of its root domain.
	static ThreadSettings deadline(std::chrono::nanoseconds runtime,
		std::chrono::nanoseconds deadline, std::chrono::nanoseconds period) noexcept
	{
		ThreadSettings settings(SCHED_DEADLINE, 0);
		settings.runtime_ns = runtime.count();
		settings.deadline_ns = deadline.count();
		settings.period_ns = period.count();
		return settings;
	}
	// Adds a processor. Can be chained: ThreadSettings(SCHED_FIFO, 80).on(1).
	ThreadSettings &on(unsigned processor) noexcept
	{
		if (processor < CPU_SETSIZE)
			CPU_SET(processor, &processors);
		return *this;
	}
};

inline constexpr unsigned max_executors = 64;

struct Settings {
	Policy policy = Policy::fifo;
	// Up to max_executors. With 0, the program runs ready tasks itself (Scheduler::run_ready).
	unsigned executors = 1;
	// An array with one element per executor, or null.
	const ThreadSettings *threads = nullptr;
	// For the timer's thread, which exists if there are events. It should be more urgent than
	// the executors.
	ThreadSettings timer;
	// How long an executor without work spins before it sleeps. Spinning saves the wake-up, but
	// keeps other threads off its processor. No effect on a single processor.
	std::chrono::nanoseconds spin = std::chrono::microseconds(5);
	// The folder to trace to, new or empty; null for no trace. If it has the trace of an
	// earlier start, of this process or another one, "-2" is appended to its name, then "-3",
	// and so on. Needs a library that was built with PUNCTUAL_FLOW_TRACE.
	const char *trace = nullptr;
	// The program's name in the trace; null for that of its executable.
	const char *program = nullptr;
};

// Runs a graph of tasks and channels.
class Scheduler {
public:
	Scheduler() noexcept = default;
	// Stops the scheduler. Must not be called within a task.
	~Scheduler();
	Scheduler(const Scheduler &) = delete;
	Scheduler &operator=(const Scheduler &) = delete;

	// Checks the graph, creates the threads, and activates all tasks whose inputs allow. If it
	// fails, nothing has run. Any thread, but not a task.
	Status start(const Settings &settings = Settings()) noexcept;

	// Ends events and activations, runs the tasks that are ready, and returns when all have
	// ended. Returns Error::by_task at once if a task calls it; Error::trace if it has stopped,
	// but could not write the whole trace. Does nothing if already stopped. Any thread.
	Status stop() noexcept;

	// Restores the initial state, except the numbers of instances and pushes. Only while
	// stopped.
	Status reset() noexcept;

	// Without executors: runs ready tasks, including those that become ready meanwhile, at most
	// `limit`. Returns how many. One thread at a time, and not within a task.
	std::size_t run_ready(std::size_t limit = SIZE_MAX) noexcept;

	// Whether it is started and not stopping. Any thread.
	bool running() const noexcept
	{
		return state_.load(std::memory_order_relaxed) == State::running;
	}

private:
	friend class Barrier;
	friend class Channel;
	friend class Event;
	friend class Group;
	friend class Input;
	friend class OneShotEvent;
	friend class PeriodicEvent;
	friend class Task;
	friend class Timer;
	friend struct Activation;
	friend struct Trace;

	enum class State : std::uint8_t { stopped, starting, running, stopping };

	void flaw(Error error, const char *subject) noexcept;
	void forget_name(const char *name, const char *kind) noexcept;
	bool is_stopped() const noexcept
	{
		return state_.load(std::memory_order_relaxed) == State::stopped;
	}
	// Numbers of threads: executors from 0 (without any, the caller of run_ready), then the
	// timer.
	unsigned timer_number() const noexcept
	{
		return executors_ != 0 ? executors_ : 1;
	}
	Status check() const noexcept;
	Status create_threads(const Settings &settings) noexcept;
	Status create_thread(unsigned number, const ThreadSettings &settings) noexcept;
	void begin_stop() noexcept;
	Status finish_stop() noexcept;
	void run_executor(unsigned number) noexcept;
	// Calls as many executors as there are ready tasks for, unlocks and wakes them.
	void unlock_and_wake() noexcept;
	void call(unsigned executor) noexcept;
	void unlock_and_wake(std::uint64_t executors) noexcept;
	static void *enter_thread(void *place);

	// Protects everything below, except what only one thread uses.
	alignas(64) Lock lock_;
	std::atomic<State> state_{State::stopped};
	bool traced_ = false;
	// A bit for each executor that waits for work; how many have been called and have not
	// arrived yet, and a bit for each of these that slept.
	std::uint64_t idle_ = 0;
	std::uint32_t waking_ = 0;
	std::uint64_t asleep_ = 0;
	ReadyQueue ready_;
	Parking parking_[max_executors];
	Timer timer_;
	std::int64_t spin_ns_ = 0;

	// Held by start, stop and reset.
	Lock control_;
	unsigned executors_ = 0;
	unsigned threads_ = 0;
	struct Place {
		Scheduler *scheduler;
		unsigned number;
		pthread_t thread;
		// Until the thread is under SCHED_DEADLINE: its settings. The errno if that failed.
		const ThreadSettings *deadline;
		int error;
	} places_[max_executors + 1] = {};
	// The creator of a thread waits here until that is done.
	Parking creation_;

	// The graph.
	Status flaw_;
	Channel *channels_ = nullptr, **channels_end_ = &channels_;
	Task *tasks_ = nullptr, **tasks_end_ = &tasks_;
	Group *groups_ = nullptr;
	Event *events_ = nullptr;
	std::uint32_t next_channel_ = 0;
	std::uint32_t next_task_ = 0;
};

} // namespace punctual::flow

#endif
