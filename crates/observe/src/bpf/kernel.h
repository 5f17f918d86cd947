/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The kernel's types, reduced to the fields that are used. Offsets are relocated against the
 * running kernel when the program is loaded (CO-RE), so order and size here mean nothing.
 */
#ifndef PUNCTUAL_KERNEL_H
#define PUNCTUAL_KERNEL_H

typedef signed char __s8;
typedef unsigned char __u8;
typedef short __s16;
typedef unsigned short __u16;
typedef int __s32;
typedef unsigned int __u32;
typedef long long __s64;
typedef unsigned long long __u64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef _Bool bool;
#define true 1
#define false 0
#define NULL ((void *)0)

enum {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_RINGBUF = 27,
};
enum { BPF_ANY = 0, BPF_NOEXIST = 1 };
enum { BPF_RB_NO_WAKEUP = 1 };
enum { BPF_F_MMAPABLE = 1024 };

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

#if defined(__TARGET_ARCH_x86)
struct pt_regs {
	unsigned long bp, bx, r10, r9, r8, ax, cx, dx, si, di, orig_ax, sp, ip;
};
#elif defined(__TARGET_ARCH_arm64)
struct pt_regs {
	__u64 regs[31];
	__u64 orig_x0;
	__s32 syscallno;
};
#endif

struct cpumask {
	unsigned long bits[1];
};
typedef struct cpumask cpumask_t;

/* Steps of bringing a processor up, ascending; taking it down goes through them backwards. */
enum cpuhp_state {
	CPUHP_OFFLINE,
	CPUHP_BRINGUP_CPU, /* before it, the processor does nothing */
	CPUHP_TEARDOWN_CPU,
};

struct rq {
	struct task_struct *curr;
	__u64 clock;
	__u64 prev_steal_time_rq; /* with CONFIG_PARAVIRT_TIME_ACCOUNTING */
};
struct cfs_rq {
	struct rq *rq;
	int throttle_count; /* with CONFIG_CFS_BANDWIDTH: of it and those around it */
};
struct sched_entity {
	__u64 sum_exec_runtime;
	struct cfs_rq *cfs_rq;
};

struct sched_info {
	unsigned long pcount;
	unsigned long long run_delay, last_arrival, last_queued;
};

enum hrtimer_restart { HRTIMER_NORESTART };
struct timerqueue_node {
	__s64 expires;
};
enum hrtimer_base_type {
	HRTIMER_BASE_MONOTONIC,
	HRTIMER_BASE_REALTIME,
	HRTIMER_BASE_BOOTTIME,
	HRTIMER_BASE_TAI,
};
struct hrtimer_cpu_base;
struct hrtimer_clock_base {
	struct hrtimer_cpu_base *cpu_base;
	__s64 offset; /* how far its clock is ahead of CLOCK_MONOTONIC */
};
struct hrtimer_cpu_base {
	struct hrtimer_clock_base clock_base[1]; /* by hrtimer_base_type */
};
struct hrtimer {
	struct timerqueue_node node;
	struct hrtimer_clock_base *base;
	enum hrtimer_restart (*function)(struct hrtimer *);
	__u8 is_soft;
};
struct timerfd_ctx {
	union {
		struct hrtimer tmr;
	} t;
	__s64 tintv;
	int clockid;
};
/* A list's node, or its head, of either kind: what comes next is at the beginning. */
struct hlist_node {
	struct hlist_node *next;
};
struct k_itimer {
	struct hlist_node list;
	int it_id, it_clock;
	__s64 it_interval;
	union {
		struct {
			struct hrtimer timer;
		} real;
	} it;
};
struct sched_dl_entity {
	__u64 dl_runtime, dl_deadline, dl_period;
	struct hrtimer dl_timer;
};

struct super_block {
	unsigned long s_magic;
};
struct inode {
	__u16 i_mode;
	__u32 i_rdev;
	unsigned long i_ino;
	struct super_block *i_sb;
};
struct qstr {
	const unsigned char *name;
};
struct dentry {
	struct qstr d_name;
};
struct path {
	struct dentry *dentry;
};
struct sock {
	__u8 sk_shutdown;
};
struct socket {
	struct sock *sk;
};
struct file {
	void *private_data;
	unsigned int f_flags;
	struct inode *f_inode;
	struct path f_path;
};
struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};
struct files_struct {
	struct fdtable *fdt;
};

struct ns_common {
	unsigned int inum;
};
struct pid_namespace {
	struct ns_common ns;
};
struct upid {
	int nr;
	struct pid_namespace *ns;
};
struct pid {
	unsigned int level;
	struct upid numbers[1];
};

