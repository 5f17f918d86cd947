//! What to edit if a spec is refused for want of a plugin.

use super::Setup;
use crate::config::Kind;
use punctual_schedule::Parameters;
use std::path::Path;

/// What installing copies the configuration to; without a file of its own, the daemon has the same inside.
const EXAMPLE: &str = "/usr/local/share/punctual/punctuald.toml";

impl Setup {
    /// The edit that configures a plugin for such a spec, if there is none yet that could take it.
    pub(super) fn hint(&self, parameters: &Parameters) -> Option<String> {
        use punctual_schedule::Kind::{Fp, Nice, Rr};
        let has = |kinds: &[punctual_schedule::Kind]| {
            self.plugins.iter().any(|it| kinds.iter().any(|kind| it.config.kind == Kind::BuiltIn(*kind)))
        };
        let wanted = match &parameters.plugin {
            // An installed configuration has each kind under its own name, most of them commented out.
            Some(name) => {
                let is_there = self.plugins.iter().any(|it| it.plugin.name().eq_ignore_ascii_case(name));
                let kind: Option<punctual_schedule::Kind> = name.parse().ok();
                kind.filter(|_| !is_there)?.to_string()
            }
            None if parameters.nice.is_some() && !has(&[Nice]) => Nice.to_string(),
            None if parameters.priority.is_some() && parameters.period.is_none() && !has(&[Fp, Rr]) => {
                format!("{Fp} or {Rr}")
            }
            None => return None,
        };
        let edit = format!("uncomment the [[plugin]] {wanted} in");
        let reload = "then systemctl reload punctuald";
        Some(match self.path.is_file() {
            true => format!("{edit} {}, {reload}", self.path.display()),
            false => {
                let place = Path::new(crate::config::DEFAULT_PATH);
                format!("copy {EXAMPLE} to {0}, {edit} it, {reload}", place.display())
            }
        })
    }
}
