//! The turn that is under way on a lane, for who looks from another processor without keeping the lane
//! waiting.

use super::plug::Sight;
use super::{now, was_running};
use punctual_model::Duration;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// So long who looks waits for the plug to show itself.
const PATIENCE: Duration = Duration::from_us(30);

/// Of one lane.
#[derive(Debug, Default)]
pub struct Present {
    /// The slot after its first; 0: nobody has the processor. Written last.
    turn: AtomicU64,
    tid: AtomicU32,
    /// The owner's processor time at its beginning.
    begun: AtomicU64,
}

impl Present {
    /// A turn has begun; `tid` is 0 if nobody has it.
    pub fn begin(&self, slot: u64, tid: u32, begun: u64) {
        self.turn.store(0, Ordering::SeqCst);
        self.tid.store(tid, Ordering::SeqCst);
        self.begun.store(begun, Ordering::SeqCst);
        self.turn.store(if tid == 0 { 0 } else { slot + 1 }, Ordering::SeqCst);
    }

    /// The first slot of the turn, if its owner has run in it and then went to sleep. `used` tells how much
    /// processor time a thread has used.
    ///
    /// The plug runs only while the owner does not want to: one that is seen after the owner has used
    /// some time, and before the turn is over, proves it.
    pub fn slept(&self, plug: &Sight, used: impl Fn(u32) -> Option<u64>) -> Option<u64> {
        let turn = self.turn.load(Ordering::SeqCst);
        let (tid, begun) = (self.tid.load(Ordering::SeqCst), self.begun.load(Ordering::SeqCst));
        let may_be = turn != 0 && was_running(plug.seen(), now()) && used(tid)? > begun;
        let since = now();
        while may_be && plug.seen() <= since {
            if now().since(since) > PATIENCE {
                return None;
            }
            std::hint::spin_loop();
        }
        (may_be && self.turn.load(Ordering::SeqCst) == turn).then(|| turn - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::user::plug::Plug;

    #[test]
    fn only_who_has_run_and_sleeps_is_asleep() {
        let (plug, plugging) = Plug::spinning();
        let present = Present::default();
        let sight = plug.sight();
        let after = |time| move |_| Some(time);
        assert_eq!(present.slept(&sight, after(5)), None, "there is no turn");
        present.begin(7, 100, 5);
        assert_eq!(present.slept(&sight, after(5)), None, "it has not run yet");
        // The plug may be taken off its processor meanwhile.
        let mut found = None;
        while found.is_none() {
            std::thread::yield_now();
            found = present.slept(&sight, after(6));
        }
        assert_eq!(found, Some(7));
        assert_eq!(present.slept(&sight, |_| None), None, "it has ended");
        assert_eq!(
            present.slept(&sight, |_| {
                present.begin(9, 101, 0);
                Some(6)
            }),
            None,
            "the turn is over"
        );
        present.begin(9, 0, 0);
        assert_eq!(present.slept(&sight, after(6)), None, "nobody has it");
        drop(plug);
        plugging.join().expect("it ends");
        present.begin(11, 100, 0);
        assert_eq!(present.slept(&sight, after(6)), None, "no plug is seen");
    }
}
