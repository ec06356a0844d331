//! What every generated message can do, for code that is generic over
//! messages: clients, the load tool, tests.

use std::fmt::Debug;

use super::error::WireError;
use super::generated::ApiKey;
use super::reader::Reader;
use super::writer::Writer;

/// One request or response body of the schema.
pub trait Message: Sized + Clone + Debug + Default + PartialEq {
    /// The API that it belongs to.
    const KEY: ApiKey;
    /// Its name, such as `MetadataRequest`.
    const NAME: &'static str;

    /// Reads the fields that `version` has; the others keep their defaults.
    /// Does not ask that all bytes are used: see [`Message::decode`].
    fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError>;

    /// Appends the message as `version`. On an error the output is undefined.
    fn write(&self, writer: &mut Writer<'_>, version: i16) -> Result<(), WireError>;

    /// Bytes that `write` appends for `version` when it succeeds.
    fn size(&self, version: i16) -> usize;

    /// Refuses versions that the schema does not have.
    fn check_version(version: i16) -> Result<(), WireError> {
        if Self::KEY.known_versions().contains(version) {
            Ok(())
        } else {
            Err(WireError::UnsupportedVersion { message: Self::NAME, version })
        }
    }

    /// Reads a whole body: bytes that are left over are an error.
    fn decode(mut reader: Reader<'_>, version: i16) -> Result<Self, WireError> {
        let message = Self::read(&mut reader, version)?;
        reader.finish()?;
        Ok(message)
    }

    /// The message as bytes of its own.
    fn encode(&self, version: i16) -> Result<Vec<u8>, WireError> {
        let mut out = Vec::with_capacity(self.size(version));
        self.write(&mut Writer::new(&mut out), version)?;
        Ok(out)
    }
}

/// A message that a client sends.
pub trait Request: Message {
    /// The message that answers it.
    type Response: Response;
}

/// A message that a broker sends.
pub trait Response: Message {}
