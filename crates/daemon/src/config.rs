//! The configuration that administrators write: `punctuald.toml`, read strictly. Every message names file,
//! line and column, and what would be right.
//!
//! What a plugin decides is in `punctual_schedule`, who may ask it in the rules.

mod enforcement;
mod file;
mod plugins;
mod realtimekit;
mod settings;

pub use crate::machine::{Machine, processor_list};
pub use crate::text::Error;
pub use plugins::{Kind, PluginConfig};
pub use realtimekit::RealtimeKit;
pub use settings::{Config, DEFAULT_SOCKET, Quotas, Socket};

use crate::rules::Rules;
use crate::text::{self, Problem};
use punctual_schedule::{Limits, Plugin};
use std::path::Path;

/// Default path of the configuration.
pub const DEFAULT_PATH: &str = "/etc/punctual/punctuald.toml";
/// What holds where there is no configuration file; installed as one, with its comments.
pub const DEFAULT_TEXT: &str = include_str!("default_config.toml");

impl Config {
    /// Reads a configuration for this machine. The file must be root's or the reader's own, and nobody else's
    /// to write, since it names what is run as root.
    pub fn load(path: &Path) -> Result<(Config, Vec<Problem>), Error> {
        let text = text::read(path).map_err(|problem| Error(vec![problem]))?;
        Config::parse(&text, path, &Machine::here())
    }

    /// The configuration at its usual place, or the built-in one where there is none.
    pub fn load_default() -> Result<(Config, Vec<Problem>), Error> {
        let path = Path::new(DEFAULT_PATH);
        if path.exists() { Config::load(path) } else { Config::built_in(&Machine::here()) }
    }

    /// What holds without a configuration file.
    pub fn built_in(machine: &Machine) -> Result<(Config, Vec<Problem>), Error> {
        let (mut config, mut warnings) =
            Config::parse(DEFAULT_TEXT, Path::new("(built-in configuration)"), machine)?;
        warnings.extend(config.do_without_rules());
        Ok((config, warnings))
    }

    /// A warning if the file of rules does not exist. Then there are no rules, which is safe.
    pub fn do_without_rules(&mut self) -> Option<Problem> {
        let path = self.rules.take_if(|path| !path.exists())?;
        Some(Problem::in_file(&path, "does not exist, so only root may do anything"))
    }

    /// A configuration from its text. `path` is for messages, and what relative paths in it are relative to.
    pub fn parse(text: &str, path: &Path, machine: &Machine) -> Result<(Config, Vec<Problem>), Error> {
        file::parse(text, path, machine)
    }

    /// The names of the plugins, in their order.
    pub fn plugin_names(&self) -> Vec<&str> {
        self.plugins.iter().map(|plugin| plugin.name.as_str()).collect()
    }

    /// All plugins, in their order, with empty books.
    pub fn plugins(&self, limits: Limits) -> Result<Vec<Box<dyn Plugin>>, Error> {
        let created = self.plugins.iter().map(|config| {
            config.plugin(limits).map_err(|why| {
                Problem::in_file(&self.path, format!("plugin '{}' cannot be made: {why}", config.name))
            })
        });
        let (fine, wrong): (Vec<_>, Vec<_>) = created.partition(Result::is_ok);
        match wrong.is_empty() {
            true => Ok(fine.into_iter().flatten().collect()),
            false => Err(Error(wrong.into_iter().filter_map(Result::err).collect())),
        }
    }

    /// The rules that this configuration names.
    pub fn load_rules(&self) -> Result<(Rules, Vec<Problem>), Error> {
        match &self.rules {
            Some(path) => Rules::load(path, Some(&self.plugin_names())),
            None => Ok((Rules::default(), Vec::new())),
        }
    }
}
