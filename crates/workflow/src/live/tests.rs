//! Records in, screens out: what a person sees of simulated threads.

use super::*;
use crate::live::{Action, Key, View};
use punctual_extract::StreamOptions;
use punctual_model::{Call, Object, Policy, Separator, Window};
use punctual_report::live::{Body, Widths, draw};
use punctual_trace::{Activation, Begin, Resumed};
use ratatui::Terminal;
use ratatui::backend::TestBackend;

const SECOND: u64 = 1_000_000_000;
const MS: u64 = 1_000_000;

fn options() -> punctual_extract::Options {
    let stream = StreamOptions { curve_horizon: 50, wcet_horizon: 50, ..StreamOptions::default() };
    punctual_extract::Options { stream, merge_transitions: false }
}

fn live() -> Live {
    Live::new(options(), Box::new(NoAgreement))
}

/// A sleep until a time of this clock.
fn until(clock: i32) -> Separator {
    Separator { call: Call::ClockNanosleep, object: Object::Clock { id: clock, absolute: true } }
}

/// A thread that sleeps until absolute times.
struct Simulated {
    tid: u32,
    sequence: u32,
    cpu: u64,
    period: u64,
    jobs: u64,
}

impl Simulated {
    fn begin(live: &mut Live, tid: u32, name: &str, period: u64) -> Simulated {
        let mut thread = Simulated { tid, sequence: 0, cpu: 0, period, jobs: 0 };
        let task = thread.task(name, 0, Begin::Seen, 50);
        live.record(&Record::Task(Box::new(task)));
        thread
    }

    fn task(&mut self, name: &str, at: u64, begin: Begin, priority: u32) -> TaskRecord {
        self.sequence += 1;
        TaskRecord {
            tid: self.tid,
            pid: 5,
            sequence: self.sequence - 1,
            at: Instant::from_ns(at),
            begin,
            name: name.into(),
            command: "simulated".into(),
            policy: Policy::Fifo,
            priority,
            nice: None,
            reservation: None,
            affinity: "0-1".into(),
        }
    }

    /// The next job is released 10 µs late, and the one before took `cost`, of which `extra` was the
    /// processor's being taken.
    fn job(&mut self, live: &mut Live, cost: u64, extra: u64) {
        self.job_at(live, cost, extra, until(1));
    }

    fn job_at(&mut self, live: &mut Live, cost: u64, extra: u64, separator: Separator) {
        let begun = self.jobs * self.period;
        let stop = if self.jobs == 0 { 0 } else { begun + 10_000 + cost + extra };
        self.cpu += cost;
        self.jobs += 1;
        let arrival = Instant::from_ns(self.jobs * self.period);
        let release = Instant::from_ns(self.jobs * self.period + 10_000);
        live.record(&Record::Activation(Activation {
            tid: self.tid,
            sequence: self.sequence,
            separator,
            slept: true,
            stop: Instant::from_ns(stop),
            cpu: Duration::from_ns(self.cpu),
            arrival: Some(arrival),
            resumed: Some(Resumed::new(Some(Window::at(release)), release)),
        }));
        self.sequence += 1;
    }

    fn rename(&mut self, live: &mut Live, name: &str) {
        live.record(&Record::Renamed { tid: self.tid, sequence: self.sequence, name: name.into() });
        self.sequence += 1;
    }

    fn exit(&self, live: &mut Live) {
        let at = Instant::from_ns(self.jobs * self.period + MS);
        live.record(&Record::Exit { tid: self.tid, sequence: self.sequence, at });
    }
}

fn line(live: &Live, tid: u32, now: u64) -> LiveTask {
    live.tasks(Instant::from_ns(now)).into_iter().find(|task| task.tid == tid).expect("a line")
}

/// A thread of 5 ms with jobs of 1 ms, for three seconds.
fn observed() -> (Live, Simulated) {
    let mut live = live();
    let mut thread = Simulated::begin(&mut live, 7, "ctl", 5 * MS);
    for _ in 0..600 {
        thread.job(&mut live, MS, 0);
    }
    live.refresh(Instant::from_ns(3 * SECOND));
    (live, thread)
}

