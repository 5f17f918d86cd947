//! What a session does for its guests: answers punctuald, binds their threads, and lets go of them.

use super::Session;
use crate::Event;
use crate::clock::Readable as _;
use crate::engine::Engine;
use crate::error::Error;
use crate::ext::LONGEST_WAIT;
use crate::managers::Managers;
use crate::undo::Undo;
use punctual_linux::thread::Thread;
use punctual_model::Duration;
use punctual_protocol::dispatcher::{Confirmed, GuestId, Place, Reply, Request, Reservation};
use punctual_tables::GuestStatus;
use punctual_tables::TaskStatistics;
use punctual_tables::guests::{Guest, Guests, NotReserved};
use punctual_trace::dispatch::{self, Dispatch};

/// A reservation that nobody confirms for so long is given back.
const UNCONFIRMED: Duration = Duration::from_ms(1_000);

impl Session {
    /// Begins to listen for punctuald; without, everything else works.
    pub(super) fn listen_for_guests(&mut self) -> Result<(), Error> {
        let longest_wait = match self.engine {
            Engine::User(_) => None,
            Engine::Ext(_) => Some(LONGEST_WAIT),
        };
        self.guardian.note(Undo::File { path: Managers::path() })?;
        let guests = Guests::new(self.plan.clone(), self.start, self.plan.clock.now(), longest_wait);
        let begun = guests.and_then(|guests| Ok((guests, Managers::start().map_err(|it| it.to_string())?)));
        match begun {
            Ok((guests, managers)) => {
                (self.guests, self.managers) = (Some(guests), Some(managers));
            }
            Err(why) => self.warn(format!("punctuald cannot add guests to this table: {why}")),
        }
        Ok(())
    }

    /// Answers requests, and lets go of guests that are over.
    pub(super) fn serve_guests(&mut self) -> Result<(), Error> {
        if let Some(mut managers) = self.managers.take() {
            let served = managers.serve(|connection, request| self.answer(connection, request));
            self.managers = Some(managers);
            for connection in served? {
                self.release_where(|guest| guest.spec.is_none() && guest.reserved.1 == Some(connection));
                self.guests.iter_mut().for_each(|guests| guests.disconnected(connection));
            }
        }
        let now = self.plan.clock.now();
        let is_forgotten = |guest: &Guest| guest.spec.is_none() && now.since(guest.reserved.0) > UNCONFIRMED;
        self.release_where(|guest| guest.is_leaving || is_forgotten(guest));
        self.release_ended();
        let over = self.guests.as_mut().map(|guests| guests.tick(now)).unwrap_or_default();
        over.iter().for_each(|(_, guest)| self.unbind(guest.task));
        Ok(())
    }

    fn answer(&mut self, connection: u64, request: Request) -> Result<Reply, Error> {
        let failed = |reason: &str| Ok(Reply::Failed { reason: reason.into() });
        const OVER: &str = "its last slot has passed before its thread was there, or it was not confirmed in \
                            time; ask for a later deadline";
        match request {
            Request::Reserve(asked) => Ok(self.reserve(&asked, connection)),
            Request::Confirm { guest, spec } => {
                if !self.guests.as_mut().is_some_and(|guests| guests.confirm(guest, spec, connection)) {
                    return failed(OVER);
                }
                let task = self.guest(guest).map(|guest| guest.task);
                task.into_iter().for_each(|task| self.announce_again(task));
                Ok(Reply::Done)
            }
            Request::Bind { guest, thread } => match self.guest(guest) {
                Some(known) => self.bind_guest(guest, &known, thread),
                None => failed(OVER),
            },
            Request::Unbind { guest } => {
                self.guest(guest).into_iter().for_each(|guest| self.unbind(guest.task));
                Ok(Reply::Done)
            }
            Request::Release { guest } => {
                self.release(guest);
                Ok(Reply::Done)
            }
            Request::List => Ok(Reply::Guests { guests: self.confirmed() }),
        }
    }

