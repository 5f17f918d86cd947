//! Guests of a running table: what punctuald admits there by its plugin `TT`, as the recording and the
//! threads show it. Nothing depends on how long anything takes: deadlines are checked in slots.

use crate::run::{Ended, Running, binary, punctual, run, wait_until};
use crate::tt::{
    SLOT, Slots, checked, dispatch, given, is_emulated, left_over, start_slots, stat_field, state, states,
    table, unsuitable, write,
};
use crate::{Outcome, Result, Test, ensure, fail, skip};
use punctual_client::{Client, Parameters};
use punctual_model::table::{OnOverrun, Table};
use punctual_trace::Record;
use punctual_trace::ctf::Reader;
use punctual_trace::dispatch::{Dispatch, Guest, Turn};
use rustix::process::Signal;
use std::cell::Cell;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

/// They need a processor for themselves.
pub const ALONE: &[(&str, Test)] = &[
    ("guests::a_job_is_done_in_the_slack_and_the_rest_is_given_back", job::<false>),
    ("guests::a_job_that_takes_longer_goes_on_without_a_guarantee", overrun::<false>),
    ("guests::a_job_whose_thread_comes_late_gets_all_its_slots", late::<false>),
    ("guests::a_refusal_names_the_earliest_deadline_which_is_then_accepted", refusal::<false>),
    ("guests::a_periodic_task_has_its_slots_until_it_ends", periodic::<false>),
    ("guests::a_killed_daemon_finds_its_guests_again", restart::<false>),
    ("guests::a_killed_dispatcher_puts_guests_back", killed::<false>),
    ("guests::jobs_that_end_early_make_room", early::<false>),
    ("guests::without_a_table_there_is_no_place", without_table),
    ("guests::sched_ext::a_job_is_done_in_the_slack_and_the_rest_is_given_back", job::<true>),
    ("guests::sched_ext::a_job_that_takes_longer_goes_on_without_a_guarantee", overrun::<true>),
    ("guests::sched_ext::a_job_whose_thread_comes_late_gets_all_its_slots", late::<true>),
    ("guests::sched_ext::a_refusal_names_the_earliest_deadline_which_is_then_accepted", refusal::<true>),
    ("guests::sched_ext::a_periodic_task_has_its_slots_until_it_ends", periodic::<true>),
    ("guests::sched_ext::a_killed_daemon_finds_its_guests_again", restart::<true>),
    ("guests::sched_ext::a_killed_dispatcher_puts_guests_back", killed::<true>),
    ("guests::sched_ext::jobs_that_end_early_make_room", early::<true>),
    ("guests::sched_ext::guests_stay_when_the_scheduler_is_ejected", ejected),
];

const CONFIGURATION: &str = "[[plugin]]\nname = \"TT\"\nkind = \"TT\"\n";

/// A table that runs on processor 1, and a daemon.
struct Rig {
    slots: Slots,
    table: String,
    tt: Running,
    daemon: Option<Running>,
    /// Jobs that were accepted, and lost their slots before they had a thread.
    lost: Cell<usize>,
}

/// What was recorded.
#[derive(Default)]
struct Recorded {
    lost: usize,
    guests: Vec<Guest>,
    over: Vec<(u32, u64)>,
    turns: Vec<Turn>,
    /// How often a guest was guaranteed anew what it was given without a thread.
    renewed: usize,
}

pub fn daemon_path() -> PathBuf {
    std::env::var_os("PUNCTUALD").map_or_else(|| binary().with_file_name("punctuald"), PathBuf::from)
}

/// Why the tests here do not apply.
fn not_here<const EXT: bool>() -> Option<&'static str> {
    let built = daemon_path().is_file();
    unsuitable::<EXT>().or((!built).then_some("punctuald is not built (make build)"))
}

impl Rig {
    fn start<const EXT: bool>() -> Result<Rig> {
        Rig::of::<EXT>(&["a:busy", "b:busy"], table(&["a", "b"], OnOverrun::Continue), &[])
    }

