//! `punctuald`: who may have what, what is admitted, what the kernel is told, and how all of it is undone.

pub mod access;
pub mod config;
pub mod rules;
pub mod shared;
pub mod text;
