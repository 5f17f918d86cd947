//! The data of all chains on their way: what waits at each input, what an instance reads of it and carries
//! on, and what becomes of it at the end of a chain.

use super::chains::Chains;
use super::inputs::{Place, Taken};
use super::instances::Instance;
use super::lineage::{Backlog, Carried, Carry, Window};
use super::sources::{ChainState, EndToEnd, EndToEndKind};
use super::tree::Tree;
use punctual_model::Instant;
use std::rc::Rc;

/// The state of all chains.
#[derive(Debug)]
pub struct Paths {
    pub tree: Tree,
    /// By chain.
    pub chains: Vec<ChainState>,
    /// By node of the tree.
    inboxes: Vec<Inbox>,
    /// Latencies that have not been handed out yet, if they are wanted.
    pub ended: Option<Vec<EndToEnd>>,
}

/// Data that instances of a node's task have not read yet.
#[derive(Clone, Debug, Default)]
pub struct Inbox {
    /// Pushed since the last activation.
    since: Window,
    /// The newest datum of each register, with the time of the last push there. Reading leaves it there.
    registers: Vec<(Instant, Window)>,
    /// By counter of the task.
    queues: Vec<Backlog>,
}

impl Inbox {
    /// For a task with so many registers and counters.
    pub fn new(registers: usize, counters: usize) -> Inbox {
        Inbox {
            since: Window::Empty,
            registers: vec![(Instant::from_ns(0), Window::Empty); registers],
            queues: vec![Backlog::default(); counters],
        }
    }

    /// The newest data of all registers, with the times of the last pushes.
    pub fn registers(&self) -> &[(Instant, Window)] {
        &self.registers
    }

    /// Whether a register has a datum, or may have one.
    pub fn holds_newest(&self) -> bool {
        self.registers.iter().any(|(_, window)| !matches!(window, Window::Empty))
    }

    /// Keeps a datum where the input does; `counted` says which push of a counter it is.
    #[inline]
    pub fn put(&mut self, place: Place, window: Window, counted: impl Fn(usize) -> u64) {
        match place {
            Place::Since => self.since.join(window),
            Place::Newest(register) => self.registers[register].1 = window,
            Place::Queue(_) if matches!(window, Window::Empty) => {}
            Place::Queue(counter) => self.queues[counter].put(counted(counter), window),
        }
    }

    /// What an activation takes from everything but the registers.
    #[inline]
    pub fn take(&mut self, taken: &[Taken]) -> Window {
        let mut window = std::mem::take(&mut self.since);
        for (queue, taken) in self.queues.iter_mut().zip(taken) {
            window.join(match taken.is_told {
                true if taken.from == taken.until => Window::Empty,
                true => queue.take_one(taken.from),
                false => queue.take(taken.from, taken.until),
            });
            if !taken.is_known {
                window = Window::Unknown;
            }
        }
        window
    }
}

impl Paths {
    /// Nothing is on its way yet. `inboxes` has one for each node.
    pub fn new(tree: Tree, chains: &Chains, inboxes: Vec<Inbox>, span: (Instant, Instant)) -> Paths {
        let chains = chains.chains.iter().map(|_| ChainState::new(span.0, span.1)).collect();
        Paths { tree, chains, inboxes, ended: None }
    }

    pub fn inbox(&self, node: usize) -> &Inbox {
        &self.inboxes[node]
    }

    pub fn inbox_mut(&mut self, node: usize) -> &mut Inbox {
        &mut self.inboxes[node]
    }

    /// A push on this channel, of whatever: no datum before it is the newest any more.
    #[inline]
    pub fn clear_registers(&mut self, channel: u16, at: Instant) {
        for (node, register) in self.tree.registers.get(&channel).into_iter().flatten() {
            self.inboxes[*node].registers[*register] = (at, Window::Empty);
        }
    }

    /// A push of unknown data; `counted` says which push of a task's counter it is.
    #[cold]
    pub fn put_unknown(&mut self, channel: u16, counted: impl Fn(u16, usize) -> u64) {
        for (node, place) in self.tree.behind.get(&channel).into_iter().flatten() {
            let task = self.tree.nodes[*node].task;
            self.inboxes[*node].put(*place, Window::Unknown, |counter| counted(task, counter));
        }
    }

