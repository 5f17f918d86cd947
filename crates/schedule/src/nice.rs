//! The plugin NICE: ordinary threads at a nice level, on any processor. Nothing is promised, so nothing is
//! tested; rules and quotas limit it, and the daemon undoes it like everything else.

use crate::{
    ANYWHERE, Answer, AssignedPolicy, Assignment, Load, Offer, Parameters, Plugin, Refusal, Settings, SpecId,
};
use rustc_hash::FxHashMap;

/// Nice levels by spec.
#[derive(Debug)]
pub(crate) struct Nice {
    settings: Settings,
    specs: FxHashMap<SpecId, i32>,
}

impl Nice {
    pub(crate) fn new(settings: Settings) -> Self {
        Self { settings, specs: FxHashMap::default() }
    }
}

impl Plugin for Nice {
    fn name(&self) -> &str {
        &self.settings.name
    }

    fn consider(&self, parameters: &Parameters, _: Option<SpecId>) -> Answer {
        if let Err(bound) = parameters.check(&self.settings.limits) {
            return Answer::No(Refusal::Bound(bound));
        }
        if parameters.nice.is_none() {
            return Answer::No(Refusal::Lacks("nice"));
        }
        Answer::Ok(Offer { processor: ANYWHERE, accepted_runtime: parameters.runtime, ignored: false })
    }

    fn consider_within(
        &self,
        parameters: &Parameters,
        replacing: Option<SpecId>,
        _: &dyn Fn(u32) -> bool,
    ) -> Answer {
        self.consider(parameters, replacing)
    }

    fn admit(&mut self, spec: SpecId, parameters: &Parameters, _: Offer) {
        if let Some(nice) = parameters.nice {
            self.specs.insert(spec, nice);
        }
    }

    fn release(&mut self, spec: SpecId) {
        self.specs.remove(&spec);
    }

    fn assignment(&self, spec: SpecId) -> Option<Assignment> {
        let nice = *self.specs.get(&spec)?;
        Some(Assignment { processor: ANYWHERE, policy: AssignedPolicy::Other { nice } })
    }

    fn shifted(&mut self) -> bool {
        false
    }

    /// It counts no processor's time.
    fn loads(&self) -> Vec<Load> {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Kind, Limits, Test, plugin};

    #[test]
    fn a_nice_level_is_given_without_a_processor() {
        let settings = Settings {
            name: "NICE".into(),
            processors: vec![0],
            priorities: (1, 99),
            threshold: 0.95,
            test: Test::Exact,
            limits: Limits::default(),
            platforms: Vec::new(),
            reserves: Vec::new(),
            without_runtime_up_to: None,
        };
        let mut nice = plugin(Kind::Nice, settings).expect("a plugin");
        let without = nice.consider(&Parameters::default(), None);
        assert_eq!(without, Answer::No(Refusal::Lacks("nice")));
        let parameters = Parameters { nice: Some(-11), ..Parameters::default() };
        let Answer::Ok(offer) = nice.consider(&parameters, None) else { panic!("it is refused") };
        nice.admit(SpecId(1), &parameters, offer);
        let expected = Assignment { processor: ANYWHERE, policy: AssignedPolicy::Other { nice: -11 } };
        assert_eq!(nice.assignment(SpecId(1)), Some(expected));
        nice.release(SpecId(1));
        assert_eq!(nice.assignment(SpecId(1)), None);
    }
}
