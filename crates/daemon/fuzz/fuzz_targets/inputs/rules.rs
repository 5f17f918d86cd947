//! Reads an input as the file of rules: problems are reported with their line; valid rules mean what they
//! show, and decide requests at their bounds as they explain. Called by the fuzzer and by `tests/fuzz.rs`.

use punctual_daemon::access::{Access, Domain, Share, Usage, Who};
use punctual_daemon::config::Machine;
use punctual_daemon::rules::{Limit, Names, Property, Rule, Rules};
use punctual_daemon::text::Problem;
use punctual_model::Duration;
use punctual_schedule::Parameters;
use std::path::Path;

const PATH: &str = "/etc/punctual/rules.conf";
const PLUGINS: [&str; 3] = ["EDF", "RM", "FP"];
/// Rules that are tried at their bounds, of one input.
const TRIED: usize = 8;

/// user1 to user3 are 1001 to 1003, group1 to group3 are 101 to 103.
struct Town;

impl Names for Town {
    fn user(&self, name: &str) -> Option<u32> {
        ["user1", "user2", "user3"].iter().position(|it| *it == name).map(|at| 1001 + at as u32)
    }

    fn group(&self, name: &str) -> Option<u32> {
        ["group1", "group2", "group3"].iter().position(|it| *it == name).map(|at| 101 + at as u32)
    }
}

/// A tenth of a processor is in use by everybody, in every sum.
struct Tenth;

impl Usage for Tenth {
    fn share(&self, _: Domain, _: Option<&str>) -> Share {
        Share(Share::ONE.0 / 10)
    }
}

pub fn read(data: &[u8]) {
    // Other files are refused before they are parsed.
    let Ok(text) = std::str::from_utf8(data) else { return };
    let lines = text.lines().count();
    match parse(text, None) {
        Err(problems) => {
            assert!(!problems.is_empty());
            problems.iter().for_each(|problem| check(problem, lines));
        }
        Ok((rules, warnings)) => {
            warnings.iter().for_each(|problem| check(problem, lines));
            assert!(rules.rules().len() <= lines);
            means_what_it_shows(&rules);
            for who in [user(1, 101), user(2, 102), user(7, 100)] {
                answers(text, &rules, &who);
            }
        }
    }
    // With the names of plugins, less is understood, and nothing else.
    if let Ok((fewer, _)) = parse(text, Some(&PLUGINS)) {
        assert_eq!(Ok(fewer), parse(text, None).map(|(rules, _)| rules));
    }
}

fn parse(text: &str, plugins: Option<&[&str]>) -> Result<(Rules, Vec<Problem>), Vec<Problem>> {
    let machine = Machine { processors: vec![0, 1], priorities: (1, 99), ..Machine::default() };
    Rules::parse(text, Path::new(PATH), plugins, &Town, &machine).map_err(|error| error.0)
}

fn user(number: u32, group: u32) -> Who {
    Who { user: 1000 + number, group, groups: vec![103, group, 104] }
}

/// A problem is one line that names one of the text.
fn check(problem: &Problem, lines: usize) {
    assert!(!problem.message.is_empty() && problem.to_string().starts_with(PATH));
    assert!(!problem.message.contains('\n'), "{problem}");
    assert!(problem.at.is_some_and(|(line, column)| (1..=lines).contains(&line) && column == 0), "{problem}");
}

/// All rules as they are shown are the same rules.
fn means_what_it_shows(rules: &Rules) {
    let shown: String = rules.rules().iter().map(|rule| format!("{}\n", rule.text)).collect();
    let (again, _) = parse(&shown, None).unwrap_or_else(|problems| panic!("{problems:?}\n{shown}"));
    assert_eq!(again.rules().len(), rules.rules().len(), "{shown}");
    for (at, (rule, again)) in rules.rules().iter().zip(again.rules()).enumerate() {
        assert_eq!(*again, Rule { line: at + 1, ..rule.clone() });
        assert_eq!(rule.property.key(), rule.text.split(' ').nth(2).unwrap_or_default());
        assert!(!rule.property.to_string().is_empty() && rules.cite(rule).contains(&rule.text));
    }
}