    /// An instance puts its first datum on the chains that go through this node, if there are any.
    #[inline]
    pub fn enter_chains(&mut self, node: usize, carry: &Carry, entered: &mut Vec<usize>) {
        let chains = &self.tree.nodes[node].chains;
        if chains.is_empty() || entered.contains(&node) {
            return;
        }
        entered.push(node);
        for chain in chains {
            match carry {
                Carry::Known(carried) => self.chains[*chain].put(carried),
                _ => self.chains[*chain].put_unknown(),
            }
        }
    }

    /// An instance reads what it has taken at each of its task's nodes.
    pub fn read(&mut self, instance: &mut Instance, nodes: &[usize], at: Instant) {
        let Some(activation) = instance.activation else { return self.read_unknown(instance, nodes, at) };
        for (node, window) in nodes.iter().zip(instance.windows.drain(..)) {
            let node = &self.tree.nodes[*node];
            let carry = match node.parent {
                None => Carry::Known(Rc::new(Carried {
                    source: instance.number,
                    source_activation: activation,
                    instance: instance.number,
                    activation,
                    busy: None,
                    via: None,
                })),
                Some(_) => window.read(instance.number, activation, instance.busy),
            };
            if let Some(chain) = node.chain {
                match &carry {
                    Carry::Nothing => {}
                    Carry::Known(carried) => self.chains[chain]
                        .read(carried, &mut |waiting| instance.waiting.push((chain, waiting))),
                    Carry::Unknown => self.chains[chain].read_unknown(at),
                }
            }
            instance.carries.push(carry);
        }
    }

    /// An instance reads data that nobody knows, because events of it are missing.
    #[cold]
    pub fn read_unknown(&mut self, instance: &mut Instance, nodes: &[usize], at: Instant) {
        instance.is_read = true;
        instance.carries.resize(nodes.len(), Carry::Unknown);
        self.end_unknown(nodes, at);
    }

    /// An instance whose start is missing has read whatever was at the ends of chains.
    #[cold]
    pub fn end_unknown(&mut self, nodes: &[usize], at: Instant) {
        let ends = nodes.iter().filter_map(|node| self.tree.nodes[*node].chain);
        ends.for_each(|chain| self.chains[chain].read_unknown(at));
    }

    /// Somebody who is not followed has read what was at this node.
    #[cold]
    pub fn forget_waiting(&mut self, node: usize, at: Instant) {
        if let Some(chain) = self.tree.nodes[node].chain {
            self.chains[chain].forget_waiting(at);
        }
    }

    /// An instance has ended, and with it the ways of the data that it carried to the end of a chain.
    pub fn complete(&mut self, instance: &Instance, nodes: &[usize], start: Instant, stop: Instant) {
        for (node, carry) in nodes.iter().zip(&instance.carries) {
            let (Some(chain), Carry::Known(sink)) = (self.tree.nodes[*node].chain, carry) else { continue };
            let state = &mut self.chains[chain];
            let of_chain = || instance.waiting.iter().filter(move |(waits_for, _)| *waits_for == chain);
            for (_, waiting) in of_chain() {
                state.react(*waiting, sink, start, stop);
            }
            state.end(sink, start, stop);
            let Some(ended) = &mut self.ended else { continue };
            let end_to_end = |kind, source, from| EndToEnd {
                chain,
                kind,
                source,
                from,
                sink: instance.number,
                until: stop,
            };
            let reactions =
                of_chain().map(|(_, it)| end_to_end(EndToEndKind::Reaction, it.instance, it.activation));
            ended.extend(reactions);
            ended.push(end_to_end(EndToEndKind::Age, sink.source, sink.source_activation));
        }
    }

    /// An instance is not followed to its end: so are the data that it carried.
    pub fn abandon(&mut self, instance: &Instance, nodes: &[usize], is_in_flight: bool) {
        for (chain, _) in &instance.waiting {
            let state = &mut self.chains[*chain];
            *(if is_in_flight { &mut state.in_flight } else { &mut state.incomplete }) += 1;
        }
        for (node, carry) in nodes.iter().zip(&instance.carries) {
            // Unknown data was counted when it was read.
            let (Some(chain), Carry::Known(_)) = (self.tree.nodes[*node].chain, carry) else { continue };
            let state = &mut self.chains[chain];
            *(if is_in_flight { &mut state.sinks_in_flight } else { &mut state.sinks_incomplete }) += 1;
        }
    }
}
