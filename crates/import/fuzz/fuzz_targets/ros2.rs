#![no_main]

#[path = "inputs/ros2.rs"]
mod input;
#[path = "inputs/place.rs"]
mod place;

libfuzzer_sys::fuzz_target!(|data: &[u8]| input::read(data));
