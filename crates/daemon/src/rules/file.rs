//! The file of rules: four columns, as in `limits.conf` (ReTiF, Listing 3), and a fifth for Polkit.

use super::property::{CONDITIONS, Make, Property};
use super::rule::Rule;
use crate::access::{Domain, Share};
use crate::text::{Error, Problem};
use punctual_model::Duration;
use punctual_protocol::NICE_LEVELS;
use std::path::Path;

/// Whom names stand for.
pub trait Names {
    /// A user's number.
    fn user(&self, name: &str) -> Option<u32>;
    /// A group's number.
    fn group(&self, name: &str) -> Option<u32>;
}

/// As this machine knows them.
#[derive(Clone, Copy, Debug)]
pub struct SystemNames;

impl Names for SystemNames {
    fn user(&self, name: &str) -> Option<u32> {
        nix::unistd::User::from_name(name).ok().flatten().map(|user| user.uid.as_raw())
    }

    fn group(&self, name: &str) -> Option<u32> {
        nix::unistd::Group::from_name(name).ok().flatten().map(|group| group.gid.as_raw())
    }
}

/// In the fifth column: the line holds for requests that Polkit has authorised.
const POLKIT: &str = "polkit";

pub(super) fn parse(
    text: &str,
    path: &Path,
    plugins: Option<&[&str]>,
    names: &dyn Names,
    priorities: (u32, u32),
) -> Result<(Vec<Rule>, Vec<Problem>), Error> {
    let (mut rules, mut warnings, mut errors) = (Vec::new(), Vec::new(), Vec::new());
    for (at, written) in text.lines().enumerate() {
        let line = at + 1;
        let columns: Vec<&str> = written.split('#').next().unwrap_or("").split_whitespace().collect();
        if columns.is_empty() {
            continue;
        }
        match rule(&columns, plugins, names, priorities) {
            Ok(Ok((domain, plugin, property))) => {
                let polkit = columns.len() > 4;
                rules.push(Rule { line, text: columns.join(" "), domain, plugin, property, polkit })
            }
            Ok(Err(nobody)) => warnings.push(Problem::in_line(path, line, nobody)),
            Err(why) => errors.push(Problem::in_line(path, line, why)),
        }
    }
    if !errors.is_empty() {
        return Err(Error(errors));
    }
    warnings.extend(suspicious(&rules).into_iter().map(|(line, why)| Problem::in_line(path, line, why)));
    warnings.sort_by_key(|problem| problem.at);
    Ok((rules, warnings))
}

type Meaning = (Domain, Option<String>, Property);

/// What a line says; the inner error is a name that nobody has. That is no reason to refuse all rules:
/// accounts come and go without this file, and at boot their directory may not answer yet. Nobody else gets
/// anything by it.
fn rule(
    columns: &[&str],
    plugins: Option<&[&str]>,
    names: &dyn Names,
    priorities: (u32, u32),
) -> Result<Result<Meaning, String>, String> {
    let (domain, plugin, key, value) = match *columns {
        [domain, plugin, key, value] | [domain, plugin, key, value, POLKIT] => (domain, plugin, key, value),
        [_, _, _, _, other] => {
            return Err(format!("the fifth column is '{other}'; expected '{POLKIT}' or nothing"));
        }
        _ => {
            return Err(format!(
                "expected four columns (user, @group or -; plugin or -; property; value), and '{POLKIT}' \
                 perhaps; found {}",
                columns.len()
            ));
        }
    };
    let plugin = match (plugin, plugins) {
        ("-", _) => None,
        (name, Some(known)) if !known.contains(&name) => {
            return Err(format!("there is no plugin '{name}'; the configuration has {}", known.join(", ")));
        }
        (name, _) => Some(name.to_owned()),
    };
    let property = property(key, value, priorities)?;
    if columns.len() > 4 && matches!(property, Property::Observe(_)) {
        return Err("observe cannot depend on Polkit, which is asked about specs only".into());
    }
    Ok(self::domain(domain, names)?.map(|domain| (domain, plugin, property)))
}

