#![no_main]

#[path = "inputs/lime.rs"]
mod input;

libfuzzer_sys::fuzz_target!(|data: &[u8]| input::read(data));
