//! The rules: what is understood, what is allowed, and by which line.

use proptest::prelude::*;
use punctual_daemon::access::{Access, Domain, Grant, Share, Usage, Who};
use punctual_daemon::config::Machine;
use punctual_daemon::rules::{DEFAULT_TEXT, Names, Property, Rule, Rules};
use punctual_model::Duration;
use punctual_schedule::Parameters;
use std::collections::HashMap;
use std::path::Path;

/// user1 to user9 are 1001 to 1009, group1 to group9 are 101 to 109, cdrom is 24.
struct Town;

impl Names for Town {
    fn user(&self, name: &str) -> Option<u32> {
        name.strip_prefix("user")?.parse().ok().filter(|n| (1..10).contains(n)).map(|n: u32| 1000 + n)
    }

    fn group(&self, name: &str) -> Option<u32> {
        match name {
            "cdrom" => Some(24),
            _ => {
                name.strip_prefix("group")?.parse().ok().filter(|n| (1..10).contains(n)).map(|n: u32| 100 + n)
            }
        }
    }
}

#[derive(Default)]
struct Books(HashMap<(Domain, Option<String>), u128>);

impl Usage for Books {
    fn share(&self, domain: Domain, plugin: Option<&str>) -> Share {
        Share(self.0.get(&(domain, plugin.map(str::to_owned))).copied().unwrap_or(0))
    }
}

impl Books {
    /// What the registry does when a spec is admitted.
    fn add(&mut self, who: &Who, plugin: &str, share: Share) {
        for domain in who.domains() {
            *self.0.entry((domain, None)).or_default() += share.0;
            *self.0.entry((domain, Some(plugin.to_owned()))).or_default() += share.0;
        }
    }
}

const PLUGINS: [&str; 4] = ["EDF", "RM", "FP", "RR"];

fn machine() -> Machine {
    Machine { processors: vec![0, 1], priorities: (1, 99), ..Machine::default() }
}

fn parse(text: &str) -> Result<(Rules, Vec<String>), String> {
    Rules::parse(text, Path::new("/r"), Some(&PLUGINS), &Town, &machine())
        .map(|(rules, warnings)| (rules, warnings.iter().map(ToString::to_string).collect()))
        .map_err(|error| error.to_string())
}

fn rules(text: &str) -> Rules {
    parse(text).expect("valid rules").0
}

fn user(number: u32) -> Who {
    Who { user: 1000 + number, group: 500, groups: vec![] }
}

/// Times in microseconds, as in the file.
fn needs(runtime: Option<u64>, period: Option<u64>) -> Parameters {
    Parameters {
        runtime: runtime.map(Duration::from_us),
        period: period.map(Duration::from_us),
        ..Parameters::default()
    }
}

fn priority(priority: u32) -> Parameters {
    Parameters { priority: Some(priority), ..Parameters::default() }
}

/// Allowed, or the number of the line that decides; 0 for none.
fn line(rules: &Rules, who: &Who, plugin: &str, parameters: &Parameters) -> Result<Grant, usize> {
    line_with(rules, who, plugin, parameters, &Books::default())
}

fn line_with(
    rules: &Rules,
    who: &Who,
    plugin: &str,
    parameters: &Parameters,
    usage: &Books,
) -> Result<Grant, usize> {
    rules.check(who, plugin, parameters, usage).map_err(|denied| match denied.rule {
        Some(rule) => rule.split(':').nth(1).unwrap().parse().unwrap(),
        None => 0,
    })
}

const FREE: Result<Grant, usize> = Ok(Grant { greatest_runtime: None });

#[test]
fn without_rules_everything_is_denied() {
    let denied = rules("").check(&user(1), "RM", &needs(Some(1), Some(10)), &Books::default()).unwrap_err();
    assert_eq!((denied.reason.as_str(), denied.rule), ("no rule allows user 1001 plugin 'RM'", None));
}

