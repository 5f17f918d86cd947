//! From the text of `punctuald.toml` to a [`Config`]: TOML first, then whether it makes sense on this
//! machine.

use super::enforcement::EnforcementTable;
use super::plugins::{Kind, PluginConfig};
use super::realtimekit::{self, RealtimeKit};
use super::settings::{Config, DEFAULT_SOCKET, Quotas, Socket};
use crate::machine::{Machine, processor_list};
use crate::supply;
use crate::text::{self, Error, Problem};
use punctual_linux::scheduling::{self, Clamps};
use punctual_model::{Duration, TimingModel};
use punctual_schedule::{Platform, Reserve, ReserveKind, Test};
use serde::Deserialize;
use std::ops::Range;
use std::path::{Path, PathBuf};
use toml::{Spanned, Value};

/// More would only slow every request down.
const MOST_PLUGINS: usize = 64;
/// `rtf_params` and `rtf_plugin_info` have 32 bytes for a plugin's name, with the zero at its end.
const LONGEST_NAME: usize = 31;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    #[serde(default)]
    socket: SocketTable,
    #[serde(default)]
    state: StateTable,
    #[serde(default)]
    rules: RulesTable,
    #[serde(default)]
    quotas: QuotasTable,
    #[serde(default)]
    kernel: KernelTable,
    realtimekit: Option<Spanned<realtimekit::Table>>,
    #[serde(default)]
    enforcement: EnforcementTable,
    #[serde(default)]
    plugin: Vec<PluginTable>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct SocketTable {
    path: Option<Spanned<PathBuf>>,
    mode: Option<Spanned<String>>,
    group: Option<Spanned<String>>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct StateTable {
    directory: Option<Spanned<PathBuf>>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct RulesTable {
    file: Option<Spanned<PathBuf>>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct QuotasTable {
    connections: Option<Spanned<i64>>,
    connections_per_user: Option<Spanned<i64>>,
    specs: Option<Spanned<i64>>,
    specs_per_user: Option<Spanned<i64>>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct KernelTable {
    lift_realtime_limit: Option<bool>,
    fair_server: Option<Spanned<Value>>,
    realtime_throttle: Option<Spanned<Value>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PluginTable {
    name: Spanned<String>,
    kind: Option<Spanned<String>>,
    object: Option<Spanned<PathBuf>>,
    priorities: Option<Spanned<Value>>,
    processors: Option<Spanned<Value>>,
    utilization: Option<Spanned<Value>>,
    admission: Option<Spanned<String>>,
    latency: Option<Spanned<PathBuf>>,
    without_runtime_up_to: Option<Spanned<u32>>,
    util_min: Option<Spanned<Value>>,
    util_max: Option<Spanned<Value>>,
}

/// Where the file is read, and what was found on the way.
struct Reader<'a> {
    text: &'a str,
    path: &'a Path,
    machine: &'a Machine,
    errors: Vec<Problem>,
    warnings: Vec<Problem>,
}

pub(super) fn parse(text: &str, path: &Path, machine: &Machine) -> Result<(Config, Vec<Problem>), Error> {
    let document: Document = toml::from_str(text).map_err(|error| {
        // The parser's message may have lines; ours are one each.
        let message = error.message().trim().replace('\n', "; ");
        Error(vec![match error.span() {
            Some(span) => Problem::at(path, text, span.start, message),
            None => Problem::in_file(path, message),
        }])
    })?;
    let mut reader = Reader { text, path, machine, errors: Vec::new(), warnings: Vec::new() };
    let config = reader.config(document);
    match reader.errors.is_empty() {
        true => Ok((config, reader.warnings)),
        false => {
            reader.errors.sort_by_key(|problem| problem.at);
            Err(Error(reader.errors))
        }
    }
}

impl Reader<'_> {
    fn problem(&self, span: Range<usize>, message: impl Into<String>) -> Problem {
        Problem::at(self.path, self.text, span.start, message)
    }

    fn error(&mut self, span: Range<usize>, message: impl Into<String>) {
        let problem = self.problem(span, message);
        self.errors.push(problem);
    }

    fn warning(&mut self, span: Range<usize>, message: impl Into<String>) {
        let problem = self.problem(span, message);
        self.warnings.push(problem);
    }

    fn written<T>(&self, given: &Spanned<T>) -> &str {
        self.text.get(given.span()).unwrap_or_default()
    }

    fn config(&mut self, document: Document) -> Config {
        let quotas = self.quotas(&document.quotas);
        let socket = self.socket(document.socket);
        let state =
            document.state.directory.map_or_else(|| "/run/punctual".into(), |path| self.path_of(path));
        let rules = document.rules.file.map(|path| self.path_of(path));
        let lift_realtime_limit = document.kernel.lift_realtime_limit.unwrap_or(true);
        let reserves = self.reserves(&document.kernel);
        let (enforcement, wrong) = document.enforcement.policy();
        for (span, message) in wrong {
            self.error(span, message);
        }
        let mut plugins = self.plugins(document.plugin, lift_realtime_limit);
        for plugin in plugins.iter_mut().filter(|plugin| plugin.test == Test::Exact) {
            let is_its = |reserve: &&Reserve| {
                matches!(plugin.kind, Kind::BuiltIn(_)) && plugin.processors.contains(&reserve.processor)
            };
            plugin.reserves = reserves.iter().filter(is_its).copied().collect();
        }
        let realtimekit = document.realtimekit.and_then(|table| self.realtimekit(table, &plugins));
        let path = self.path.to_owned();
        Config { path, socket, state, rules, quotas, lift_realtime_limit, enforcement, realtimekit, plugins }
    }

    fn realtimekit(
        &mut self,
        table: Spanned<realtimekit::Table>,
        plugins: &[PluginConfig],
    ) -> Option<RealtimeKit> {
        let at = table.span();
        match table.into_inner().read(plugins, at) {
            Ok(kit) => Some(kit),
            Err(wrong) => {
                wrong.into_iter().for_each(|(at, message)| self.error(at, message));
                None
            }
        }
    }

    /// What the kernel keeps for ordinary threads: what it says, or what the file says of it.
    fn reserves(&mut self, table: &KernelTable) -> Vec<Reserve> {
        let mut reserves = Vec::new();
        for (kind, name, given) in [
            (ReserveKind::FairServer, "fair_server", &table.fair_server),
            (ReserveKind::Throttle, "realtime_throttle", &table.realtime_throttle),
        ] {
            match given {
                None => reserves.extend(self.machine.reserves.iter().filter(|it| it.kind == kind)),
                Some(given) => match self.reserve(name, given) {
                    Some((runtime, period)) => {
                        let of = |&cpu: &u32| supply::reserve(cpu, kind, runtime, period);
                        reserves.extend(self.machine.processors.iter().filter_map(of));
                    }
                    None => reserves.extend(self.machine.reserves.iter().filter(|it| it.kind == kind)),
                },
            }
        }
        reserves
    }

    /// What is kept of each period; `None` if that is as the kernel says, or wrong.
    fn reserve(&mut self, name: &str, given: &Spanned<Value>) -> Option<(Duration, Duration)> {
        let us = |value: &Value| value.as_integer().and_then(|us| u64::try_from(us).ok());
        let pair = match given.get_ref() {
            Value::String(text) if text == "kernel" => return None,
            Value::String(text) if text == "none" => Some((0, 1)),
            Value::Array(pair) => match pair.as_slice() {
                [runtime, period] => us(runtime).zip(us(period)),
                _ => None,
            },
            _ => None,
        };
        // A minute, which no kernel accepts.
        match pair.filter(|(runtime, period)| runtime < period && *period <= 60_000_000) {
            Some((runtime, period)) => Some((Duration::from_us(runtime), Duration::from_us(period))),
            None => {
                let message = format!(
                    "{name} = {} is wrong; expected \"kernel\", \"none\", or what is kept for ordinary \
                     threads of each period, in µs, such as [50000, 1000000]",
                    self.written(given)
                );
                self.error(given.span(), message);
                None
            }
        }
    }

    /// A path; a relative one is relative to the folder of the configuration, wherever the daemon is started.
    fn path_of(&mut self, path: Spanned<PathBuf>) -> PathBuf {
        let span = path.span();
        let path = path.into_inner();
        if path.as_os_str().is_empty() || path.to_string_lossy().contains('\0') {
            self.error(span, "expected a path");
        }
        self.path.parent().unwrap_or(Path::new("")).join(path)
    }

    fn socket(&mut self, table: SocketTable) -> Socket {
        let path = match table.path {
            None => DEFAULT_SOCKET.into(),
            Some(path) => {
                let span = path.span();
                let path = self.path_of(path);
                // `sun_path` has 108 bytes, with the zero at its end.
                if path.as_os_str().len() > 107 {
                    self.error(
                        span,
                        format!(
                            "{} is too long for a socket, whose path has at most 107 bytes",
                            path.display()
                        ),
                    );
                }
                path
            }
        };
        let mode = table.mode.map_or(0o666, |mode| match u32::from_str_radix(mode.get_ref(), 8) {
            Ok(bits) if bits <= 0o777 => bits,
            _ => {
                self.error(
                    mode.span(),
                    format!("mode '{}' is not valid; expected octal digits such as \"0660\"", mode.get_ref()),
                );
                0
            }
        });
        let group = table.group.and_then(|group| {
            let found =
                nix::unistd::Group::from_name(group.get_ref()).ok().flatten().map(|found| found.gid.as_raw());
            if found.is_none() {
                self.error(group.span(), format!("there is no group '{}' here", group.get_ref()));
            }
            found
        });
        Socket { path, mode, group }
    }

    fn quotas(&mut self, table: &QuotasTable) -> Quotas {
        let default = Quotas::default();
        let mut quota = |name: &str, given: &Option<Spanned<i64>>, default: usize, most: usize| {
            let Some(given) = given else { return default };
            match usize::try_from(*given.get_ref()) {
                Ok(number) if (1..=most).contains(&number) => number,
                _ => {
                    self.error(
                        given.span(),
                        format!("{name} = {} is out of range; expected 1 to {most}", given.get_ref()),
                    );
                    default
                }
            }
        };
        Quotas {
            connections: quota("connections", &table.connections, default.connections, 65_536),
            connections_per_user: quota(
                "connections_per_user",
                &table.connections_per_user,
                default.connections_per_user,
                65_536,
            ),
            specs: quota("specs", &table.specs, default.specs, 65_536),
            specs_per_user: quota("specs_per_user", &table.specs_per_user, default.specs_per_user, 65_536),
        }
    }

    fn plugins(&mut self, tables: Vec<PluginTable>, lift_realtime_limit: bool) -> Vec<PluginConfig> {
        if tables.is_empty() {
            self.errors.push(Problem::in_file(
                self.path,
                "names no plugin, so nothing could be admitted; expected at least one [[plugin]]",
            ));
        }
        if tables.len() > MOST_PLUGINS {
            let span = tables[MOST_PLUGINS].name.span();
            self.error(span, format!("more than {MOST_PLUGINS} plugins"));
        }
        let mut plugins: Vec<PluginConfig> = Vec::new();
        for table in tables.into_iter().take(MOST_PLUGINS) {
            let span = table.name.span();
            if plugins.iter().any(|other| other.name == *table.name.get_ref()) {
                self.error(
                    span.clone(),
                    format!(
                        "another plugin is called '{}' already; rules and clients know plugins by their \
                             names",
                        table.name.get_ref()
                    ),
                );
            }
            let plugin = self.plugin(table);
            if plugin.kind == Kind::Table && plugins.iter().any(|other| other.kind == Kind::Table) {
                self.error(span.clone(), "another plugin is of kind \"TT\" already; it serves all tables");
            }
            if plugin.kind.is_edf() && !lift_realtime_limit {
                let message = format!(
                    "plugin '{}' refuses every spec as long as sched_rt_runtime_us is not -1, which \
                     kernel.lift_realtime_limit = false forbids to set",
                    plugin.name
                );
                self.warning(span.clone(), message);
            }
            if plugin.kind.is_global() && plugin.processors != self.machine.processors {
                let message = format!(
                    "plugin '{}' takes only threads that may run on exactly its processors; they need a \
                     cpuset partition of these, which punctuald does not make",
                    plugin.name
                );
                self.warning(span.clone(), message);
            }
            for other in &plugins {
                if let Some(message) = overlap(other, &plugin) {
                    self.warning(span.clone(), message);
                }
            }
            plugins.push(plugin);
        }
        plugins
    }

    fn plugin(&mut self, table: PluginTable) -> PluginConfig {
        let name = table.name.get_ref().clone();
        if let Err(why) = plugin_name(&name) {
            self.error(table.name.span(), why);
        }
        let kind = self.kind(&name, table.name.span(), table.kind, table.object);
        let priorities = match &table.priorities {
            None => self.machine.priorities,
            // The paper's configuration has [100, 100] for EDF, above all that are.
            Some(given) if kind.is_deadline() && is_pair(given.get_ref()) => self.machine.priorities,
            Some(given) => self.priorities(given),
        };
        if let (true, Some(given)) = (kind.is_deadline(), &table.priorities) {
            self.warning(
                given.span(),
                format!("priorities mean nothing to '{name}': SCHED_DEADLINE comes before every priority"),
            );
        }
        let unused = [
            table.priorities.as_ref().map(Spanned::span),
            table.processors.as_ref().map(Spanned::span),
            table.utilization.as_ref().map(Spanned::span),
            table.admission.as_ref().map(Spanned::span),
            table.latency.as_ref().map(Spanned::span),
            table.util_min.as_ref().map(Spanned::span),
            table.util_max.as_ref().map(Spanned::span),
        ];
        for span in unused.into_iter().flatten().filter(|_| kind == Kind::Table) {
            self.warning(span, format!("this means nothing to '{name}': the table that runs decides"));
        }
        let processors = match &table.processors {
            None => self.machine.processors.clone(),
            Some(given) => self.processors(given),
        };
        let threshold = match &table.utilization {
            // What the kernel leaves to real-time threads by itself (sched_rt_runtime_us /
            // sched_rt_period_us), so that they never meet that throttle; and where it is lifted, what keeps
            // a processor usable by everything else.
            None => 0.95,
            Some(given) => self.utilization(given),
        };
        let test = match table.admission.as_ref().map(|given| (given.get_ref().as_str(), given.span())) {
            None | Some(("exact", _)) => Test::Exact,
            Some(("utilization", _)) => Test::Utilization,
            Some((other, span)) => {
                self.error(
                    span,
                    format!("admission '{other}' is unknown; expected \"exact\" or \"utilization\""),
                );
                Test::Exact
            }
        };
        let without_runtime_up_to = table.without_runtime_up_to.and_then(|given| {
            let (most, range) = (*given.get_ref(), priorities);
            let is_theirs =
                matches!(kind, Kind::BuiltIn(punctual_schedule::Kind::Fp | punctual_schedule::Kind::Rr));
            if is_theirs && (range.0..range.1).contains(&most) {
                return Some(most);
            }
            let message = match is_theirs {
                true => format!(
                    "without_runtime_up_to = {most} is out of range; expected {} to {}, so that priorities \
                     above are left",
                    range.0,
                    range.1.saturating_sub(1)
                ),
                false => format!("'{name}' reserves no priorities: without_runtime_up_to is for FP and RR"),
            };
            self.error(given.span(), message);
            None
        });
        let (clamps, unclamped) = self.clamps(&name, &kind, [&table.util_min, &table.util_max]);
        let (platforms, doubt) = match table.latency.filter(|_| kind != Kind::Table) {
            None => (Vec::new(), None),
            Some(given) => self.platforms(&name, given, &kind, test, &processors),
        };
        let reserves = Vec::new();
        let doubts: Vec<String> = doubt.into_iter().chain(unclamped).collect();
        let doubt = (!doubts.is_empty()).then(|| doubts.join("; "));
        PluginConfig {
            name,
            kind,
            priorities,
            processors,
            threshold,
            test,
            platforms,
            doubt,
            reserves,
            without_runtime_up_to,
            clamps,
        }
    }

    /// The utilization clamps of a plugin's threads, and why they do nothing, if so.
    fn clamps(
        &mut self,
        name: &str,
        kind: &Kind,
        given: [&Option<Spanned<Value>>; 2],
    ) -> (Clamps, Option<String>) {
        let mut share = |key: &str, given: &Option<Spanned<Value>>| {
            let given = given.as_ref()?;
            let number = match given.get_ref() {
                Value::Float(number) => *number,
                Value::Integer(number) => *number as f64,
                _ => f64::NAN,
            };
            if (0.0..=1.0).contains(&number) {
                return Some((number * f64::from(scheduling::WHOLE)).round() as u32);
            }
            let message = format!(
                "{key} = {} is out of range; expected a share of the greatest processor's capacity, 0 to 1",
                self.written(given)
            );
            self.error(given.span(), message);
            None
        };
        let clamps = Clamps { min: share("util_min", given[0]), max: share("util_max", given[1]) };
        let mut spans = given.into_iter().flatten().map(Spanned::span);
        let Some(span) = spans.next_back().filter(|_| *kind != Kind::Table) else {
            return (Clamps::default(), None);
        };
        if clamps.min.zip(clamps.max).is_some_and(|(min, max)| min > max) {
            self.error(span, "util_max is below util_min");
        } else if kind.is_deadline() {
            let message = format!("clamps mean nothing to '{name}': SCHED_DEADLINE has its own utilization");
            self.warning(span, message);
            return (Clamps::default(), None);
        } else if !self.machine.clamps {
            let message = format!(
                "util_min and util_max of '{name}' do nothing: this kernel has no utilization clamps \
                 (CONFIG_UCLAMP_TASK)"
            );
            self.warning(span, message.clone());
            return (clamps, Some(message));
        }
        (clamps, None)
    }

    /// What the kernel takes, from the section `latency` of a timing model; and why it may take more.
    fn platforms(
        &mut self,
        name: &str,
        given: Spanned<PathBuf>,
        kind: &Kind,
        test: Test,
        processors: &[u32],
    ) -> (Vec<Platform>, Option<String>) {
        let span = given.span();
        let path = self.path_of(given);
        let counts = matches!(kind, Kind::BuiltIn(kind) if !kind.is_deadline());
        if !counts || test != Test::Exact {
            let message = "latency counts only in the exact test of RM, FP and RR; leave it out";
            self.error(span, message);
            return (Vec::new(), None);
        }
        match platforms(&path, processors, self.machine) {
            Ok((platforms, difference)) => {
                let missed = platforms.iter().any(|platform| platform.at_least);
                let missed = missed.then(|| "events were missed when it was observed".to_owned());
                let other = difference.map(|it| format!("it was observed on {it}"));
                let reasons: Vec<String> = other.into_iter().chain(missed).collect();
                let doubt = (!reasons.is_empty()).then(|| {
                    let what = format!("what the kernel takes may be longer than what '{name}' counts");
                    format!("{what}: {}; {MEASURE_AGAIN}", reasons.join("; "))
                });
                if let Some(doubt) = &doubt {
                    self.warning(span, doubt.clone());
                }
                (platforms, doubt)
            }
            Err(why) => {
                self.error(span, why);
                (Vec::new(), None)
            }
        }
    }

    fn kind(
        &mut self,
        name: &str,
        at: Range<usize>,
        kind: Option<Spanned<String>>,
        object: Option<Spanned<PathBuf>>,
    ) -> Kind {
        match (kind, object) {
            (Some(kind), None) if kind.get_ref().eq_ignore_ascii_case("TT") => Kind::Table,
            (Some(kind), None) => kind.get_ref().parse().map(Kind::BuiltIn).unwrap_or_else(|_| {
                let hint = if kind.get_ref().ends_with(".so") {
                    "; a shared object goes to object = \"…\""
                } else {
                    ""
                };
                let message = format!(
                    "kind '{}' is unknown; expected \"EDF\", \"RM\", \"FP\", \"RR\", \"GEDF\", \"NICE\" or \
                     \"TT\"{hint}",
                    kind.get_ref()
                );
                self.error(kind.span(), message);
                Kind::BuiltIn(punctual_schedule::Kind::Fp)
            }),
            (None, Some(object)) => Kind::Object(self.path_of(object)),
            (Some(_), Some(object)) => {
                self.error(
                    object.span(),
                    format!("plugin '{name}' has both kind and object; expected one of them"),
                );
                Kind::BuiltIn(punctual_schedule::Kind::Fp)
            }
            (None, None) => {
                self.error(
                    at,
                    format!(
                        "plugin '{name}' is nothing yet; expected kind = \"EDF\", \"RM\", \"FP\", \"RR\", \
                         \"GEDF\", \"NICE\" or \"TT\", or object = \"/path/plugin.so\""
                    ),
                );
                Kind::BuiltIn(punctual_schedule::Kind::Fp)
            }
        }
    }

    fn priorities(&mut self, given: &Spanned<Value>) -> (u32, u32) {
        let range = self.machine.priorities;
        let ends = given.get_ref().as_array().and_then(|ends| match ends.as_slice() {
            [least, greatest] => Some((least.as_integer()?, greatest.as_integer()?)),
            _ => None,
        });
        let within = |priority: i64| {
            u32::try_from(priority).ok().filter(|priority| (range.0..=range.1).contains(priority))
        };
        match ends.map(|(least, greatest)| (within(least), within(greatest))) {
            Some((Some(least), Some(greatest))) if least <= greatest => return (least, greatest),
            Some((Some(least), Some(greatest))) => {
                self.error(
                    given.span(),
                    format!("priorities = [{least}, {greatest}] is empty; the least comes first"),
                );
            }
            Some(_) => self.error(
                given.span(),
                format!(
                    "priorities = {} is out of range; SCHED_FIFO and SCHED_RR have {} to {} here",
                    self.written(given),
                    range.0,
                    range.1
                ),
            ),
            None => self.error(
                given.span(),
                format!("expected priorities = [least, greatest], of {} to {}", range.0, range.1),
            ),
        }
        range
    }

    fn processors(&mut self, given: &Spanned<Value>) -> Vec<u32> {
        let online = &self.machine.processors;
        let list = match given.get_ref() {
            Value::String(text) => processor_list(text),
            Value::Array(numbers) => numbers
                .iter()
                .map(|number| number.as_integer().and_then(|number| u32::try_from(number).ok()))
                .collect::<Option<Vec<u32>>>()
                .ok_or_else(|| "expected processors such as [0, 2, 3] or \"0,2-3\"".into()),
            _ => Err("expected processors such as [0, 2, 3] or \"0,2-3\"".into()),
        };
        let list = list.and_then(|mut list| {
            list.sort_unstable();
            list.dedup();
            match list.iter().find(|processor| !online.contains(processor)) {
                Some(missing) => {
                    Err(format!("processor {missing} is not online here; there are {}", listed(online)))
                }
                None if list.is_empty() => Err("no processor; leave processors out for all of them".into()),
                None => Ok(list),
            }
        });
        list.unwrap_or_else(|why| {
            self.error(given.span(), why);
            Vec::new()
        })
    }

    fn utilization(&mut self, given: &Spanned<Value>) -> f64 {
        let number = match given.get_ref() {
            Value::Float(number) => *number,
            Value::Integer(number) => *number as f64,
            _ => f64::NAN,
        };
        if number > 0.0 && number <= 1.0 {
            return number;
        }
        let message = format!(
            "utilization = {} is out of range; expected a share of each processor above 0 and at most 1, \
             such as 0.95",
            self.written(given)
        );
        self.error(given.span(), message);
        0.0
    }
}

/// What to do about a timing model that may not be true.
const MEASURE_AGAIN: &str = "measure again (punctual latency -o FILE) and reload";

/// What is known of the kernel on these processors, all of which have to be known; and in what this machine
/// differs from the one where it was observed.
fn platforms(
    path: &Path,
    processors: &[u32],
    machine: &Machine,
) -> Result<(Vec<Platform>, Option<String>), String> {
    let shown = path.display();
    let text = text::read_generated(path).map_err(|problem| problem.to_string())?;
    let model =
        TimingModel::from_json(&text).map_err(|error| format!("{shown} is not a timing model: {error}"))?;
    let Some(latency) = &model.latency else {
        return Err(format!("{shown} has no section `latency`; punctual latency -o FILE makes one"));
    };
    let known = |cpu: &u32| {
        let found = latency.processors.iter().find(|processor| processor.cpu == *cpu);
        found.and_then(|processor| Platform::observed(processor, latency.horizon_ns)).ok_or(*cpu)
    };
    let platforms: Result<Vec<Platform>, u32> = processors.iter().map(known).collect();
    let platforms = platforms.map_err(|cpu| format!("{shown} has no latency bound of processor {cpu}"))?;
    Ok((platforms, machine.differs_from(&model)))
}

/// Whether a name can stand in a rule, in ReTiF's structures and in a message.
fn plugin_name(name: &str) -> Result<(), String> {
    if name.is_empty() || name.len() > LONGEST_NAME {
        return Err(format!(
            "a plugin's name has 1 to {LONGEST_NAME} bytes (ReTiF's programs have room for no more)"
        ));
    }
    if name == "-" {
        return Err("'-' means any plugin in a rule; expected another name".into());
    }
    match name.chars().find(|c| !(c.is_ascii_alphanumeric() || "_.-+".contains(*c))) {
        Some(wrong) => {
            Err(format!("{wrong:?} cannot be in a plugin's name; expected letters, digits, and any of _.-+"))
        }
        None => Ok(()),
    }
}

/// Whether it is an array of two integers.
fn is_pair(given: &Value) -> bool {
    given.as_array().is_some_and(|ends| ends.len() == 2 && ends.iter().all(Value::is_integer))
}

/// What it means that two plugins share processors (ReTiF, Section 7.2: each keeps books of its own).
fn overlap(first: &PluginConfig, second: &PluginConfig) -> Option<String> {
    // Which processors have a table, the configuration does not say; and nice levels take none.
    let takes_none =
        |it: &PluginConfig| matches!(it.kind, Kind::Table | Kind::BuiltIn(punctual_schedule::Kind::Nice));
    if takes_none(first) || takes_none(second) {
        return None;
    }
    let shared: Vec<u32> =
        first.processors.iter().copied().filter(|processor| second.processors.contains(processor)).collect();
    if shared.is_empty() {
        return None;
    }
    let before = |one: &PluginConfig, other: &PluginConfig| match (&one.kind, &other.kind) {
        // What a shared object gives out is its own.
        (Kind::Object(_), _) | (_, Kind::Object(_)) => None,
        (one, other) if one.is_deadline() && other.is_deadline() => None,
        (one, _) if one.is_deadline() => Some(true),
        (_, other) if other.is_deadline() => Some(false),
        _ if one.priorities.0 > other.priorities.1 => Some(true),
        _ if one.priorities.1 < other.priorities.0 => Some(false),
        _ => None,
    };
    let what = match before(first, second) {
        Some(first_wins) => {
            let (winner, loser) = if first_wins { (first, second) } else { (second, first) };
            format!(
                "whatever '{}' admits runs before what '{}' admits, which '{}' does not count",
                winner.name, loser.name, loser.name
            )
        }
        None => "threads of either may run before those of the other, and neither counts them".into(),
    };
    let sum = first.threshold + second.threshold;
    let whole =
        if sum > 1.0 { format!("; together they may give out {sum:.2} of each") } else { String::new() };
    Some(format!(
        "'{}' and '{}' share processor{} {}: {what}{whole}. What they promise holds only on processors of \
         their own",
        first.name,
        second.name,
        if shared.len() == 1 { "" } else { "s" },
        listed(&shared)
    ))
}

/// Processors as the kernel writes them.
pub(super) fn listed(processors: &[u32]) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut at = 0;
    while at < processors.len() {
        let from = at;
        while at + 1 < processors.len() && processors[at + 1] == processors[at] + 1 {
            at += 1;
        }
        parts.push(if from == at {
            processors[at].to_string()
        } else {
            format!("{}-{}", processors[from], processors[at])
        });
        at += 1;
    }
    parts.join(",")
}
