//! Compiles the eBPF program and generates its skeleton.

use libbpf_cargo::SkeletonBuilder;
use std::path::PathBuf;

fn main() {
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR")).join("observe.skel.rs");
    let arch = match std::env::var("CARGO_CFG_TARGET_ARCH").expect("cargo sets CARGO_CFG_TARGET_ARCH").as_str() {
        "x86_64" => "x86",
        "aarch64" => "arm64",
        other => panic!("the eBPF program does not know the system calls of {other}"),
    };
    SkeletonBuilder::new()
        .source("src/bpf/observe.bpf.c")
        .clang_args([
            "-Wall",
            "-Wextra",
            "-Werror",
            "-Wno-unused-parameter",
            "-Wno-missing-declarations",
            &format!("-D__TARGET_ARCH_{arch}"),
        ])
        .build_and_generate(&out)
        .expect("compiling src/bpf/observe.bpf.c (is clang installed? `make build` installs what is missing)");
    println!("cargo:rerun-if-changed=src/bpf");
}