    /// Of these threads, with further options.
    fn of<const EXT: bool>(kinds: &[&str], table: Table, options: &[&str]) -> Result<Rig> {
        let slots = start_slots(kinds)?;
        let table = write(table, slots.folder.path())?;
        let mut tt = dispatch::<EXT>(&table);
        tt.args(options).arg("--record").arg(slots.folder.path().join("recording")).args(given(&slots));
        let before = states(&slots)?;
        let mut rig = Rig { table, tt: Running::start(tt)?, daemon: None, lost: Cell::new(0), slots };
        wait_until("the threads to be bound", || states(&rig.slots).is_ok_and(|now| now != before))?;
        let turns = |all: serde_json::Value| all["tables"][0]["processors"][0]["turns"].as_u64();
        let status = || run(punctual(["tt", "status", "--json"])).ok()?.json().ok().and_then(turns);
        wait_until("the table to run", || status() > Some(0))?;
        rig.start_daemon()?;
        Ok(rig)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.slots.folder.path().join(name)
    }

    fn start_daemon(&mut self) -> Result {
        self.daemon = Some(start_daemon(self.slots.folder.path())?);
        Ok(())
    }

    /// `punctual ctl`, asking this daemon.
    fn ctl(&self, words: &[&str]) -> Command {
        let mut ctl = punctual(["ctl", "--socket"]);
        ctl.arg(self.path("socket")).args(words);
        ctl
    }

    fn run(&self, options: &[&str], command: &[&str]) -> Command {
        let mut ctl = self.ctl(&["run", "--plugin", "tt"]);
        ctl.args(options).arg("--").args(command);
        ctl
    }

    /// Whether a job was refused only because this machine was slow, which is said. Whoever is told so is to
    /// try again.
    fn is_late(&self, message: &str) -> bool {
        let was_accepted = message.contains("before its thread was there");
        let is_late = was_accepted || message.contains("did not accept the slots in time; try again");
        if is_late {
            eprintln!("DISTURBED: guests: the job comes again: {}", message.trim_end());
        }
        self.lost.set(self.lost.get() + usize::from(was_accepted));
        is_late
    }

    /// Makes something a guest, once more where it was late.
    fn admitted<T>(&self, mut ask: impl FnMut() -> Result<std::result::Result<T, String>>) -> Result<T> {
        for _ in 0..if is_emulated() { 9 } else { 2 } {
            match ask()? {
                Ok(admitted) => return Ok(admitted),
                Err(message) if self.is_late(&message) => {}
                Err(message) => return fail(message),
            }
        }
        ask()?.or_else(fail)
    }

    /// Runs a command that is admitted, to its end.
    fn done(&self, options: &[&str], command: &[&str]) -> Result<Ended> {
        self.admitted(|| {
            let ended = run(self.run(options, command))?;
            Ok(if ended.code == Some(0) { Ok(ended) } else { Err(ended.all()) })
        })
    }

    /// Starts a command that does not end; returns once it is admitted.
    fn begin(&self, options: &[&str], command: &[&str]) -> Result<Running> {
        self.admitted(|| {
            let running = Running::start(self.run(options, command))?;
            let pid = running.pid();
            // It was `punctual ctl run` before. A look at the status may take longer than its slots last.
            let comm = || fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            let has_ended = || stat_field(pid, 0).is_none_or(|state| state == "Z");
            wait_until("the job to be admitted", || comm().trim() == command[0] || has_ended())?;
            Ok(if has_ended() { Err(running.end()?.all()) } else { Ok(running) })
        })
    }

    fn specs(&self) -> Result<usize> {
        let listed = run(self.ctl(&["list", "--json"]))?.json()?;
        Ok(listed["specs"].as_array().map_or(0, Vec::len))
    }

    /// Guests as the dispatcher shows them.
    fn guests(&self) -> Vec<serde_json::Value> {
        let shown = run(punctual(["tt", "status", "--json"])).ok().and_then(|ended| ended.json().ok());
        let guests = shown.and_then(|all| all["tables"][0]["guests"].as_array().cloned());
        guests.unwrap_or_default()
    }

    /// Ends the table, and reads what it recorded. Every slot must be as planned.
    fn end(self) -> Result<Recorded> {
        Ok(self.end_and_keep()?.0)
    }

