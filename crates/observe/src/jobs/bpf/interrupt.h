/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Whether an interrupt is being served: by the processor's count of what it is in, which each
 * architecture and age of kernel keeps elsewhere. */
#ifndef PUNCTUAL_INTERRUPT_H
#define PUNCTUAL_INTERRUPT_H

#if defined(__TARGET_ARCH_x86)
struct pcpu_hot___6_2 {
	int preempt_count;
} __attribute__((preserve_access_index));
extern const int __preempt_count __ksym __weak;
extern const struct pcpu_hot___6_2 pcpu_hot __ksym __weak; /* 6.2 to 6.14 */
#endif

static __always_inline bool in_interrupt(struct task_struct *current)
{
#if defined(__TARGET_ARCH_x86)
	if (bpf_ksym_exists(&__preempt_count))
		return *(int *)bpf_this_cpu_ptr(&__preempt_count) & INTERRUPT_COUNTS;
	if (bpf_ksym_exists(&pcpu_hot))
		return ((struct pcpu_hot___6_2 *)bpf_this_cpu_ptr(&pcpu_hot))->preempt_count &
		       INTERRUPT_COUNTS;
	return false;
#elif defined(__TARGET_ARCH_arm64)
	return current->thread_info.preempt.count & INTERRUPT_COUNTS;
#else
	return false;
#endif
}

/*
 * The same on x86-64 where the kernel hides that count (no CONFIG_KALLSYMS_ALL): what interrupts
 * the kernel has a stack of its own, of which the tracepoint's arguments (`arguments`) tell, and
 * what interrupts a program has begun without a system call. A page fault of a program has, too,
 * and counts as an interrupt.
 */
static __always_inline bool is_beside(void *arguments, struct task_struct *current)
{
#if defined(__TARGET_ARCH_x86)
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(current);
	__u64 place = 0;

	/* A pointer to the context is no number for the verifier; a copy of it is. */
	bpf_probe_read_kernel(&place, sizeof(place), &arguments);
	if (place - (__u64)current->stack >= STACK_SIZE)
		return true;
	return !(current->flags & PF_KTHREAD) && (long)SYSCALL_NUMBER(regs) < 0;
#else
	return false;
#endif
}

#endif
