//! Plugins from shared objects, behind the same trait as the built-in ones. `include/punctual-plugin.h` is the contract.

use punctual_schedule::{Answer, Assignment, Load, Offer, Parameters, Plugin, Settings, SpecId};
use std::path::Path;

/// A plugin of a shared object.
#[derive(Debug)]
pub struct Shared {}

impl Shared {
    /// Loads an object and makes one plugin of it.
    pub fn load(path: &Path, _settings: Settings) -> Result<Shared, String> {
        Err(format!("{}: shared objects cannot be loaded yet", path.display()))
    }
}

impl Plugin for Shared {
    fn name(&self) -> &str {
        ""
    }
    fn consider(&self, _: &Parameters, _: Option<SpecId>) -> Answer {
        unreachable!("none is ever made")
    }
    fn admit(&mut self, _: SpecId, _: &Parameters, _: Offer) {}
    fn release(&mut self, _: SpecId) {}
    fn assignment(&self, _: SpecId) -> Option<Assignment> {
        None
    }
    fn shifted(&mut self) -> bool {
        false
    }
    fn loads(&self) -> Vec<Load> {
        Vec::new()
    }
}
