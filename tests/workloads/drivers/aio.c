// Waiting for asynchronous I/O: the kernel's older interface, and io_uring without its library.
#include "drivers.h"

#include <errno.h>
#include <linux/aio_abi.h>
#include <linux/io_uring.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

static aio_context_t aio;

const char *make_aio(struct run *run)
{
	make_nonblocking_eventfd(run);
	return syscall(SYS_io_setup, 8, &aio) < 0 ? "the kernel has no asynchronous I/O" : NULL;
}

static void submit_poll(struct run *run)
{
	struct iocb block = {
		.aio_lio_opcode = IOCB_CMD_POLL, .aio_fildes = run->in, .aio_buf = POLLIN};
	struct iocb *blocks[] = {&block};
	must(syscall(SYS_io_submit, aio, 1L, blocks), "io_submit");
}

static void wait_io_getevents(struct run *run)
{
	struct io_event event;
	submit_poll(run);
	must(syscall(SYS_io_getevents, aio, 1L, 1L, &event, NULL), "io_getevents");
	drain(run);
}

#ifdef SYS_io_pgetevents
static void wait_io_pgetevents(struct run *run)
{
	struct io_event event;
	submit_poll(run);
	must(syscall(SYS_io_pgetevents, aio, 1L, 1L, &event, NULL, NULL), "io_pgetevents");
	drain(run);
}
#endif

static struct {
	int fd;
	_Atomic uint32_t *sq_tail, *cq_head;
	uint32_t sq_mask;
	uint32_t *sq_array;
	struct io_uring_sqe *sqes;
} ring;

static const char *make_ring(struct run *run)
{
	make_nonblocking_eventfd(run);
	struct io_uring_params params = {0};
	ring.fd = syscall(SYS_io_uring_setup, 8, &params);
	if (ring.fd < 0)
		return errno == EPERM ? "io_uring is disabled here" : "the kernel has no io_uring";
	size_t sq_size = params.sq_off.array + params.sq_entries * sizeof(uint32_t);
	size_t cq_size = params.cq_off.cqes + params.cq_entries * sizeof(struct io_uring_cqe);
	int protection = PROT_READ | PROT_WRITE;
	char *sq = mmap(NULL, sq_size, protection, MAP_SHARED, ring.fd, IORING_OFF_SQ_RING);
	char *cq = mmap(NULL, cq_size, protection, MAP_SHARED, ring.fd, IORING_OFF_CQ_RING);
	ring.sqes = mmap(NULL, params.sq_entries * sizeof *ring.sqes, protection, MAP_SHARED,
		ring.fd, IORING_OFF_SQES);
	if (sq == MAP_FAILED || cq == MAP_FAILED || ring.sqes == MAP_FAILED)
		die("mmap of the rings", errno);
	ring.sq_tail = (void *)(sq + params.sq_off.tail);
	ring.sq_mask = *(uint32_t *)(void *)(sq + params.sq_off.ring_mask);
	ring.sq_array = (void *)(sq + params.sq_off.array);
	ring.cq_head = (void *)(cq + params.cq_off.head);
	return NULL;
}

// Submits one request and waits for its completion in the same call.
static void submit_and_wait(struct io_uring_sqe request)
{
	uint32_t tail = atomic_load(ring.sq_tail);
	ring.sqes[tail & ring.sq_mask] = request;
	ring.sq_array[tail & ring.sq_mask] = tail & ring.sq_mask;
	atomic_store(ring.sq_tail, tail + 1);
	must(syscall(SYS_io_uring_enter, ring.fd, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0UL),
		"io_uring_enter");
	atomic_fetch_add(ring.cq_head, 1);
}

static void wait_ring_poll(struct run *run)
{
	submit_and_wait((struct io_uring_sqe){
		.opcode = IORING_OP_POLL_ADD, .fd = run->in, .poll_events = POLLIN});
	drain(run);
}

static void wait_ring_timeout(struct run *run)
{
	struct timespec t = timespec_of(next_arrival(run));
	struct __kernel_timespec when = {.tv_sec = t.tv_sec, .tv_nsec = t.tv_nsec};
	submit_and_wait((struct io_uring_sqe){.opcode = IORING_OP_TIMEOUT,
		.addr = (uintptr_t)&when,
		.len = 1,
		.timeout_flags = IORING_TIMEOUT_ABS});
}

const struct driver aio_drivers[] = {
	{.name = "io_getevents",
		.call = "io_getevents",
		.object = "address",
		.setup = make_aio,
		.wait = wait_io_getevents,
		.event = write_count},
#ifdef SYS_io_pgetevents
	{.name = "io_pgetevents",
		.call = "io_pgetevents",
		.object = "address",
		.setup = make_aio,
		.wait = wait_io_pgetevents,
		.event = write_count},
#endif
	{.name = "io_uring_poll",
		.call = "io_uring_enter",
		.object = "io_uring",
		.setup = make_ring,
		.wait = wait_ring_poll,
		.event = write_count},
	{.name = "io_uring_timeout",
		.call = "io_uring_enter",
		.object = "io_uring",
		.setup = make_ring,
		.wait = wait_ring_timeout,
		.own_time = true},
	{0},
};