fn domain(text: &str, names: &dyn Names) -> Result<Result<Domain, String>, String> {
    // A name that consists of digits is a name first, as with chown(1).
    let number = |text: &str| text.parse().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()));
    Ok(match text.strip_prefix('@') {
        _ if text == "-" => Ok(Domain::Everyone),
        Some("") => return Err("'@' is not a group; expected @ and a name".into()),
        Some(group) => names.group(group).or_else(|| number(group)).map(Domain::Group).ok_or_else(|| {
            format!(
                "there is no group '{group}' here, so this rule is for nobody until the rules are read again"
            )
        }),
        None => names.user(text).or_else(|| number(text)).map(Domain::User).ok_or_else(|| {
            format!(
                "there is no user '{text}' here, so this rule is for nobody until the rules are read again"
            )
        }),
    })
}

fn property(key: &str, value: &str, priorities: (u32, u32)) -> Result<Property, String> {
    let time = || match value.parse::<u64>().ok().and_then(|us| us.checked_mul(1000)) {
        Some(ns) if ns > 0 && value.bytes().all(|byte| byte.is_ascii_digit()) => Ok(Duration::from_ns(ns)),
        _ => Err(format!("{key} is '{value}'; expected whole microseconds, 1 to {}", u64::MAX / 1000)),
    };
    let priority = || match value.parse::<u32>() {
        Ok(number) if (priorities.0..=priorities.1).contains(&number) => Ok(number),
        _ => Err(format!(
            "{key} is '{value}'; expected a priority of this machine, {} to {}",
            priorities.0, priorities.1
        )),
    };
    let Some(condition) = CONDITIONS.iter().find(|condition| condition.key == key) else {
        let keys: Vec<&str> = CONDITIONS.iter().map(|condition| condition.key).collect();
        return Err(format!("'{key}' is not a property; expected one of {}", keys.join(", ")));
    };
    match condition.make {
        Make::Share(make) => share(key, value).map(make),
        Make::Time(make) => time().map(make),
        Make::Priority(make) => priority().map(make),
        Make::Nice(make) => match value.parse::<i32>() {
            Ok(nice) if NICE_LEVELS.contains(&nice) => Ok(make(nice)),
            _ => Err(format!("{key} is '{value}'; expected a nice level, -20 to 19")),
        },
        Make::Flag(make) => {
            value.parse().map(make).map_err(|_| format!("{key} is '{value}'; expected true or false"))
        }
    }
}

/// A decimal number of processors, exactly, rounded up to 2⁻⁶⁴.
fn share(key: &str, value: &str) -> Result<Share, String> {
    let wrong = || {
        format!(
            "{key} is '{value}'; expected a number of processors above 0, such as 0.7 (at most 65536, and \
             12 decimals)"
        )
    };
    let (whole, part) = value.split_once('.').unwrap_or((value, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(part) || part.len() > 12 || value.starts_with('.') || value.ends_with('.') {
        return Err(wrong());
    }
    let whole: u128 = whole.parse().map_err(|_| wrong())?;
    let part: u128 = format!("{part:0<12}").parse().map_err(|_| wrong())?;
    let scaled = Some(whole)
        .filter(|whole| *whole <= 65_536)
        .map(|whole| whole * 1_000_000_000_000 + part)
        .ok_or_else(wrong)?;
    match scaled {
        0 => Err(wrong()),
        _ => Ok(Share((scaled << 64).div_ceil(1_000_000_000_000))),
    }
}

/// Warns about valid rules that are hardly meant: repeated properties, and bounds that leave nothing.
fn suspicious(rules: &[Rule]) -> Vec<(usize, String)> {
    let mut seen: std::collections::HashMap<(Domain, Option<&str>, bool, &str), &Rule> =
        std::collections::HashMap::new();
    let mut found = Vec::new();
    for rule in rules {
        let (domain, plugin, polkit) = (rule.domain, rule.plugin.as_deref(), rule.polkit);
        if let Some(before) = seen.insert((domain, plugin, polkit, rule.property.key()), rule) {
            found.push((
                rule.line,
                format!(
                    "line {} says {} for the same subject too; the stricter one holds",
                    before.line,
                    rule.property.key()
                ),
            ));
        }
        for other in &CONDITIONS {
            if let Some(other) = seen.get(&(domain, plugin, polkit, other.key)) {
                if rule.property.excludes(other.property) {
                    found.push((
                        rule.line,
                        format!(
                            "with line {} this leaves nothing: {} is {}",
                            other.line,
                            other.property.key(),
                            other.property
                        ),
                    ));
                }
            }
        }
    }
    found
}
