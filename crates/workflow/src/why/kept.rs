//! Explains late jobs from the moments that the kernel keeps. The caller only copies the moments, which is
//! quick; an ordinary thread explains the jobs from the copies. Not for deciding which jobs are late.

use super::events::Events;
use punctual_causes::{Event, Explanation, History, Job, Loss};
use punctual_model::{Duration, Instant};
use punctual_observe::{LastMoments, Names};
use punctual_trace::{Blocked, Record, Step, Switch};
use rustc_hash::FxHashSet;
use std::collections::VecDeque;
use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::JoinHandle;
use std::time::{Duration as WallDuration, Instant as WallInstant};

/// Most of a job's time is settled this long after its end: the next step of each thread shows it.
const SETTLED: Duration = Duration::from_ms(10);

/// Moments so long before a job are read too: throttling may begin a second before it.
const LEAD: Duration = Duration::from_ms(1_500);

/// Most changes of threads that are remembered.
const MOST_DESCRIBED: usize = 1 << 16;

/// With this many, changes are passed on even if no job is late.
const MANY_DESCRIBED: usize = 1 << 10;

/// Names and priorities are remembered for about as long as the kernel keeps moments.
const REMEMBERED: Duration = Duration::from_ms(20_000);

/// Explanations take at most one part in so many of the time.
const SHARE: u32 = 10;

/// Or more, up to a third, where moments are soon overwritten.
const LONGEST_PAUSE: WallDuration = WallDuration::from_millis(50);
const LEAST_SHARE: u32 = 3;

/// While copies that wait to be read take so much memory, no more are made.
const MOST_COPIED: usize = 64 << 20;

/// Who threads are, and their ends; each with its time.
type Described = VecDeque<(Instant, Record)>;

/// Jobs to be explained, and what is known of that time.
struct Question {
    described: Described,
    jobs: Vec<Job>,
    now: Instant,
    moments: Option<LastMoments>,
}

/// The explanations of a question's jobs, with the threads as they were.
struct Answer {
    explanations: Vec<Explanation>,
    threads: Events,
    copied: usize,
    took: WallDuration,
}

/// Late jobs, and the thread that explains them.
pub(super) struct Kept {
    jobs: Vec<Job>,
    described: Described,
    questions: Sender<Question>,
    answers: Receiver<Answer>,
    worker: Option<JoinHandle<()>>,
    /// Questions without an answer, and the memory of their copies.
    open: usize,
    copied: usize,
    asked: WallInstant,
    took: WallDuration,
}

impl Kept {
    pub fn new() -> Kept {
        let mut worker = Worker::new();
        Kept::answered_by(move |question| worker.answer(question))
    }

    /// With what a thread of its own does with each question.
    fn answered_by(mut answer: impl FnMut(Question) -> Answer + Send + 'static) -> Kept {
        let (questions, asked) = channel();
        let (answered, answers) = channel();
        let worker = std::thread::spawn(move || {
            for question in asked {
                if answered.send(answer(question)).is_err() {
                    return;
                }
            }
        });
        Kept {
            jobs: Vec::new(),
            described: VecDeque::new(),
            questions,
            answers,
            worker: Some(worker),
            open: 0,
            copied: 0,
            asked: WallInstant::now(),
            took: WallDuration::ZERO,
        }
    }

    /// A job is to be explained.
    pub fn job(&mut self, job: Job) {
        self.jobs.push(job);
    }

    /// Takes a record. `until` is the time of the last one.
    pub fn record(&mut self, record: &Record, until: &mut Instant) {
        let at = match record {
            Record::Task(task) | Record::Known(task) | Record::Bystander(task) => task.at,
            Record::Exit { at, .. } | Record::BystanderExit { at, .. } => *at,
            Record::Renamed { .. } => *until,
            _ => return,
        };
        *until = at.max(*until);
        self.described.push_back((at, record.clone()));
        if self.described.len() > MOST_DESCRIBED {
            self.described.pop_front();
        }
    }

    /// Hands over jobs to be explained, now and then, with the moments that `copy` returns; passes on
    /// finished explanations. If the observation has ended, it waits for all of them.
    pub fn turn(
        &mut self,
        now: Instant,
        has_ended: bool,
        copy: impl FnOnce() -> Option<LastMoments>,
        each: &mut dyn FnMut(Explanation, &Events),
    ) {
        let pause = (self.took * SHARE).min(LONGEST_PAUSE.max(self.took * LEAST_SHARE));
        let is_due = self.asked.elapsed() >= pause && (self.open == 0 || self.copied < MOST_COPIED);
        let is_ready = |job: &Job| has_ended || (is_due && job.end + SETTLED < now);
        let (jobs, later): (Vec<Job>, _) = std::mem::take(&mut self.jobs).into_iter().partition(is_ready);
        self.jobs = later;
        if !jobs.is_empty() {
            self.asked = WallInstant::now();
            self.ask(jobs, now, copy());
        } else if self.described.len() >= MANY_DESCRIBED && self.open == 0 {
            self.ask(Vec::new(), now, None);
        }
        while self.open > 0 {
            let Some(Answer { explanations, threads, copied, took }) = self.receive(has_ended) else { break };
            (self.open, self.copied) = (self.open - 1, self.copied - copied);
            if !explanations.is_empty() {
                self.took = took;
            }
            explanations.into_iter().for_each(|it| each(it, &threads));
        }
    }