    fn guest(&self, id: GuestId) -> Option<Guest> {
        self.guests.as_ref()?.get(id).cloned()
    }

    fn place(&self, guest: GuestId, processor: u32) -> Place {
        let priority = match self.engine {
            Engine::User(_) => Some(self.options.priorities.turn()),
            Engine::Ext(_) => None,
        };
        Place { guest, processor, priority }
    }

    fn confirmed(&self) -> Vec<Confirmed> {
        let guests = self.guests.iter().flat_map(Guests::all);
        let orphans = guests.filter(|(_, guest)| guest.reserved.1.is_none());
        let confirmed = orphans.filter_map(|(id, guest)| {
            Some(Confirmed { place: self.place(id, guest.processor), spec: guest.spec? })
        });
        confirmed.collect()
    }

    fn reserve(&mut self, asked: &Reservation, connection: u64) -> Reply {
        let Session { guests, engine, priority, plan, .. } = self;
        let Some(guests) = guests else {
            return Reply::Failed { reason: "this table takes no guests".into() };
        };
        let clock = plan.clock;
        let mut publish = |lane, rows| priority.raised(|| engine.publish(lane, rows));
        match guests.reserve(asked, connection, &|| clock.now(), &mut publish) {
            Ok(id) => {
                let record = guests.record(id);
                let Some(Guest { task, processor, .. }) = self.guest(id) else {
                    return Reply::Failed { reason: "the guest has ended".into() };
                };
                self.statistics.tasks[task] = TaskStatistics::default();
                let record = record.map(|record| Event::Record(Dispatch::Guest(Box::new(record))));
                self.events.extend(record);
                self.announce(task, 0);
                Reply::Reserved(self.place(id, processor))
            }
            Err(NotReserved { reason, earliest_deadline }) => {
                Reply::Refused { reason, earliest_deadline_ns: earliest_deadline }
            }
        }
    }

    /// Gives a guest's slots to a thread.
    fn bind_guest(&mut self, id: GuestId, guest: &Guest, tid: u32) -> Result<Reply, Error> {
        let Guest { task, processor, .. } = *guest;
        if let Some(known) = self.threads[task].as_ref().filter(|known| known.thread.lives()) {
            let number = known.thread.number;
            return Ok(match number == tid {
                true => Reply::Done,
                false => Reply::Failed { reason: format!("its slots belong to thread {number}") },
            });
        }
        let bound = self.threads.iter().flatten().any(|known| known.thread.number == tid);
        if bound {
            return Ok(Reply::Failed { reason: format!("thread {tid} already belongs to the table") });
        }
        self.unbind(task);
        let home = self.plan.lanes.iter().position(|lane| lane.processor == processor).unwrap_or(0);
        let bound = self.bind_thread(task, home, tid)?.and_then(|()| self.renew(id, task));
        Ok(match bound {
            Ok(()) => Reply::Done,
            Err(reason) => {
                self.unbind(task);
                Reply::Failed { reason }
            }
        })
    }

    /// Guarantees a job anew what it was given before it had a thread; or says why that is not possible.
    fn renew(&mut self, id: GuestId, task: usize) -> Result<(), String> {
        let Session { guests, engine, priority, plan, .. } = self;
        let (Some(guests), clock) = (guests, plan.clock) else { return Ok(()) };
        // From user space, a turn that began without a thread goes on without one.
        let joins = matches!(engine, Engine::Ext(_));
        let mut publish = |lane, rows| priority.raised(|| engine.publish(lane, rows));
        if guests.bound(id, joins, &|| clock.now(), &mut publish).map_err(|refused| refused.reason)? {
            let record = guests.record(id).into_iter();
            let over = |it: &dispatch::Guest| Dispatch::GuestOver { number: task as u32, slot: it.slot };
            let both = record.flat_map(|it| [over(&it), Dispatch::Guest(Box::new(it))]);
            self.events.extend(both.map(Event::Record));
        }
        Ok(())
    }

