#![no_main]

#[path = "inputs/configuration.rs"]
mod input;

libfuzzer_sys::fuzz_target!(|data: &[u8]| input::read(data));