#[test]
fn a_periodic_thread_is_found_and_judged_by_its_period() {
    let (mut live, mut thread) = observed();
    let task = line(&live, 7, 3 * SECOND);
    let ns = |time: Option<Duration>| time.map(Duration::ns);
    assert_eq!((task.jobs, ns(task.deadline), task.late), (599, Some(5 * MS), 0));
    assert_eq!(ns(task.response.max), Some(MS + 10_000));
    assert_eq!((ns(task.cost.last), ns(task.cost.mean), ns(task.cost.max)), (Some(MS), Some(MS), Some(MS)));
    assert_eq!(task.utilization, Some(2_000), "a fifth");
    // Two jobs take 5.5 ms each.
    thread.job(&mut live, 2 * MS, 3_490_000);
    thread.job(&mut live, 2 * MS, 3_490_000);
    let task = line(&live, 7, 3 * SECOND);
    assert_eq!((task.late, ns(task.response.last)), (2, Some(5_500_000)));
    assert_eq!(ns(task.cost.max), Some(2 * MS));
}

/// One that spins has no records; looking at it shows what it takes.
#[test]
fn a_thread_that_never_waits_is_shown() {
    let mut live = live();
    let mut thread = Simulated::begin(&mut live, 7, "spin", 5 * MS);
    let glance = |at: u64| {
        let busy = Some(Duration::from_ns(at));
        move |_| {
            Some(Glance {
                sequence: 1,
                at: Instant::from_ns(at),
                cpu: Duration::from_ns(at),
                stopped: None,
                busy,
            })
        }
    };
    live.look(glance(50 * MS));
    assert!(!line(&live, 7, 50 * MS).never_waits, "it may wait soon");
    for tenths in 1..=30 {
        live.look(glance(tenths * SECOND / 10));
    }
    let task = line(&live, 7, 3 * SECOND);
    assert!(task.never_waits && task.jobs == 0);
    assert_eq!(task.utilization, Some(10_000));
    let mut view = View::new("all".into(), false);
    view.update(&live, Instant::from_ns(3 * SECOND));
    let Body::Tasks(tasks) = view.screen().body else { panic!("no threads") };
    assert_eq!((tasks.rows.len(), tasks.without_jobs), (1, 0));
    let details = live.details(7, Instant::from_ns(3 * SECOND), 80).expect("details");
    assert!(details.description.contains("it never waits, 100 % of"), "{}", details.description);
    thread.job(&mut live, MS, 0);
    assert!(!line(&live, 7, 3 * SECOND).never_waits);
}

#[test]
fn responses_stand_beside_proven_bounds() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("proof.json");
    std::fs::write(&file, r#"{"tasks":[{"name":"ctl","response_ns":4040000}]}"#).expect("written");
    let bounds = crate::read_bounds(&file).expect("bounds");
    let (live, _) = observed();
    assert_eq!(line(&live, 7, 3 * SECOND).bound, None);
    let task = line(&live.with_bounds(bounds), 7, 3 * SECOND);
    assert_eq!(task.bound, Some(Duration::from_ns(4_040_000)));
    let figure = punctual_report::figures::LIVE.iter().find(|entry| entry.figure.field == "of_bound");
    let value = (figure.expect("a figure").value)(&task);
    assert_eq!(format!("{value:?}"), "Some(Share(2500))");
}

#[test]
fn threads_with_a_bound_are_known() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("proof.json");
    std::fs::write(&file, r#"{"tasks":[{"name":"ctl","response_ns":4},{"name":"x","response_ns":4}]}"#)
        .expect("written");
    let mut live = live().with_bounds(crate::read_bounds(&file).expect("bounds"));
    Simulated::begin(&mut live, 7, "other", MS);
    assert_eq!(live.without_threads(), ["ctl", "x"]);
    Simulated::begin(&mut live, 8, "ctl", MS);
    assert!(live.without_threads().is_empty());
}