    /// The same, with the folder of the recording.
    fn end_and_keep(mut self) -> Result<(Recorded, Slots)> {
        if let Some(daemon) = self.daemon.take() {
            daemon.signal(Signal::TERM)?;
            daemon.end()?.expect_code(0)?;
        }
        self.tt.signal(Signal::INT)?;
        self.tt.end()?.expect_code(0)?;
        let recording = self.slots.folder.path().join("recording");
        checked(&recording, &self.table)?;
        let mut recorded = Recorded { lost: self.lost.get(), ..Recorded::default() };
        let reader = Reader::open(&recording).or_else(|error| fail(error.to_string()))?;
        let read = reader.read(0..reader.stretches(), &mut |record| match record {
            Record::Dispatch(Dispatch::Guest(guest)) => {
                // What it had without a thread is guaranteed anew: still the same guest.
                if recorded.over.last() == Some(&(guest.number, guest.slot)) {
                    recorded.over.pop();
                    recorded.renewed += 1;
                    recorded.guests.retain(|known| known.number != guest.number);
                }
                recorded.guests.push((**guest).clone());
            }
            Record::Dispatch(Dispatch::GuestOver { number, slot }) => recorded.over.push((*number, *slot)),
            Record::Dispatch(Dispatch::Turn(turn)) => recorded.turns.push(*turn),
            _ => {}
        });
        ensure!(read.is_ok_and(|damage| damage.is_empty()), "the recording is damaged");
        Ok((recorded, self.slots))
    }
}

fn start_daemon(folder: &std::path::Path) -> Result<Running> {
    let (config, socket) = (folder.join("punctuald.toml"), folder.join("socket"));
    fs::write(&config, CONFIGURATION)?;
    let mut command = Command::new(daemon_path());
    command.arg("--config").arg(config).arg("--socket").arg(&socket);
    let daemon = Running::start({
        command.arg("--state").arg(folder.join("state"));
        command
    })?;
    let answers = || {
        let mut status = punctual(["ctl", "status", "--socket"]);
        status.arg(&socket);
        run(status).is_ok_and(|ended| ended.code == Some(0))
    };
    wait_until("punctuald", answers)?;
    Ok(daemon)
}

impl Recorded {
    /// The guest, beside those that were lost before.
    fn guest(&self) -> Result<&Guest> {
        match self.guests.last() {
            Some(guest) if self.guests.len() <= 1 + self.lost => Ok(guest),
            _ => fail(format!("{} were lost of {:?}", self.lost, self.guests)),
        }
    }

    fn turns_of(&self, guest: &Guest) -> impl Iterator<Item = &Turn> {
        let is_its = |turn: &&Turn| turn.task == Some(guest.number) && turn.slot >= guest.slot;
        self.turns.iter().filter(is_its)
    }

    fn slots_of(&self, guest: &Guest) -> u64 {
        self.turns_of(guest).map(|turn| u64::from(turn.slots)).sum()
    }
}

fn job<const EXT: bool>() -> Result<Outcome> {
    if let Some(reason) = not_here::<EXT>() {
        return skip(reason);
    }
    let rig = Rig::start::<EXT>()?;
    // Where the lab emulates, everything takes longer; elsewhere it should take several turns.
    let (runtime, deadline, rounds) =
        if EXT || is_emulated() { (3_000, "12s", 3_000) } else { (600, "3s", 30_000) };
    let work = format!("i=0; while [ $i -lt {rounds} ]; do i=$((i+1)); done; echo done");
    let needs = ["--runtime", &format!("{runtime}ms"), "--deadline", deadline];
    let ended = rig.done(&needs, &["sh", "-c", &work])?;
    ensure!(ended.stdout == "done\n", "{}", ended.all());
    wait_until("the guest to be gone", || rig.guests().is_empty())?;
    ensure!(rig.specs()? == 0, "the spec has outlived its process");
    let recorded = rig.end()?;
    let guest = recorded.guest()?;
    let slots = runtime * 1_000_000 / SLOT;
    // Some may have passed before its thread was there, others have come since.
    let all = u64::from(guest.slots) == slots || (recorded.renewed > 0 && u64::from(guest.slots) < slots);
    ensure!(all && guest.cpu == 1, "{guest:?}");
    ensure!(recorded.turns_of(guest).any(|turn| turn.ran.ns() > 0), "it never ran in its slots");
    // It ended before it had used up its slots, all of which come before its deadline.
    let Some(&(number, over)) = recorded.over.last() else { return fail("it is not over") };
    ensure!(number == guest.number && over <= guest.slot + guest.deadline, "over at {over}: {guest:?}");
    ensure!(recorded.slots_of(guest) < u64::from(guest.slots), "nothing was given back");
    Ok(Outcome::Completed)
}

