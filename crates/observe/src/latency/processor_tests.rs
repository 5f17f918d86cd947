use super::*;

/// Memory as the programs see it before anything has happened.
fn empty() -> Shared {
    let memory = MmapMut::map_anon(size_of::<latency_shared>()).unwrap();
    Shared { number: 0, memory, offset: 0, interrupts: Reader::default(), read_nmis: 0, known: [(0, 0); 4] }
}

impl Shared {
    /// What the programs write.
    fn programs(&mut self) -> &mut latency_shared {
        // SAFETY: as long as the struct, of which every bit pattern is one, and nobody else's.
        unsafe { &mut *self.memory.as_mut_ptr().cast::<latency_shared>() }
    }
}

/// The host may hold the processor up while its program writes a latency that is greater than before. What is
/// there then belongs together no more; it is handed on once it does again.
#[test]
fn a_latency_that_is_being_written_is_read_later() {
    let mut shared = empty();
    let thread = &mut shared.programs().threads[3];
    (thread.tid, thread.wakeups, thread.max, thread.max_at) = (7, 1, 500, 1_000);
    (thread.worst.ready, thread.worst.parts[4].spent) = (1_000, 500);
    let symbols = Symbols::parse("");
    let whole = shared.threads(&symbols);
    assert_eq!((whole.len(), whole[0].max.ns()), (1, 500));
    assert!(whole[0].worst.is_some() && !shared.is_being_written());

    let thread = &mut shared.programs().threads[3];
    (thread.sequence, thread.wakeups, thread.max) = (1, 2, 900);
    assert_eq!(shared.threads(&symbols), []);
    assert!(shared.is_being_written());

    let thread = &mut shared.programs().threads[3];
    (thread.sequence, thread.max_at) = (2, 2_000);
    (thread.worst.ready, thread.worst.parts[4].spent) = (2_000, 900);
    let whole = shared.threads(&symbols);
    let parts = &whole[0].worst.as_ref().unwrap().parts;
    assert_eq!((whole[0].max.ns(), whole[0].max_at.ns(), parts[0].spent.ns()), (900, 2_000, 900));
    assert!(!shared.is_being_written());
}

/// A culprit, too.
#[test]
fn a_culprit_that_is_being_written_is_read_later() {
    let mut shared = empty();
    let symbols = Symbols::parse("");
    let programs = shared.programs();
    programs.cpu.greatest[1].duration = 700;
    (programs.culprits[1].sequence, programs.culprits[1].maximum.duration) = (1, 700);
    let grown = shared.grown(&symbols);
    assert_eq!((grown[0].variable, grown[0].duration.ns()), (Variable::Psd, 700));
    assert!(grown[0].culprit.is_none() && shared.is_being_written());

    shared.programs().culprits[1].sequence = 2;
    let grown = shared.grown(&symbols);
    assert!(grown[0].culprit.is_some() && !shared.is_being_written());
    assert_eq!(shared.grown(&symbols), []);
}
