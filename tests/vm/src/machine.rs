//! A run of a virtual machine: QEMU, the output of its job, and its kernel's log.

use crate::channel::{self, Packet};
use crate::error::{Error, Result, cannot};
use crate::lock::Building;
use crate::matrix::{Arch, Kernel};
use crate::root::Root;
use crate::{log, programs};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

/// The configuration of a machine.
pub struct Machine<'a> {
    pub kernel: &'a Kernel,
    /// Processors.
    pub processors: u32,
    pub memory_mib: u64,
    /// An instruction takes one nanosecond, and nothing is random. With several processors, one that is busy
    /// waits while another one is.
    pub counting: bool,
    /// The longest that a busy processor keeps the others waiting where instructions count, in µs. Without
    /// it, that is until the next timer of the machine expires, which may take milliseconds.
    pub turn_us: Option<u32>,
    /// Time limit.
    pub limit: Duration,
    /// Further kernel options.
    pub append: &'a str,
}

/// The result of a run.
#[derive(Default)]
pub struct Ended {
    pub release: Option<String>,
    /// `None` if the machine ended before its job.
    pub status: Option<ExitStatus>,
    pub kernel_log: String,
    pub complaints: Vec<String>,
    /// Why it was terminated, if it was.
    pub stopped: Option<String>,
}

impl Ended {
    /// The exit code: that of the job, 128 plus its signal, or 125 if there is none.
    pub fn code(&self) -> u8 {
        use std::os::unix::process::ExitStatusExt;
        let status = self.status.as_ref();
        let code =
            status.and_then(|status| status.code().or_else(|| status.signal().map(|signal| 128 + signal)));
        code.and_then(|code| u8::try_from(code).ok()).unwrap_or(125)
    }

    /// Problems other than those that the job itself reports.
    pub fn faults(&self) -> Vec<String> {
        let mut faults: Vec<String> = self.stopped.iter().chain(&self.complaints).cloned().collect();
        faults.extend(
            log::faults(&self.kernel_log)
                .into_iter()
                .map(|line| format!("the kernel said: {}", line.trim_end())),
        );
        if self.status.is_none() && self.stopped.is_none() {
            faults.push("the machine ended before its job".into());
        }
        faults
    }
}

/// The channel at the lab's own input and output.
const TERMINAL: &str = "stdio,id=channel,signal=off";

/// Where the output of a job goes.
pub type Output<'a> = dyn FnMut(bool, &[u8]) -> std::io::Result<()> + 'a;

