//! What the benchmarks share: running Punctual and its workloads, reading what the kernel counts, recordings
//! as long as wanted, tables in the documentation.

pub mod document;
pub mod measure;
pub mod requests;
pub mod trace;

/// Whatever went wrong: a benchmark says it and ends.
pub type Error = Box<dyn std::error::Error>;

/// Ends the benchmark of this name.
pub fn ended(name: &str, result: Result<(), Error>) -> std::process::ExitCode {
    match result {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{name}: {error}");
            std::process::ExitCode::FAILURE
        }
    }
}
