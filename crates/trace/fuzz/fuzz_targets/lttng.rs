#![no_main]

mod lttng_input;

libfuzzer_sys::fuzz_target!(|data: &[u8]| lttng_input::read(data));
