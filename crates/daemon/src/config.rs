//! The configuration that administrators write: `punctuald.toml`, read strictly. Every message names file,
//! line and column, and what would be right.
//!
//! What a plugin decides is in `punctual_schedule`, who may ask it in the rules.

mod file;
mod plugins;

pub use crate::machine::{Machine, processor_list};
pub use crate::text::Error;
pub use plugins::{Kind, PluginConfig};

use crate::rules::Rules;
use crate::text::{self, Problem};
use std::path::{Path, PathBuf};

/// Default path of the configuration.
pub const DEFAULT_PATH: &str = "/etc/punctual/punctuald.toml";
/// Default path of the socket.
pub const DEFAULT_SOCKET: &str = "/run/punctual/io.punctual.Scheduler1";
/// What holds where there is no configuration file; installed as one, with its comments.
pub const DEFAULT_TEXT: &str = include_str!("../../../dist/punctuald.toml");

/// All that an administrator decides, but for who may have what.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Where it was read from, for messages.
    pub path: PathBuf,
    /// Where to listen.
    pub socket: Socket,
    /// The folder of the journal.
    pub state: PathBuf,
    /// The file of rules; without one, only root may do anything.
    pub rules: Option<PathBuf>,
    /// How much of the daemon one may have.
    pub quotas: Quotas,
    /// Whether `sched_rt_runtime_us` may be set to −1 while threads of an EDF plugin are pinned to
    /// processors.
    pub lift_realtime_limit: bool,
    /// In the order in which they are asked.
    pub plugins: Vec<PluginConfig>,
}

/// Where the daemon listens. Where systemd hands over the socket, that one holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Socket {
    /// A Unix socket.
    pub path: PathBuf,
    /// Its permissions: who may connect at all. What they may then do is for the rules to say.
    pub mode: u32,
    /// The group that it belongs to; root's, if not given.
    pub group: Option<u32>,
}

/// What a user may have of the daemon at most, so that none can take it from others. Root's share is the
/// whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quotas {
    /// Connections, all users together.
    pub connections: usize,
    /// Connections of one user.
    pub connections_per_user: usize,
    /// Specs, all users together.
    pub specs: usize,
    /// Specs of one user.
    pub specs_per_user: usize,
}

impl Default for Quotas {
    fn default() -> Quotas {
        Quotas { connections: 1024, connections_per_user: 64, specs: 4096, specs_per_user: 256 }
    }
}

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

    /// The rules that this configuration names.
    pub fn load_rules(&self) -> Result<(Rules, Vec<Problem>), Error> {
        match &self.rules {
            Some(path) => Rules::load(path, Some(&self.plugin_names())),
            None => Ok((Rules::default(), Vec::new())),
        }
    }
}
