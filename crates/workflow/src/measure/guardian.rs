//! A process that puts settings of the kernel back when this one ends without doing so, as after SIGKILL.
//!
//! It is a copy of this process that does nothing but wait for the end of a pipe. The pipe ends with this
//! process, however that ends.

use std::ffi::{CString, c_int};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Something to put back. What fails is left out.
#[derive(Debug)]
pub enum Step {
    /// Writes a text into a file that exists.
    Write(CString, Vec<u8>),
    /// Removes an empty folder.
    Remove(CString),
}

impl Step {
    /// Writes `text` into the file at `path`.
    pub fn write(path: &Path, text: &str) -> io::Result<Step> {
        Ok(Step::Write(CString::new(path.as_os_str().as_bytes())?, text.into()))
    }

    /// Removes the folder at `path`.
    pub fn remove(path: &Path) -> io::Result<Step> {
        Ok(Step::Remove(CString::new(path.as_os_str().as_bytes())?))
    }

    /// Makes system calls only.
    fn run(&self) {
        // SAFETY: all of them only read what the step owns.
        unsafe {
            match self {
                Step::Write(path, text) => {
                    let file = libc::open(path.as_ptr(), libc::O_WRONLY | libc::O_TRUNC | libc::O_CLOEXEC);
                    if file >= 0 {
                        libc::write(file, text.as_ptr().cast(), text.len());
                        libc::close(file);
                    }
                }
                Step::Remove(path) => _ = libc::rmdir(path.as_ptr()),
            }
        }
    }
}

/// The process that waits. Dropping this without [`Guardian::dismiss`] has everything put back.
#[derive(Debug)]
pub struct Guardian {
    /// Its end tells the guardian that this process is gone.
    pipe: Option<OwnedFd>,
    process: libc::pid_t,
}

impl Guardian {
    /// Starts it. `steps` are taken in order.
    pub fn start(steps: &[Step]) -> io::Result<Guardian> {
        let mut ends: [c_int; 2] = [-1; 2];
        // SAFETY: there is room for two descriptors.
        if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: nothing else has them.
        let [read, write] = ends.map(|end| unsafe { OwnedFd::from_raw_fd(end) });
        // SAFETY: the copy has one thread and makes system calls only: no lock, no allocation.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => serve(read.as_raw_fd(), steps),
            process => Ok(Guardian { pipe: Some(write), process }),
        }
    }

    /// Everything has been put back.
    pub fn dismiss(mut self) {
        if let Some(pipe) = &self.pipe {
            // SAFETY: one byte that exists. If it fails, the steps are taken twice, which does no harm.
            unsafe { libc::write(pipe.as_raw_fd(), b"d".as_ptr().cast(), 1) };
        }
        self.end();
    }

    fn end(&mut self) {
        if self.pipe.take().is_some() {
            // SAFETY: the status is not asked for.
            unsafe { libc::waitpid(self.process, std::ptr::null_mut(), 0) };
        }
    }
}

impl Drop for Guardian {
    fn drop(&mut self) {
        self.end();
    }
}

/// In the copy: waits, and takes the steps unless it was dismissed.
fn serve(pipe: c_int, steps: &[Step]) -> ! {
    let mut byte = 0_u8;
    // SAFETY: system calls with memory on this stack. All other descriptors are closed, among them those of
    // programs in the kernel and the writing end. In a session of its own, signals to this process's group or
    // terminal do not reach it.
    let dismissed = unsafe {
        libc::setsid();
        libc::dup2(pipe, 0);
        libc::syscall(libc::SYS_close_range, 1, libc::c_uint::MAX, 0);
        loop {
            match libc::read(0, (&raw mut byte).cast(), 1) {
                -1 if *libc::__errno_location() == libc::EINTR => {}
                read => break read == 1,
            }
        }
    };
    if !dismissed {
        steps.iter().for_each(Step::run);
    }
    // SAFETY: ends this process without anything else.
    unsafe { libc::_exit(0) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn steps(folder: &Path) -> Vec<Step> {
        fs::write(folder.join("setting"), "on").expect("written");
        fs::create_dir(folder.join("made")).expect("made");
        let (setting, made) = (folder.join("setting"), folder.join("made"));
        vec![
            Step::write(&folder.join("missing/setting"), "x").expect("a step"),
            Step::write(&setting, "off").expect("a step"),
            Step::remove(&made).expect("a step"),
        ]
    }

    #[test]
    fn the_end_of_the_pipe_puts_everything_back() {
        let folder = tempfile::tempdir().expect("a folder");
        drop(Guardian::start(&steps(folder.path())).expect("started"));
        assert_eq!(fs::read_to_string(folder.path().join("setting")).expect("there"), "off");
        assert!(!folder.path().join("made").exists());
    }

    #[test]
    fn once_dismissed_it_does_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        Guardian::start(&steps(folder.path())).expect("started").dismiss();
        assert_eq!(fs::read_to_string(folder.path().join("setting")).expect("there"), "on");
        assert!(folder.path().join("made").exists());
    }
}
