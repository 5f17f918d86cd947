/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which call a system call is, by its number and by the kind of program that makes it. Programs of
 * 32 bits have numbers of their own; they follow those of 64-bit ones in the tables. A key is a
 * place in those.
 */
#ifndef PUNCTUAL_NUMBERS_H
#define PUNCTUAL_NUMBERS_H

/* Whether a thread is in a system call of a 32-bit program. */
static __always_inline bool is_compat(struct task_struct *task)
{
#if defined(__TARGET_ARCH_x86)
	return task->thread_info.status & TS_COMPAT;
#elif defined(__TARGET_ARCH_arm64)
	return task->thread_info.flags & (1UL << ARM64_TIF_32BIT);
#else
	return false;
#endif
}

/* The key of a call that `task` is in; SYSTEM_CALL_KEYS for numbers that no table has. */
static __always_inline __u32 key_of(struct task_struct *task, unsigned long number)
{
	if (number >= SYSTEM_CALLS)
		return SYSTEM_CALL_KEYS;
	return is_compat(task) ? SYSTEM_CALLS + number : number;
}

static __always_inline __u8 call_of(__u32 key)
{
	return key < SYSTEM_CALL_KEYS ? call_of_key[key] : CALL_NONE;
}

/* Whether this number is watched in some kind of program: mostly it is not, which costs least. */
static __always_inline bool is_watched_number(unsigned long number)
{
	return number < SYSTEM_CALLS && (call_of_key[number] != CALL_NONE ||
						call_of_key[SYSTEM_CALLS + number] != CALL_NONE);
}

static __always_inline bool is_of_32_bits(__u32 key)
{
	return key >= SYSTEM_CALLS;
}

/* Of 32-bit programs' calls: whether times have 64 bits all the same. */
static __always_inline bool has_64_bit_times(__u32 key)
{
	return key >= SYSTEM_CALLS + FIRST_WITH_64_BIT_TIME;
}

/* What a call returned, sign-extended: 32-bit programs have it in 32 bits. */
static __always_inline long result_of(__u32 key, long result)
{
	return is_of_32_bits(key) ? (int)result : result;
}

#endif
