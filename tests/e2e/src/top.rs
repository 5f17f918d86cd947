//! The live view in a real terminal (tmux): what it shows of threads with known periods, its keys, and that
//! it leaves terminal and machine as they were.

use crate::run::{Running, binary, directory, punctual, run, sleeps, wait_until, workload};
use crate::targets::Cgroup;
use crate::tool::tool;
use crate::{Outcome, Result, Test, ensure, fail, skip, timing};
use crate::{gate, model};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

pub const ALL: &[(&str, Test)] = &[
    ("top::shows_threads_and_obeys_keys", shows),
    ("top::gives_the_terminal_back_on_signals", signals),
    ("top::stops_and_goes_on", stops),
    ("top::ends_with_its_terminal", vanishes),
    ("top::resizes_and_does_without_colours", resizes),
    ("top::matches_threads_by_their_control_group", groups),
    ("top::explains_late_jobs", explains),
    ("top::counts_late_jobs_as_the_program_does", counts),
    ("top::keeps_the_last_state_of_a_command", command),
    ("top::shows_a_thread_that_never_waits", never_waits),
    ("top::refuses_what_is_no_terminal", refuses),
];

/// A terminal with a shell; gone at the end, with all that runs in it.
struct Terminal {
    socket: String,
}

impl Terminal {
    /// `None` where there is no tmux.
    fn start() -> Result<Option<Terminal>> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        if tool("tmux", &[]).is_none() {
            return Ok(None);
        }
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let terminal = Terminal { socket: format!("punctual-e2e-{}-{number}", std::process::id()) };
        terminal.tmux(&[
            "-f",
            "/dev/null",
            "new-session",
            "-d",
            "-x",
            "80",
            "-y",
            "24",
            "env PS1='$ ' sh",
        ])?;
        Ok(Some(terminal))
    }

    fn tmux(&self, arguments: &[&str]) -> Result<String> {
        let mut command = Command::new("tmux");
        command.args(["-L", &self.socket]).args(arguments).env_remove("TMUX").env("LC_ALL", "C.UTF-8");
        let ended = run(command)?;
        ended.expect_code(0)?;
        Ok(ended.stdout)
    }

    fn screen(&self) -> Result<String> {
        self.tmux(&["capture-pane", "-p"])
    }

    /// Types a line into the shell.
    fn line(&self, text: &str) -> Result {
        self.tmux(&["send-keys", "-l", text])?;
        self.keys(&["Enter"])
    }

    fn keys(&self, keys: &[&str]) -> Result {
        self.tmux(&[&["send-keys"], keys].concat()).map(|_| ())
    }

    /// The screen, once it has all of this.
    fn wait_for(&self, parts: &[&str]) -> Result<String> {
        let mut screen = String::new();
        let has_all = |screen: &str| parts.iter().all(|part| screen.contains(part));
        let seen = wait_until(&format!("{parts:?}"), || {
            screen = self.screen().unwrap_or_default();
            has_all(&screen)
        });
        seen.or_else(|failure| fail(format!("{}, but the screen shows\n{screen}", failure.message)))?;
        Ok(screen)
    }

    /// Starts the live view, between two looks at the terminal's settings.
    fn top(&self, folder: &Path, options: &str) -> Result {
        let (top, folder) = (binary().canonicalize()?, folder.display());
        let attach = crate::run::attach().map_or_else(String::new, |attach| format!("--attach {attach}"));
        self.line(&format!(
            "cd {folder}; stty -a >before; {} top {attach} {options}; echo $? >code; stty -a >after; \
             echo over",
            top.display()
        ))
    }

    /// The live view has ended well, and the terminal is as it was.
    fn expect_as_before(&self, folder: &Path) -> Result {
        let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap_or_default();
        wait_until("the live view to end", || !read("after").is_empty())?;
        self.wait_for(&["over"])?;
        ensure!(read("code").trim() == "0", "exit code {}: {}", read("code").trim(), self.screen()?);
        // The first line has its size, which tests change.
        let settings = |name: &str| read(name).lines().skip(1).collect::<Vec<_>>().join("\n");
        ensure!(
            settings("before") == settings("after"),
            "settings changed from {} to {}",
            read("before"),
            read("after")
        );
        let state = self.tmux(&["display-message", "-p", "#{alternate_on} #{cursor_flag} #{wrap_flag}"])?;
        ensure!(state.trim() == "0 1 1", "alternate screen, cursor, wrapping: {state}");
        Ok(())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.tmux(&["kill-server"]);
    }
}

