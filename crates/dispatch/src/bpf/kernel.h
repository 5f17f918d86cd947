/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The kernel's types, reduced to what the scheduler uses. Offsets are relocated against the running
 * kernel when the program is loaded (CO-RE). Flags that differ from kernel to kernel are settings,
 * which user space takes from the kernel's own description: so no 64-bit enum is needed here, and
 * any clang that knows BPF compiles this.
 */
#ifndef PUNCTUAL_DISPATCH_KERNEL_H
#define PUNCTUAL_DISPATCH_KERNEL_H

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
	BPF_MAP_TYPE_RINGBUF = 27,
};
enum { BPF_ANY = 0 };
enum { BPF_RB_NO_WAKEUP = 1 };

#include <bpf/bpf_helpers.h>

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct sched_entity {
	__u64 sum_exec_runtime;
};
struct sched_ext_entity {
	__u32 flags;
	__u64 dsq_vtime;
};
struct task_struct {
	int pid;
	struct sched_entity se;
	struct sched_ext_entity scx;
};
struct hrtimer {
	__s64 _softexpires;
};
struct hw_perf_event {
	struct hrtimer hrtimer;
};
struct perf_event_attr {
	__u64 config1;
};
struct perf_event {
	struct perf_event_attr attr;
	struct hw_perf_event hw;
};
enum scx_exit_kind { SCX_EXIT_NONE };
struct scx_exit_info {
	enum scx_exit_kind kind;
	__s64 exit_code;
	const char *reason;
	char *msg;
};

#pragma clang attribute pop

/* Of SCX_SLICE_…, SCX_KICK_…, SCX_TASK_… and SCX_DEQ_…: these have been the same since 6.12. */
#define SLICE_DEFAULT	20000000ULL
#define KICK_PREEMPT	2ULL
#define TASK_IS_QUEUED	1U
#define DEQUEUED_ASLEEP 1ULL

/* What a scheduler tells the kernel: the members that are set. */
struct sched_ext_ops {
	__s32 (*select_cpu)(struct task_struct *p, __s32 previous, __u64 flags);
	void (*enqueue)(struct task_struct *p, __u64 flags);
	void (*dispatch)(__s32 cpu, struct task_struct *previous);
	void (*runnable)(struct task_struct *p, __u64 flags);
	void (*running)(struct task_struct *p);
	void (*stopping)(struct task_struct *p, bool is_runnable);
	void (*quiescent)(struct task_struct *p, __u64 flags);
	__s32 (*init)(void);
	void (*exit)(struct scx_exit_info *info);
	__u64 flags;
	__u32 timeout_ms;
	char name[128];
};

/* libbpf takes off what follows the last three underscores, so these need a suffix of their own. */
__s32 scx_bpf_create_dsq(__u64 queue, __s32 node) __ksym;
bool scx_bpf_dsq_insert___v2___punctual(
	struct task_struct *p, __u64 queue, __u64 slice, __u64 flags) __ksym;
bool scx_bpf_dsq_move_to_local___v2___punctual(__u64 queue, __u64 flags) __ksym;
bool scx_bpf_task_set_slice(struct task_struct *p, __u64 slice) __ksym;
bool scx_bpf_task_set_dsq_vtime(struct task_struct *p, __u64 vtime) __ksym;
void scx_bpf_kick_cpu(__s32 cpu, __u64 flags) __ksym;
__s32 scx_bpf_task_cpu(const struct task_struct *p) __ksym;

#endif
