//! Callbacks of clients, of which no event tells: a response was taken, and then the executor went on.

use super::super::calls::{Handle, Thread};
use super::super::graph::Graph;
use super::super::messages::Sent;
use super::{Follow, Out, Step, producer};
use punctual_model::Instant;

impl Follow {
    /// No event tells of the callback of a client: it begins when the executor has taken the response, and
    /// has ended when the executor goes on.
    pub(super) fn take_response(
        &mut self,
        at: Instant,
        thread: Thread,
        (rmw, sequence): (Handle, u64),
        graph: &mut Graph,
        out: Out,
    ) {
        self.end_client(at, thread, out);
        let Some((_, task, client)) = graph.known_client(thread, rmw) else {
            self.unknown.subscriptions += 1;
            return;
        };
        let state = self.threads.entry(thread).or_default();
        let taken = state.taken.take();
        let is_told = state.has_executor && state.stack.is_empty();
        self.not_called(thread, taken);
        if !is_told {
            self.unknown.responses += 1;
            self.open.responses.insert((task, self.taker(thread)));
            return;
        }
        let topic = graph.input(task).filter(|topic| self.has_pushes(*topic));
        let takes = topic.map(|topic| match self.messages.response((client, sequence)) {
            Sent::Number(number) => (topic, Some(number)),
            Sent::NotSeen => {
                self.unknown.messages += 1;
                (topic, None)
            }
        });
        graph.tasks[task].has_run = true;
        self.lacks_publication(task, true, takes);
        self.run(thread, (task, None), (at, at), takes, out);
    }

    /// A client's callback has ended, if the thread was in one.
    pub(super) fn end_client(&mut self, at: Instant, thread: Thread, out: Out) {
        let Some(state) = self.threads.get_mut(&thread) else { return };
        if let Some((task, instance, None)) = state.stack.last().copied() {
            let producer = producer(thread, state.stack.len());
            state.stack.pop();
            state.published = None;
            out(at, producer, Step::Stop { task, instance });
        }
    }
}
