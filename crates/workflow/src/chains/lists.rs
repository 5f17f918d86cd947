//! Lists of all instances of a dataflow program and of all latencies of its chains.

use super::passages::{ended, names};
use crate::destination::{Destination, Pending};
use crate::error::{Error, Result};
use crate::monitor::Monitor;
use punctual_extract::flow::{Analysis, Chains, Graph};
use punctual_report::jobs::{self, Format, Instance, InstanceWriter, PassageWriter};
use std::path::Path;

/// Where lists go.
#[derive(Default)]
pub struct Lists {
    /// Of instances.
    pub instances: Option<List>,
    /// Of latencies of chains.
    pub passages: Option<List>,
}

/// Where and how a list is written.
pub struct List {
    destination: Destination,
    format: Format,
}

impl List {
    /// A new file, `*.csv` or `*.parquet`.
    pub fn new(path: &Path, replace: bool) -> Result<List> {
        let format = Format::from_file_name(path).map_err(|error| Error::usage(error.to_string()))?;
        Ok(List { destination: Destination::new(path, replace)?, format })
    }

    fn failed(&self, error: &jobs::Error) -> Error {
        Error::file(self.destination.path().display().to_string()).because(error.to_string())
    }

    fn unwritten(&self, error: &std::io::Error) -> Error {
        Error::io("write", self.destination.path().display(), error)
    }
}

/// A list that is being written.
struct Open<'a, W> {
    list: &'a List,
    writer: W,
}

/// Lists that are being written.
pub(super) struct Listing<'a> {
    graph: &'a Graph,
    /// Names of the chains.
    chains: Vec<String>,
    instances: Option<Open<'a, InstanceWriter<Pending<'a>>>>,
    passages: Option<Open<'a, PassageWriter<Pending<'a>>>>,
    failure: Option<Error>,
}

impl<'a> Listing<'a> {
    pub fn begin(lists: &'a Lists, graph: &'a Graph, chains: &Chains, clock: &str) -> Result<Listing<'a>> {
        let begin = |list: &'a List| list.destination.begin().map_err(|error| list.unwritten(&error));
        let instances = lists.instances.as_ref().map(|list| {
            let writer = InstanceWriter::new(begin(list)?, list.format, clock);
            Ok::<_, Error>(Open { list, writer: writer.map_err(|error| list.failed(&error))? })
        });
        let passages = lists.passages.as_ref().map(|list| {
            let writer = PassageWriter::new(begin(list)?, list.format, clock);
            Ok::<_, Error>(Open { list, writer: writer.map_err(|error| list.failed(&error))? })
        });
        Ok(Listing {
            graph,
            chains: names(graph, chains),
            instances: instances.transpose()?,
            passages: passages.transpose()?,
            failure: None,
        })
    }

    /// Lists what has ended since the last call.
    #[inline]
    pub fn take(&mut self, analysis: &mut Analysis<'_>) {
        if let Some(Open { list, writer }) = self.instances.as_mut().filter(|_| self.failure.is_none()) {
            for it in analysis.executed() {
                let written = writer.row(&Instance {
                    task: self.graph.task_name(it.task),
                    number: it.instance,
                    activation: it.activation,
                    start: it.start,
                    stop: it.stop,
                    executor: it.producer,
                });
                self.failure = self.failure.take().or(written.err().map(|error| list.failed(&error)));
            }
        }
        if let Some(Open { list, writer }) = self.passages.as_mut().filter(|_| self.failure.is_none()) {
            for passage in ended(analysis, &self.chains) {
                let written = writer.row(&passage);
                self.failure = self.failure.take().or(written.err().map(|error| list.failed(&error)));
            }
        }
    }

    /// Puts the complete files in their places.
    pub fn finish(self, monitor: &dyn Monitor) -> Result<()> {
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        if let Some(Open { list, writer }) = self.instances {
            let pending = writer.finish().map_err(|error| list.failed(&error))?;
            pending.finish().map_err(|error| list.unwritten(&error))?;
            monitor.hint(&format!("wrote every instance to {}", list.destination.path().display()));
        }
        if let Some(Open { list, writer }) = self.passages {
            let pending = writer.finish().map_err(|error| list.failed(&error))?;
            pending.finish().map_err(|error| list.unwritten(&error))?;
            monitor.hint(&format!("wrote every latency to {}", list.destination.path().display()));
        }
        Ok(())
    }
}