    /// Puts the thread of a guest back.
    fn unbind(&mut self, task: usize) {
        match &mut self.engine {
            Engine::User(dispatcher) => self.priority.raised(|| drop(dispatcher.bind(task, None))),
            Engine::Ext(ext) => ext.dispatcher.let_go(task),
        }
        let Some(known) = self.threads[task].take() else { return };
        let (number, identity) = (known.thread.number, known.thread.identity);
        let put_back = self.undo(number, &known.thread, known.before).run();
        // What fails now is tried again at the end.
        let forgotten = put_back.and_then(|()| {
            let withdrawn = self.guardian.withdraw(|undo| undo.is_of_thread(number, identity));
            withdrawn.map_err(|error| error.to_string())
        });
        forgotten.err().into_iter().for_each(|why| self.warn(why));
        self.announce(task, 0);
    }

    /// Gives back what a guest has not had.
    fn release(&mut self, id: GuestId) {
        let Some(guest) = self.guest(id) else { return };
        self.unbind(guest.task);
        let Session { guests, engine, priority, plan, .. } = self;
        let (Some(guests), clock) = (guests, plan.clock) else { return };
        let mut publish = |lane, rows| priority.raised(|| engine.publish(lane, rows));
        guests.release(id, &|| clock.now(), &mut publish);
        let end = guests.get(id).and_then(|guest| guest.end);
        if let Some(slot) = end.filter(|_| guest.end.is_none()) {
            self.events.push(Event::Record(Dispatch::GuestOver { number: guest.task as u32, slot }));
        }
    }

    fn release_where(&mut self, is_meant: impl Fn(&Guest) -> bool) {
        let guests = self.guests.iter().flat_map(Guests::all).filter(|(_, guest)| guest.end.is_none());
        let meant: Vec<GuestId> = guests.filter(|(_, guest)| is_meant(guest)).map(|(id, _)| id).collect();
        meant.into_iter().for_each(|id| self.release(id));
    }

    /// A job is done when its thread has ended.
    fn release_ended(&mut self) {
        let has_ended = |task: usize| {
            let known: Option<&Thread> = self.threads[task].as_ref().map(|known| &known.thread);
            known.is_some_and(|thread| !thread.lives())
        };
        let guests = self.guests.iter().flat_map(Guests::all);
        let ended: Vec<(GuestId, Guest)> = guests
            .filter(|(_, guest)| has_ended(guest.task))
            .map(|(id, guest)| (id, guest.clone()))
            .collect();
        for (id, guest) in ended {
            self.unbind(guest.task);
            if guest.need.period.is_none() && guest.end.is_none() {
                self.release(id);
            }
        }
    }

    /// Its name has changed.
    fn announce_again(&mut self, task: usize) {
        let tid = self.threads[task].as_ref().map_or(0, |known| known.thread.number);
        self.announce(task, tid);
    }

    /// Guests for people.
    pub(super) fn guest_statuses(&self) -> Vec<GuestStatus> {
        let slot = self.plan.slot;
        let time = |slots: u64| Duration::from_ns(slots.saturating_mul(slot.ns()));
        let status = |guest: &Guest| {
            let statistics = &self.statistics.tasks[guest.task];
            let deadline = match guest.need.period {
                Some(_) => guest.need.deadline,
                None => guest.need.deadline.saturating_sub(guest.from),
            };
            GuestStatus {
                name: guest.name.clone(),
                spec: guest.spec,
                cpu: guest.processor,
                tid: self.threads[guest.task].as_ref().map(|known| known.thread.number),
                runtime_ns: time(guest.need.slots.get()),
                deadline_ns: time(deadline),
                period_ns: guest.need.period.map(time),
                turns: statistics.turns,
                ran_ns: statistics.ran,
            }
        };
        self.guests.iter().flat_map(Guests::all).map(|(_, guest)| status(guest)).collect()
    }
}