#[test]
fn the_installed_file_allows_nothing_and_its_examples_are_valid() {
    assert_eq!(rules(DEFAULT_TEXT).rules(), []);
    let uncommented: String = DEFAULT_TEXT
        .lines()
        .filter_map(|line| line.strip_prefix('#'))
        .filter(|line| !line.starts_with([' ', 'd']))
        .fold(String::new(), |text, line| text + line.trim_start_matches('#') + "\n");
    let (rules, warnings) = parse(
        &uncommented
            .replace("realtime", "group1")
            .replace("alice", "user1")
            .replace("punctual-watch", "user2"),
    )
    .unwrap();
    assert_eq!((rules.rules().len(), warnings), (6, vec![]));
}

#[test]
fn the_papers_listing_3_does_what_its_comments_say() {
    let rules = rules(
        "# Domain Plugin-name Property Value\n\
         # Limit the aggregate utilization of user1 on EDF to 70%\n  user1 EDF max_utilization 0.7\n\
         # Limit the CDROM group task period using any plugin to 9 ms\n  @cdrom - max_period 9000\n",
    );
    let mut books = Books::default();
    let seventy =
        |books: &Books, runtime| line_with(&rules, &user(1), "EDF", &needs(Some(runtime), Some(1000)), books);
    assert_eq!(seventy(&books, 700).map(|grant| grant.greatest_runtime), Ok(Some(Duration::from_us(700))));
    assert_eq!(seventy(&books, 701), Err(3));
    for _ in 0..7 {
        assert!(seventy(&books, 100).is_ok());
        books.add(&user(1), "EDF", Share::new(Some(Duration::from_us(100)), &needs(None, Some(1000))));
    }
    assert_eq!(seventy(&books, 1), Err(3));
    assert_eq!(line(&rules, &user(1), "RM", &needs(Some(1), Some(10))), Err(0), "the rule is about EDF");
    let cdrom = Who { group: 24, ..user(2) };
    assert_eq!([9000, 9001].map(|us| line(&rules, &cdrom, "RM", &needs(None, Some(us)))), [FREE, Err(5)]);
    assert_eq!(line(&rules, &user(2), "RM", &needs(None, Some(9000))), Err(0));
}

#[test]
fn the_papers_example_of_intersection() {
    // Section 4.3: u1 at most 0.5 on any plugin, p1 at most 0.3 for anybody; so u1 has at most 0.3 on p1.
    let rules = rules("user1 - max_utilization 0.5\n- EDF max_utilization 0.3\n");
    let ask =
        |books: &Books, plugin, us| line_with(&rules, &user(1), plugin, &needs(Some(us), Some(1000)), books);
    let mut books = Books::default();
    assert_eq!(ask(&books, "EDF", 301), Err(2));
    assert!(ask(&books, "EDF", 300).is_ok());
    assert_eq!(ask(&books, "RM", 501), Err(1));
    books.add(&user(1), "EDF", Share(3 * (1 << 64) / 10));
    assert_eq!(ask(&books, "RM", 201), Err(1), "0.3 of the 0.5 are on EDF");
    assert!(ask(&books, "RM", 200).is_ok());
    let other = |us| line_with(&rules, &user(2), "EDF", &needs(Some(us), Some(1000)), &books);
    assert_eq!(other(1), Err(2), "the sum of the rule for everyone is everyone's");
}

#[test]
fn each_property_limits_its_parameter() {
    let deadline =
        |us| Parameters { deadline: Some(Duration::from_us(us)), ..needs(Some(10), Some(100_000)) };
    let cases = [
        ("max_runtime 500", needs(Some(500), Some(9999)), needs(Some(501), Some(9999))),
        ("min_period 1000", needs(None, Some(1000)), needs(None, Some(999))),
        ("max_period 1000", needs(None, Some(1000)), needs(None, Some(1001))),
        ("min_deadline 1000", deadline(1000), deadline(999)),
        ("max_deadline 1000", deadline(1000), deadline(1001)),
        ("min_priority 10", priority(10), priority(9)),
        ("max_priority 10", priority(10), priority(11)),
        ("max_utilization 1.5", needs(Some(15), Some(10)), needs(Some(16), Some(10))),
        // The deadline is the period where none is declared.
        ("min_deadline 1000", needs(None, Some(1000)), needs(None, Some(999))),
        ("max_deadline 1000", needs(None, Some(1000)), needs(None, Some(1001))),
    ];
    for (property, allowed, denied) in cases {
        let rules = rules(&format!("user1 - {property}"));
        assert!(line(&rules, &user(1), "RM", &allowed).is_ok(), "{property}");
        assert_eq!(line(&rules, &user(1), "RM", &denied), Err(1), "{property}");
    }
}