struct kernfs_node {
	__u64 id;
};
struct cgroup {
	int level;
	struct kernfs_node *kn;
	struct cgroup *ancestors[1];
};
/* Before 6.1. */
struct cgroup___ids {
	__u64 ancestor_ids[1];
};
struct css_set {
	struct cgroup *dfl_cgrp;
};

struct mm_struct {
	unsigned long arg_start, arg_end;
};

typedef struct {
	int counter;
} atomic_t;
struct signal_struct {
	atomic_t live;
	struct hlist_node posix_timers;
};
typedef struct {
	unsigned long sig[1];
} sigset_t;
struct sigpending {
	sigset_t signal;
};
struct sigaction {
	void *sa_handler;
	unsigned long sa_flags;
};
struct k_sigaction {
	struct sigaction sa;
};
struct kernel_siginfo;

struct thread_info {
	unsigned long flags;
	__u32 status;
	__u32 cpu;
	struct {
		__u32 count;
	} preempt; /* on arm64 */
};

/* Before 5.16 the processor was here. */
struct task_struct___5_15 {
	unsigned int cpu;
};

struct task_struct {
	struct thread_info thread_info;
	void *stack;
	int pid, tgid;
	unsigned int __state;
	unsigned int on_rq, on_cpu; /* bytes since 7.2, which load as well if these are unsigned */
	unsigned int policy, rt_priority, flags;
	int prio, static_prio;
	bool throttled; /* since 6.18, with CONFIG_CFS_BANDWIDTH */
	__u64 start_time;
	int nr_cpus_allowed;
	unsigned long nvcsw, min_flt, maj_flt;
	struct sched_entity se;
	struct sched_info sched_info;
	struct sched_dl_entity dl;
	cpumask_t cpus_mask;
	struct mm_struct *mm;
	struct files_struct *files;
	struct signal_struct *signal;
	struct sigpending pending;
	struct pid *thread_pid;
	struct task_struct *group_leader;
	struct css_set *cgroups;
	char comm[16];
};

struct irqaction {
	const char *name;
};

/* Fields of tracepoints on perf's side. */
struct trace_event_raw_sched_process_exec {
	int old_pid;
};

struct trace_event_raw_task_rename {
	int pid;
	char newcomm[16];
};

#pragma clang attribute pop

/* Number and arguments of a system call, by the ABI of each machine; COMPAT_ those of 32-bit
 * programs, whose numbers are in the same register. */
#if defined(__TARGET_ARCH_x86)
#define SYSCALL_NUMBER(registers) ((registers)->orig_ax)
#define SYSCALL_RESULT(registers) ((registers)->ax)
#define ARGUMENT_1(registers)	  ((registers)->di)
#define ARGUMENT_2(registers)	  ((registers)->si)
#define ARGUMENT_3(registers)	  ((registers)->dx)
#define ARGUMENT_4(registers)	  ((registers)->r10)
#define ARGUMENT_5(registers)	  ((registers)->r8)
#define ARGUMENT_6(registers)	  ((registers)->r9)
#define COMPAT_1(registers)	  ((registers)->bx)
#define COMPAT_2(registers)	  ((registers)->cx)
#define COMPAT_3(registers)	  ((registers)->dx)
#define COMPAT_4(registers)	  ((registers)->si)
#define COMPAT_5(registers)	  ((registers)->di)
#define COMPAT_6(registers)	  ((registers)->bp)
#elif defined(__TARGET_ARCH_arm64)
#define SYSCALL_NUMBER(registers) ((registers)->syscallno)
#define SYSCALL_RESULT(registers) ((registers)->regs[0])
#define ARGUMENT_1(registers)	  ((registers)->orig_x0)
#define ARGUMENT_2(registers)	  ((registers)->regs[1])
#define ARGUMENT_3(registers)	  ((registers)->regs[2])
#define ARGUMENT_4(registers)	  ((registers)->regs[3])
#define ARGUMENT_5(registers)	  ((registers)->regs[4])
#define ARGUMENT_6(registers)	  ((registers)->regs[5])
#define COMPAT_1(registers)	  ARGUMENT_1(registers)
#define COMPAT_2(registers)	  ARGUMENT_2(registers)
#define COMPAT_3(registers)	  ARGUMENT_3(registers)
#define COMPAT_4(registers)	  ARGUMENT_4(registers)
#define COMPAT_5(registers)	  ARGUMENT_5(registers)
#define COMPAT_6(registers)	  ARGUMENT_6(registers)
#endif

