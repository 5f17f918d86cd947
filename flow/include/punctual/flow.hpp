// SPDX-License-Identifier: MIT OR Apache-2.0
//
// An executor for dataflow programs: tasks that are activated by data on channels, and run by a
// pool of threads, one after the other, without preempting each other. docs/flow.md says what
// activates a task, case by case, and shows how a program is made.
//
// Building: schedulers first, then channels, tasks and their inputs, in any order that C++ allows;
// they are what they are as long as they live, and do not move. The library keeps no copies of them
// and allocates no memory, except in Scheduler::start. Whoever destroys a task, channel or input
// stops the scheduler before.
//
// Threads: pushes, and all that says so, may come from any thread, also from tasks; not from signal
// handlers. Building and destroying is for one thread at a time, while the scheduler is stopped.
// What tasks share besides channels they must protect themselves: two tasks may run at once, one
// task never does.
//
// Errors: functions that can fail return a Status, which must not be ignored, and change nothing
// then. What is wrong with a graph is found by Scheduler::start. Nothing throws, and neither may
// tasks.
#ifndef PUNCTUAL_FLOW_HPP
#define PUNCTUAL_FLOW_HPP

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <pthread.h>
#include <sched.h>

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
	// Scheduler::start and others that need it stopped: it is running.
	running,
	// It is not running.
	not_running,
	// Scheduler::stop, called by a task: it has begun, and the caller cannot wait for the end,
	// since that includes its own.
	by_task,
	// Of the graph, found by Scheduler::start.
	name,
	name_twice,
	too_many,
	built_while_running,
	other_scheduler,
	no_input,
	threshold,
	priority,
	period,
	group_twice,
	// A barrier's count, a delay.
	count,
	delay,
	// Of the settings.
	executors,
	affinity,
	thread_policy,
	deadline,
	deadline_permission,
	thread,
	memory,
	// The trace could not be begun or, from Scheduler::stop, not all of it written.
	trace,
	trace_not_built,
	// Data that does not fit: a queue is full.
	full,
};

// What became of a call. Convertible to true where it succeeded.
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
	// errno's value, where a call to the system failed, else 0.
	constexpr int os_error() const noexcept
	{
		return os_error_;
	}
	// On what: the name of a task, channel or thread. As long as that lives.
	constexpr const char *subject() const noexcept
	{
		return subject_;
	}

	// What failed, on what, why and what to do, in English, with a newline. Returns 1, for
	// main() to return.
	int print(std::FILE *file) const noexcept;

private:
	const char *subject_ = "";
	int number_ = -1;
	int os_error_ = 0;
	Error error_ = Error::none;
};

// The longest period, offset or delay: a hundred years.
inline constexpr std::int64_t max_time_ns = std::int64_t{36525} * 86'400 * 1'000'000'000;

// The room for a task's or channel's name, with its NUL.
inline constexpr std::size_t name_size = 24;

// What a task and a channel are to those who watch. Probes from outside read it at these offsets,
// which are part of the interface (docs/flow.md, "Probes").
struct Object {
	// Of tasks and of channels, from 0 each, in the order of construction. 65,535: not part of
	// the graph (Error::built_while_running).
	std::uint16_t id;
	std::uint16_t reserved;
	// Of a task: instances that have ended, which is the number of the one under way. Of a
	// channel: pushes so far.
	std::uint32_t number;
	char name[name_size];
	// Not for probes: the number that is 0 in the trace, which counts from its own beginning.
	std::uint32_t first_traced;
};
static_assert(offsetof(Object, id) == 0 && offsetof(Object, number) == 4 &&
	      offsetof(Object, name) == 8 && offsetof(Object, first_traced) == 32);

// A base, so that an Object's address leads to its task or channel.
struct Watched {
	Object object_{UINT16_MAX, 0, 0, {}, 0};
};

// --
// channels

// What tasks are activated by. By itself it holds no data: a signal. Latest and Queue hold some.
class Channel : private Watched {
public:
	// The name is copied: up to 23 bytes of printable ASCII without spaces, quotes, backslashes
	// and commas (which separate names in `punctual chains --chain`); channels have different
	// ones.
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

	// Tells the inputs that there is data. Any thread.
	void push() noexcept;

protected:
	// Called by Scheduler::reset: forgets the data.
	virtual void clear() noexcept
	{
	}

