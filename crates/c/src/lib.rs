//! `libpunctual_c.a`: the C functions of [`punctual_client`], for the C compiler to link.
//!
//! Holds no code: the functions are the client's.

extern crate punctual_client as _;