/* Whether the call that the registers name has returned already, where they tell. */
#if defined(__TARGET_ARCH_x86)
#define HAS_RETURNED(registers) \
	((registers)->ax != (unsigned long)-ENOSYS) /* there from the entry on, until the result \
						       takes its place */
#define KNOWS_RETURN true
#else
#define HAS_RETURNED(registers) false
#define KNOWS_RETURN		false
#endif

/* <linux/sched.h> and others; part of the kernel's ABI to tools, or stable since long. */
#define SCHED_FIFO	   1
#define SCHED_RR	   2
#define SCHED_DEADLINE	   6
#define PF_EXITING	   0x00000004
#define PF_KTHREAD	   0x00200000
#define PF_IO_WORKER	   0x00000010
#define PF_USER_WORKER	   0x00004000
#define TASK_INTERRUPTIBLE 0x0001
#define STOPPED_STATES	   0x000c /* by a signal, by a debugger */
#define TASK_DEAD	   0x0080
#define TASK_RTLOCK_WAIT   0x1000 /* for a spinlock, on PREEMPT_RT */
#define EXIT_STATES	   0x0030
#define STACK_SIZE	   0x4000     /* of a task, on x86-64 */
#define INTERRUPT_COUNTS   0x00ff0100 /* NMI, hard interrupt, soft interrupt being served */
#define MAX_RT_PRIO	   100
#define NICE_TO_PRIO	   120
#define TS_COMPAT	   0x0002
#define ARM64_TIF_32BIT	   22

#define S_IFMT		 0170000
#define S_IFSOCK	 0140000
#define S_IFBLK		 0060000
#define S_IFCHR		 0020000
#define S_IFIFO		 0010000
#define ANON_INODE_MAGIC 0x09041934
#define O_NONBLOCK	 04000

#define SIGKILL_BIT	 (1UL << 8)
#define SA_RESTART	 0x10000000UL
#define LAST_DISPOSITION 1 /* SIG_IGN; greater is a handler */
#define SI_TIMER	 -2
#define RCV_SHUTDOWN	 1

#define CLOCK_REALTIME	0
#define CLOCK_MONOTONIC 1
#define CLOCK_BOOTTIME	7
#define CLOCK_TAI	11
#define TIMER_ABSTIME	1
#define IPC_NOWAIT	04000

#define EINTR		      4
#define EAGAIN		      11
#define ENOMEM		      12
#define EEXIST		      17
#define EINVAL		      22
#define EPIPE		      32
#define ENOSYS		      38
#define EIDRM		      43
#define ECONNABORTED	      103
#define ECONNRESET	      104
#define ENOTCONN	      107
#define ESHUTDOWN	      108
#define ETIMEDOUT	      110
#define ERESTARTSYS	      512
#define ERESTARTNOINTR	      513
#define ERESTARTNOHAND	      514
#define ERESTART_RESTARTBLOCK 516

struct timespec {
	long tv_sec;
	long tv_nsec;
};
/* Times of 32-bit programs in calls that are older than 64-bit ones. */
struct timespec32 {
	__s32 tv_sec;
	__s32 tv_nsec;
};
struct pollfd {
	int fd;
	short events;
	short revents;
};
/* struct epoll_event, which is packed on x86: its size, and where the program's data is. */
#if defined(__TARGET_ARCH_x86)
#define EPOLL_EVENT_SIZE 12
#define EPOLL_EVENT_DATA 4
#else
#define EPOLL_EVENT_SIZE 16
#define EPOLL_EVENT_DATA 8
#endif
struct sembuf {
	__u16 sem_num;
	__s16 sem_op;
	__s16 sem_flg;
};
/* The beginning of siginfo_t as a timer's signal has it, in the kernel too. */
struct timer_siginfo {
	int si_signo, si_errno, si_code, padding;
	int si_tid, si_overrun;
};
/* The same in the memory of a 32-bit program. */
struct timer_siginfo32 {
	int si_signo, si_errno, si_code;
	int si_tid, si_overrun;
};
/* The same as a signalfd gives it. */
struct signalfd_siginfo {
	__u32 ssi_signo;
	__s32 ssi_errno, ssi_code;
	__u32 ssi_pid, ssi_uid;
	__s32 ssi_fd;
	__u32 ssi_tid, ssi_band, ssi_overrun;
};
#define SIGNALFD_SIGINFO_SIZE 128
struct futex_waitv {
	__u64 val;
	__u64 uaddr;
	__u32 flags;
	__u32 reserved;
};

#endif
