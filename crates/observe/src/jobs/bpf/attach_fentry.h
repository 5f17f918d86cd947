/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A pair of programs per system call, for kernels that can trace functions: other system calls cost
 * nothing. The loader sets the names of the functions (__x64_sys_…, __arm64_sys_…) and leaves out
 * those that the kernel lacks.
 */
#define TRACE_CALL(name, call) \
	SEC("fentry/sys_" #name) int BPF_PROG(enter_##name, struct pt_regs *regs) \
	{ \
		return on_enter(regs, call); \
	} \
	SEC("fexit/sys_" #name) int BPF_PROG(exit_##name, struct pt_regs *regs, long result) \
	{ \
		return on_exit(call, result); \
	}

FOR_EACH_SYSTEM_CALL(TRACE_CALL)
TRACE_CALL(futex, CALL_FUTEX)
TRACE_CALL(restart_syscall, CALL_RESTART)
TRACE_CALL(sched_setscheduler, CALL_SET)
TRACE_CALL(sched_setparam, CALL_SET)
TRACE_CALL(sched_setattr, CALL_SET)
TRACE_CALL(sched_setaffinity, CALL_SET)
TRACE_CALL(setpriority, CALL_SET)
TRACE_CALL(clock_settime, CALL_SET_CLOCK)
TRACE_CALL(settimeofday, CALL_SET_CLOCK)
TRACE_CALL(clock_adjtime, CALL_SET_CLOCK)
TRACE_CALL(adjtimex, CALL_SET_CLOCK)
