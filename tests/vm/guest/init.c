/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * PID 1 of a virtual machine of the lab: prepares what a small system has, runs one job, tells how
 *it ended, ends the machine.
 *
 * The job is in /lab/job: its words, each followed by a zero byte; the first is the mode: "run",
 *"shell" or "systemd". What the job prints, then the kernel's log, then how the job ended go to the
 *channel (the second UART) in packets of a type, a length (4 bytes, little endian) and so many
 *bytes:
 *
 *	'o', 'e'  standard output, standard error
 *	'k'       kernel log, as /dev/kmsg has it
 *	'r'       the kernel's release
 *	's'       wait status of the job (4 bytes); the last packet
 *	'!'       what PID 1 could not do
 *
 * In mode "shell" the channel is the terminal of the job, and there are no packets. In mode
 *"systemd" PID 1 becomes systemd, and a child does all this.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/reboot.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#define WORDS_MAX 4096

static int channel = -1;

static void write_all(const void *bytes, size_t count)
{
	const char *from = bytes;

	while (count) {
		ssize_t written = write(channel, from, count);

		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0)
			return; /* Nobody is left to tell. */
		from += written;
		count -= written;
	}
}

static void packet(char type, const void *bytes, uint32_t length)
{
	unsigned char header[5] = {type, length, length >> 8, length >> 16, length >> 24};

	write_all(header, sizeof(header));
	write_all(bytes, length);
}

static void complain(const char *format, ...)
{
	char text[512];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	packet('!', text, strlen(text));
}

/* The machine ends with a restart, which QEMU was told not to do: unlike a power-off, every kernel
 * can. */
__attribute__((noreturn)) static void end_machine(void)
{
	sync();
	tcdrain(channel);
	for (;;) {
		syscall(SYS_reboot, LINUX_REBOOT_MAGIC1, LINUX_REBOOT_MAGIC2,
			LINUX_REBOOT_CMD_RESTART, NULL);
		pause();
	}
}

/* A file system that a kernel does not have is left out: the tests say what they miss. */
static void mount_at(const char *type, const char *place, unsigned long flags, const char *options)
{
	if (mkdir(place, 0755) && errno != EEXIST)
		complain("no folder %s: %s", place, strerror(errno));
	else if (mount(type, place, type, flags, options) && errno != ENODEV && errno != ENOENT &&
		 errno != EBUSY)
		complain("cannot mount %s at %s: %s", type, place, strerror(errno));
}

static void mount_all(void)
{
	mount_at("proc", "/proc", 0, NULL);
	mount_at("sysfs", "/sys", 0, NULL);
	mount_at("devtmpfs", "/dev", 0, NULL);
	mount_at("devpts", "/dev/pts", 0, NULL);
	mount_at("tmpfs", "/dev/shm", 0, "mode=1777");
	mount_at("tmpfs", "/run", 0, "mode=755");
	mount_at("cgroup2", "/sys/fs/cgroup", 0, NULL);
	mount_at("tracefs", "/sys/kernel/tracing", 0, NULL);
	mount_at("bpf", "/sys/fs/bpf", 0, NULL);
	if (symlink("/proc/self/fd", "/dev/fd") && errno != EEXIST)
		complain("no /dev/fd: %s", strerror(errno));
}

static void loopback_up(void)
{
	struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
	int socket_ = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (socket_ < 0)
		return; /* A kernel without a network has no loopback device. */
	if (ioctl(socket_, SIOCSIFFLAGS, &request))
		complain("cannot bring up lo: %s", strerror(errno));
	close(socket_);
}

/* The words of /lab/job, ended by NULL. */
static char **read_job(void)
{
	static char bytes[128 * 1024];
	static char *words[WORDS_MAX + 1];
	int file = open("/lab/job", O_RDONLY | O_CLOEXEC);
	ssize_t length = file < 0 ? -1 : read(file, bytes, sizeof(bytes) - 1);
	int count = 0;

	if (length <= 0)
		return NULL;
	close(file);
	for (char *at = bytes; at < bytes + length && count < WORDS_MAX; at += strlen(at) + 1)
		words[count++] = at;
	return count >= 2 ? words : NULL;
}

