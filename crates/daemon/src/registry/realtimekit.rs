//! Specs that RealtimeKit's clients ask for. They end with their threads.

use super::Registry;
use super::process::Caller;
use crate::config::RealtimeKit;
use crate::error::Error;
use crate::realtimekit::{Client, Refusal, Request, Wish};
use punctual_linux::thread::Thread;
use punctual_schedule::{Parameters, SpecId};
use std::rc::Rc;

/// What such specs are called.
const NAME: &str = "RealtimeKit";

impl Registry {
    /// Answers a request.
    pub fn realtimekit(&mut self, request: Request) -> Result<(), Refusal> {
        match request {
            Request::Schedule { client, process, thread, wish, kit } => {
                self.grant(client, process, thread, &parameters(wish, &kit)?).map_err(refusal)
            }
            Request::Reset { all } => {
                let ends = |spec: &&super::Spec| spec.ends_with_thread || all && !spec.who.is_root();
                let mut ids: Vec<SpecId> = self.specs.values().filter(ends).map(|spec| spec.id).collect();
                ids.sort_unstable();
                self.end_specs(&ids);
                Ok(())
            }
        }
    }

    /// Looks the processes up for as long as it takes.
    fn grant(
        &mut self,
        client: Client,
        process: Option<u32>,
        thread: u32,
        parameters: &Parameters,
    ) -> Result<(), Error> {
        let (who, asks) = (Rc::new(client.who), client.process);
        let gone = |number| move |_| Error::NoSuchThread { thread: number };
        let sender = self.process(asks, client.pidfd, who.user).map_err(gone(asks))?;
        let owner = match process.filter(|&process| process != asks) {
            None => Ok((asks, sender)),
            Some(other) => self.process_of(other, who.user).map(|key| (other, key)),
        };
        let done = owner.and_then(|(number, owner)| {
            let done = self.grant_to(&who, sender, (number, owner), thread, parameters);
            self.drop_if_idle(owner);
            done
        });
        self.drop_if_idle(sender);
        done
    }

    fn grant_to(
        &mut self,
        who: &Rc<crate::access::Who>,
        sender: u64,
        (process, owner): (u32, u64),
        named: u32,
        parameters: &Parameters,
    ) -> Result<(), Error> {
        let number = if named == 0 { process } else { self.translate(sender, named)? };
        let no_such = || Error::NoSuchThread { thread: named };
        let (_, is) = Thread::pin(number).map_err(|_| no_such())?;
        if is.process != process {
            return Err(no_such());
        }
        // Threads whose end the kernel does not report may be left.
        if let Some(&spec) = self.threads.get(&number) {
            self.thread_ended(spec);
        }
        let caller = Caller::new(who.clone(), Some(owner));
        if let Some(&spec) = self.threads.get(&number) {
            if !self.specs[&spec].ends_with_thread {
                return Err(Error::AlreadyAttached { spec: spec.0, thread: number });
            }
            self.change(&caller, spec, parameters.clone())?;
            // It may have given its priority back itself.
            return self.reassert(spec);
        }
        let spec = self.create(&caller, parameters.clone(), Some(NAME.into()))?.id;
        let attached = self.attach_number(&caller, spec, number, number);
        match attached {
            Ok(()) => {
                self.specs.get_mut(&spec).expect("it was attached").ends_with_thread = true;
                self.write_record(spec);
            }
            Err(_) => self.end_specs(&[spec]),
        }
        attached
    }
}

/// What a wish declares.
fn parameters(wish: Wish, kit: &RealtimeKit) -> Result<Parameters, Refusal> {
    let none = Parameters::default();
    match wish {
        Wish::Realtime(priority) => Ok(Parameters {
            priority: Some(priority),
            runtime: kit.budget.map(|(runtime, _)| runtime),
            period: kit.budget.map(|(_, period)| period),
            plugin: Some(kit.plugin.clone()),
            ..none
        }),
        Wish::HighPriority(nice) => match &kit.nice_plugin {
            Some(plugin) => Ok(Parameters { nice: Some(nice), plugin: Some(plugin.clone()), ..none }),
            None => Err(Refusal::Denied("punctuald has no plugin of kind NICE".into())),
        },
    }
}

/// RTKit's own choice of errors: what is not allowed is told from what does not work.
fn refusal(error: Error) -> Refusal {
    let why = error.to_string();
    match error {
        Error::NotAdmitted { .. }
        | Error::NotPermitted { .. }
        | Error::NotOwner { .. }
        | Error::AlreadyAttached { .. }
        | Error::TooMany { .. } => Refusal::Denied(why),
        _ => Refusal::Failed(why),
    }
}