#[test]
fn limited_parameters_must_be_declared() {
    for property in ["max_utilization 64", "max_runtime 1000000"] {
        let rules = rules(&format!("user1 - {property}"));
        assert_eq!(line(&rules, &user(1), "FP", &priority(10)), Err(1), "{property}: of unknown runtime");
        let denied = rules.check(&user(1), "FP", &priority(10), &Books::default()).unwrap_err();
        assert!(denied.reason.contains("declare"), "{denied:?}");
    }
    let rules = rules("user1 - max_period 9000\nuser1 - min_priority 50");
    assert_eq!(
        line(&rules, &user(1), "FP", &priority(50)),
        FREE,
        "nothing is said of a period that is not declared"
    );
}

#[test]
fn a_desired_runtime_is_reduced_not_refused() {
    let rules = rules("user1 - max_runtime 500\nuser1 - max_utilization 0.25");
    let wish = |period| Parameters {
        desired_runtime: Some(Duration::from_us(10_000)),
        ..needs(Some(100), Some(period))
    };
    let grant = |period| line(&rules, &user(1), "EDF", &wish(period)).map(|grant| grant.greatest_runtime);
    assert_eq!(grant(10_000), Ok(Some(Duration::from_us(500))));
    assert_eq!(grant(1000), Ok(Some(Duration::from_us(250))));
    assert_eq!(grant(399), Err(2));
}

#[test]
fn ignoring_the_admission_test_needs_a_rule_that_allows_it_and_none_that_forbids_it() {
    let ask = |text, ignore_admission| {
        line(&rules(text), &user(1), "RM", &Parameters { ignore_admission, ..needs(None, Some(1000)) })
    };
    assert_eq!(ask("user1 - max_period 9000", false), FREE);
    assert_eq!(ask("user1 - max_period 9000", true), Err(0));
    assert_eq!(ask("user1 - ignore_adm_test true", true), FREE);
    assert_eq!(ask("user1 - ignore_adm_test true\n- RM ignore_adm_test false", true), Err(2));
    assert_eq!(ask("user1 - ignore_adm_test true\n- EDF ignore_adm_test false", true), FREE, "not about RM");
    assert_eq!(
        ask("user1 - ignore_adm_test false", false),
        Err(0),
        "to forbid something is not to allow the rest"
    );
}

#[test]
fn all_groups_of_a_user_count_once() {
    let rules = rules("@group1 - max_period 1000\n@group2 - max_period 500\n");
    let member = |group, groups: &[u32]| Who { user: 1007, group, groups: groups.to_vec() };
    let ask = |who: &Who, us| line(&rules, who, "RM", &needs(None, Some(us)));
    assert_eq!(ask(&member(101, &[]), 1000), FREE, "the effective group");
    assert_eq!(ask(&member(9, &[101]), 1000), FREE, "a supplementary one");
    assert_eq!(ask(&member(101, &[102, 101]), 1000), Err(2), "a group more is a rule more, never less");
    assert_eq!(ask(&member(9, &[8]), 1000), Err(0));
}

#[test]
fn users_and_groups_can_be_numbers() {
    let rules = rules("4711 - max_period 1000\n@4712 RM max_period 2000\n");
    let who = Who { user: 4711, group: 4712, groups: vec![] };
    assert_eq!(line(&rules, &who, "RM", &needs(None, Some(1001))), Err(1));
    assert_eq!(line(&rules, &Who { user: 1, ..who }, "RM", &needs(None, Some(1001))), FREE);
}