#[test]
fn an_agreement_goes_before_the_period() {
    struct OfTwoMs;
    impl Agreement for OfTwoMs {
        fn deadline(&self, thread: &TaskRecord, _: Option<&str>) -> Option<Duration> {
            (thread.name == "ctl").then_some(Duration::from_ms(2))
        }
    }
    let mut live = Live::new(options(), Box::new(OfTwoMs));
    let mut thread = Simulated::begin(&mut live, 7, "ctl", 5 * MS);
    (0..20).for_each(|_| thread.job(&mut live, MS, 0));
    live.refresh(Instant::from_ns(SECOND));
    thread.job(&mut live, MS, MS);
    let task = line(&live, 7, SECOND);
    assert_eq!((task.deadline, task.late), (Some(Duration::from_ms(2)), 1));
}

/// A contract counts from the first job on, and for a thread that gets its name later from then on.
#[test]
fn late_jobs_count_as_in_a_check() {
    let contract = "[[task]]\nname = \"ctl\"\ndeadline = \"2 ms\"\n";
    let contract = Contract::parse(contract).expect("a contract");
    for (name, late) in [("ctl", 4), ("other", 2)] {
        let mut live = Live::new(options(), Box::new(Contracted::new(&contract)));
        let mut thread = Simulated::begin(&mut live, 7, name, 5 * MS);
        (0..3).for_each(|_| thread.job(&mut live, MS, 2 * MS));
        thread.rename(&mut live, "ctl");
        (0..20).for_each(|_| thread.job(&mut live, MS, 0));
        (0..2).for_each(|_| thread.job(&mut live, MS, 2 * MS));
        assert_eq!(line(&live, 7, SECOND).late, late, "before it has a model");
        live.refresh(Instant::from_ns(SECOND));
        let task = line(&live, 7, SECOND);
        assert_eq!((task.deadline, task.late), (Some(Duration::from_ms(2)), late), "{name}");
    }
}

/// Jobs that ended before the period was found are judged by it.
#[test]
fn late_jobs_count_before_the_period_is_found() {
    let mut live = live();
    let mut thread = Simulated::begin(&mut live, 7, "ctl", 5 * MS);
    for job in 0..600 {
        thread.job(&mut live, 2 * MS, if job % 100 == 50 { 3_490_000 } else { 0 });
    }
    live.refresh(Instant::from_ns(3 * SECOND));
    let task = line(&live, 7, 3 * SECOND);
    assert_eq!((task.deadline, task.late), (Some(Duration::from_ms(5)), 6));
}

/// The first separator is not the primary one: late jobs at the other count from the first on.
#[test]
fn late_jobs_count_at_the_primary_separator() {
    let contract = "[[task]]\nname = \"ctl\"\ndeadline = \"2 ms\"\n";
    let contract = Contract::parse(contract).expect("a contract");
    let mut live = Live::new(options(), Box::new(Contracted::new(&contract)));
    let mut thread = Simulated::begin(&mut live, 7, "ctl", 5 * MS);
    for job in 0..100 {
        let extra = if job % 20 == 10 { 2 * MS } else { 0 };
        thread.job_at(&mut live, MS, extra, until(i32::from(job >= 4)));
    }
    live.refresh(Instant::from_ns(SECOND));
    assert_eq!(line(&live, 7, SECOND).late, 5);
}

#[test]
fn deadlines_are_those_of_a_contract() {
    let contract = "[[task]]\nname = \"c\"\nthread = { comm = \"ct*\" }\ndeadline = \"3 ms\"\n\
                    response = \"2 ms\"\n[[task]]\nname = \"log\"\nwcet = \"1 ms\"\n";
    let contract = Contract::parse(contract).expect("a contract");
    let mut live = Live::new(options(), Box::new(Contracted::new(&contract)));
    let mut threads =
        [(7, "ctl"), (8, "log")].map(|(tid, name)| Simulated::begin(&mut live, tid, name, 5 * MS));
    for thread in &mut threads {
        (0..20).for_each(|_| thread.job(&mut live, MS, 0));
    }
    live.refresh(Instant::from_ns(SECOND));
    let deadline = |tid| line(&live, tid, SECOND).deadline;
    assert_eq!((deadline(7), deadline(8)), (Some(Duration::from_ms(2)), Some(Duration::from_ms(5))));
}

