#![no_main]

#[path = "inputs/ros2.rs"]
mod input;

libfuzzer_sys::fuzz_target!(|data: &[u8]| input::read(data));