    /// The next answer, if there is one already.
    fn receive(&mut self, waits: bool) -> Option<Answer> {
        let answer = match waits {
            true => self.answers.recv().map_err(|_| TryRecvError::Disconnected),
            false => self.answers.try_recv(),
        };
        // Only a panic ends the worker while somebody can ask.
        if answer.as_ref().is_err_and(|error| *error == TryRecvError::Disconnected) {
            let ended = self.worker.take().map(JoinHandle::join);
            ended.transpose().unwrap_or_else(|panic| resume_unwind(panic));
        }
        answer.ok()
    }

    fn ask(&mut self, jobs: Vec<Job>, now: Instant, moments: Option<LastMoments>) {
        self.open += 1;
        self.copied += moments.as_ref().map_or(0, LastMoments::bytes);
        let described = std::mem::take(&mut self.described);
        // If nobody takes it, the worker's panic is passed on.
        let _ = self.questions.send(Question { described, jobs, now, moments });
    }
}

/// Explains jobs, and knows the threads.
struct Worker {
    /// The threads as they were before the records below.
    before: Events,
    described: Described,
    names: Names,
}

impl Worker {
    fn new() -> Worker {
        Worker {
            before: Events::forgetting_after(REMEMBERED),
            described: VecDeque::new(),
            names: Names::default(),
        }
    }

    fn answer(&mut self, question: Question) -> Answer {
        let began = WallInstant::now();
        let Question { described, jobs, now, moments } = question;
        self.described.extend(described);
        let copied = moments.as_ref().map_or(0, LastMoments::bytes);
        let (explanations, threads) = self.explain(&jobs, now, moments);
        // Of changes long ago, only the outcome is remembered.
        while self.described.len() > MOST_DESCRIBED
            || self.described.front().is_some_and(|(at, _)| now.since(*at) > REMEMBERED)
        {
            if let Some((_, record)) = self.described.pop_front() {
                self.before.of(&record, &mut |_| {});
            }
        }
        Answer { explanations, threads, copied, took: began.elapsed() }
    }

    fn explain(
        &mut self,
        jobs: &[Job],
        now: Instant,
        moments: Option<LastMoments>,
    ) -> (Vec<Explanation>, Events) {
        let began = |job: &Job| job.previous_end.unwrap_or(job.begin).min(job.begin);
        let Some(since) = jobs.iter().map(began).min() else { return Default::default() };
        let moments = moments.map(|copied| copied.read(since, LEAD, &mut self.names)).unwrap_or_default();
        let (from, steps) = (moments.from, moments.steps);
        let losses = moments.gaps.into_iter().map(|(since, until)| Loss { since, until }).collect();
        let mut events: Vec<Event> = Vec::with_capacity(steps.len());
        let seen: FxHashSet<u32> = steps.iter().flat_map(|step| [step.tid, other(step)]).collect();
        let mut threads = self.before.of_threads(&seen);
        let is_seen = |(_, record): &&(Instant, Record)| seen.contains(&record.tid());
        let mut described: Vec<&(Instant, Record)> = self.described.iter().filter(is_seen).collect();
        described.sort_by_key(|(at, _)| *at);
        let mut described = described.into_iter().peekable();
        while let Some((_, record)) = described.next_if(|(at, _)| *at < from) {
            threads.of(record, &mut |_| {});
        }
        for step in steps {
            while let Some((_, record)) = described.next_if(|(at, _)| *at <= step.at) {
                threads.of(record, &mut |event| events.push(event));
            }
            threads.of(&Record::Switch(step), &mut |event| events.push(event));
        }
        described.for_each(|(_, record)| threads.of(record, &mut |event| events.push(event)));
        events.sort_by_key(|event| event.at);
        let history = History::new(from, now, &events, losses);
        (jobs.iter().map(|job| history.explain(*job)).collect(), threads)
    }
}

/// The other thread that has to do with a step: who woke, or owns what it waits for; 0 if there is none.
fn other(switch: &Switch) -> u32 {
    match switch.step {
        Step::Woken { by } => by,
        Step::Blocked(Blocked { owner, .. }) => owner,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_causes::Kind;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    /// A job of a thread from this millisecond on.
    fn job(number: u64) -> Job {
        let begin = Instant::from_ns(number * 1_000_000);
        let end = begin + Duration::from_ns(400_000);
        Job {
            thread: 1,
            phase: 0,
            number,
            begin,
            previous_end: None,
            release: None,
            start: begin,
            end,
            cost: None,
        }
    }

    #[test]
    fn every_job_is_explained_once() {
        let mut kept = Kept::new();
        let mut numbers = Vec::new();
        for number in 0..200 {
            kept.job(job(number));
            let now = job(number).end + SETTLED;
            kept.turn(now, number == 199, || None, &mut |it, _| {
                // Nothing was kept.
                let parts: Vec<_> = it.parts.iter().map(|part| (part.kind, part.time)).collect();
                assert_eq!(parts, [(Kind::Unknown, Duration::from_ns(400_000))]);
                numbers.push(it.job.number);
            });
        }
        numbers.sort_unstable();
        assert_eq!(numbers, Vec::from_iter(0..200));
    }

    #[test]
    fn a_panic_of_the_worker_is_passed_on() {
        let mut worker = Worker::new();
        let mut kept = Kept::answered_by(move |question| match question.jobs[0].number {
            0 => worker.answer(question),
            number => panic!("job {number}"),
        });
        let mut explain = |number| {
            kept.job(job(number));
            kept.turn(job(number).end, true, || None, &mut |it, _| assert_eq!(it.job.number, number));
        };
        explain(0);
        let panic = catch_unwind(AssertUnwindSafe(|| explain(1))).expect_err("the worker's panic");
        assert_eq!(panic.downcast_ref::<String>().map(String::as_str), Some("job 1"));
    }
}