#[test]
fn errors_name_the_line() {
    let cases = [
        (
            "user1 - max_period",
            "/r:1: expected four columns (user, @group or -; plugin or -; property; value), and \
             'polkit' perhaps; found 3",
        ),
        ("user1 - max_period 1 2", "the fifth column is '2'; expected 'polkit' or nothing"),
        ("user1 - max_period 1 polkit 2", "found 6"),
        ("user1 - observe true polkit", "observe cannot depend on Polkit"),
        (
            "\n# x\nuser1 XX max_period 1",
            "/r:3: there is no plugin 'XX'; the configuration has EDF, RM, FP, RR",
        ),
        (
            "user1 - maxperiod 1",
            "'maxperiod' is not a property; expected one of max_utilization, max_runtime,",
        ),
        ("user1 - max_period 0", "max_period is '0'; expected whole microseconds, 1 to 18446744073709551"),
        ("user1 - max_period -1", "max_period is '-1'"),
        ("user1 - max_period +1", "max_period is '+1'"),
        ("user1 - max_period 9ms", "max_period is '9ms'"),
        ("user1 - max_period 18446744073709552", "expected whole microseconds"),
        ("user1 - max_priority 100", "max_priority is '100'; expected a priority of this machine, 1 to 99"),
        ("user1 - min_priority 0", "min_priority is '0'"),
        ("user1 - ignore_adm_test yes", "ignore_adm_test is 'yes'; expected true or false"),
        (
            "user1 - max_utilization 0",
            "max_utilization is '0'; expected a number of processors above 0, such as 0.7",
        ),
        ("user1 - max_utilization 0.0000000000001", "12 decimals"),
        ("user1 - max_utilization nan", "max_utilization is 'nan'"),
        ("user1 - max_utilization 1e3", "max_utilization is '1e3'"),
        ("user1 - max_utilization .5", "max_utilization is '.5'"),
        ("user1 - max_utilization 99999999999999999999999999999999999999999", "at most 65536"),
        ("@ - max_period 1", "'@' is not a group"),
    ];
    for (text, expected) in cases {
        let message = parse(text).expect_err(text);
        assert!(
            message.contains(expected) && message.starts_with("/r:"),
            "{text}\nmessage  {message}\nexpected {expected}"
        );
    }
    assert_eq!(parse("a\nb\n").unwrap_err().lines().count(), 2, "all of them at once");
}

#[test]
fn doubtful_lines_are_warned_about() {
    let warned = |text| parse(text).unwrap().1;
    assert_eq!(
        warned("nobody - max_period 1"),
        ["/r:1: there is no user 'nobody' here, so this rule is for nobody until the rules are read again"]
    );
    assert!(warned("@nobody - max_period 1")[0].contains("there is no group 'nobody' here"));
    assert_eq!(
        warned("user1 - max_period 1\nuser1 - max_period 2"),
        ["/r:2: line 1 says max_period for the same subject too; the stricter one holds"]
    );
    assert_eq!(
        warned("user1 - max_period 5\nuser1 - min_period 6"),
        ["/r:2: with line 1 this leaves nothing: max_period is 5 µs"]
    );
    assert_eq!(warned("user1 - max_priority 5\nuser1 RM min_priority 6\nuser1 - min_priority 5"), [""; 0]);
    let (rules, _) = parse("nobody - max_period 1").unwrap();
    assert_eq!(line(&rules, &user(1), "RM", &needs(None, Some(1))), Err(0));
}

#[test]
fn explanations_name_the_strictest_rule_of_each_property() {
    let rules = rules(
        "user1 - max_period 9000\n- - max_period 5000 # for all\n@group1 RM max_period 7000\n\
         - - max_utilization 0.5\nuser1 RM max_utilization 0.7\n",
    );
    let who = Who { group: 101, ..user(1) };
    let explained = rules.explain(&who, "RM", None, &Books::default());
    assert_eq!(explained.outcome, Ok(Grant::default()));
    let shown: Vec<(String, String)> =
        explained.limits.iter().map(|limit| (limit.property.to_string(), limit.rule.clone())).collect();
    let expected = [
        ("5000 µs", "/r:2: - - max_period 5000"),
        ("0.5", "/r:4: - - max_utilization 0.5"),
        ("0.7", "/r:5: user1 RM max_utilization 0.7"),
    ];
    assert_eq!(shown, expected.map(|(value, rule)| (value.to_owned(), rule.to_owned())));
    let request = needs(Some(1), Some(6000));
    let denied = rules.explain(&who, "RM", Some(&request), &Books::default()).outcome.unwrap_err();
    assert_eq!(denied.rule.as_deref(), Some("/r:2: - - max_period 5000"));
    assert_eq!(denied.reason, "max_period is 5000 µs, and 6000 µs was asked for");
    let root = Who { user: 0, group: 0, groups: vec![] };
    assert_eq!(
        Rules::default().explain(&root, "RM", Some(&request), &Books::default()).outcome,
        Ok(Grant::default())
    );
}

