// The cost of a system call that separates nothing: the least of many rounds, since disturbances
// only add to it.
//
//   getppid [--rounds N] [--calls N]
#include "workload.h"

#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	int64_t rounds = (int64_t)number_option(argc, argv, "--rounds", 200);
	int64_t calls = (int64_t)number_option(argc, argv, "--calls", 20000);
	double least = 0, total = 0;
	for (int64_t round = 0; round < rounds; round++) {
		int64_t began = now_ns();
		for (int64_t i = 0; i < calls; i++)
			syscall(SYS_getppid);
		double each = (double)(now_ns() - began) / (double)calls;
		total += each;
		if (round == 0 || each < least)
			least = each;
	}
	printf("{\"calls\": %lld, \"ns_per_call\": %.2f, \"mean_ns_per_call\": %.2f}\n",
		(long long)(rounds * calls), least, total / (double)rounds);
	return 0;
}
