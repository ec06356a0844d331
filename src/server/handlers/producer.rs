//! InitProducerId (KIP-98, KIP-360).

use crate::io::Env;
use crate::model::{ErrorCode, ProducerId};
use crate::wire::generated::init_producer_id::{InitProducerIdRequest, InitProducerIdResponse};

use super::super::context::Request;

/// Gives an idempotent producer an id of its own.
pub(in crate::server) async fn init_producer_id<E: Env>(
    request: &Request<E>,
    body: InitProducerIdRequest,
) -> InitProducerIdResponse {
    let metadata = &request.context.metadata;
    let timeout_max_ms = metadata.config().number("transaction.max.timeout.ms");
    if let Err(code) = judge(&body, timeout_max_ms) {
        return refused(code);
    }
    match metadata.next_producer_id().await {
        Ok(id) => granted(id),
        Err(code) => refused(code),
    }
}

/// Whether the request asks for a fresh id. Kafka gives one to every producer
/// without a transactional id, whatever id and epoch it says it has: with
/// nobody to remember the old one, nothing could be checked.
fn judge(body: &InitProducerIdRequest, timeout_max_ms: i64) -> Result<(), ErrorCode> {
    let (has_id, has_epoch) = (body.producer_id != -1, body.producer_epoch != -1);
    if has_id != has_epoch {
        return Err(ErrorCode::InvalidRequest);
    }
    match body.transactional_id.as_deref() {
        None => Ok(()),
        Some("") => Err(ErrorCode::InvalidRequest),
        Some(_) if !(1..=timeout_max_ms).contains(&i64::from(body.transaction_timeout_ms)) => {
            Err(ErrorCode::InvalidTransactionTimeout)
        }
        // There is no transaction coordinator yet. The code is retriable:
        // clients look for the coordinator again until their own timeout.
        Some(_) => Err(ErrorCode::CoordinatorNotAvailable),
    }
}

fn granted(id: ProducerId) -> InitProducerIdResponse {
    InitProducerIdResponse { producer_id: id.0, ..InitProducerIdResponse::default() }
}

fn refused(code: ErrorCode) -> InitProducerIdResponse {
    InitProducerIdResponse {
        error_code: code.code(),
        producer_id: -1,
        producer_epoch: -1,
        ..InitProducerIdResponse::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Message;

    fn ask(transactional: Option<&str>, timeout: i32, id: i64, epoch: i16) -> Result<(), i16> {
        let body = InitProducerIdRequest {
            transactional_id: transactional.map(Into::into),
            transaction_timeout_ms: timeout,
            producer_id: id,
            producer_epoch: epoch,
            ..InitProducerIdRequest::default()
        };
        judge(&body, 900_000).map_err(ErrorCode::code)
    }

    #[test]
    fn c44_without_a_transactional_id_every_producer_gets_a_fresh_id() {
        assert_eq!(ask(None, 0, -1, -1), Ok(()));
        assert_eq!(ask(None, -1, 7, 3), Ok(()), "the id that it had does not matter");
        assert_eq!(ask(None, 0, 7, -1), Err(42));
        assert_eq!(ask(None, 0, -1, 0), Err(42));
        let response = granted(ProducerId(4000));
        assert_eq!(
            (response.error_code, response.producer_id, response.producer_epoch),
            (0, 4000, 0)
        );
        for version in 0..=5 {
            response.encode(version).unwrap();
            refused(ErrorCode::KafkaStorageError).encode(version).unwrap();
        }
    }

    #[test]
    fn c93_transactional_requests_are_checked_and_sent_to_find_a_coordinator() {
        assert_eq!(ask(Some(""), 1000, -1, -1), Err(42));
        assert_eq!(ask(Some("t"), 900_001, -1, -1), Err(50));
        assert_eq!(ask(Some("t"), 0, -1, -1), Err(50));
        assert_eq!(ask(Some("t"), 900_000, -1, -1), Err(15));
        assert_eq!(refused(ErrorCode::CoordinatorNotAvailable).producer_epoch, -1);
    }
}
