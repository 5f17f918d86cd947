/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the eBPF program needs of the kernel and of libbpf, for user space: time, registers, one
 * map, and a buffer are the harness's. */
#ifndef MACHINE_HELPERS_H
#define MACHINE_HELPERS_H

#define SEC(name)	__attribute__((used))
#define __always_inline inline __attribute__((always_inline))
#define __noinline	__attribute__((noinline))
#define __weak		__attribute__((weak))
#define __ksym
#define barrier_var(variable)
#define barrier()
#define __uint(name, value) int(*name)[value]
#define __type(name, value) typeof(value) *name

void *bpf_map_lookup_elem(void *map, const void *key);
long bpf_map_update_elem(void *map, const void *key, const void *value, __u64 flags);
long bpf_map_delete_elem(void *map, const void *key);
void *bpf_ringbuf_reserve(void *ring, __u64 size, __u64 flags);
void bpf_ringbuf_submit(void *data, __u64 flags);
__u64 bpf_ktime_get_ns(void);
__u32 bpf_get_smp_processor_id(void);
struct task_struct *bpf_get_current_task_btf(void);
long bpf_task_pt_regs(struct task_struct *task);
long bpf_probe_read_kernel(void *to, __u32 size, const void *from);
long bpf_probe_read_kernel_str(void *to, __u32 size, const void *from);
long bpf_probe_read_user(void *to, __u32 size, const void *from);
void *bpf_this_cpu_ptr(const void *variable);

#endif
