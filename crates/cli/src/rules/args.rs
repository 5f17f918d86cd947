//! `punctual rules` on the command line.

use crate::ctl::declared::Declared;
use clap::{Args, Subcommand, ValueHint};
use std::path::PathBuf;

/// Check the daemon's access rules, and explain their effect
///
/// Reads the same files as punctuald without asking it, so that rules can be tried before they take effect.
#[derive(Args, Debug)]
#[command(arg_required_else_help = true)]
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

/// Show what a user may ask for, and which rule decides
///
/// For each plugin: whether a spec with these parameters would be permitted, the rule that decides, and the
/// limits that apply. Sums of utilization are as if nothing else were admitted. Does not test whether the
/// spec could also be scheduled.
#[derive(Args, Debug)]
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
