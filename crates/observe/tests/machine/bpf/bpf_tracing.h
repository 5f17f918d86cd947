/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Programs are functions. */
#ifndef MACHINE_TRACING_H
#define MACHINE_TRACING_H

#define BPF_PROG(name, ...) name(__u64 *ctx, ##__VA_ARGS__)

#endif
