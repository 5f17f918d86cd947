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
	__u64 slice;
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
struct scx_cpu_release_args;
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
	void (*cpu_release)(__s32 cpu, struct scx_cpu_release_args *args);
	__s32 (*init)(void);
	void (*exit)(struct scx_exit_info *info);
	__u64 flags;
	__u32 timeout_ms;
	char name[128];
};

__s32 scx_bpf_create_dsq(__u64 queue, __s32 node) __ksym;
void scx_bpf_kick_cpu(__s32 cpu, __u64 flags) __ksym;
__s32 scx_bpf_task_cpu(const struct task_struct *p) __ksym;

/* Functions that kernels have or have not; the newest is used. libbpf takes off what follows the
 * last three underscores, so those that end with a version need a suffix of their own.
 */
bool scx_bpf_dsq_insert___v2___punctual(
	struct task_struct *p, __u64 queue, __u64 slice, __u64 flags) __ksym __weak;
void scx_bpf_dsq_insert___v1(
	struct task_struct *p, __u64 queue, __u64 slice, __u64 flags) __ksym __weak;
void scx_bpf_dispatch___v0(
	struct task_struct *p, __u64 queue, __u64 slice, __u64 flags) __ksym __weak;
bool scx_bpf_dsq_move_to_local___v2___punctual(__u64 queue, __u64 flags) __ksym __weak;
bool scx_bpf_dsq_move_to_local___v1(__u64 queue) __ksym __weak;
bool scx_bpf_consume___v0(__u64 queue) __ksym __weak;
bool scx_bpf_task_set_slice(struct task_struct *p, __u64 slice) __ksym __weak;
bool scx_bpf_task_set_dsq_vtime(struct task_struct *p, __u64 vtime) __ksym __weak;
void scx_bpf_reenqueue_local___v2___punctual(void) __ksym __weak;
__u32 scx_bpf_reenqueue_local___v1(void) __ksym __weak;

static __always_inline void insert(struct task_struct *p, __u64 queue, __u64 slice, __u64 flags)
{
	if (bpf_ksym_exists(scx_bpf_dsq_insert___v2___punctual))
		scx_bpf_dsq_insert___v2___punctual(p, queue, slice, flags);
	else if (bpf_ksym_exists(scx_bpf_dsq_insert___v1))
		scx_bpf_dsq_insert___v1(p, queue, slice, flags);
	else
		scx_bpf_dispatch___v0(p, queue, slice, flags);
}

/* `flags` where the kernel has such. */
static __always_inline bool move_to_local(__u64 queue, __u64 flags)
{
	if (bpf_ksym_exists(scx_bpf_dsq_move_to_local___v2___punctual))
		return scx_bpf_dsq_move_to_local___v2___punctual(queue, flags);
	if (bpf_ksym_exists(scx_bpf_dsq_move_to_local___v1))
		return scx_bpf_dsq_move_to_local___v1(queue);
	return scx_bpf_consume___v0(queue);
}

static __always_inline void set_slice(struct task_struct *p, __u64 slice)
{
	if (bpf_ksym_exists(scx_bpf_task_set_slice))
		scx_bpf_task_set_slice(p, slice);
	else
		p->scx.slice = slice;
}

static __always_inline void set_vtime(struct task_struct *p, __u64 vtime)
{
	if (bpf_ksym_exists(scx_bpf_task_set_dsq_vtime))
		scx_bpf_task_set_dsq_vtime(p, vtime);
	else
		p->scx.dsq_vtime = vtime;
}

static __always_inline void reenqueue_local(void)
{
	if (bpf_ksym_exists(scx_bpf_reenqueue_local___v2___punctual))
		scx_bpf_reenqueue_local___v2___punctual();
	else
		scx_bpf_reenqueue_local___v1();
}

#endif
