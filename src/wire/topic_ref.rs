//! How Produce and Fetch name a topic: by name, or by id from version 13 on
//! (KIP-516), borrowed from the frame.

use std::borrow::Cow;

use super::error::WireError;
use super::reader::Reader;
use super::writer::Writer;
use crate::model::TopicId;

/// First version of Produce and of Fetch that carries ids instead of names.
pub const TOPIC_ID_FROM: i16 = 13;

/// A topic as a request or response names it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum TopicRef<'a> {
    /// By name; owned only when the bytes were not UTF-8.
    Name(Cow<'a, str>),
    /// By id.
    Id(TopicId),
}

impl<'a> TopicRef<'a> {
    /// Reads the field that `version` has.
    #[inline]
    pub(super) fn read(
        reader: &mut Reader<'a>,
        flexible: bool,
        version: i16,
        field: &'static str,
    ) -> Result<Self, WireError> {
        if version >= TOPIC_ID_FROM {
            return Ok(Self::Id(TopicId(reader.uuid()?)));
        }
        let name = reader.str_lossy(flexible)?;
        // Bytes that are no UTF-8 grow, and a session may answer in a version
        // with shorter lengths: what cannot be repeated is refused here.
        if let Some(long) = name.as_ref().filter(|name| name.len() > i16::MAX as usize) {
            return Err(WireError::TooLong(long.len()));
        }
        name.map(Self::Name).ok_or(WireError::UnexpectedNull { field, version })
    }

    /// Appends the field that `version` has; the other kind of reference is an error.
    #[inline]
    pub(super) fn write(
        &self,
        writer: &mut Writer<'_>,
        flexible: bool,
        version: i16,
        field: &'static str,
    ) -> Result<(), WireError> {
        match self {
            Self::Id(id) if version >= TOPIC_ID_FROM => writer.uuid(id.0),
            Self::Name(name) if version < TOPIC_ID_FROM => writer.string(name, flexible)?,
            _ => return Err(WireError::FieldNotInVersion { field, version }),
        }
        Ok(())
    }
}