static bool open_channel(const char *path, bool is_terminal)
{
	struct termios settings;

	channel = open(path, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (channel < 0)
		return false;
	if (tcgetattr(channel, &settings))
		return true; /* Not a terminal: fine for packets. */
	if (!is_terminal)
		cfmakeraw(&settings);
	settings.c_cflag |= CLOCAL;
	cfsetspeed(&settings, B115200);
	tcsetattr(channel, TCSANOW, &settings);
	return true;
}

__attribute__((noreturn)) static void become(char **command, int output, int errors)
{
	int input = output == errors ? output : open("/dev/null", O_RDONLY);
	struct rlimit core = {0, 0};

	setsid();
	if (output == errors)
		ioctl(output, TIOCSCTTY, 1);
	dup2(input, 0);
	dup2(output, 1);
	dup2(errors, 2);
	setrlimit(RLIMIT_CORE, &core);
	execvp(command[0], command);
	dprintf(2, "init: cannot run %s: %s\n", command[0], strerror(errno));
	_exit(errno == ENOENT ? 127 : 126);
}

/* Sends on what the job prints until it has ended and its pipes are empty. Processes that it left
 * behind may keep them open: they are not waited for. */
static int run(char **command)
{
	int output[2], errors[2], status = 0;
	bool ended = false;
	pid_t job;

	if (pipe2(output, O_CLOEXEC) || pipe2(errors, O_CLOEXEC)) {
		complain("no pipe: %s", strerror(errno));
		return 1 << 8;
	}
	job = fork();
	if (job == 0)
		become(command, output[1], errors[1]);
	close(output[1]);
	close(errors[1]);

	struct pollfd sources[2] = {{output[0], POLLIN, 0}, {errors[0], POLLIN, 0}};

	for (;;) {
		bool said = false;
		int child_status;
		pid_t child;

		if (poll(sources, 2, ended ? 0 : 50) < 0 && errno != EINTR)
			break;
		for (int i = 0; i < 2; i++) {
			static char bytes[8192];
			ssize_t length;

			if (!(sources[i].revents & (POLLIN | POLLHUP)))
				continue;
			length = read(sources[i].fd, bytes, sizeof(bytes));
			if (length > 0) {
				packet(i ? 'e' : 'o', bytes, length);
				said = true;
			} else {
				sources[i].fd = -1; /* poll() passes over it. */
			}
		}
		if (ended && !said)
			break;
		/* Orphans come to PID 1 too. */
		while ((child = waitpid(-1, &child_status, WNOHANG)) > 0) {
			if (child == job) {
				status = child_status;
				ended = true;
			}
		}
		if (sources[0].fd < 0 && sources[1].fd < 0 && !ended) {
			while ((child = wait(&child_status)) > 0 && child != job)
				;
			status = child_status;
			ended = true;
		}
	}
	return status;
}

static void send_kernel_log(void)
{
	int log = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	char record[8192];

	if (log < 0) {
		complain("no kernel log: %s", strerror(errno));
		return;
	}
	for (;;) {
		ssize_t length = read(log, record, sizeof(record));

		if (length > 0)
			packet('k', record, length);
		else if (length == 0 || errno != EPIPE) /* EPIPE: older records were overwritten. */
			break;
	}
	close(log);
}

int main(int argc, char **argv)
{
	const char *path = getenv("lab_channel"); /* Words of the kernel's command line that it does
						     not know are our environment. */
	char **job;
	struct utsname name;
	bool is_shell;

	(void)argc, (void)argv;
	umask(022);
	mount_at("devtmpfs", "/dev", 0, NULL);
	job = read_job();
	is_shell = job && !strcmp(job[0], "shell");
	if (!open_channel(path ? path : "/dev/ttyS1", is_shell)) {
		printf("lab: cannot open the channel %s: %s\n", path ? path : "/dev/ttyS1",
			strerror(errno));
		fflush(stdout);
		channel = STDOUT_FILENO;
		end_machine();
	}
	mount_all();
	loopback_up();
	sethostname("lab", 3);
	signal(SIGPIPE, SIG_IGN);
	uname(&name);
	if (!is_shell)
		packet('r', name.release, strlen(name.release));
	if (!job) {
		complain("there is no job in /lab/job");
		end_machine();
	}

	unsetenv("lab_channel");
	setenv("PATH", "/usr/local/bin:/usr/bin:/usr/sbin:/bin:/sbin", 1);
	setenv("HOME", "/root", 1);
	setenv("TMPDIR", "/tmp", 1);

	if (!strcmp(job[0], "systemd") && fork() > 0) {
		execl("/usr/lib/systemd/systemd", "systemd", NULL);
		complain("cannot become systemd: %s", strerror(errno));
		end_machine();
	}
	if (is_shell) {
		pid_t shell = fork();
		int status;
		pid_t child;

		if (shell == 0)
			become(job + 1, channel, channel);
		while ((child = wait(&status)) > 0 && child != shell)
			;
	} else {
		int32_t status = run(job + 1);

		send_kernel_log();
		packet('s', &status, sizeof(status));
	}
	end_machine();
}