	Scheduler *scheduler_;
	// This many pushes make one at the inputs; the first count is that at the beginning.
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

// Holds the value that was pushed last; each push overwrites. Copies are made under the channel's
// own lock, for values that are copied quickly (else: a Queue of pointers). Copying must not throw.
// To be used with inputs that are not synchronised, where what matters is the newest value and not
// each one.
template <typename T> class Latest : public Channel {
public:
	Latest(Scheduler &scheduler, const char *name, const T &initial = T()) noexcept
	    : Channel(scheduler, name), initial_(initial), value_(initial)
	{
	}

	// Any thread.
	void push(const T &value) noexcept
	{
		{
			Locked locked(lock_);
			value_ = value;
		}
		Channel::push();
	}

	// The value pushed last, or the initial one. Any thread.
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

// Holds up to `capacity` values, oldest first: each is read once, by whoever pops it first. Copying
// and moving must not throw. With a synchronised input and a pop in each instance, every value
// activates its task exactly once, and none is left.
template <typename T, std::size_t capacity> class Queue : public Channel {
	static_assert(capacity > 0);

public:
	Queue(Scheduler &scheduler, const char *name) noexcept : Channel(scheduler, name)
	{
	}

	// Error::full where there is no room: the value is not taken, and the inputs are not told.
	// Any thread.
	Status push(T value) noexcept
	{
		{
			Locked locked(lock_);
			if (size_ == capacity)
				return {Error::full, name()};
			values_[(first_ + size_++) % capacity] = static_cast<T &&>(value);
		}
		Channel::push();
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

	// How many values wait. Any thread.
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
	mutable Lock lock_;
	std::size_t first_ = 0;
	std::size_t size_ = 0;
	T values_[capacity]{};
};

// A channel that lets pass after a number of pushes, which can be changed at any time.
class Barrier : public Channel {
public:
	Barrier(Scheduler &scheduler, const char *name, std::uint32_t count) noexcept;

	// From now on, counting what has come since it last let pass. Lets pass at once where that
	// is enough. Any thread.
	Status set_count(std::uint32_t count) noexcept;
	// The same, by a number more: for those who each announce what they will push. Any thread.
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

	// No push of the timer comes any more; a periodic event begins again at the next start.
	// False where none was to come. Any thread.
	bool cancel() noexcept;

protected:
	Event(Scheduler &scheduler, const char *name) noexcept;

	friend class Scheduler;
	friend class Timer;

	static constexpr std::size_t not_waiting = SIZE_MAX;

	// When the timer pushes next, in nanoseconds of CLOCK_MONOTONIC, and where it is in the
	// timer's heap.
	std::int64_t due_ns_ = 0;
	std::size_t place_ = not_waiting;
	// 0: one-shot.
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

	// Periods in which there was no push because the timer's thread came too late, since
	// construction. Any thread.
	std::uint64_t overruns() const noexcept;
};

// Pushes once, when a delay is over.
class OneShotEvent : public Event {
public:
	OneShotEvent(Scheduler &scheduler, const char *name) noexcept : Event(scheduler, name)
	{
	}

	// Begins to wait, anew if it waits already. Any thread.
	Status start(std::chrono::nanoseconds delay) noexcept;
};

// --
// tasks

// What of an input's pushes activates. Arming() is one push, required, synchronised; the functions
// are to be chained: Arming().pushes(3).optional().
class Arming {
public:
	// The threshold: so many arm the input. At least 1.
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
	// When it is armed, the task is activated, whatever the others.
	constexpr Arming final() const noexcept
	{
		Arming changed = *this;
		changed.final_ = true;
		return changed;
	}
	// Only pushes while the task is idle count, up to the threshold, and only for the next
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

// Connects a channel to a task. Usually a member of the task.
class Input {
public:
	Input(Task &task, Channel &channel, Arming arming = Arming()) noexcept;
	~Input();
	Input(const Input &) = delete;
	Input &operator=(const Input &) = delete;

	// What the instance under way has taken: the threshold, or 0 where it was not armed. For
	// the task, within execute().
	std::uint32_t taken() const noexcept
	{
		return taken_;
	}
	// Pushes that count for the next activation, and whether they are enough. Within
	// Task::ready() only.
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

	void told() noexcept;
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

// What is executed when its inputs say so. To be derived from.
class Task : private Watched {
public:
	// Names are as those of channels. The priority is for Policy::priority: 1 is the highest,
	// 255 the lowest.
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
	// Instances of it that have ended. In execute(): the number of this one. Goes on over
	// starts, traced or not. Modulo 2³².
	std::uint32_t instance() const noexcept
	{
		return object_.number;
	}

	// Runs an instance. Any executor's thread, never two at once. Must not throw.
	virtual void execute() = 0;

protected:
	// Whether the task is to be activated: asked when it is idle, after each push at its
	// inputs, after its runs, and at the start. Other conditions than the usual one override
	// it. Holds the scheduler's lock: it can look at inputs (Input::pushes, Input::armed) and
	// must be short; a push within it ends the program.
	virtual bool ready() const
	{
		return inputs_ready();
	}

	// A final input is armed, or all that are not optional are, of which there is one.
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

	// What it is in docs/flow.md; `active` is ready or running, which make no difference to a
	// push.
	enum class State : std::uint8_t { idle, active, held };

	void activate_if_ready() noexcept;
	void rearm() noexcept;
	void count_armed() noexcept;

	Scheduler *scheduler_;
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

// Tasks of which none runs again before all have run.
class Group {
public:
	explicit Group(Scheduler &scheduler) noexcept;
	~Group();
	Group(const Group &) = delete;
	Group &operator=(const Group &) = delete;

	// A task is in one group at most.
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

// Of one thread.
struct ThreadSettings {
	// SCHED_OTHER, SCHED_FIFO, SCHED_RR, …, with its priority, or -1: as the thread that calls
	// Scheduler::start.
	int policy = -1;
	int priority = 0;
	// Of SCHED_DEADLINE, in nanoseconds.
	std::int64_t runtime_ns = 0;
	std::int64_t deadline_ns = 0;
	std::int64_t period_ns = 0;
	// The processors it may use. None: as the thread that calls Scheduler::start.
	cpu_set_t processors{};

	ThreadSettings() noexcept = default;
	ThreadSettings(int with_policy, int with_priority) noexcept
	    : policy(with_policy), priority(with_priority)
	{
	}
	// SCHED_DEADLINE: so much time in each period, before the deadline; at least 1,024 ns, and
	// each at most the next. Goes without on(): the kernel wants such a thread to have all
	// processors of its root domain.
	static ThreadSettings deadline(std::chrono::nanoseconds runtime,
		std::chrono::nanoseconds deadline, std::chrono::nanoseconds period) noexcept
	{
		ThreadSettings settings(SCHED_DEADLINE, 0);
		settings.runtime_ns = runtime.count();
		settings.deadline_ns = deadline.count();
		settings.period_ns = period.count();
		return settings;
	}
	// May be chained: ThreadSettings(SCHED_FIFO, 80).on(1).
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
	// Up to max_executors. 0: no threads; the program runs ready tasks itself
	// (Scheduler::run_ready).
	unsigned executors = 1;
	// One for each executor, or null.
	const ThreadSettings *threads = nullptr;
	// Of the thread that pushes events, which there is if there are events. It should be more
	// urgent than the executors.
	ThreadSettings timer;
	// How long an executor without work spins before it sleeps. Saves waking it, at the cost of
	// whatever could run on its processor. Without effect where the machine has one processor.
	std::chrono::nanoseconds spin = std::chrono::microseconds(5);
	// Where to trace to: a folder that does not exist yet, or is empty. Null: no trace. For
	// libraries built with PUNCTUAL_FLOW_TRACE.
	const char *trace = nullptr;
	// What the trace says is traced.
	const char *program = nullptr;
};

// A graph of tasks and channels, and what runs it.
class Scheduler {
public:
	Scheduler() noexcept = default;
	// Stops. Must not be within a task.
	~Scheduler();
	Scheduler(const Scheduler &) = delete;
	Scheduler &operator=(const Scheduler &) = delete;

	// Looks whether the graph makes sense, creates the threads, activates what can be. Where it
	// fails nothing has run. Any thread that is no task.
	Status start(const Settings &settings = Settings()) noexcept;

	// No event comes and nothing is activated any more; what is ready is run; returns when all
	// is done. Returns Error::by_task at once to a task; Error::trace where not all of the
	// trace could be written: all else is done then. Nothing to do where it is stopped. Any
	// thread.
	Status stop() noexcept;

	// Everything as at the beginning, except the numbers of instances and pushes. While
	// stopped.
	Status reset() noexcept;

	// With no executors: runs ready tasks, also those that become ready meanwhile, at most
	// `limit`. Returns how many. For one thread at a time, which is not within a task.
	std::size_t run_ready(std::size_t limit = SIZE_MAX) noexcept;

	// Started and not told to stop. Any thread.
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
	bool is_stopped() const noexcept
	{
		return state_.load(std::memory_order_relaxed) == State::stopped;
	}
	// Its threads' numbers: executors from 0 (where there are none: who calls run_ready), the
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
	void unlock_and_wake() noexcept;
	static void *enter_thread(void *place);

	// Of all that follows, except where a thread alone uses it.
	alignas(64) Lock lock_;
	std::atomic<State> state_{State::stopped};
	bool traced_ = false;
	// Executors that wait for work; those of them that have been woken, and have not been there
	// since.
	std::uint64_t idle_ = 0;
	std::uint32_t waking_ = 0;
	ReadyQueue ready_;
	Parking parking_[max_executors];
	Timer timer_;
	std::int64_t spin_ns_ = 0;

	// start, stop and reset: one at a time.
	Lock control_;
	unsigned executors_ = 0;
	unsigned threads_ = 0;
	struct Place {
		Scheduler *scheduler;
		unsigned number;
		pthread_t thread;
		// Where it is to be under SCHED_DEADLINE, until it is; and errno of that.
		const ThreadSettings *deadline;
		int error;
	} places_[max_executors + 1] = {};
	// Who creates a thread waits here until it has tried that.
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
