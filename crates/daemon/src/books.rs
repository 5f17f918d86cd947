//! Utilization per user, per group and in total, under each plugin and under all: what rules about sums need.
//! And what the specs of a processor may ask of it.

use crate::access::{Domain, Share, Usage, Who};
use crate::demand::Demand;
use crate::registry::Admission;
use rustc_hash::FxHashMap as HashMap;

/// Sums of accepted shares.
#[derive(Debug, Default)]
pub struct Books {
    /// By domain, and by plugin or for all. Zero sums have no entry.
    sums: HashMap<(Domain, Option<usize>), u128>,
    /// By processor.
    demands: HashMap<u32, Demand>,
}

impl Books {
    /// Adds a spec.
    pub fn add(&mut self, who: &Who, admission: &Admission) {
        self.each(who, admission.plugin, admission.share, |sum, share| sum + share);
        self.demands.entry(admission.offer.processor).or_default().add(&admission.demand);
    }

    /// Removes a spec.
    pub fn remove(&mut self, who: &Who, admission: &Admission) {
        self.each(who, admission.plugin, admission.share, |sum, share| sum - share);
        let processor = admission.offer.processor;
        let demand = self.demands.entry(processor).or_default();
        demand.remove(&admission.demand);
        if *demand == Demand::default() {
            self.demands.remove(&processor);
        }
    }

    /// What all specs on a processor may ask of it.
    pub fn demand(&self, processor: u32) -> Demand {
        self.demands.get(&processor).copied().unwrap_or_default()
    }

    fn each(&mut self, who: &Who, plugin: usize, share: Share, change: impl Fn(u128, u128) -> u128) {
        if share == Share::default() {
            return;
        }
        for domain in who.domains() {
            for key in [(domain, None), (domain, Some(plugin))] {
                let sum = self.sums.entry(key).or_default();
                *sum = change(*sum, share.0);
                if *sum == 0 {
                    self.sums.remove(&key);
                }
            }
        }
    }

    /// Whether there are no specs.
    pub fn is_empty(&self) -> bool {
        self.sums.is_empty() && self.demands.is_empty()
    }
}

/// The books as one request sees them, without the spec that it replaces.
pub struct View<'a> {
    /// All of it.
    pub books: &'a Books,
    /// Which plugin has which number.
    pub plugin: &'a dyn Fn(&str) -> Option<usize>,
    /// The replaced spec.
    pub without: Option<(&'a Who, usize, Share)>,
}

impl Usage for View<'_> {
    fn share(&self, domain: Domain, plugin: Option<&str>) -> Share {
        let number = match plugin {
            None => None,
            Some(name) => match (self.plugin)(name) {
                None => return Share::default(),
                number => number,
            },
        };
        let sum = self.books.sums.get(&(domain, number)).copied().unwrap_or_default();
        let gone = match self.without {
            Some((who, under, share)) if who.is_in(domain) && number.is_none_or(|number| number == under) => {
                share.0
            }
            _ => 0,
        };
        Share(sum - gone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_schedule::Offer;

    #[test]
    fn additions_can_be_undone() {
        let one = Who { user: 1, group: 1, groups: vec![5] };
        let two = Who { user: 2, group: 5, groups: vec![] };
        let mut books = Books::default();
        let admission = |plugin, share, processor| Admission {
            plugin,
            offer: Offer { processor, accepted_runtime: None, ignored: true },
            partial: false,
            share: Share(share),
            demand: Demand { backlog: share, rate: 1, unknown: 1 },
            authorised: false,
        };
        let (ten, seven) = (admission(0, 10, 3), admission(1, 7, 3));
        books.add(&one, &ten);
        books.add(&two, &seven);
        assert_eq!(books.demand(3), Demand { backlog: 17, rate: 2, unknown: 2 });
        assert_eq!(books.demand(2), Demand::default());
        let plugin = |name: &str| name.parse().ok();
        let view = View { books: &books, plugin: &plugin, without: None };
        assert_eq!(view.share(Domain::Group(5), None), Share(17));
        assert_eq!(view.share(Domain::Group(5), Some("1")), Share(7));
        assert_eq!(view.share(Domain::User(1), Some("1")), Share(0));
        assert_eq!(view.share(Domain::Everyone, Some("no")), Share(0));
        let view = View { books: &books, plugin: &plugin, without: Some((&two, 1, Share(7))) };
        assert_eq!(view.share(Domain::Everyone, None), Share(10));
        assert_eq!(view.share(Domain::Everyone, Some("0")), Share(10));
        assert_eq!(view.share(Domain::User(2), Some("1")), Share(0));
        books.remove(&one, &ten);
        books.remove(&two, &seven);
        assert!(books.is_empty());
    }
}