fn overrun<const EXT: bool>() -> Result<Outcome> {
    if let Some(reason) = not_here::<EXT>() {
        return skip(reason);
    }
    let rig = Rig::start::<EXT>()?;
    let busy = ["sh", "-c", "while :; do :; done"];
    // Where the lab emulates, a look at the status takes seconds.
    let needs = match EXT || is_emulated() {
        true => ["--runtime", "5s", "--deadline", "14s"],
        false => ["--runtime", "100ms", "--deadline", "1s"],
    };
    let running = rig.begin(&needs, &busy)?;
    let ordinary =
        |tid: u32| state(tid).is_ok_and(|state| state[3] == "0" && !state[5].contains("punctual-tt"));
    let pid = running.pid();
    wait_until("its slots to be over", || rig.guests().is_empty())?;
    wait_until("it to be as before", || ordinary(pid))?;
    ensure!(rig.specs()? == 1, "the spec belongs to a process that lives");
    let listed = run(rig.ctl(&["list"]))?;
    ensure!(listed.stdout.contains("WITHOUT SLOTS: it has had all of them"), "{}", listed.all());
    running.signal(Signal::KILL)?;
    running.end()?;
    let recorded = rig.end()?;
    let guest = recorded.guest()?;
    ensure!(recorded.slots_of(guest) == u64::from(guest.slots), "{} slots", recorded.slots_of(guest));
    let inside = guest.slot..guest.slot + guest.deadline;
    ensure!(recorded.turns_of(guest).all(|turn| inside.contains(&turn.slot)), "a slot after the deadline");
    Ok(Outcome::Completed)
}

fn why<T>(error: punctual_client::Error) -> Result<T> {
    fail(error.to_string())
}

fn late<const EXT: bool>() -> Result<Outcome> {
    if let Some(reason) = not_here::<EXT>() {
        return skip(reason);
    }
    let rig = Rig::start::<EXT>()?;
    let mut client =
        Client::connect_within(&rig.path("socket"), Some(Duration::from_secs(60))).or_else(why)?;
    let ms = punctual_model::Duration::from_ms;
    let parameters = Parameters {
        plugin: Some("TT".into()),
        runtime: Some(ms(30)),
        deadline: Some(ms(10_000)),
        ..Parameters::default()
    };
    let mut tids = Vec::new();
    // Its 15 slots are among the next ones that are free: the first thread comes when they are over, most of
    // the others in the midst of them.
    for wait in [500, 0, 5, 9, 13, 17, 21, 25, 29, 33] {
        let busy = Running::start({
            let mut busy = Command::new("sh");
            busy.args(["-c", "while :; do :; done"]);
            busy
        })?;
        let spec = rig.admitted(|| {
            let spec = match client.create_spec(&parameters, Some("late")) {
                Ok(created) => created.spec,
                Err(error) => return Ok(Err(error.to_string())),
            };
            // When it comes is the point of the test.
            std::thread::sleep(Duration::from_millis(wait));
            let Err(error) = client.attach_thread(spec, busy.pid()) else { return Ok(Ok(spec)) };
            client.release_spec(spec).or_else(why)?;
            Ok(Err(error.to_string()))
        })?;
        wait_until("its slots to be over", || rig.guests().is_empty())?;
        tids.push(busy.pid());
        busy.signal(Signal::KILL)?;
        busy.end()?;
        client.release_spec(spec).or_else(why)?;
    }
    drop(client);
    let recorded = rig.end()?;
    ensure!((1..=tids.len()).contains(&recorded.renewed), "guaranteed anew {} times", recorded.renewed);
    // Where the machine is slow, some turns are over before they could be given.
    let is_missed =
        |turn: &&Turn| turn.is_missed && recorded.guests.iter().any(|it| turn.task == Some(it.number));
    let missed: u64 = recorded.turns.iter().filter(is_missed).map(|turn| u64::from(turn.slots)).sum();
    for tid in tids {
        let own = recorded.turns.iter().filter(|turn| turn.tid == tid);
        let slots = own.map(|turn| u64::from(turn.slots)).sum::<u64>() + missed;
        ensure!(slots >= 15, "{tid} had {slots} slots: {:#?}", recorded.turns);
    }
    Ok(Outcome::Completed)
}

