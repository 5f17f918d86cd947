use punctual_extract::{Extractor, Options};
use punctual_trace::Record;
use std::num::NonZeroUsize;
use std::ops::Range;
pub trait Source: Sync {
    type Error: Send;
    fn stretches(&self) -> usize;
    fn activations(&self, stretch: usize) -> u64;
    fn read(&self, stretches: Range<usize>, each: &mut dyn FnMut(&Record)) -> Result<(), Self::Error>;
}
pub struct Replay {
    pub workers: NonZeroUsize,
    pub options: Options,
}
pub fn replay<S: Source>(source: &S, replay: &Replay, progress: &(dyn Fn(u64) + Sync)) -> Result<Extractor, S::Error> {
    let mut extractor = Extractor::new(replay.options.clone());
    let mut n = 0;
    source.read(0..source.stretches(), &mut |record| {
        n += u64::from(matches!(record, Record::Activation(_)));
        extractor.record(record)
    })?;
    progress(n);
    Ok(extractor)
}
