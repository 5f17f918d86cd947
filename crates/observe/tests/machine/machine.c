/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The kernel side as a program of user space: events of one thread on standard input, its records
 * on standard output, each behind its length.
 *
 *   in TIME ACCOUNT | out TIME ACCOUNT STATE | wake TIME ACCOUNT | enter TIME ACCOUNT | exit TIME
 * ACCOUNT RESULT
 *
 * ACCOUNT is what sum_exec_runtime says at the time. STATE is that of sched_switch; 0 is preempted.
 * The call is a read of a pipe.
 */
#include "../../src/bpf/observe.bpf.c"

int scanf(const char *format, ...);
int strcmp(const char *a, const char *b);
void *memcpy(void *to, const void *from, unsigned long size);
long write(int file, const void *from, unsigned long size);

static struct thread watched_thread;
static bool is_watched;
static __u64 now;
static struct rq queue;
static struct cfs_rq group = {.rq = &queue};
static struct inode inode = {.i_mode = S_IFIFO, .i_ino = 7};
static struct file pipe_file = {.f_inode = &inode};
static struct file *descriptors[4] = {0, 0, 0, &pipe_file};
static struct fdtable table = {.max_fds = 4, .fd = descriptors};
static struct files_struct files = {.fdt = &table};
static struct signal_struct signals;
static struct task_struct task = {.pid = 9,
	.tgid = 9,
	.policy = SCHED_FIFO,
	.rt_priority = 50,
	.nr_cpus_allowed = 1,
	.files = &files,
	.signal = &signals};
static struct task_struct idle;
static struct pt_regs registers;
static __u64 buffer[128];
static __u32 size_of_record;

void *bpf_map_lookup_elem(void *map, const void *key)
{
	return map == (void *)&threads && is_watched && *(__u32 *)key == 9 ? &watched_thread : NULL;
}

long bpf_map_update_elem(void *map, const void *key, const void *value, __u64 flags)
{
	memcpy(&watched_thread, value, sizeof watched_thread);
	is_watched = true;
	return 0;
}

long bpf_map_delete_elem(void *map, const void *key)
{
	is_watched = false;
	return 0;
}

void *bpf_ringbuf_reserve(void *ring, __u64 size, __u64 flags)
{
	size_of_record = size;
	return buffer;
}

void bpf_ringbuf_submit(void *data, __u64 flags)
{
	write(1, &size_of_record, sizeof size_of_record);
	write(1, data, size_of_record);
}

__u64 bpf_ktime_get_ns(void)
{
	return now;
}

__u32 bpf_get_smp_processor_id(void)
{
	return 0;
}

struct task_struct *bpf_get_current_task_btf(void)
{
	return &task;
}

long bpf_task_pt_regs(struct task_struct *of)
{
	return (long)&registers;
}

static long copy(void *to, __u32 size, const void *from)
{
	memcpy(to, from, size);
	return 0;
}

long bpf_probe_read_kernel(void *to, __u32 size, const void *from)
{
	return copy(to, size, from);
}

long bpf_probe_read_kernel_str(void *to, __u32 size, const void *from)
{
	return copy(to, 1, from);
}

/* There is no memory of user space. */
long bpf_probe_read_user(void *to, __u32 size, const void *from)
{
	return -1;
}

void *bpf_this_cpu_ptr(const void *variable)
{
	return (void *)variable;
}

#if defined(__TARGET_ARCH_x86)
enum { READ = 0 };
#define SET_CALL(number) \
	(registers.orig_ax = (number), registers.di = 3, registers.ax = (unsigned long)-ENOSYS)
#define SET_RESULT(result) (registers.ax = (result))
#else
enum { READ = 63 };
#define SET_CALL(number)   (registers.syscallno = (number), registers.orig_x0 = 3)
#define SET_RESULT(result) (registers.regs[0] = (result))
#endif

int main(void)
{
	char event[16];
	long long account, last;

	*(volatile bool *)&active = true;
	task.se.cfs_rq = &group;
	task.group_leader = &task;
	SET_CALL(-1);
	while (scanf("%15s %lld %lld %lld", event, (long long *)&now, &account, &last) == 4) {
		__u64 state[4] = {0, 0, 0, (__u64)last};

		task.se.sum_exec_runtime = account;
		queue.clock = now;
		if (strcmp(event, "in") == 0) {
			switched(state, false, &idle, &task);
		} else if (strcmp(event, "out") == 0) {
			if (last)
				task.nvcsw++;
			switched(state, last == 0, &task, &idle);
		} else if (strcmp(event, "wake") == 0) {
			waking(state, &task);
		} else if (strcmp(event, "enter") == 0) {
			SET_CALL(READ);
			on_enter(&registers, CALL_READ);
		} else if (strcmp(event, "exit") == 0) {
			SET_RESULT(last);
			on_exit(CALL_READ, last);
			SET_CALL(-1);
		} else if (strcmp(event, "sleep") == 0) {
			/* A stop that no program sees. */
			task.nvcsw++;
		}
	}
	return 0;
}