#[test]
fn what_is_left_to_polkit_is_denied_without_it() {
    let rules = rules("@group1 - max_runtime 5000 polkit\n- - ignore_adm_test false\n");
    let who = Who { group: 101, ..user(1) };
    assert_eq!(line(&rules, &who, "RM", &needs(Some(10), Some(100))), Err(0));
    assert_eq!(authorised(&rules, &who, "RM", &needs(Some(10), Some(100))), Some(Ok(5000)));
    assert_eq!(authorised(&rules, &who, "RM", &needs(Some(5001), Some(9000))), Some(Err(1)));
    let ignores = Parameters { ignore_admission: true, ..needs(Some(10), Some(100)) };
    assert_eq!(authorised(&rules, &who, "RM", &ignores), Some(Err(2)), "other rules hold");
    assert_eq!(authorised(&rules, &user(1), "RM", &needs(Some(10), Some(100))), None, "not in the group");
}

#[test]
fn a_line_for_polkit_takes_the_place_of_the_same_without() {
    let rules = rules(
        "user1 RM max_runtime 1000\n- - max_runtime 3000\nuser1 RM max_runtime 5000 polkit\n\
         user1 - min_period 200\n",
    );
    let ask = |us, period| {
        let parameters = needs(Some(us), Some(period));
        (line(&rules, &user(1), "RM", &parameters).is_ok(), authorised(&rules, &user(1), "RM", &parameters))
    };
    assert_eq!(ask(1000, 9000), (true, Some(Ok(3000))));
    assert_eq!(ask(1001, 9000), (false, Some(Ok(3000))), "line 3 in place of line 1");
    assert_eq!(ask(3001, 9000), (false, Some(Err(2))), "everybody's limit holds");
    assert_eq!(ask(10, 199), (false, Some(Err(4))), "and so do limits of other properties");
    let denied = line(&rules, &user(1), "EDF", &needs(Some(10), Some(9000)));
    assert!(denied.is_ok() && authorised(&rules, &user(1), "EDF", &needs(None, None)).is_none());
}

#[test]
fn explanations_say_what_is_left_to_polkit() {
    let rules = rules("user1 RM max_runtime 1000\nuser1 RM max_runtime 5000 polkit\n");
    let explain = |us| rules.explain(&user(1), "RM", Some(&needs(Some(us), Some(9000))), &Books::default());
    assert_eq!(explain(1000).polkit, None);
    assert_eq!(explain(1001).polkit.as_deref(), Some("/r:2: user1 RM max_runtime 5000 polkit"));
    assert_eq!(explain(5001).polkit, None, "in vain");
    let limits: Vec<bool> = explain(1).limits.iter().map(|limit| limit.polkit).collect();
    assert_eq!(limits, [false, true]);
    let (_, warnings) =
        parse("user1 - max_period 1\nuser1 - max_period 2 polkit\nuser1 - max_period 3 polkit").unwrap();
    assert_eq!(warnings, ["/r:3: line 2 says max_period for the same subject too; the stricter one holds"]);
}

/// What Polkit can allow, in µs of runtime, or the number of the line that decides; `None` where it is not
/// asked.
fn authorised(rules: &Rules, who: &Who, plugin: &str, parameters: &Parameters) -> Option<Result<u64, usize>> {
    let answer = rules.check_authorised(who, plugin, parameters, &Books::default())?;
    Some(match answer {
        Ok(allowed) => Ok(allowed.grant.greatest_runtime.map_or(0, |limit| limit.ns() / 1000)),
        Err(denied) => Err(denied.rule.map_or(0, |rule| rule.split(':').nth(1).unwrap().parse().unwrap())),
    })
}

