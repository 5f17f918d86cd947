//! Values of the timing-model file inside a summary: as the JSON that the file would have.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser};

pub fn serialize<T: Serialize, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
    serde_json::to_string(value).map_err(ser::Error::custom)?.serialize(serializer)
}

/// Refuses what would not be written like this: unknown fields, other orders, other digits.
pub fn deserialize<'de, T: Serialize + DeserializeOwned, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    let text = <&str>::deserialize(deserializer)?;
    let value: T = serde_json::from_str(text).map_err(de::Error::custom)?;
    match serde_json::to_string(&value) {
        Ok(written) if written == text => Ok(value),
        _ => Err(de::Error::custom("a value of a timing model as it is written")),
    }
}
