//! Reaches the generated codec by API key and role, for tests that walk over
//! all messages.

use millstream::wire::{ApiKey, Message, Reader, WireError};

/// Which of an API's two messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Role {
    Request,
    Response,
}

fn recode<M: Message>(reader: Reader<'_>, version: i16) -> Result<Vec<u8>, WireError> {
    let message = M::decode(reader, version)?;
    let bytes = message.encode(version)?;
    assert_eq!(bytes.len(), message.size(version), "{} {version}: size", M::NAME);
    Ok(bytes)
}

/// Decodes with the generated reader and encodes again.
pub(crate) fn decode_encode(
    key: ApiKey,
    role: Role,
    version: i16,
    reader: Reader<'_>,
) -> Result<Vec<u8>, WireError> {
    macro_rules! by_key {
        ($(($api:ident, $module:ident, $request:ident, $response:ident))*) => {
            match (key, role) {$(
                (ApiKey::$api, Role::Request) => {
                    recode::<millstream::wire::generated::$module::$request>(reader, version)
                }
                (ApiKey::$api, Role::Response) => {
                    recode::<millstream::wire::generated::$module::$response>(reader, version)
                }
            )*}
        };
    }
    millstream::for_each_api!(by_key)
}

/// Only decodes; what matters is that it returns.
#[allow(dead_code, reason = "each test binary uses a part of it")]
pub(crate) fn decode(
    key: ApiKey,
    role: Role,
    version: i16,
    reader: Reader<'_>,
) -> Result<(), WireError> {
    macro_rules! by_key {
        ($(($api:ident, $module:ident, $request:ident, $response:ident))*) => {
            match (key, role) {$(
                (ApiKey::$api, Role::Request) => {
                    millstream::wire::generated::$module::$request::decode(reader, version)
                        .map(drop)
                }
                (ApiKey::$api, Role::Response) => {
                    millstream::wire::generated::$module::$response::decode(reader, version)
                        .map(drop)
                }
            )*}
        };
    }
    millstream::for_each_api!(by_key)
}