/// As in a check: a thread belongs to the first task that it matches, by its control group as well.
#[test]
fn deadlines_of_a_contract_depend_on_control_groups() {
    let contract = "[[task]]\nname = \"a\"\nthread = { comm = \"ctl\", unit = \"arm.service\" }\n\
                    deadline = \"1 ms\"\n\
                    [[task]]\nname = \"b\"\nthread = { cgroup = \"/robot.slice\" }\nwcet = \"1 ms\"\n\
                    [[task]]\nname = \"c\"\nthread = { comm = \"ctl\" }\ndeadline = \"3 ms\"\n";
    let contract = Contract::parse(contract).expect("a contract");
    let deadline = |group: Option<&'static str>| {
        let live = Live::new(options(), Box::new(Contracted::new(&contract)));
        let mut live = live.locating(Box::new(move |_| group.map(str::to_owned)));
        let mut thread = Simulated::begin(&mut live, 7, "ctl", 5 * MS);
        (0..20).for_each(|_| thread.job(&mut live, MS, 0));
        live.refresh(Instant::from_ns(SECOND));
        line(&live, 7, SECOND).deadline.map(Duration::ns)
    };
    assert_eq!(deadline(Some("/system.slice/arm.service")), Some(MS));
    // It agrees on no deadline, so the period counts.
    assert_eq!(deadline(Some("/robot.slice/leg.service")), Some(5 * MS));
    assert_eq!(deadline(Some("/user.slice")), Some(3 * MS));
    // Where the group is not known, the rest of the pattern counts.
    assert_eq!(deadline(None), Some(MS));
}

#[test]
fn memory_does_not_grow_with_time() {
    let (mut live, mut thread) = observed();
    (0..30_000).for_each(|_| thread.job(&mut live, MS, 0));
    let now = Instant::from_ns(thread.jobs * 5 * MS - 1);
    let details = live.details(7, now, 80).expect("details");
    assert_eq!((details.jobs.len(), details.jobs[0].number), (64, 30_598));
    assert_eq!(details.task.responses.len(), 60);
    assert!(details.task.responses.iter().all(Option::is_some));
    assert!(details.description.contains("Released every 5 ms"), "{}", details.description);
    assert!(details.description.contains("s so far."), "{}", details.description);
    let jobs: u64 = details.response.iter().map(|(_, number)| number).sum();
    assert_eq!(jobs, details.task.jobs);
    assert!(details.lateness.len() < 5 && details.cost.len() < 5);
}

#[test]
fn silence_is_seen() {
    let (live, _) = observed();
    let task = line(&live, 7, 20 * SECOND);
    assert_eq!(task.utilization, Some(0));
    let with_jobs: Vec<bool> = task.responses.iter().map(Option::is_some).collect();
    assert_eq!(with_jobs[39..44], [true, true, true, false, false]);
    assert_eq!(with_jobs.iter().filter(|it| **it).count(), 3);
    assert!(line(&live, 7, 200 * SECOND).responses.iter().all(Option::is_none));
}

#[test]
fn a_thread_that_has_ended_stays_for_a_while() {
    let (mut live, thread) = observed();
    thread.exit(&mut live);
    live.refresh(Instant::from_ns(4 * SECOND));
    assert!(line(&live, 7, 4 * SECOND).has_ended);
    let details = live.details(7, Instant::from_ns(4 * SECOND), 80).expect("details");
    assert_eq!(details.task.jobs, 599);
    live.refresh(Instant::from_ns(14 * SECOND));
    assert!(live.tasks(Instant::from_ns(14 * SECOND)).is_empty());
}

