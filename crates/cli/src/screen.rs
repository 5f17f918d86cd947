//! The whole terminal: taken for a live display, and given back as it was, whatever happens.

mod keys;

use crate::failure::{Code, Failure};
use keys::Pressed;
use punctual_report::live::{Screen as Shown, Widths, draw};
use punctual_workflow::live::Event;
use punctual_workflow::top::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::terminal::{
    DisableLineWrap, EnableLineWrap, EnterAlternateScreen, LeaveAlternateScreen,
};
use ratatui::crossterm::{execute, style::ResetColor};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use signal_hook::consts::{SIGTSTP, SIGWINCH};
use signal_hook::low_level::emulate_default_handler;
use std::io::{self, IsTerminal, Stdin, Stdout, stdin, stdout};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// Fails unless a display is possible, and says what to do instead.
pub fn require() -> Result<(), Failure> {
    let advice = "punctual extract prints and writes the same figures without one";
    if !stdout().is_terminal() || !stdin().is_terminal() {
        let which = if stdout().is_terminal() { "standard input" } else { "standard output" };
        let message = format!("punctual top needs a terminal, and {which} is none; {advice}");
        return Err(Failure::new(Code::Usage, message));
    }
    match std::env::var("TERM").as_deref() {
        Ok("dumb") | Err(_) => Err(Failure::new(
            Code::Usage,
            format!("this terminal cannot place text (TERM is dumb or not set); {advice}"),
        )),
        Ok(_) => Ok(()),
    }
}

/// The settings of the terminal before it was taken; none while it is not.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

/// Held while the terminal is drawn on, and while it is lent to the shell.
static IN_USE: Mutex<()> = Mutex::new(());
/// Whether something else has been drawn on the terminal.
static IS_STALE: AtomicBool = AtomicBool::new(false);

/// Gives the terminal back, if it is taken. May be called at any time, by any thread.
pub fn restore() {
    let before = BEFORE.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(before) = before {
        give_back(&before);
    }
}

fn give_back(before: &Termios) {
    // A terminal that is gone needs nothing.
    let _ = execute!(stdout(), ResetColor, EnableLineWrap, Show, LeaveAlternateScreen);
    let _ = tcsetattr(stdin(), OptionalActions::Drain, before);
}

fn take(before: &Termios) -> io::Result<()> {
    let mut raw = before.clone();
    raw.make_raw();
    tcsetattr(stdin(), OptionalActions::Flush, &raw)?;
    execute!(stdout(), EnterAlternateScreen, Hide, DisableLineWrap)
}

/// Stops the process as a shell expects it, with the terminal as it was, and goes on when the shell says so.
fn suspend() {
    let _in_use = IN_USE.lock().unwrap_or_else(PoisonError::into_inner);
    let before = BEFORE.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let Some(before) = before else { return };
    give_back(&before);
    let _ = emulate_default_handler(SIGTSTP);
    // The view may have ended meanwhile: then the terminal is not taken again.
    let before = BEFORE.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(before) = &*before else { return };
    let _ = take(before);
    IS_STALE.store(true, Ordering::Relaxed);
}

/// How long the reader of keys waits at a time.
const NAP: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
/// How long it waits for the rest of a key.
const REST: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };

/// The terminal, while it is taken.
pub struct Screen {
    terminal: ratatui::Terminal<CrosstermBackend<Stdout>>,
    events: Receiver<Event>,
    is_closed: Arc<AtomicBool>,
}

impl Screen {
    /// Takes the terminal.
    pub fn open() -> io::Result<Screen> {
        let before = tcgetattr(stdin())?;
        *BEFORE.lock().unwrap_or_else(PoisonError::into_inner) = Some(before.clone());
        let opened = (|| {
            take(&before)?;
            let stopping = Arc::new(AtomicBool::new(false));
            signal_hook::flag::register(SIGTSTP, Arc::clone(&stopping))?;
            let resized = Arc::new(AtomicBool::new(false));
            signal_hook::flag::register(SIGWINCH, Arc::clone(&resized))?;
            let (sender, events) = mpsc::channel();
            let is_closed = Arc::new(AtomicBool::new(false));
            let until = Arc::clone(&is_closed);
            // Nobody waits for this thread: another reader of the terminal can take from it what it was told
            // of, and then it waits.
            thread::Builder::new()
                .name("keys".into())
                .spawn(move || read_keys(&sender, &until, &stopping, &resized))?;
            let terminal = ratatui::Terminal::new(CrosstermBackend::new(stdout()))?;
            Ok(Screen { terminal, events, is_closed })
        })();
        if opened.is_err() {
            restore();
        }
        opened
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.is_closed.store(true, Ordering::Relaxed);
        restore();
    }
}

impl Terminal for Screen {
    fn size(&self) -> (u16, u16) {
        // Some terminals do not know theirs.
        let size = self.terminal.size().map_or((0, 0), |size| (size.width, size.height));
        if size.0 == 0 || size.1 == 0 { (80, 24) } else { size }
    }

