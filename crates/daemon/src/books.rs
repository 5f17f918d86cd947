//! Utilization per user, per group and in total, under each plugin and under all: what rules about sums need.

use crate::access::{Domain, Share, Usage, Who};
use rustc_hash::FxHashMap as HashMap;

/// Sums of accepted shares.
#[derive(Debug, Default)]
pub struct Books {
    /// By domain, and by plugin or for all. Zero sums have no entry.
    sums: HashMap<(Domain, Option<usize>), u128>,
}

impl Books {
    /// Adds a spec.
    pub fn add(&mut self, who: &Who, plugin: usize, share: Share) {
        self.each(who, plugin, share, |sum, share| sum + share);
    }

    /// Removes a spec.
    pub fn remove(&mut self, who: &Who, plugin: usize, share: Share) {
        self.each(who, plugin, share, |sum, share| sum - share);
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
        self.sums.is_empty()
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

    #[test]
    fn additions_can_be_undone() {
        let one = Who { user: 1, group: 1, groups: vec![5] };
        let two = Who { user: 2, group: 5, groups: vec![] };
        let mut books = Books::default();
        books.add(&one, 0, Share(10));
        books.add(&two, 1, Share(7));
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
        books.remove(&one, 0, Share(10));
        books.remove(&two, 1, Share(7));
        assert!(books.is_empty());
    }
}