/// The time that a message ends with, as it is typed.
fn earliest(message: &str) -> Option<String> {
    let after = message.rsplit_once("accepted now is ")?.1;
    let words: Vec<&str> = after.split_whitespace().take(2).collect();
    Some(words.concat())
}

fn refusal<const EXT: bool>() -> Result<Outcome> {
    if let Some(reason) = not_here::<EXT>() {
        return skip(reason);
    }
    let rig = Rig::start::<EXT>()?;
    let mut deadline = "1800ms".to_owned();
    let (mut refusals, mut late) = (Vec::new(), 0);
    // The table has gone on since the refusal, and may be in a busier part. The greatest of these deadlines
    // is accepted anywhere.
    for _ in 0..20 {
        let ended = run(rig.run(&["--runtime", "1500ms", "--deadline", &deadline], &["true"]))?;
        if ended.code == Some(0) {
            break;
        }
        if rig.is_late(&ended.stderr) {
            late += 1;
            continue;
        }
        let Some(earliest) = earliest(&ended.stderr) else { return fail(ended.all()) };
        ensure!(ended.stderr.contains("slots of 2 ms are needed before the deadline"), "{}", ended.all());
        refusals.push(earliest.clone());
        deadline = earliest;
    }
    if late + refusals.len() == 20 && late >= 15 && is_emulated() {
        return skip(format!("of 20 jobs, {late} were too late for this slow machine"));
    }
    ensure!((1..20).contains(&refusals.len()), "no refusal, or nothing else: {refusals:?}");
    let recorded = rig.end()?;
    // Refused ones were not admitted.
    recorded.guest()?;
    Ok(Outcome::Completed)
}

fn periodic<const EXT: bool>() -> Result<Outcome> {
    if let Some(reason) = not_here::<EXT>() {
        return skip(reason);
    }
    let rig = Rig::start::<EXT>()?;
    // A job that is over keeps nobody waiting for its deadline. Under sched_ext none may wait so long.
    let deadline = if EXT { "14s" } else { "120s" };
    rig.done(&["--runtime", "2ms", "--deadline", deadline], &["true"])?;
    wait_until("the job to be gone", || rig.guests().is_empty())?;
    // Half of the slots are free.
    let child = rig.path("child");
    let busy = format!("sleep 1000 & echo $! > {}; while :; do :; done", child.display());
    let busy = ["sh", "-c", &busy];
    let needs = ["--runtime", "6ms", "--period", "40ms", "--deadline", "30ms", "--offset", "4ms"];
    let running = rig.begin(&needs, &busy)?;
    let turns = || rig.guests().first().and_then(|guest| guest["turns"].as_u64()).unwrap_or(0);
    wait_until("ten jobs", || turns() >= 10)?;
    // On a slow machine, it has hardly begun by then.
    wait_until("its child", || fs::read_to_string(&child).is_ok_and(|it| it.ends_with('\n')))?;
    let child: u32 = fs::read_to_string(child)?.trim().parse()?;
    let status = || fs::read_to_string(format!("/proc/{child}/status")).unwrap_or_default();
    // It may run where its parent was before it was a guest.
    wait_until("what it has started to be free", || !status().contains("Cpus_allowed_list:\t1\n"))?;
    let odd = run(rig.run(&["--runtime", "1ms", "--period", "15ms"], &["true"]))?;
    odd.expect_code(6)?;
    ensure!(odd.stderr.contains("not a whole number of slots"), "{}", odd.all());
    let more = run(rig.run(&["--runtime", "18ms", "--period", "40ms"], &["true"]))?;
    more.expect_code(6)?;
    ensure!(more.stderr.contains("too many"), "{}", more.all());
    running.signal(Signal::KILL)?;
    // It has the pipes of both.
    if let Some(child) = rustix::process::Pid::from_raw(child as i32) {
        rustix::process::kill_process(child, Signal::KILL)?;
    }
    running.end()?;
    wait_until("the task to be gone", || rig.guests().is_empty())?;
    let recorded = rig.end()?;
    let Some(guest) = recorded.guests.iter().find(|guest| guest.period > 0) else {
        return fail(format!("{:?}", recorded.guests));
    };
    ensure!((guest.slots, guest.period, guest.deadline) == (3, 20, 15), "{guest:?}");
    ensure!(guest.slot % 10 == 2, "the offset of two slots: {guest:?}");
    let inside =
        |slot: u64| (guest.slot..).step_by(20).take_while(|it| *it <= slot).last().map(|it| slot - it);
    let is_inside = |turn: &Turn| inside(turn.slot).is_some_and(|at| at + u64::from(turn.slots) <= 15);
    ensure!(recorded.turns_of(guest).all(is_inside), "slots before a release or after a deadline");
    ensure!(recorded.turns_of(guest).any(|turn| turn.ran.ns() > 0), "it never ran in its slots");
    Ok(Outcome::Completed)
}