/// Requests at the bounds of the first rules, and just beyond them.
fn requests(rules: &Rules) -> Vec<Parameters> {
    let base = Parameters {
        runtime: Some(Duration::from_us(1000)),
        period: Some(Duration::from_us(10_000)),
        desired_runtime: Some(Duration::from_us(5000)),
        priority: Some(10),
        ..Parameters::default()
    };
    let mut requests = vec![base.clone(), Parameters::default()];
    for rule in rules.rules().iter().take(TRIED) {
        let around = |time: Duration| {
            [time.ns().saturating_sub(1), time.ns(), time.ns().saturating_add(1)]
                .map(Duration::from_ns)
                .map(Some)
        };
        let like = || base.clone();
        match rule.property {
            Property::MaxUtilization(limit) => {
                let runtime = limit.runtime(&base).expect("there is a period");
                requests.extend(around(runtime).map(|runtime| Parameters { runtime, ..like() }));
            }
            Property::MaxRuntime(limit) => {
                requests.extend(around(limit).map(|runtime| Parameters { runtime, ..like() }))
            }
            Property::MinPeriod(limit) | Property::MaxPeriod(limit) => {
                requests.extend(around(limit).map(|period| Parameters { period, ..like() }));
            }
            Property::MinDeadline(limit) | Property::MaxDeadline(limit) => {
                requests.extend(around(limit).map(|deadline| Parameters { deadline, ..like() }));
            }
            Property::MinPriority(limit) | Property::MaxPriority(limit) => {
                requests.extend(
                    [limit - 1, limit, limit + 1].map(|it| Parameters { priority: Some(it), ..like() }),
                );
            }
            Property::MinNice(limit) => {
                requests
                    .extend([limit - 1, limit, limit + 1].map(|it| Parameters { nice: Some(it), ..like() }));
            }
            Property::IgnoreAdmission(_) => requests.push(Parameters { ignore_admission: true, ..like() }),
            Property::Observe(_) => {}
        }
    }
    requests
}

fn answers(text: &str, rules: &Rules, who: &Who) {
    let reversed: String = text.lines().rev().map(|line| format!("{line}\n")).collect();
    let (reversed, _) = parse(&reversed, None).expect("the same lines");
    let root = Who { user: 0, group: 0, groups: vec![] };
    let requests = requests(rules);
    for plugin in PLUGINS {
        let opened = rules.explain(who, plugin, None, &Tenth);
        assert!(opened.limits.iter().all(|limit| who.is_in(limit.domain)));
        let plain = |limit: &&Limit| !limit.polkit;
        assert!(
            opened.outcome.is_ok()
                || opened.limits.iter().filter(plain).all(|limit| !limit.property.allows())
        );
        let is_left = opened.limits.iter().any(|limit| limit.polkit && limit.property.allows());
        assert_eq!(opened.polkit.is_some(), opened.outcome.is_err() && is_left);
        assert!(rules.explain(&root, plugin, None, &Tenth).outcome.is_ok());
        for request in &requests {
            let explained = rules.explain(who, plugin, Some(request), &Tenth);
            assert_eq!(explained.limits, opened.limits);
            let checked = rules.check(who, plugin, request, &Tenth);
            assert_eq!(explained.outcome, checked);
            // The order of the lines decides what is said, not what is allowed.
            assert_eq!(checked.as_ref().ok(), reversed.check(who, plugin, request, &Tenth).as_ref().ok());
            let authorised = rules.check_authorised(who, plugin, request, &Tenth);
            let asks = checked.is_err() && matches!(authorised, Some(Ok(_)));
            assert_eq!(asks, explained.polkit.is_some());
            assert!(!asks || rules.leaves_to_polkit());
            let theirs = |rules: &Rules| {
                let checked = rules.check_authorised(who, plugin, request, &Tenth);
                checked.map(|it| it.map(|it| it.grant).map_err(drop))
            };
            assert_eq!(theirs(rules), theirs(&reversed));
            match checked {
                Ok(grant) => {
                    assert!(opened.outcome.is_ok(), "what nothing allows is allowed");
                    // All that is granted is allowed.
                    if let Some(greatest) = grant.greatest_runtime {
                        assert!(Some(greatest) >= request.runtime);
                        let greatest = Parameters { runtime: Some(greatest), ..request.clone() };
                        assert!(rules.check(who, plugin, &greatest, &Tenth).is_ok(), "{greatest:?}");
                    }
                }
                Err(denied) => {
                    let cited = |cited: &String| {
                        rules.rules().iter().any(|rule| rules.cite(rule) == *cited && rule.is_for(plugin))
                    };
                    assert!(
                        !denied.reason.is_empty() && denied.rule.as_ref().is_none_or(cited),
                        "{denied:?}"
                    );
                }
            }
        }
    }
}
