#![no_main]

#[path = "inputs/lime.rs"]
mod input;
#[path = "inputs/place.rs"]
mod place;

libfuzzer_sys::fuzz_target!(|data: &[u8]| input::read(data));
