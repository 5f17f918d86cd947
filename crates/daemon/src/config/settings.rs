//! What `punctuald.toml` says.

use super::plugins::PluginConfig;
use super::realtimekit::RealtimeKit;
use std::path::PathBuf;

/// Default path of the socket.
pub const DEFAULT_SOCKET: &str = "/run/punctual/io.punctual.Scheduler1";

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
    /// How threads are held to their runtime.
    pub enforcement: crate::enforce::Policy,
    /// How RealtimeKit's interface is served, if at all.
    pub realtimekit: Option<RealtimeKit>,
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
