#![no_main]

mod flow_input;

libfuzzer_sys::fuzz_target!(|data: &[u8]| flow_input::read(data));
