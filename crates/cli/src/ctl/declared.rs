//! Options for the parameters of a spec, shared by `punctual ctl run` and `punctual rules explain`. Their
//! names and help come from the protocol's table.

use clap::Args;
use punctual_model::Duration;
use punctual_protocol::{Parameters, parameter};

/// The parameters except the plugin.
#[derive(Args, Clone, Debug, Default)]
pub struct Declared {
    #[arg(long, value_name = "TIME", value_parser = time, help = parameter("period").help())]
    pub period: Option<Duration>,

    #[arg(long, value_name = "TIME", value_parser = time, help = parameter("runtime").help())]
    pub runtime: Option<Duration>,

    #[arg(
        long,
        value_name = "TIME",
        value_parser = time,
        requires = "runtime",
        help = parameter("desired_runtime").help()
    )]
    pub desired_runtime: Option<Duration>,

    #[arg(long, value_name = "TIME", value_parser = time, help = parameter("deadline").help())]
    pub deadline: Option<Duration>,

    #[arg(
        long,
        value_name = "TIME",
        value_parser = time,
        requires = "period",
        help = parameter("offset").help()
    )]
    pub offset: Option<Duration>,

    #[arg(long, value_name = "TIME", value_parser = time, help = parameter("blocking").help())]
    pub blocking: Option<Duration>,

    #[arg(long, value_name = "N", help = parameter("priority").help())]
    pub priority: Option<u32>,

    #[arg(
        long,
        value_name = "N",
        allow_negative_numbers = true,
        value_parser = clap::value_parser!(i32).range(-20..=19),
        help = parameter("nice").help()
    )]
    pub nice: Option<i32>,

    #[arg(long, help = parameter("ignore_admission").help())]
    pub ignore_admission: bool,
}

impl Declared {
    /// The declared parameters, for one plugin or for any.
    pub fn parameters(&self, plugin: Option<String>) -> Parameters {
        Parameters {
            runtime: self.runtime,
            desired_runtime: self.desired_runtime,
            period: self.period,
            deadline: self.deadline,
            offset: self.offset,
            blocking: self.blocking,
            priority: self.priority,
            nice: self.nice,
            plugin,
            ignore_admission: self.ignore_admission,
        }
    }
}

/// Accepts zero; the daemon refuses it and names the bound.
fn time(text: &str) -> Result<Duration, String> {
    let span = humantime::parse_duration(text)
        .map_err(|_| "expected a number with a unit, such as 10ms, 250us or 1s")?;
    let ns = u64::try_from(span.as_nanos()).map_err(|_| "expected less than 584 years")?;
    Ok(Duration::from_ns(ns))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Arguments;
    use clap::CommandFactory;
    use punctual_protocol::{PARAMETERS, Unit};

    #[test]
    fn both_commands_have_all_parameters() {
        let mut all = Arguments::command();
        all.build();
        for path in [["ctl", "run"], ["rules", "explain"]] {
            let command = path.iter().fold(&all, |at, name| at.find_subcommand(name).expect("a command"));
            for parameter in PARAMETERS {
                let option = command.get_arguments().find(|it| it.get_id() == parameter.name);
                let option = option.unwrap_or_else(|| panic!("{path:?} has no {}", parameter.name));
                assert_eq!(option.get_long(), Some(&*parameter.name.replace('_', "-")));
                assert_eq!(option.get_action().takes_values(), parameter.unit != Unit::Flag);
                let help = option.get_help().expect("a help").to_string();
                assert!(help == parameter.help() || parameter.name == "plugin", "{path:?}: {help}");
            }
        }
    }

    #[test]
    fn times_need_a_unit_and_are_limited() {
        assert_eq!(time("250us"), Ok(Duration::from_us(250)));
        assert_eq!(time("0s"), Ok(Duration::ZERO));
        assert!(time("10").is_err() && time("600000000000000h").is_err() && time("-1ms").is_err());
    }
}
