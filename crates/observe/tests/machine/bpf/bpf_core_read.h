/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Fields are where the compiler has put them. */
#ifndef MACHINE_CORE_READ_H
#define MACHINE_CORE_READ_H

#define bpf_core_field_exists(...)	     1
#define bpf_core_field_offset(type, field)   __builtin_offsetof(type, field)
#define bpf_core_type_size(type)	     sizeof(type)
#define bpf_core_enum_value(type, value)     (value)
#define bpf_ksym_exists(symbol)		     0
#define READ_1(from, a)			     ((from)->a)
#define READ_2(from, a, b)		     ((from)->a->b)
#define READ_3(from, a, b, c)		     ((from)->a->b->c)
#define READ_CHOSEN(_1, _2, _3, chosen, ...) chosen
#define BPF_CORE_READ(from, ...) \
	READ_CHOSEN(__VA_ARGS__, READ_3, READ_2, READ_1, )(from, __VA_ARGS__)

#endif