/// Threads of 5, 20 and 50 ms.
fn start_threads() -> Result<Running> {
    let mut command = Command::new(workload("periodic"));
    command.args(["--for", "120", "5000", "20000", "50000"]);
    let workload = Running::start(command)?;
    wait_until("the workload to run", || sleeps(workload.pid(), "task-0").is_some_and(|sleeps| sleeps > 5))?;
    Ok(workload)
}

/// The lines of the threads, from above: their names.
fn names(screen: &str) -> Vec<&str> {
    screen
        .lines()
        .filter_map(|line| line.split(' ').next())
        .filter(|name| name.starts_with("task-"))
        .collect()
}

macro_rules! terminal {
    () => {
        match Terminal::start()? {
            Some(terminal) => terminal,
            None => return skip("there is no tmux here"),
        }
    };
}

fn shows() -> Result<Outcome> {
    let terminal = terminal!();
    let (threads, folder) = (start_threads()?, directory()?);
    terminal.top(folder.path(), &format!("--pid {} -o saved.timing.json", threads.pid()))?;
    let screen = terminal.wait_for(&[" 5 ms ", " 20 ms ", " 50 ms ", "FIFO", "▁"])?;
    ensure!(screen.contains("3 threads"), "{screen}");
    ensure!(screen.lines().all(|line| line.chars().count() <= 80), "{screen}");

    // From R/D over nine columns to the names, which come from A.
    terminal.keys(&["Left"; 9])?;
    let screen = terminal.wait_for(&["Thread▲"])?;
    ensure!(names(&screen) == ["task-0", "task-1", "task-2"], "{screen}");
    terminal.keys(&["r"])?;
    let screen = terminal.wait_for(&["Thread▼"])?;
    ensure!(names(&screen) == ["task-2", "task-1", "task-0"], "{screen}");

    terminal.keys(&["/"])?;
    terminal.tmux(&["send-keys", "-l", "k-1"])?;
    let screen = terminal.wait_for(&["filter: k-1"])?;
    ensure!(names(&screen) == ["task-1"], "{screen}");
    terminal.keys(&["Enter"])?;

    terminal.keys(&["Enter"])?;
    terminal.wait_for(&["task-1 (thread", "Response of", "Cost of", "Lateness of"])?;
    terminal.keys(&["Tab"])?;
    terminal.wait_for(&["Released", "Suspended"])?;
    terminal.keys(&["Tab"])?;
    terminal.wait_for(&["Why this separator", "Released every 20 ms"])?;
    terminal.keys(&["Escape"])?;
    terminal.wait_for(&["only those with 'k-1'"])?;
    terminal.keys(&["Escape"])?;
    terminal.wait_for(&["task-0", "task-2"])?;

    terminal.keys(&["Space"])?;
    terminal.wait_for(&["FROZEN"])?;
    let second_line = |screen: &str| screen.lines().nth(1).map(str::to_owned);
    let frozen = second_line(&terminal.screen()?);
    let before = sleeps(threads.pid(), "task-2");
    wait_until("more jobs", || sleeps(threads.pid(), "task-2") > before.map(|before| before + 40))?;
    ensure!(second_line(&terminal.screen()?) == frozen, "what is frozen changed");
    terminal.keys(&["Space"])?;
    wait_until("other figures", || terminal.screen().is_ok_and(|screen| second_line(&screen) != frozen))?;

    terminal.keys(&["?"])?;
    terminal.wait_for(&["freeze what is shown"])?;
    terminal.keys(&["Escape", "s"])?;
    terminal.wait_for(&["Wrote ", "saved.timing.json"])?;
    let saved = model::read(&folder.path().join("saved.timing.json"))?;
    let periods: Vec<u64> = ["task-0", "task-1", "task-2"]
        .map(|name| model::only_task(&saved, name))
        .into_iter()
        .filter_map(|task| Some(task.ok()?.streams.first()?.arrival.periodic.as_ref()?.period_ns.ns()))
        .collect();
    ensure!(periods == [5_000_000, 20_000_000, 50_000_000], "periods {periods:?}");

    terminal.keys(&["q"])?;
    terminal.expect_as_before(folder.path())?;
    Ok(Outcome::Completed)
}

