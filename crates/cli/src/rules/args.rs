//! `punctual rules` on the command line.

use crate::ctl::declared::Declared;
use clap::{Args, Subcommand, ValueHint};
use std::path::PathBuf;

/// Check the daemon's rules, and show which line decides
///
/// Reads the same files as punctuald without asking it, so that rules can be tried before they take effect.
#[derive(Args, Debug)]
#[command(after_long_help = crate::failure::codes(), arg_required_else_help = true)]
pub struct Arguments {
    #[command(subcommand)]
    pub action: Action,
}

#[derive(Subcommand, Debug)]
pub enum Action {
    Check(Check),
    Explain(Explain),
}

/// Check rules for errors, and show whom they admit
///
/// The exit code is 0 if the daemon would accept them. Its warnings go to standard error.
#[derive(Args, Debug)]
#[command(after_long_help = crate::failure::codes())]
pub struct Check {
    /// The rules [default: those of the configuration]
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: Option<PathBuf>,

    /// The configuration, which says which plugins there are [default: /etc/punctual/punctuald.toml; without
    /// it, every name counts as a plugin]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub config: Option<PathBuf>,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Say what a user may ask for, and which rule decides
///
/// Of each plugin: whether a spec of these parameters would be permitted, the line that decides, and the
/// limits that hold. Sums of utilization are as if nothing else were admitted. Whether the spec could also be
/// scheduled is not asked.
#[derive(Args, Debug)]
#[command(after_long_help = crate::failure::codes())]
pub struct Explain {
    /// The user, by name or number, with all its groups [default: you]
    #[arg(short, long, value_name = "USER", value_hint = ValueHint::Username)]
    pub user: Option<String>,

    /// The effective group, where it is not the user's own
    #[arg(short, long, value_name = "GROUP")]
    pub group: Option<String>,

    /// The rules [default: those of the configuration]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub rules: Option<PathBuf>,

    /// The configuration, which says which plugins there are [default: /etc/punctual/punctuald.toml]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub config: Option<PathBuf>,

    #[command(flatten)]
    pub declared: Declared,

    /// Only this plugin
    #[arg(long, value_name = "NAME")]
    pub plugin: Option<String>,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