    fn draw(&mut self, screen: &Shown<'_>, widths: &mut Widths) -> io::Result<()> {
        let _in_use = IN_USE.lock().unwrap_or_else(PoisonError::into_inner);
        if IS_STALE.swap(false, Ordering::Relaxed) {
            self.terminal.clear()?;
        }
        self.terminal.draw(|frame| draw(screen, widths, frame.buffer_mut())).map(|_| ())
    }

    fn wait(&mut self, timeout: Duration) -> io::Result<Event> {
        Ok(match self.events.recv_timeout(timeout) {
            Ok(event) => event,
            Err(RecvTimeoutError::Timeout) => Event::Redraw,
            Err(RecvTimeoutError::Disconnected) => Event::Closed,
        })
    }
}

/// Sends what is typed, until the terminal is given back or gone.
///
/// Not by the library's reader: it is told once of what comes, and forgets that if the terminal was
/// resized in the same moment (crossterm 0.28 and 0.29). Another library (termion 4.0) panics at
/// what no terminal sends.
fn read_keys(sender: &Sender<Event>, is_closed: &AtomicBool, stopping: &AtomicBool, resized: &AtomicBool) {
    let input = stdin();
    let mut bytes = Vec::new();
    while !is_closed.load(Ordering::Relaxed) {
        let mut is_stale = resized.swap(false, Ordering::Relaxed);
        if stopping.swap(false, Ordering::Relaxed) {
            suspend();
            is_stale = true;
        }
        if is_stale && sender.send(Event::Redraw).is_err() {
            return;
        }
        let patience = if bytes.is_empty() { &NAP } else { &REST };
        match await_input(&input, patience) {
            Ok(true) if read(&input, &mut bytes) => {}
            Ok(false) => {}
            _ => return,
        }
        // A key that is not whole after that long is none.
        if bytes.is_empty() || (keys::is_open(&bytes) && matches!(await_input(&input, &REST), Ok(true))) {
            continue;
        }
        for pressed in keys::keys(&std::mem::take(&mut bytes)) {
            match pressed {
                Pressed::Stop => stopping.store(true, Ordering::Relaxed),
                Pressed::Key(key) if sender.send(Event::Key(key)).is_err() => return,
                Pressed::Key(_) => {}
            }
        }
    }
}

/// Whether there is something to read; an error if there never will be.
fn await_input(input: &Stdin, patience: &Timespec) -> io::Result<bool> {
    let mut ready = [PollFd::new(input, PollFlags::IN)];
    match poll(&mut ready, Some(patience)) {
        Ok(0) | Err(Errno::INTR) => return Ok(false),
        Ok(_) => {}
        Err(error) => return Err(error.into()),
    }
    if ready[0].revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) {
        return Err(io::ErrorKind::BrokenPipe.into());
    }
    Ok(true)
}

/// Adds what there is to `bytes`; false at its end.
fn read(input: &Stdin, bytes: &mut Vec<u8>) -> bool {
    let mut some = [0; 1024];
    match rustix::io::read(input, &mut some) {
        Ok(0) => false,
        Ok(count) => {
            bytes.extend(&some[..count]);
            true
        }
        Err(Errno::INTR | Errno::AGAIN) => true,
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    use std::ffi::OsStr;
    use std::fs::{File, OpenOptions};
    use std::io::Read;
    use std::os::unix::ffi::OsStrExt;
    use std::process::{Command, Stdio};

    /// Run by the test below in a terminal of its own.
    #[test]
    #[ignore = "needs a terminal"]
    fn panicking() {
        std::panic::set_hook(Box::new(|panic| {
            restore();
            crate::console::line(&crate::usage::bug(panic));
        }));
        let _screen = Screen::open().expect("a terminal");
        panic!("no reason");
    }

    #[test]
    fn a_panic_gives_the_terminal_back_before_it_is_reported() {
        let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a pseudo-terminal");
        grantpt(&controller).expect("granted");
        unlockpt(&controller).expect("unlocked");
        let path = ptsname(&controller, Vec::new()).expect("a name");
        let path = OsStr::from_bytes(path.to_bytes());
        let terminal = OpenOptions::new().read(true).write(true).open(path).expect("its other end");
        let before = format!("{:?}", tcgetattr(&terminal).expect("settings"));
        let end = || Stdio::from(terminal.try_clone().expect("cloned"));
        let mut child = Command::new(std::env::current_exe().expect("this test"))
            .args(["screen::tests::panicking", "--exact", "--ignored", "--nocapture"])
            .stdin(end())
            .stdout(end())
            .stderr(end())
            .spawn()
            .expect("it runs");
        assert!(!child.wait().expect("ended").success());
        assert_eq!(format!("{:?}", tcgetattr(&terminal).expect("settings")), before);
        drop(terminal);
        let mut output = Vec::new();
        // Reading fails once the other end is closed.
        let _ = File::from(controller).read_to_end(&mut output);
        let output = String::from_utf8_lossy(&output);
        let place = |text: &str| output.find(text).unwrap_or_else(|| panic!("no {text:?} in {output:?}"));
        let (taken, given_back, reported) =
            (place("\x1b[?1049h"), place("\x1b[?1049l"), place("this is a bug in punctual"));
        assert!(taken < given_back && given_back < reported, "{output:?}");
        assert!(output.contains("\x1b[?25h"), "the cursor is shown again");
    }
}