#[test]
fn threads_that_come_and_go_are_forgotten() {
    let mut live = live();
    for tid in 1..1_000 {
        let mut thread = Simulated::begin(&mut live, tid, "short", 5 * MS);
        (0..3).for_each(|_| thread.job(&mut live, MS, 0));
        thread.exit(&mut live);
    }
    assert_eq!(live.tasks(Instant::from_ns(SECOND)).len(), MOST_ENDED);
    assert!(live.threads.is_empty());
}

#[test]
fn a_new_phase_begins_anew() {
    let (mut live, mut thread) = observed();
    let task = thread.task("ctl", 3 * SECOND + MS, Begin::Priority, 60);
    live.record(&Record::Task(Box::new(task)));
    (0..5).for_each(|_| thread.job(&mut live, 2 * MS, 0));
    live.refresh(Instant::from_ns(4 * SECOND));
    let task = line(&live, 7, 4 * SECOND);
    assert_eq!((task.jobs, task.priority, task.cost.max), (4, 60, Some(Duration::from_ms(2))));
}

#[test]
fn a_saved_model_is_what_extraction_would_return() {
    let (live, mut thread) = observed();
    let now = Instant::from_ns(3 * SECOND);
    let saved = live.model(Platform::default(), now);
    let mut other = super::tests::live();
    let mut same = Simulated::begin(&mut other, 7, "ctl", 5 * MS);
    (0..600).for_each(|_| same.job(&mut other, MS, 0));
    assert_eq!(saved.tasks(), other.extractor.finish(now));
    assert_eq!(TimingModel::from_json(&saved.to_json()).expect("readable"), saved);
    // And the observation goes on.
    let mut live = live;
    thread.job(&mut live, MS, 0);
    assert_eq!(line(&live, 7, 3 * SECOND).jobs, 600);
}

/// Three threads, on a screen of 80 columns and 24 lines.
struct Shown {
    live: Live,
    threads: Vec<Simulated>,
    view: View,
    widths: Widths,
    terminal: Terminal<TestBackend>,
    now: Instant,
}

impl Shown {
    fn new() -> Shown {
        let mut live = live();
        let mut threads: Vec<Simulated> = [(11, "camera", 40), (12, "control", 5), (13, "log", 100)]
            .map(|(tid, name, ms)| Simulated::begin(&mut live, tid, name, ms * MS))
            .into();
        // Control is late twice: a job of 2 ms is out of the processor for 4 ms.
        for thread in &mut threads {
            let cost = thread.period / 5;
            (0..3 * SECOND / thread.period).for_each(|_| thread.job(&mut live, cost, 0));
        }
        let now = Instant::from_ns(3 * SECOND);
        live.refresh(now);
        (0..2).for_each(|_| threads[1].job(&mut live, 2 * MS, 4 * MS));
        Simulated::begin(&mut live, 14, "idle", MS);
        let mut shown = Shown {
            live,
            threads,
            view: View::new("process 5".into(), false),
            widths: Widths::default(),
            terminal: Terminal::new(TestBackend::new(80, 24)).expect("a screen"),
            now,
        };
        shown.view.resize(80, 24);
        shown.update();
        shown
    }

    fn update(&mut self) {
        self.live.refresh(self.now);
        self.view.update(&self.live, self.now);
    }

    fn press(&mut self, keys: &[Key]) -> Action {
        let mut action = Action::None;
        for key in keys {
            action = self.view.key(*key);
            if let Some((tid, width)) = self.view.wants_details() {
                let details = self.live.details(tid, self.now, width);
                self.view.take_details(details);
            }
        }
        action
    }

    fn type_text(&mut self, text: &str) {
        text.chars().for_each(|c| {
            self.press(&[Key::Char(c)]);
        });
    }