impl Machine<'_> {
    fn command(&self, initramfs: &Path, console: &Path, channel: &str, disk: Option<&Path>) -> Command {
        let kernel = self.kernel;
        let (program, board, first, second) = match kernel.arch {
            Arch::Amd64 => ("qemu-system-x86_64", "q35", "ttyS0", "/dev/ttyS1"),
            Arch::Arm64 => ("qemu-system-aarch64", "virt", "ttyAMA0", "/dev/ttyS0"),
        };
        let mut command = Command::new(program);
        command.args([
            "-M",
            board,
            "-nodefaults",
            "-display",
            "none",
            "-no-reboot",
            "-m",
            &self.memory_mib.to_string(),
        ]);
        let mut append = format!(
            "console={first} lab_channel={second} panic=-1 oops=panic softlockup_panic=1 loglevel=5 {}",
            self.append
        );
        if self.counting {
            command.args([
                "-smp",
                &self.processors.to_string(),
                "-accel",
                "tcg,thread=single",
                "-icount",
                "shift=0,sleep=off",
                "-seed",
                "42",
            ]);
            command.args(["-rtc", "base=2026-01-01,clock=vm"]);
            if let Some(turn) = self.turn_us {
                // A processor's turn ends when any timer of the machine expires. This filter has one, and
                // nothing to filter.
                command.args(["-netdev", "hubport,id=turns,hubid=0"]);
                command.args(["-object", &format!("filter-buffer,id=turn,netdev=turns,interval={turn}")]);
            }
            command
                .args(["-cpu", if kernel.arch == Arch::Amd64 { "max,rdrand=off,rdseed=off" } else { "max" }]);
            append.push_str(" nokaslr norandmaps random.trust_cpu=off");
        } else {
            // In threads of their own, processors keep code that another has rewritten, as tracing does.
            let processors = self.processors.to_string();
            command.args(["-smp", &processors, "-accel", "tcg,thread=single", "-cpu", "max"]);
            if kernel.arch == Arch::Amd64 {
                // The kernel compares the TSC with an emulated timer, which is late where the host is busy;
                // without the TSC, each look at the clock takes microseconds.
                append.push_str(" tsc=reliable");
            }
            if let Some(disk) = disk {
                command.arg("-drive").arg(format!("if=none,id=disk,format=raw,file={}", disk.display()));
                command.args(["-device", "virtio-blk-pci,drive=disk,serial=lab"]);
            }
        }
        command
            .arg("-kernel")
            .arg(&kernel.image)
            .arg("-initrd")
            .arg(initramfs)
            .args(["-append", append.trim_end()]);
        command.arg("-serial").arg(format!("file:{}", console.display()));
        command.args(["-chardev", channel]);
        match kernel.arch {
            Arch::Amd64 => command.args(["-serial", "chardev:channel"]),
            Arch::Arm64 => command.args(["-device", "pci-serial,chardev=channel"]),
        };
        command
    }

    /// Runs a job in `root`, passing on its output as it comes. The kernel's log is left in `folder`.
    pub fn run(&self, root: &mut Root, job: &[String], folder: &Path, print: &mut Output) -> Result<Ended> {
        self.run_as("run", root, job, folder, print)
    }

    /// The same beside systemd, which is PID 1 then.
    pub fn run_beside_systemd(
        &self,
        root: &mut Root,
        job: &[String],
        folder: &Path,
        print: &mut Output,
    ) -> Result<Ended> {
        self.run_as("systemd", root, job, folder, print)
    }

    fn run_as(
        &self,
        mode: &str,
        root: &mut Root,
        job: &[String],
        folder: &Path,
        print: &mut Output,
    ) -> Result<Ended> {
        let (console, initramfs, packets) =
            (folder.join("console.log"), folder.join("root.cpio"), folder.join("channel"));
        root.text("/lab/job", words(mode, job), 0o600);
        for module in &self.kernel.modules {
            root.file(&Path::new("/lab/modules").join(module.file_name().unwrap_or_default()), module)?;
        }
        pack(root, &initramfs)?;
        // A pipe that is full makes the machine wait, and what happens in it then depends on its reader; a
        // file never is.
        let channel = if self.counting {
            format!("file,id=channel,path={}", packets.display())
        } else {
            TERMINAL.into()
        };
        let written =
            self.counting.then(|| File::create(&packets).and_then(|_| File::open(&packets))).transpose();
        let written = written.map_err(|error| cannot("create", &packets, error))?;
        let disk = (!self.counting).then(|| empty_disk(folder)).transpose()?;
        let mut command = self.command(&initramfs, &console, &channel, disk.as_deref());
        let errors = folder.join("qemu.log");
        let created = File::create(&errors).map_err(|error| cannot("create", &errors, error))?;
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(created);
        let mut child = start(&mut command)?;
        let Some(output) = child.stdout.take() else { return Err(Error("QEMU has no output".into())) };
        let timer = Timer::start(&child, self.limit);
        let mut output: Box<dyn Read> = match written {
            Some(file) => Box::new(BufReader::new(Followed::start(file, output))),
            None => Box::new(BufReader::new(output)),
        };

        let mut ended = Ended::default();
        let read = loop {
            match channel::next(&mut output) {
                Ok(Some(Packet::Output(bytes))) => {
                    print(false, &bytes).map_err(|error| Error(format!("cannot write: {error}")))?
                }
                Ok(Some(Packet::Errors(bytes))) => {
                    print(true, &bytes).map_err(|error| Error(format!("cannot write: {error}")))?
                }
                Ok(Some(Packet::Log(record))) => {
                    ended.kernel_log.push_str(&log::readable(&String::from_utf8_lossy(&record)))
                }
                Ok(Some(Packet::Release(release))) => ended.release = Some(release),
                Ok(Some(Packet::Complaint(complaint))) => {
                    ended.complaints.push(format!("PID 1: {complaint}"))
                }
                Ok(Some(Packet::Status(status))) => {
                    ended.status = Some(std::os::unix::process::ExitStatusExt::from_raw(status))
                }
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        if read.is_err() {
            let _ = child.kill();
        }
        let was_late = timer.stop();
        let qemu = child.wait().map_err(|error| Error(format!("cannot wait for QEMU: {error}")))?;
        if was_late {
            ended.stopped = Some(format!("it was ended after {} s", self.limit.as_secs()));
        } else if let Err(error) = read {
            ended.stopped = Some(error.to_string());
        } else if !qemu.success() {
            let message = std::fs::read_to_string(&errors).unwrap_or_default();
            return Err(Error(format!("QEMU failed ({qemu}): {}", message.trim_end())));
        }
        let console = std::fs::read(&console).map_err(|error| cannot("read", &console, error))?;
        // A machine that ended properly has sent its whole log; otherwise only the console has it.
        if ended.kernel_log.is_empty() {
            ended.kernel_log = String::from_utf8_lossy(&console).into_owned();
        }
        let kept = folder.join("kernel.log");
        std::fs::write(&kept, &ended.kernel_log).map_err(|error| cannot("write", &kept, error))?;
        for file in [initramfs, packets].into_iter().chain(disk) {
            let _ = std::fs::remove_file(file);
        }
        Ok(ended)
    }

    /// A shell in the machine, at this terminal.
    pub fn shell(&self, root: &mut Root, command: &[String], folder: &Path) -> Result {
        let (console, initramfs) = (folder.join("console.log"), folder.join("root.cpio"));
        root.text("/lab/job", words("shell", command), 0o600);
        pack(root, &initramfs)?;
        let status = start(&mut self.command(&initramfs, &console, TERMINAL, None))?
            .wait()
            .map_err(|error| Error(format!("cannot wait for QEMU: {error}")))?;
        let _ = std::fs::remove_file(&initramfs);
        if status.success() { Ok(()) } else { Err(Error(format!("QEMU failed ({status})"))) }
    }
}

/// Copies the programs, which another lab may be about to build again.
fn pack(root: &Root, initramfs: &Path) -> Result {
    let _building = Building::wait(&programs::folder())?;
    root.pack(initramfs)
}

/// A disk that machines may have where instructions do not count: when it answers depends on this machine.
fn empty_disk(folder: &Path) -> Result<PathBuf> {
    let disk = folder.join("disk.img");
    let created = File::create(&disk).and_then(|file| file.set_len(16 << 20));
    created.map_err(|error| cannot("create", &disk, error))?;
    Ok(disk)
}

fn start(command: &mut Command) -> Result<Child> {
    use std::os::unix::process::CommandExt;
    let program = command.get_program().to_string_lossy().into_owned();
    let dies_with_us = || Ok(rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?);
    // SAFETY: between fork and exec it makes one system call, takes no lock and allocates nothing.
    unsafe { command.pre_exec(dies_with_us) };
    command
        .spawn()
        .map_err(|error| Error(format!("cannot start {program}: {error} (scripts/setup lab installs it)")))
}

fn words(mode: &str, job: &[String]) -> Vec<u8> {
    let mut words = format!("{mode}\0").into_bytes();
    for word in job {
        words.extend_from_slice(word.as_bytes());
        words.push(0);
    }
    words
}

/// A file that QEMU writes, read as it grows.
struct Followed {
    file: File,
    /// Set when QEMU has ended.
    is_over: Arc<AtomicBool>,
}

impl Followed {
    /// QEMU prints nothing to its `output`, which ends with it.
    fn start(file: File, mut output: impl Read + Send + 'static) -> Followed {
        let is_over = Arc::new(AtomicBool::new(false));
        let tell = Arc::clone(&is_over);
        thread::spawn(move || {
            let _ = io::copy(&mut output, &mut io::sink());
            tell.store(true, Ordering::Release);
        });
        Followed { file, is_over }
    }
}

impl Read for Followed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            // Checked before reading: what was written before the end is still read.
            let is_over = self.is_over.load(Ordering::Acquire);
            let length = self.file.read(buffer)?;
            if length > 0 || is_over {
                return Ok(length);
            }
            thread::sleep(Duration::from_millis(50));
        }
    }
}

/// Ends QEMU after a time, unless dropped before.
struct Timer {
    done: Option<mpsc::Sender<()>>,
    thread: Option<thread::JoinHandle<bool>>,
}

impl Timer {
    fn start(child: &Child, limit: Duration) -> Timer {
        let pid = Pid::from_child(child);
        let (done, is_done) = mpsc::channel::<()>();
        let thread = thread::spawn(move || {
            let is_late = is_done.recv_timeout(limit) == Err(mpsc::RecvTimeoutError::Timeout);
            // It has not been waited for yet, so the PID is still its own.
            is_late && kill_process(pid, Signal::KILL).is_ok()
        });
        Timer { done: Some(done), thread: Some(thread) }
    }

    /// Whether it had to end QEMU. Call it before waiting for the process.
    fn stop(mut self) -> bool {
        drop(self.done.take());
        self.thread.take().and_then(|thread| thread.join().ok()).unwrap_or(false)
    }
}