/// The process that runs in this folder.
fn process_in(folder: &Path) -> Option<u32> {
    let processes = std::fs::read_dir("/proc").ok()?.flatten();
    let binary = binary().canonicalize().ok()?;
    processes.filter_map(|process| process.file_name().to_string_lossy().parse::<u32>().ok()).find(|pid| {
        let link = |name: &str| std::fs::read_link(format!("/proc/{pid}/{name}")).ok();
        link("cwd").is_some_and(|cwd| cwd == folder) && link("exe").is_some_and(|exe| exe == binary)
    })
}

fn signals() -> Result<Outcome> {
    let terminal = terminal!();
    let threads = start_threads()?;
    for signal in ["TERM", "HUP", "INT"] {
        let folder = directory()?;
        terminal.top(folder.path(), &format!("--pid {}", threads.pid()))?;
        terminal.wait_for(&["3 threads", " 5 ms "])?;
        let Some(pid) = process_in(folder.path()) else { return fail("the live view does not run") };
        run({
            let mut kill = Command::new("kill");
            kill.args([&format!("-{signal}"), &pid.to_string()]);
            kill
        })?
        .expect_code(0)?;
        terminal.expect_as_before(folder.path())?;
        terminal.line("clear")?;
    }
    // Typed, in raw mode.
    let folder = directory()?;
    terminal.top(folder.path(), &format!("--pid {}", threads.pid()))?;
    terminal.wait_for(&["3 threads", " 5 ms "])?;
    terminal.keys(&["C-c"])?;
    terminal.expect_as_before(folder.path())?;
    Ok(Outcome::Completed)
}

/// Ctrl-Z gives the terminal to the shell, and `fg` takes it again.
fn stops() -> Result<Outcome> {
    let Some(terminal) = Terminal::start()? else { return skip("tmux is not installed") };
    let folder = directory()?;
    let mut command = Command::new(workload("periodic"));
    command.args(["--for", "60", "2000"]);
    let threads = Running::start(command)?;
    wait_until("the workload to run", || sleeps(threads.pid(), "task-0").is_some_and(|sleeps| sleeps > 5))?;
    terminal.line(&format!("cd {}; stty -a >before", folder.path().display()))?;
    let top = binary().canonicalize()?;
    terminal.line(&format!("{} top --pid {}", top.display(), threads.pid()))?;
    let alternate = |expected: &str| {
        wait_until(&format!("the alternate screen to be {expected}"), || {
            terminal.tmux(&["display-message", "-p", "#{alternate_on}"]).is_ok_and(|it| it.trim() == expected)
        })
    };
    for round in 1..3 {
        terminal.wait_for(&["task-0", "punctual top"])?;
        alternate("1")?;
        terminal.keys(&["C-z"])?;
        alternate("0")?;
        terminal.line(&format!("echo round-$(({round} + 10))"))?;
        terminal.wait_for(&[&format!("round-1{round}")])?;
        terminal.line("fg")?;
        alternate("1")?;
    }
    terminal.wait_for(&["task-0", "punctual top"])?;
    terminal.keys(&["q"])?;
    // Until then it may read what is typed.
    wait_until("the live view to end", || process_in(folder.path()).is_none())?;
    alternate("0")?;
    terminal.line("echo $? >code; stty -a >after; echo over")?;
    terminal.expect_as_before(folder.path())?;
    Ok(Outcome::Completed)
}

/// As when an ssh connection breaks, even if SIGHUP is ignored.
fn vanishes() -> Result<Outcome> {
    let threads = start_threads()?;
    for trap in ["true", "trap '' HUP"] {
        let terminal = terminal!();
        let folder = directory()?;
        terminal.line(trap)?;
        terminal.top(folder.path(), &format!("--pid {}", threads.pid()))?;
        terminal.wait_for(&["3 threads", " 5 ms "])?;
        ensure!(process_in(folder.path()).is_some(), "the live view does not run");
        drop(terminal);
        wait_until("the live view to end", || process_in(folder.path()).is_none())?;
    }
    Ok(Outcome::Completed)
}

