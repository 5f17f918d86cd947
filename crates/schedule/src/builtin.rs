//! The built-in plugins, from their settings.

use crate::edf::Edf;
use crate::fixed::Fixed;
use crate::global::Global;
use crate::nice::Nice;
use crate::plugin::Plugin;
use crate::rm::RateMonotonic;
use crate::settings::{Kind, Settings};

/// Makes a built-in plugin without any specs. Errors are messages for administrators.
pub fn plugin(kind: Kind, settings: Settings) -> Result<Box<dyn Plugin>, String> {
    settings.check(kind)?;
    Ok(match kind {
        Kind::Edf => Box::new(Edf::new(settings)),
        Kind::Rm => Box::new(RateMonotonic::new(settings)),
        Kind::Fp => Box::new(Fixed::fifo(settings)),
        Kind::Rr => Box::new(Fixed::round_robin(settings)),
        Kind::Gedf => Box::new(Global::new(settings)),
        Kind::Nice => Box::new(Nice::new(settings)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Limits, Test};

    fn settings() -> Settings {
        Settings {
            name: "A".into(),
            processors: vec![0, 1],
            priorities: (1, 50),
            threshold: 0.9,
            test: Test::default(),
            limits: Limits::default(),
            platforms: Vec::new(),
            reserves: Vec::new(),
            without_runtime_up_to: None,
        }
    }

    #[test]
    fn every_kind_of_plugin_gets_the_configured_name() {
        for kind in Kind::ALL {
            let plugin = plugin(kind, settings()).unwrap();
            assert_eq!(plugin.name(), "A");
            let processors: Vec<u32> = plugin.loads().iter().map(|load| load.processor).collect();
            assert_eq!(processors, if kind == Kind::Nice { vec![] } else { vec![0, 1] });
        }
    }

    #[test]
    fn invalid_settings_are_refused_by_name() {
        let refused = |kind, settings| plugin(kind, settings).map(|_| ()).unwrap_err();
        assert!(refused(Kind::Edf, Settings { processors: vec![], ..settings() }).contains("one processor"));
        assert!(
            refused(Kind::Edf, Settings { processors: vec![1, 0, 1], ..settings() }).contains("processor 1")
        );
        for threshold in [0.0, -1.0, 1.1, f64::NAN] {
            assert!(refused(Kind::Edf, Settings { threshold, ..settings() }).contains("threshold"));
        }
        for priorities in [(0, 9), (9, 8), (1, 100)] {
            assert!(refused(Kind::Rm, Settings { priorities, ..settings() }).contains("priorities"));
        }
        assert!(
            plugin(Kind::Edf, Settings { priorities: (100, 100), ..settings() }).is_ok(),
            "the paper's own example"
        );
    }
}
