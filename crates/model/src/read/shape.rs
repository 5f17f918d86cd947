//! From text to types, for every version of the file.

use super::strict::Strict;
use crate::error::ReadError;
use crate::file::TimingModel;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Reads exactly the type, and nothing that only resembles it.
pub fn shape<T: DeserializeOwned>(text: &str) -> Result<T, ReadError> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    serde_path_to_error::deserialize(Strict(&mut deserializer)).map_err(|error| ReadError::shape(&error))
}

/// `releases` is optional: if a tool left it out, every release had its job.
pub fn count_releases(model: &mut TimingModel, tasks: Option<&Value>) {
    let Some(threads) = &mut model.threads else { return };
    for (task, source) in threads.tasks.iter_mut().zip(array(tasks)) {
        for (stream, source) in task.streams.iter_mut().zip(array(source.get("streams"))) {
            if source.get("releases").is_none() {
                stream.releases = stream.jobs;
            }
        }
    }
}

fn array(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}