fn resizes() -> Result<Outcome> {
    let terminal = terminal!();
    let (threads, folder) = (start_threads()?, directory()?);
    terminal.line("export NO_COLOR=1")?;
    let contract = "[[task]]\nname = \"task-0\"\ndeadline = \"10 us\"\n";
    std::fs::write(folder.path().join("app.contract.toml"), contract)?;
    let options = format!("--pid {} --interval 100ms --contract app.contract.toml", threads.pid());
    terminal.top(folder.path(), &options)?;
    terminal.wait_for(&["Policy", " 5 ms "])?;
    let coloured = terminal.tmux(&["capture-pane", "-p", "-e"])?;
    let codes = coloured.split("\x1b[").skip(1).filter_map(|part| part.split('m').next());
    // 39 and 49 are the terminal's own colours.
    let is_colour = |code: &u32| matches!(code, 30..=38 | 40..=48 | 90..=107);
    let colour =
        codes.flat_map(|codes| codes.split(';')).filter_map(|code| code.parse().ok()).find(is_colour);
    ensure!(colour.is_none(), "a colour: {colour:?} in {coloured:?}");
    // Keys before and after a change of size: see `read_keys`.
    terminal.keys(&["Up"])?;
    terminal.tmux(&["resize-window", "-x", "46", "-y", "10"])?;
    wait_until("fewer columns", || {
        terminal.screen().is_ok_and(|screen| screen.contains("R/D▼") && !screen.contains("Policy"))
    })?;
    terminal.tmux(&["resize-window", "-x", "180", "-y", "30"])?;
    let screen = terminal.wait_for(&["Policy", "Deadline", "Mean C", " 10 µs "])?;
    ensure!(names(&screen).first() == Some(&"task-0"), "not the thread that misses its deadline: {screen}");
    terminal.keys(&["q"])?;
    terminal.expect_as_before(folder.path())?;
    Ok(Outcome::Completed)
}

/// No job takes less than a microsecond, so there is something to explain of each.
fn explains() -> Result<Outcome> {
    let terminal = terminal!();
    let (threads, folder) = (start_threads()?, directory()?);
    let contract = "[[task]]\nname = \"task-0\"\ndeadline = \"1 us\"\n";
    std::fs::write(folder.path().join("app.contract.toml"), contract)?;
    let options = format!("--pid {} --contract app.contract.toml", threads.pid());
    for (how, shown) in [("--causes", "jobs took longer than the 1 µs of the"), ("", "Not observed")] {
        terminal.top(folder.path(), &format!("{options} {how}"))?;
        terminal.wait_for(&["task-0", "task-2"])?;
        terminal.keys(&["/"])?;
        terminal.tmux(&["send-keys", "-l", "k-0"])?;
        terminal.wait_for(&["filter: k-0"])?;
        terminal.keys(&["Enter", "Enter"])?;
        terminal.wait_for(&["task-0 (thread", "Response of"])?;
        terminal.keys(&["Tab", "Tab", "Tab"])?;
        terminal.wait_for(&[shown])?;
        terminal.keys(&["q"])?;
        terminal.expect_as_before(folder.path())?;
        std::fs::remove_file(folder.path().join("after"))?;
        terminal.line("clear")?;
        terminal.wait_for(&["$"])?;
    }
    Ok(Outcome::Completed)
}

/// With a contract, whatever the thread waits for besides its next job.
fn counts() -> Result<Outcome> {
    let terminal = terminal!();
    for mode in ["disk", "files", "lock", "pool", "socket", "semaphores"] {
        let folder = directory()?;
        std::fs::write(folder.path().join("run.toml"), gate::CONTRACT)?;
        let program = format!("-- sh -c '{} {mode} >truth'", workload("gate"));
        terminal.top(folder.path(), &format!("--contract run.toml {program}"))?;
        terminal.wait_for(&["ENDED", "loop "])?;
        let screen = terminal.screen()?;
        terminal.keys(&["q"])?;
        terminal.expect_as_before(folder.path())?;
        let truth = gate::Truth::of(&std::fs::read_to_string(folder.path().join("truth"))?)?;
        let Some(late) = shown(&screen, "loop", "Late") else { return fail(screen) };
        timing(truth.explains_late(&format!("{mode}: {screen}"), late))?;
        terminal.line("clear")?;
        terminal.wait_for(&["$"])?;
    }
    Ok(Outcome::Completed)
}

