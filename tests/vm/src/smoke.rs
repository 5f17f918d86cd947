//! A little of everything, on one kernel, in one machine that boots once: what `make test` runs. Everything
//! on all kernels is `make test-all`.
//!
//! The machine counts instructions, so nothing depends on how fast it is. The bound needs one processor, on
//! which nothing else takes as long as the delays that it has to find; sched_ext needs a second one, for all
//! that is not in the table. So the machine has two, and the second one is offline at first.

/// Parts of names, on one processor. Of the drivers one of each kind of thing that a thread waits on.
pub const ON_ONE: &[&str] = &[
    "demo::",
    "doctor::is_right_about_tracepoints",
    "doctor::is_right_about_the_bound",
    "driver::sleep_interrupted",
    "driver::read_timerfd_realtime",
    "driver::pause",
    "driver::futex_alternating_words",
    "driver::futex_wait_requeue_pi",
    "driver::read_back_to_back",
    "driver::poll_then_read",
    "driver::epoll_pwait2",
    "driver::recvmmsg",
    "driver::accept4",
    "driver::mq_timedreceive",
    "driver::semtimedop",
    "driver::io_uring_timeout",
    "driver::waitid",
    "targets::short_processes",
    "bound::holds_under_load",
    "bound::delays_are_found_in_turn",
    "bound::what_holds_the_timer_off",
];

/// And on two.
pub const ON_TWO: &[&str] = &["tt::sched_ext::threads_run_in"];
