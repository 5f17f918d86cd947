// What each cause does to a job.
#include "late.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

static const char *const names[CAUSES] = {"own", "preempted", "queued", "turns", "lock", "inherit",
	"inversion", "worker", "moved", "faults", "stopped", "kernel", "interrupts", "backlog",
	"disk", "cold"};
// Why a cause cannot be had here.
static const char *missing[CAUSES];

// Stops this program for a while each time that it is asked to.
static struct {
	int asks[2];
	struct {
		volatile long stops;
		volatile int64_t length;
		volatile int64_t from, until; // of the last one
	} * shared;
} stopper;

// Memory that a job faults in.
static char *memory;
#define MEMORY (8 << 20)

static int account, file = -1;
// A part of it that jobs read.
static char *mapped;
#define WRITTEN (MEMORY / 8)

const char *name_of(enum cause cause)
{
	return names[cause];
}

bool is_available(enum cause cause)
{
	return !missing[cause];
}

bool begins_early(enum cause cause)
{
	return cause == QUEUED || cause == TURNS || cause == INHERIT;
}

static void run_stopper(void)
{
	pid_t stopped = getppid();
	char ask;

	must(prctl(PR_SET_PDEATHSIG, SIGKILL), "prctl");
	pin(1);
	become_fifo("stopper", 50);
	close(stopper.asks[1]);
	while (read(stopper.asks[0], &ask, 1) == 1) {
		stopper.shared->from = now_ns();
		must(kill(stopped, SIGSTOP), "kill");
		sleep_until(now_ns() + stopper.shared->length);
		stopper.shared->until = now_ns();
		stopper.shared->stops++;
		must(kill(stopped, SIGCONT), "kill");
	}
	_exit(0);
}

static void start_stopper(void)
{
	stopper.shared =
		mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (stopper.shared == MAP_FAILED)
		die("mmap", errno);
	must(pipe2(stopper.asks, O_CLOEXEC), "pipe2");
	if (!must(fork(), "fork"))
		run_stopper();
}

static void be_stopped(int64_t length)
{
	long before = stopper.shared->stops;
	stopper.shared->length = length;
	must(write(stopper.asks[1], "", 1), "write");
	while (stopper.shared->stops == before)
		;
}

static int64_t stop_within(const struct reason *reason)
{
	int64_t from = stopper.shared->from, until = stopper.shared->until;
	from = from > reason->from ? from : reason->from;
	until = until < reason->until ? until : reason->until;
	int64_t lasted = until > from ? until - from : 0, most = reason->length + 2 * USUAL;
	return lasted < most ? lasted : most;
}

// Faults in pages for a while, again and again.
static void touch_memory(int64_t length)
{
	int64_t until = now_ns() + length;
	do {
		must(madvise(memory, MEMORY, MADV_DONTNEED), "madvise");
		for (int i = 0; i < MEMORY && now_ns() < until; i += PAGE)
			memory[i] = 1;
	} while (now_ns() < until);
}

int64_t ready_time(void)
{
	char text[64] = "";
	long long delay = 0;
	if (pread(account, text, sizeof(text) - 1, 0) > 0)
		sscanf(text, "%*s %lld", &delay);
	return delay;
}

// What a time was spent on.
struct shares {
	int64_t all, cpu, ready;
};

static struct shares so_far(void)
{
	return (struct shares){now_ns(), now_on(CLOCK_THREAD_CPUTIME_ID), ready_time()};
}

static int64_t waited_since(struct shares before)
{
	struct shares now = so_far();
	return now.all - before.all - (now.cpu - before.cpu) - (now.ready - before.ready);
}

// Writes to the disk for a while. Returns how long it waited for that.
static int64_t write_to_disk(int64_t length)
{
	struct shares begin = so_far();
	do {
		// Much at once: each wait is then long beside the way out of it.
		must(pwrite(file, memory, WRITTEN, 0), "pwrite");
		must(fsync(file), "fsync");
	} while (now_ns() < begin.all + length);
	return waited_since(begin);
}

// Reads a file through memory for a while, always from the disk. Returns how long it waited for
// that.
static int64_t read_from_disk(int64_t length)
{
	struct shares begin = so_far();
	do {
		must(madvise(mapped, MEMORY, MADV_DONTNEED), "madvise");
		posix_fadvise(file, WRITTEN, MEMORY, POSIX_FADV_DONTNEED);
		for (int i = 0; i < MEMORY && now_ns() < begin.all + length; i += PAGE)
			(void)*(volatile char *)(mapped + i);
	} while (now_ns() < begin.all + length);
	return waited_since(begin);
}

static void map_file(const char *path)
{
	file = must(open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600), "open");
	for (int i = 0; i < WRITTEN + MEMORY; i += WRITTEN)
		must(pwrite(file, memory, WRITTEN, i), "pwrite");
	must(fsync(file), "fsync");
	mapped = mmap(NULL, MEMORY, PROT_READ, MAP_SHARED, file, WRITTEN);
	if (mapped == MAP_FAILED)
		die("mmap", errno);
	must(munlock(mapped, MEMORY), "munlock");
	must(madvise(mapped, MEMORY, MADV_RANDOM), "madvise");
}

static void map_memory(void)
{
	memory = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		die("mmap", errno);
	must(munlock(memory, MEMORY), "munlock");
	must(madvise(memory, MEMORY, MADV_NOHUGEPAGE), "madvise");
}

void set_up_causes(const char *path)
{
	start_stopper();
	pin(0);
	account = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
	missing[KERNEL] = set_up_poller();
	missing[INTERRUPTS] = set_up_interrupts();
	must(mlockall(MCL_CURRENT | MCL_FUTURE), "mlockall");
	map_memory();
	if (path)
		map_file(path);
	else
		missing[DISK] = missing[COLD] = "there is no file";
	start_helpers();
	for (int cause = 0; cause < CAUSES; cause++)
		if (missing[cause])
			printf("no %s: %s\n", names[cause], missing[cause]);
}

void tear_down_causes(void)
{
	stop_helpers();
}

void prepare(const struct reason *reason, int64_t due)
{
	if (has_helper(reason->cause))
		prepare_helper(reason, due);
}

void run(struct reason *reason, struct job *job)
{
	int64_t length = reason->length;
	reason->from = now_ns();
	switch (reason->cause) {
	case OWN:
	case BACKLOG:
		burn(length);
		reason->time = length;
		break;
	case FAULTS:
		touch_memory(length);
		reason->time = length;
		break;
	case STOPPED:
		be_stopped(length);
		break;
	case KERNEL:
		reason->time = be_polled(length);
		break;
	case INTERRUPTS:
		reason->time = be_interrupted(length, job);
		break;
	case DISK:
		reason->time = write_to_disk(length);
		break;
	case COLD:
		reason->time = read_from_disk(length);
		break;
	default:
		run_helped(reason);
	}
	if (!reason->until)
		reason->until = now_ns();
}

void conclude(struct reason *reason, struct job *job)
{
	if (has_helper(reason->cause))
		conclude_helped(reason, job);
	if (reason->cause == STOPPED)
		reason->time = stop_within(reason);
}