/// The number that a thread has in a column, whose values end where its title does.
fn shown(screen: &str, thread: &str, column: &str) -> Option<u64> {
    let titles = screen.lines().find(|line| line.starts_with("Thread"))?;
    let end = titles[..titles.find(column)?].chars().count() + column.chars().count();
    let line = screen.lines().find(|line| line.split(' ').next() == Some(thread))?;
    let until: String = line.chars().take(end).collect();
    until.rsplit(' ').next()?.replace(',', "").parse().ok()
}

/// Of two programs that are alike, the one in the control group has the deadline.
fn groups() -> Result<Outcome> {
    let terminal = terminal!();
    let group = match Cgroup::make("top") {
        Ok(group) => group,
        Err(why) => return skip(why),
    };
    let (inside, outside, folder) = (start_threads()?, start_threads()?, directory()?);
    if let Err(why) = group.take(inside.pid()) {
        return skip(why);
    }
    let contract = format!(
        "[[task]]\nname = \"inside\"\nthread = {{ cgroup = \"/{}\" }}\ndeadline = \"70 ms\"\n",
        group.name()
    );
    std::fs::write(folder.path().join("app.contract.toml"), contract)?;
    let pids = format!("--pid {} {}", inside.pid(), outside.pid());
    terminal.tmux(&["resize-window", "-x", "180", "-y", "30"])?;
    terminal.top(folder.path(), &format!("{pids} --interval 100ms --contract app.contract.toml"))?;
    terminal.wait_for(&["6 threads", "Deadline", " 70 ms "])?;
    let with = |screen: &str| screen.lines().filter(|line| line.contains(" 70 ms ")).count();
    // Three threads of one of them have it, and none of the other.
    wait_until("the deadline of three threads", || terminal.screen().is_ok_and(|it| with(&it) == 3))?;
    let screen = terminal.screen()?;
    let all = screen.lines().filter(|line| line.starts_with("task-")).count();
    terminal.keys(&["q"])?;
    terminal.expect_as_before(folder.path())?;
    drop(inside);
    group.wait_until_empty()?;
    ensure!((all, with(&screen)) == (6, 3), "{screen}");
    Ok(Outcome::Completed)
}

fn command() -> Result<Outcome> {
    let terminal = terminal!();
    let folder = directory()?;
    let program = format!("-- {} --for 3 5000", workload("periodic"));
    terminal.top(folder.path(), &program)?;
    let screen = terminal.wait_for(&["ENDED", " 5 ms "])?;
    // What it prints at its end would be JSON.
    ensure!(!screen.contains('{'), "{screen}");
    terminal.keys(&["Enter"])?;
    terminal.wait_for(&["Response of"])?;
    terminal.keys(&["q"])?;
    terminal.expect_as_before(folder.path())?;
    Ok(Outcome::Completed)
}

fn never_waits() -> Result<Outcome> {
    let terminal = terminal!();
    let folder = directory()?;
    terminal.top(folder.path(), &format!("-- {} --for 2", workload("spin")))?;
    let screen = terminal.wait_for(&["ENDED", "spin ", "never waits"])?;
    ensure!(!screen.contains("hidden"), "{screen}");
    terminal.keys(&["q"])?;
    terminal.expect_as_before(folder.path())?;
    Ok(Outcome::Completed)
}

fn refuses() -> Result<Outcome> {
    let ended = run(punctual(["top"]))?;
    ended.expect_code(2)?;
    ensure!(ended.stderr.contains("punctual extract") && ended.stdout.is_empty(), "{}", ended.all());
    let terminal = terminal!();
    let folder = directory()?;
    terminal.line("export TERM=dumb")?;
    terminal.top(folder.path(), "")?;
    let screen = terminal.wait_for(&["TERM is dumb", "same figures without one"])?.replace('\n', "");
    ensure!(screen.contains("punctual extract"), "{screen}");
    wait_until("its exit code", || folder.path().join("code").metadata().is_ok_and(|code| code.len() > 0))?;
    let code = std::fs::read_to_string(folder.path().join("code"))?;
    ensure!(code.trim() == "2", "exit code {code}");
    Ok(Outcome::Completed)
}
