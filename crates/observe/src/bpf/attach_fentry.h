/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One pair of programs for each system call, for kernels that let functions be traced: calls that
 * are not listed cost nothing. The functions' names are set by the loader (`__x64_sys_…`,
 * `__arm64_sys_…`); those that a kernel lacks are not loaded.
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

TRACE_CALL(clock_nanosleep, CALL_CLOCK_NANOSLEEP)
TRACE_CALL(nanosleep, CALL_NANOSLEEP)
TRACE_CALL(select, CALL_SELECT)
TRACE_CALL(pselect6, CALL_PSELECT6)
TRACE_CALL(poll, CALL_POLL)
TRACE_CALL(ppoll, CALL_PPOLL)
TRACE_CALL(epoll_wait, CALL_EPOLL_WAIT)
TRACE_CALL(epoll_pwait, CALL_EPOLL_PWAIT)
TRACE_CALL(epoll_pwait2, CALL_EPOLL_PWAIT2)
TRACE_CALL(read, CALL_READ)
TRACE_CALL(readv, CALL_READV)
TRACE_CALL(preadv, CALL_PREADV)
TRACE_CALL(preadv2, CALL_PREADV2)
TRACE_CALL(accept, CALL_ACCEPT)
TRACE_CALL(accept4, CALL_ACCEPT4)
TRACE_CALL(recvfrom, CALL_RECVFROM)
TRACE_CALL(recvmsg, CALL_RECVMSG)
TRACE_CALL(recvmmsg, CALL_RECVMMSG)
TRACE_CALL(futex, CALL_FUTEX)
TRACE_CALL(futex_wait, CALL_FUTEX_WAIT)
TRACE_CALL(futex_waitv, CALL_FUTEX_WAITV)
TRACE_CALL(rt_sigtimedwait, CALL_RT_SIGTIMEDWAIT)
TRACE_CALL(rt_sigsuspend, CALL_RT_SIGSUSPEND)
TRACE_CALL(pause, CALL_PAUSE)
TRACE_CALL(mq_timedreceive, CALL_MQ_TIMEDRECEIVE)
TRACE_CALL(msgrcv, CALL_MSGRCV)
TRACE_CALL(semop, CALL_SEMOP)
TRACE_CALL(semtimedop, CALL_SEMTIMEDOP)
TRACE_CALL(wait4, CALL_WAIT4)
TRACE_CALL(waitid, CALL_WAITID)
TRACE_CALL(io_getevents, CALL_IO_GETEVENTS)
TRACE_CALL(io_pgetevents, CALL_IO_PGETEVENTS)
TRACE_CALL(io_uring_enter, CALL_IO_URING_ENTER)
TRACE_CALL(sched_yield, CALL_SCHED_YIELD)
TRACE_CALL(restart_syscall, CALL_RESTART)
TRACE_CALL(sched_setscheduler, CALL_SET)
TRACE_CALL(sched_setparam, CALL_SET)
TRACE_CALL(sched_setattr, CALL_SET)
TRACE_CALL(sched_setaffinity, CALL_SET)
TRACE_CALL(setpriority, CALL_SET)
