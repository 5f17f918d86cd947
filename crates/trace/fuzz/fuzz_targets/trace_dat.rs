#![no_main]

mod trace_dat_input;

libfuzzer_sys::fuzz_target!(|data: &[u8]| trace_dat_input::read(data));