/// One task with a single job of nine tenths of the table.
fn one_long_job() -> Table {
    let mut table = table(&["a"], OnOverrun::Continue);
    table.slots = 1_000;
    (table.tasks[0].period, table.tasks[0].wcet, table.tasks[0].deadline) = (1_000, 900, 1_000);
    (table.jobs[0].deadline, table.jobs[0].slots) = (1_000, 900);
    (table.runs[0].from, table.runs[0].to) = (0, 900);
    table
}

fn early<const EXT: bool>() -> Result<Outcome> {
    if let Some(reason) = not_here::<EXT>() {
        return skip(reason);
    }
    // Half of a repetition, of which a tenth is free, until the end of one.
    let needs = ["--runtime", "1s", "--deadline", "2s"];
    let rig = Rig::of::<EXT>(&["a:sleeper"], one_long_job(), &[])?;
    for _ in 0..3 {
        run(rig.run(&needs, &["true"]))?.expect_code(6)?;
    }
    ensure!(rig.end()?.over.is_empty(), "a job is over although nothing says that sleep ends it");
    let rig = Rig::of::<EXT>(&["a:sleeper"], one_long_job(), &["--sleep-ends-job", "a"])?;
    let mut refusals = 0;
    // Only in the first half of a repetition there is enough of it left.
    while run(rig.run(&needs, &["true"]))?.code != Some(0) {
        refusals += 1;
        ensure!(refusals < 40, "nothing was given back");
    }
    let shown = run(punctual(["tt", "status", "--json"]))?.json()?;
    let ended = shown["tables"][0]["tasks"][0]["early"].as_u64();
    ensure!(ended > Some(0), "{shown}");
    let (recording, table) = (rig.path("recording"), rig.table.clone());
    let (recorded, _folder) = rig.end_and_keep()?;
    // Where this machine is slow, a reservation may be given back before it is confirmed.
    ensure!(!recorded.guests.is_empty(), "no guest was recorded");
    ensure!(recorded.over.iter().any(|(number, _)| *number == 0), "{:?}", recorded.over);
    let is_inside = |turn: &Turn| turn.slot % 1_000 < 900;
    let mut guests = recorded.guests.iter().flat_map(|guest| recorded.turns_of(guest));
    ensure!(guests.any(is_inside), "no guest got slots of a job that was over");
    let is_lent = recorded.turns.iter().any(|turn| turn.task.is_none() && is_inside(turn));
    ensure!(EXT || is_lent, "nothing was lent");
    let mut check = punctual(["tt", "check", "--json"]);
    check.arg(recording).arg(table);
    let found = run(check)?.json()?;
    ensure!(found["violations"]["too few slots"].is_null() && found["early"].as_u64() > Some(0), "{found}");
    Ok(Outcome::Completed)
}

fn restart<const EXT: bool>() -> Result<Outcome> {
    if let Some(reason) = not_here::<EXT>() {
        return skip(reason);
    }
    let mut rig = Rig::start::<EXT>()?;
    let busy = ["sh", "-c", "while :; do :; done"];
    let running = rig.begin(&["--runtime", "2ms", "--period", "20ms"], &busy)?;
    let pid = running.pid();
    let is_bound = |rig: &Rig| rig.guests().iter().any(|guest| guest["tid"] == pid);
    wait_until("the task to be a guest", || is_bound(&rig))?;
    if let Some(daemon) = rig.daemon.take() {
        daemon.signal(Signal::KILL)?;
        daemon.end()?;
    }
    ensure!(is_bound(&rig), "the guest went with the daemon");
    rig.start_daemon()?;
    ensure!(is_bound(&rig) && rig.specs()? == 1, "{:?}", rig.guests());
    running.signal(Signal::KILL)?;
    running.end()?;
    wait_until("the new daemon to release it", || {
        rig.guests().is_empty() && rig.specs().is_ok_and(|it| it == 0)
    })?;
    rig.end()?;
    Ok(Outcome::Completed)
}

