#![no_main]

#[path = "inputs/trace_dat.rs"]
mod input;

libfuzzer_sys::fuzz_target!(|data: &[u8]| input::read(data));
