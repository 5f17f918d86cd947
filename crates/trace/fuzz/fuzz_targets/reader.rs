#![no_main]

#[path = "inputs/reader.rs"]
mod input;

libfuzzer_sys::fuzz_target!(|data: &[u8]| input::read(data));
