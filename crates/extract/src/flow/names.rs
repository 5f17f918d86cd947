//! Unique names for tasks and channels.

use std::collections::{BTreeMap, BTreeSet};

/// Names from the trace; those that are shared or missing get the number.
pub fn unique(numbers: &BTreeSet<u16>, named: &BTreeMap<u16, String>, noun: &str) -> BTreeMap<u16, String> {
    let mut shared: BTreeMap<&str, usize> = BTreeMap::new();
    for number in numbers {
        *shared.entry(named.get(number).map_or("", String::as_str)).or_default() += 1;
    }
    let mut taken = BTreeSet::new();
    let mut names = BTreeMap::new();
    for number in numbers {
        let mut name = match named.get(number).map(String::as_str) {
            None | Some("") => format!("{noun} {number}"),
            Some(name) if shared[name] > 1 => format!("{name} ({number})"),
            Some(name) => name.to_owned(),
        };
        // Another one may have that name.
        while (shared.contains_key(name.as_str()) && named.get(number) != Some(&name))
            || !taken.insert(name.clone())
        {
            name.push_str(&format!(" ({number})"));
        }
        names.insert(*number, name);
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_share_a_name() {
        let named = [(0, "a"), (1, "a"), (2, "a (1)"), (3, ""), (5, "task 4")]
            .map(|(number, name)| (number, name.to_owned()));
        let names = unique(&(0..6).collect(), &BTreeMap::from(named), "task");
        let all: BTreeSet<&String> = names.values().collect();
        assert_eq!(all.len(), 6, "{names:?}");
        assert_eq!(
            (names[&0].as_str(), names[&2].as_str(), names[&3].as_str()),
            ("a (0)", "a (1)", "task 3")
        );
    }
}
