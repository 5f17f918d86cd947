/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The own interrupts of x86-64 processors, as their tracepoints name them: <asm/irq_vectors.h>. */
#ifndef PUNCTUAL_VECTORS_H
#define PUNCTUAL_VECTORS_H

/* clang-format off */
#define FOR_EACH_VECTOR(DO) \
	DO(local_timer, 0xec) \
	DO(reschedule, 0xfd) \
	DO(call_function, 0xfc) \
	DO(call_function_single, 0xfb) \
	DO(irq_work, 0xf6) \
	DO(x86_platform_ipi, 0xf7) \
	DO(error_apic, 0xfe) \
	DO(spurious_apic, 0xff) \
	DO(thermal_apic, 0xfa) \
	DO(threshold_apic, 0xf9) \
	DO(deferred_error_apic, 0xf4)
/* clang-format on */

#endif