fn killed<const EXT: bool>() -> Result<Outcome> {
    if let Some(reason) = not_here::<EXT>() {
        return skip(reason);
    }
    let mut sleep = Command::new("sleep");
    sleep.arg("1000");
    let other = Running::start(sleep)?;
    // Before the table takes its processor.
    let before = state(other.pid())?;
    let rig = Rig::start::<EXT>()?;
    let running = rig.begin(&["--runtime", "2ms", "--period", "20ms"], &["sleep", "1000"])?;
    let pid = running.pid();
    wait_until("the task to be a guest", || rig.guests().iter().any(|guest| guest["tid"] == pid))?;
    rig.tt.signal(Signal::KILL)?;
    let is_back = || state(pid).is_ok_and(|now| now == before) && left_over().is_empty();
    let waited = wait_until("the guest to be put back", is_back);
    ensure!(waited.is_ok(), "{:?} instead of {before:?}, left over {:?}", state(pid)?, left_over());
    let listed = run(rig.ctl(&["list"]))?;
    ensure!(listed.stdout.contains("WITHOUT SLOTS: the table"), "{}", listed.all());
    for process in [&running, &other] {
        process.signal(Signal::KILL)?;
    }
    running.end()?;
    other.end()?;
    let none = run(rig.run(&["--runtime", "2ms", "--period", "20ms"], &["true"]))?;
    none.expect_code(6)?;
    ensure!(none.stderr.contains("no table is being dispatched"), "{}", none.all());
    Ok(Outcome::Completed)
}

/// The kernel ends the scheduler while a guest runs, which keeps its slots in user space.
fn ejected() -> Result<Outcome> {
    if let Some(reason) = not_here::<true>() {
        return skip(reason);
    }
    let rig = Rig::start::<true>()?;
    let before = states(&rig.slots)?;
    let busy = ["sh", "-c", "while :; do :; done"];
    let running = rig.begin(&["--runtime", "6ms", "--period", "40ms"], &busy)?;
    let pid = running.pid();
    let turns = || {
        let guests = rig.guests();
        let its = guests.iter().find(|guest| guest["tid"] == pid).map(|guest| guest["turns"].as_u64());
        its.flatten().unwrap_or(0)
    };
    let dispatcher = || {
        let shown = run(punctual(["tt", "status", "--json"])).ok().and_then(|ended| ended.json().ok());
        shown.map_or(serde_json::Value::Null, |all| all["tables"][0]["dispatcher"].clone())
    };
    wait_until("its first jobs", || turns() > 3)?;
    fs::write("/proc/sysrq-trigger", "S")?;
    wait_until("the dispatcher in user space", || dispatcher() == "user")?;
    let then = turns();
    wait_until("more of its jobs", || turns() > then + 10)?;
    ensure!(states(&rig.slots)? != before, "the table's threads are as the kernel left them");
    running.signal(Signal::KILL)?;
    running.end()?;
    wait_until("the guests to be gone", || rig.guests().is_empty())?;
    let recorded = rig.end()?;
    ensure!(recorded.guests.len() == 1, "{:?}", recorded.guests);
    let ran = recorded.turns_of(&recorded.guests[0]).filter(|turn| turn.ran.ns() > 0).count();
    ensure!(ran > 3, "it ran in {ran} of its turns");
    Ok(Outcome::Completed)
}

fn without_table() -> Result<Outcome> {
    if let Some(reason) = not_here::<false>() {
        return skip(reason);
    }
    let folder = crate::run::directory()?;
    let daemon = start_daemon(folder.path())?;
    let mut ctl =
        punctual(["ctl", "run", "--plugin", "TT", "--runtime", "2ms", "--deadline", "20ms", "--socket"]);
    ctl.arg(folder.path().join("socket")).args(["--", "true"]);
    let ended = run(ctl)?;
    ended.expect_code(6)?;
    ensure!(ended.stderr.contains("no table is being dispatched"), "{}", ended.all());
    daemon.signal(Signal::TERM)?;
    daemon.end()?.expect_code(0)?;
    Ok(Outcome::Completed)
}
