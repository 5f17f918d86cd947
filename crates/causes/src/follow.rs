//! Follows a sleep to what ended it: the critical path.

use crate::event::{Urgency, Wait, Waker};
use crate::history::History;
use crate::part::{Chain, Culprit, Kind, Part, Role};
use crate::thread::Stretch;
use punctual_model::Duration;

/// Who is behind a sleep, and what that thread did meanwhile.
pub(crate) fn follow(
    history: &History,
    sleeper: u32,
    sleep: &Stretch,
    wait: Wait,
    waker: Option<Waker>,
    steps: u32,
) -> (Option<Culprit>, Option<Box<Chain>>) {
    let woken_by = match waker {
        Some(Waker::Thread(thread)) => Some(thread),
        _ => None,
    };
    // The owner is that at the time of blocking. If another thread ends the wait, the lock has changed hands,
    // or it is none.
    let other = match (wait.owner, woken_by) {
        (Some(owner), None) => Some((owner, Role::Owner)),
        (Some(owner), Some(waker)) if owner == waker => Some((owner, Role::Owner)),
        (_, waker) => waker.map(|thread| (thread, Role::Waker)),
    };
    let Some((thread, role)) = other.filter(|(thread, _)| *thread != sleeper && *thread != 0) else {
        return (None, None);
    };
    let culprit = Some(Culprit::Thread(thread));
    if steps == 0 {
        return (culprit, None);
    }
    let parts = history.cut(thread, sleep.from, sleep.until, steps - 1);
    let inverted = parts.iter().filter(|part| is_inversion(history, sleeper, sleep, part));
    let inverted = inverted.fold(Duration::ZERO, |sum, part| sum + part.time);
    let inversion = inverted + inverted >= sleep.until.since(sleep.from);
    (culprit, Some(Box::new(Chain { thread, role, parts, inversion })))
}

/// Whether another thread had the processor of the one that is waited for, and is less urgent than the
/// sleeper.
fn is_inversion(history: &History, sleeper: u32, sleep: &Stretch, part: &Part) -> bool {
    let Some(Culprit::Thread(other)) = part.culprit else { return false };
    matches!(part.kind, Kind::Preempted | Kind::Queued | Kind::Dispatch)
        && other != sleeper
        && ![sleep.urgency, history.urgency(other, part.from)].contains(&Urgency::UNKNOWN)
        && history.urgency(other, part.from) > sleep.urgency
}