fn a_rule() -> impl Strategy<Value = String> {
    let domain = prop::sample::select(vec!["-", "user1", "user2", "@group1", "@group2"]);
    let plugin = prop::sample::select(vec!["-", "EDF", "RM"]);
    let times =
        prop::sample::select(vec!["max_runtime", "min_period", "max_period", "min_deadline", "max_deadline"]);
    let property = prop_oneof![
        (times, 1u64..5000).prop_map(|(key, us)| format!("{key} {us}")),
        (prop::sample::select(vec!["min_priority", "max_priority"]), 1u32..100)
            .prop_map(|(key, priority)| format!("{key} {priority}")),
        (1u32..3000).prop_map(|milli| format!("max_utilization {}.{:03}", milli / 1000, milli % 1000)),
        any::<bool>().prop_map(|may| format!("ignore_adm_test {may}")),
        any::<bool>().prop_map(|may| format!("observe {may}")),
    ];
    (domain, plugin, property, prop::bool::weighted(0.3)).prop_map(|(domain, plugin, property, polkit)| {
        let polkit = if polkit && !property.starts_with("observe") { " polkit" } else { "" };
        format!("{domain} {plugin} {property}{polkit}\n")
    })
}

fn some_who() -> impl Strategy<Value = Who> {
    (
        1u32..4,
        prop::sample::select(vec![101u32, 102, 500]),
        prop::collection::vec(prop::sample::select(vec![101u32, 102, 103]), 0..3),
    )
        .prop_map(|(number, group, groups)| Who { group, groups, ..user(number) })
}

fn some_parameters() -> impl Strategy<Value = Parameters> {
    let time = || prop::option::of((1u64..6000).prop_map(Duration::from_us));
    (time(), time(), time(), time(), prop::option::of(1u32..100), any::<bool>()).prop_map(
        |(runtime, desired_runtime, period, deadline, priority, ignore_admission)| Parameters {
            runtime,
            desired_runtime,
            period,
            deadline,
            priority,
            ignore_admission,
            ..Parameters::default()
        },
    )
}

/// The semantics again, written as one reads the paper: over all rules, without an index.
fn read_off(rules: &Rules, who: &Who, plugin: &str, parameters: &Parameters, books: &Books) -> bool {
    let theirs = theirs(rules, who, plugin).into_iter().filter(|rule| !rule.polkit).collect();
    satisfies(theirs, parameters, books)
}

/// The same, of a request that Polkit has authorised.
fn read_off_authorised(
    rules: &Rules,
    who: &Who,
    plugin: &str,
    parameters: &Parameters,
    books: &Books,
) -> Option<bool> {
    let mut theirs = theirs(rules, who, plugin);
    let opens = |it: &&Rule| it.polkit && it.property != Property::IgnoreAdmission(false);
    theirs.iter().find(|rule| opens(rule))?;
    for rule in theirs.clone().into_iter().filter(|rule| rule.polkit) {
        theirs.retain(|other| {
            let same = (&other.domain, &other.plugin) == (&rule.domain, &rule.plugin);
            other.polkit || !same || other.property.key() != rule.property.key()
        });
    }
    Some(satisfies(theirs, parameters, books))
}

fn theirs<'a>(rules: &'a Rules, who: &Who, plugin: &str) -> Vec<&'a Rule> {
    let is_theirs =
        |rule: &&Rule| who.is_in(rule.domain) && rule.plugin.as_deref().is_none_or(|name| name == plugin);
    rules.rules().iter().filter(is_theirs).collect()
}

