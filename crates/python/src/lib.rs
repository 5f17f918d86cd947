//! The native half of the Python package `punctual`: each function is one of `workflow`, as each command is.
//!
//! Not for what Python does better: type hints, plots and the drivers of clusters are in `python/punctual`.

mod arguments;
mod arrays;
mod arrow;
mod check;
mod document;
mod errors;
mod jobs;
mod models;
mod prove;
mod run;
mod summary;

#[pyo3::pymodule]
mod _punctual {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::arrays::extract;
    #[pymodule_export]
    use crate::check::check;
    #[pymodule_export]
    use crate::jobs::{Jobs, jobs};
    #[pymodule_export]
    use crate::models::{read_model, replay, write_model};
    #[pymodule_export]
    use crate::prove::prove;
    #[pymodule_export]
    use crate::summary::{Summary, merge, summarize};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