    fn lines(&mut self) -> Vec<String> {
        let (screen, widths) = (self.view.screen(), &mut self.widths);
        self.terminal.draw(|frame| draw(&screen, widths, frame.buffer_mut())).expect("drawn");
        let buffer = self.terminal.backend().buffer();
        let width = usize::from(buffer.area.width);
        let line = |cells: &[ratatui::buffer::Cell]| {
            cells.iter().map(|cell| cell.symbol()).collect::<String>().trim_end().to_owned()
        };
        buffer.content().chunks(width).map(line).collect()
    }

    /// The names of the threads on the screen, from above.
    fn names(&mut self) -> Vec<String> {
        let lines = self.lines();
        let rows = lines[3..lines.len() - 1].iter().filter(|line| !line.is_empty());
        rows.map(|line| line.split(' ').next().unwrap_or_default().to_owned()).collect()
    }

    fn selected(&mut self) -> String {
        self.lines();
        let buffer = self.terminal.backend().buffer();
        let is_reversed = |y: u16| buffer[(0, y)].modifier.contains(ratatui::style::Modifier::REVERSED);
        let y = (3..23).find(|y| is_reversed(*y)).expect("a selected line");
        (0..8).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim().to_owned()
    }
}

#[test]
fn the_screen_has_a_line_for_each_thread() {
    let mut shown = Shown::new();
    let lines = shown.lines();
    assert_eq!(
        lines[..6],
        [
            "punctual top  process 5",
            "3 s, 4 threads, 704 jobs, nothing lost; 1 without jobs hidden",
            "Thread  TID Policy  Period       U  Last R    Max R     R/D▼ Late Max C Recent R",
            "control  12 FIFO 50   5 ms 20.00 % 6.01 ms  6.01 ms 120.20 %    2  2 ms     ▂▂▂█",
            "camera   11 FIFO 50  40 ms 20.00 % 8.01 ms  8.01 ms  20.03 %    0  8 ms     ███",
            "log      13 FIFO 50 100 ms 20.00 %   20 ms 20.01 ms  20.01 %    0 20 ms     ███",
        ]
        .map(str::to_owned)
    );
    assert_eq!(
        lines.last().map(String::as_str),
        Some("? help  / filter  ←→ sort  Enter details  Space freeze  s save  q quit")
    );
}

#[test]
fn keys_sort_filter_and_select() {
    let mut shown = Shown::new();
    assert_eq!(shown.names(), ["control", "camera", "log"]);
    shown.press(&[Key::Char('r')]);
    assert_eq!(shown.names(), ["log", "camera", "control"]);
    // From R/D over nine columns back to the name.
    shown.press(&[Key::Left; 9]);
    assert_eq!(shown.names(), ["camera", "control", "log"]);
    shown.press(&[Key::Right; 3]);
    assert_eq!(shown.names(), ["log", "camera", "control"], "by period, the longest first");
    shown.press(&[Key::Char('a')]);
    assert_eq!(shown.names(), ["log", "camera", "control", "idle"], "what is unknown comes last");

    shown.press(&[Key::Down, Key::Down]);
    assert_eq!(shown.selected(), "camera");
    shown.press(&[Key::End]);
    assert_eq!(shown.selected(), "idle");
    shown.press(&[Key::Home, Key::Up]);
    assert_eq!(shown.selected(), "log");

    shown.press(&[Key::Char('/')]);
    shown.type_text("CON");
    assert_eq!(shown.names(), ["control"]);
    assert_eq!(shown.lines()[23], "filter: CON");
    shown.type_text("q");
    assert!(shown.names()[0].starts_with("No"), "q is a letter here");
    shown.press(&[Key::Backspace, Key::Enter]);
    assert!(shown.lines()[1].contains("only those with 'CON'"));
    shown.press(&[Key::Escape]);
    assert_eq!(shown.names().len(), 4);
}

