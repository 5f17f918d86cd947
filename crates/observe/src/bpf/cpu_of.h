/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* On which processor a thread runs, or waits to run. */
#ifndef PUNCTUAL_CPU_OF_H
#define PUNCTUAL_CPU_OF_H

static __always_inline __u32 cpu_of(const struct task_struct *task)
{
	const struct task_struct___5_15 *older = (const void *)task;

	return bpf_core_field_exists(task->thread_info.cpu) ? task->thread_info.cpu : older->cpu;
}

#endif