fn satisfies(all: Vec<&Rule>, parameters: &Parameters, books: &Books) -> bool {
    let may_ignore = all.iter().any(|rule| rule.property == Property::IgnoreAdmission(true));
    let opens = |it| !matches!(it, Property::IgnoreAdmission(false) | Property::Observe(_));
    let opened = all.iter().any(|rule| opens(rule.property));
    let window = parameters.period.into_iter().chain(parameters.deadline).min();
    let deadline = parameters.deadline.or(parameters.period);
    opened
        && (!parameters.ignore_admission || may_ignore)
        && all.iter().all(|rule| match rule.property {
            Property::MaxUtilization(Share(limit)) => match (parameters.runtime, window) {
                (Some(runtime), Some(window)) => {
                    let used = books.share(rule.domain, rule.plugin.as_deref()).0;
                    used + (u128::from(runtime.ns()) << 64).div_ceil(u128::from(window.ns()))
                        <= limit + (1 << 14)
                }
                _ => false,
            },
            Property::MaxRuntime(limit) => parameters.runtime.is_some_and(|runtime| runtime <= limit),
            Property::MinPeriod(limit) => parameters.period.is_none_or(|period| period >= limit),
            Property::MaxPeriod(limit) => parameters.period.is_none_or(|period| period <= limit),
            Property::MinDeadline(limit) => deadline.is_none_or(|deadline| deadline >= limit),
            Property::MaxDeadline(limit) => deadline.is_none_or(|deadline| deadline <= limit),
            Property::MinPriority(limit) => parameters.priority.is_none_or(|priority| priority >= limit),
            Property::MaxPriority(limit) => parameters.priority.is_none_or(|priority| priority <= limit),
            Property::MinNice(limit) => parameters.nice.is_none_or(|nice| nice >= limit),
            Property::IgnoreAdmission(may) => may || !parameters.ignore_admission,
            Property::Observe(_) => true,
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn a_request_is_allowed_if_and_only_if_it_satisfies_all_matching_rules(
        text in prop::collection::vec(a_rule(), 0..8), who in some_who(), parameters in some_parameters(),
        plugin in prop::sample::select(vec!["EDF", "RM", "FP"]),
        others in prop::collection::vec((some_who(), prop::sample::select(vec!["EDF", "RM"]), 0u64..1 << 63),
            0..4),
    ) {
        let rules = rules(&text.concat());
        let mut books = Books::default();
        for (who, plugin, share) in others {
            books.add(&who, plugin, Share(u128::from(share)));
        }
        let allowed = rules.check(&who, plugin, &parameters, &books);
        prop_assert_eq!(allowed.is_ok(), read_off(&rules, &who, plugin, &parameters, &books), "{:?}",
            allowed);
        let authorised = rules.check_authorised(&who, plugin, &parameters, &books);
        let expected = read_off_authorised(&rules, &who, plugin, &parameters, &books);
        prop_assert_eq!(authorised.as_ref().map(Result::is_ok), expected, "{:?}", authorised);
        let explained = rules.explain(&who, plugin, Some(&parameters), &books);
        prop_assert_eq!(explained.polkit.is_some(), allowed.is_err() && expected == Some(true));
        if let Ok(Grant { greatest_runtime: Some(greatest) }) = allowed {
            // All that is granted is allowed, and not only what is declared.
            prop_assert!(Some(greatest) >= parameters.runtime);
            let greatest = Parameters { runtime: Some(greatest), ..parameters };
            prop_assert!(rules.check(&who, plugin, &greatest, &books).is_ok());
        }
    }

    #[test]
    fn adding_a_rule_never_allows_more_to_a_user_with_rules(
        text in prop::collection::vec(a_rule(), 1..6), more in a_rule(), who in some_who(),
        parameters in some_parameters(),
    ) {
        let before = rules(&text.concat());
        let after = rules(&(text.concat() + &more));
        let opened = before.explain(&who, "RM", None, &Books::default()).outcome.is_ok();
        let books = Books::default();
        let parameters = Parameters { ignore_admission: false, ..parameters };
        if opened && after.check(&who, "RM", &parameters, &books).is_ok() {
            prop_assert!(before.check(&who, "RM", &parameters, &books).is_ok());
        }
    }

    #[test]
    fn no_text_makes_the_reader_panic(words in prop::collection::vec(prop_oneof![
        Just("user1".to_owned()), Just("-".to_owned()), Just("@group1".to_owned()),
        Just("max_period".to_owned()), Just("max_utilization".to_owned()), Just("\n".to_owned()),
        Just("polkit".to_owned()),
        Just("#".to_owned()), Just("0.5".to_owned()), Just("18446744073709551615".to_owned()),
        Just("\r\n".to_owned()), Just("\0".to_owned()), "[0-9.]{1,40}", any::<String>(),
    ], 0..30)) {
        let text = words.join(" ");
        match Rules::parse(&text, Path::new("/r"), None, &Town, &machine()) {
            Ok((rules, _)) => prop_assert!(rules.rules().len() <= text.lines().count()),
            Err(error) => prop_assert!(error.to_string().starts_with("/r:")),
        }
    }
}