#[test]
fn the_selected_thread_stays_in_sight_on_a_small_screen() {
    let mut shown = Shown::new();
    shown.view.resize(80, 6);
    shown.terminal.backend_mut().resize(80, 6);
    shown.terminal.clear().expect("cleared");
    assert_eq!(shown.names(), ["control", "camera"]);
    assert!(shown.lines()[1].ends_with("; 1 to 2 of 3"));
    shown.press(&[Key::End]);
    assert_eq!(shown.names(), ["camera", "log"]);
    shown.press(&[Key::Char('r')]);
    assert_eq!(shown.names(), ["log", "camera"], "what is selected is followed");
    for (width, height) in [(1, 1), (5, 2), (20, 4), (300, 3)] {
        shown.view.resize(width, height);
        shown.terminal.backend_mut().resize(width, height);
        shown.lines();
        shown.press(&[Key::Enter]);
        shown.lines();
        shown.press(&[Key::Char('?')]);
        shown.lines();
        shown.press(&[Key::Escape]);
    }
}

#[test]
fn details_show_times_jobs_and_why() {
    let mut shown = Shown::new();
    shown.press(&[Key::Enter]);
    let text = shown.lines().join("\n");
    for part in ["control (thread 12 of process 5)", "Response of 601 jobs", "Cost of 601", "Lateness of 601"]
    {
        assert!(text.contains(part), "{part}\n{text}");
    }
    shown.press(&[Key::Tab]);
    let lines = shown.lines();
    assert!(lines[3].contains("Released") && lines[4].starts_with("#600 "), "{lines:?}");
    assert!(lines[4].ends_with("missed") && lines[6].ends_with('–'), "{lines:?}");
    shown.press(&[Key::Tab]);
    let text = shown.lines().join("\n");
    assert!(text.contains("Why this separator: its argument is the time of the next job"), "{text}");
    assert!(text.contains("Released every 5 ms"), "{text}");
    shown.press(&[Key::PageDown]);
    let text = shown.lines().join("\n");
    assert!(text.contains("How long a job takes"), "{text}");
    shown.press(&[Key::Escape]);
    assert_eq!(shown.names().len(), 3);
    shown.press(&[Key::Char('?')]);
    let help = shown.lines().join("\n");
    assert!(help.contains("freeze what is shown"), "{help}");
}

#[test]
fn what_is_frozen_stands_still_while_the_observation_goes_on() {
    let mut shown = Shown::new();
    let before = shown.lines();
    shown.press(&[Key::Char(' ')]);
    let Shown { threads, live, .. } = &mut shown;
    (0..100).for_each(|_| threads[1].job(live, MS, 0));
    shown.now = Instant::from_ns(4 * SECOND);
    shown.update();
    let frozen = shown.lines();
    assert!(frozen[0].contains("FROZEN"), "{}", frozen[0]);
    assert_eq!(frozen[1..], before[1..]);
    // Other keys still work.
    shown.press(&[Key::Char('r')]);
    assert_eq!(shown.names(), ["log", "camera", "control"]);
    shown.press(&[Key::Char(' ')]);
    shown.update();
    assert!(shown.lines()[1].starts_with("4 s, 4 threads, 804 jobs"), "{}", shown.lines()[1]);
}

#[test]
fn keys_quit_and_save() {
    let mut shown = Shown::new();
    assert_eq!(shown.press(&[Key::Char('s')]), Action::Save);
    assert_eq!(shown.press(&[Key::Char('q')]), Action::Quit);
    assert_eq!(shown.press(&[Key::Char('/'), Key::Interrupt]), Action::Quit, "while a filter is typed");
    shown.view.say("Wrote a file.".into());
    shown.press(&[Key::Interrupt]);
}

#[test]
fn the_end_of_the_target_is_shown() {
    let mut shown = Shown::new();
    shown.view.end();
    shown.update();
    assert!(shown.lines()[0].contains("ENDED"));
}

#[test]
fn losses_are_shown() {
    let mut shown = Shown::new();
    shown.live.count(900, Totals { lost: 3, untracked: 1, ..Totals::default() });
    shown.update();
    let head = shown.lines()[1].clone();
    assert!(head.contains("3 records LOST, 1 thread NOT WATCHED"), "{head}");
}
