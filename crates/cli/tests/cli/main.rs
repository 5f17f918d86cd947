//! The command as its users run it, in one program so that it is linked once.

mod changes;
mod command;
mod compare;
mod contract;
mod folder;
mod prove;
mod table;
mod unproven;
mod violation;
