//! One question over the bus, on a thread and a connection of its own.

use super::{Question, Verdict};
use crate::bus::Slot;
use punctual_protocol::one_line;
use std::collections::HashMap;
use std::os::fd::AsFd;
use zbus::blocking::Connection;
use zbus::zvariant::{Fd, Value};

const NAME: &str = "org.freedesktop.PolicyKit1";
const PATH: &str = "/org/freedesktop/PolicyKit1/Authority";
const INTERFACE: &str = "org.freedesktop.PolicyKit1.Authority";
/// `AllowUserInteraction`.
const INTERACTIVE: u32 = 1;

/// Whether it is authorised, whether it would be after an authentication, and more.
type Reply = (bool, bool, HashMap<String, String>);

/// Waits for the answer; ends early if `slot` does.
pub(super) fn ask(question: &Question, slot: &Slot<Connection>) -> Verdict {
    let reply = call(question, slot);
    slot.clear();
    match reply {
        Ok((true, _, _)) => Verdict::Authorised,
        Ok((false, challenges, details)) => {
            let dismissed = details.contains_key("polkit.dismissed");
            Verdict::Denied(denied(question, challenges, dismissed))
        }
        Err(error) => Verdict::Denied(failed(&error)),
    }
}

fn denied(question: &Question, challenges: bool, dismissed: bool) -> String {
    let action = question.action;
    match (challenges, question.interactive) {
        _ if dismissed => format!("the authentication for {action} was dismissed"),
        (false, _) => format!("Polkit does not authorise {action}"),
        (true, false) => format!(
            "Polkit authorises {action} after an authentication only, and the request does not allow to ask \
             for one (interactive)"
        ),
        (true, true) => format!(
            "Polkit authorises {action} after an authentication only, which failed, or for which there is no \
             agent: see pkttyagent(1)"
        ),
    }
}

fn failed(error: &zbus::Error) -> String {
    match error {
        zbus::Error::MethodError(name, text, _) if name.ends_with(".ServiceUnknown") => {
            let text = text.as_deref().map_or(String::new(), |text| format!(" ({})", one_line(text)));
            format!("Polkit is not on the system bus{text}: is polkitd installed?")
        }
        error => format!("Polkit cannot be asked: {}", one_line(&error.to_string())),
    }
}

fn call(question: &Question, slot: &Slot<Connection>) -> zbus::Result<Reply> {
    let connection = Connection::system()?;
    if let Err(connection) = slot.put(connection.clone()) {
        // Nobody waits any more.
        connection.close()?;
        return Err(zbus::Error::Failure("cancelled".into()));
    }
    let subject = &question.subject;
    let about: HashMap<&str, Value<'_>> = HashMap::from([
        ("pid", subject.process.into()),
        ("start-time", subject.start.into()),
        ("uid", (subject.user as i32).into()),
        // Newer versions of Polkit take this before the number.
        ("pidfd", Fd::from(subject.pidfd.as_fd()).into()),
    ]);
    let details: HashMap<&str, &str> =
        question.details.iter().map(|(key, value)| (*key, value.as_str())).collect();
    let flags = if question.interactive { INTERACTIVE } else { 0 };
    let arguments = (("unix-process", about), question.action, details, flags, "");
    let reply =
        connection.call_method(Some(NAME), PATH, Some(INTERFACE), "CheckAuthorization", &arguments)?;
    reply.body().deserialize()
}
