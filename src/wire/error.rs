//! What can be wrong with bytes, or with a message that shall become bytes.
//!
//! None of these ends more than one connection (checklist 1-3): the server
//! closes the connection on any error of the decoding kind, and an encoding
//! error is a bug of the handler that built the reply.

/// Failure to decode or encode one frame, header or message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum WireError {
    /// The bytes end inside a field.
    #[error("needs {needed} more bytes but {remaining} remain")]
    Truncated {
        /// Bytes that the field asks for.
        needed: usize,
        /// Bytes that are left.
        remaining: usize,
    },
    /// The message ended before its bytes did.
    #[error("{0} bytes follow the end of the message")]
    TrailingBytes(usize),
    /// An array claims more elements than the remaining bytes can hold.
    #[error("array of {count} elements cannot fit in {remaining} remaining bytes")]
    ArrayTooLong {
        /// Elements that the length field announces.
        count: usize,
        /// Bytes that are left for them.
        remaining: usize,
    },
    /// The arrays of this message would take more memory than one message may.
    #[error("decoded arrays need {needed} bytes but the message's budget has {left} left")]
    OverBudget {
        /// Bytes that the next array would take in memory.
        needed: usize,
        /// Bytes that the budget still allows.
        left: usize,
    },
    /// A length below -1, or one that no field may have.
    #[error("impossible length {0}")]
    BadLength(i64),
    /// A variable-length integer with too many bytes or with excess bits.
    #[error("variable-length integer is longer than its type")]
    BadVarint,
    /// Null in a field that cannot be null at this version.
    #[error("{field} is null, which version {version} does not allow")]
    UnexpectedNull {
        /// The field, as `Struct.field`.
        field: &'static str,
        /// The version being read or written.
        version: i16,
    },
    /// A tagged field whose payload is shorter than its announced size.
    #[error("tagged field {tag} leaves {left} bytes of its payload unread")]
    TaggedFieldSize {
        /// The field's tag.
        tag: u32,
        /// Bytes between the payload's end and the announced end.
        left: usize,
    },
    /// The message does not exist at this version.
    #[error("{message} has no version {version}")]
    UnsupportedVersion {
        /// Name of the message.
        message: &'static str,
        /// The version asked for.
        version: i16,
    },
    /// A field has a value that this version cannot carry, and dropping it
    /// silently would change the meaning of the message.
    #[error("{field} is set, but version {version} cannot carry it")]
    FieldNotInVersion {
        /// The field, as `Struct.field`.
        field: &'static str,
        /// The version being written.
        version: i16,
    },
    /// A string or array longer than its length field can say.
    #[error("{0} bytes or elements do not fit the length field")]
    TooLong(usize),
    /// No API has this key.
    #[error("unknown API key {0}")]
    UnknownApiKey(i16),
    /// The frame length is negative.
    #[error("frame of negative length {0}")]
    NegativeFrame(i32),
    /// The frame is longer than the configured maximum.
    #[error("frame of {length} bytes is over the limit of {limit} (socket.request.max.bytes)")]
    FrameTooLong {
        /// Announced length in bytes.
        length: usize,
        /// `socket.request.max.bytes`.
        limit: usize,
    },
}
