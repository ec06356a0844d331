//! From a frame to its handler: judges key and version, decodes, and keeps the
//! order of effects (produces and fetches overlap, everything else is alone).

use std::cell::RefCell;
use std::future::Future;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context as TaskContext, Poll, Waker};
use std::time::Duration;

use futures_lite::FutureExt;

use crate::io::ring::ConnId;
use crate::io::{Env, Task};
use crate::model::limits::FETCHES_IN_FLIGHT_MAX;
use crate::shard::{ConnectionHandler, Output, PendingEvent, Place, Resumed, Verdict};
use crate::wire::header::{RequestHeader, RequestPrefix};
use crate::wire::{ApiKey, Message, Reader, Request as WireRequest, VersionCheck};

use super::context::{Context, Request};
use super::pending::Pending;
use super::reply::{self, ReplyTo};
use super::{fetch, handlers, produce};

/// Replies above this size are sent from their own memory, in bytes.
const OWNED_REPLY_MIN: usize = 16 << 10;

/// Memory that the arrays of one request other than Produce and Fetch may
/// take when decoded, in bytes: names in thousands, not in millions.
const COLD_REQUEST_BYTES_MAX: usize = 16 << 20;

/// What is remembered of a connection.
pub struct ConnectionState {
    /// For messages.
    peer: Option<SocketAddr>,
    /// Fetches in flight.
    fetches: usize,
}

/// The shard's request handler.
pub struct Dispatcher<E: Env> {
    context: Rc<Context<E>>,
    /// Used for every encoding, so that the hot path allocates nothing.
    scratch: RefCell<Vec<u8>>,
    produce: produce::Producing,
}

/// A handler's reply, encoded, or why the connection must be closed.
type Encoded = Result<Vec<u8>, String>;

impl<E: Env> Dispatcher<E> {
    /// A dispatcher over a shard's context.
    #[must_use]
    pub fn new(context: Rc<Context<E>>) -> Rc<Self> {
        Rc::new(Self { context, scratch: RefCell::default(), produce: produce::Producing::new() })
    }

    fn handle(&self, place: Place, frame: &[u8], alone: bool) -> Result<Verdict<Pending>, String> {
        let mut reader = Reader::new(frame);
        let prefix = RequestPrefix::read(&mut reader).map_err(|e| format!("header: {e}"))?;
        let key = prefix.key().map_err(|e| e.to_string())?;
        let to =
            ReplyTo { key, version: prefix.api_version, correlation_id: prefix.correlation_id };
        match key.check_version(prefix.api_version) {
            VersionCheck::Served => {}
            VersionCheck::ApiVersionsFallback => {
                if !alone {
                    return Ok(Verdict::Hold);
                }
                let to = ReplyTo { version: 0, ..to };
                let body = handlers::api_versions::unsupported_version();
                return Ok(Verdict::Overlap(Pending::Ready(reply::encode(to, &body)?)));
            }
            VersionCheck::Refused => {
                return Err(format!("{key:?} version {} is not served", prefix.api_version));
            }
        }
        if !alone && !matches!(key, ApiKey::Produce | ApiKey::Fetch) {
            return Ok(Verdict::Hold);
        }
        let header = RequestHeader::read_after(prefix, &mut reader)
            .map_err(|e| format!("{key:?} header: {e}"))?;
        match key {
            ApiKey::Produce => {
                let client_id = header.client_id.as_deref().unwrap_or_default();
                produce::start(&self.context, &self.produce, place, to, client_id, reader)
            }
            ApiKey::Fetch => fetch::start(&self.context, place, to, reader),
            _ => {
                let client_id = header.client_id.map(|id| id.into_owned()).unwrap_or_default();
                self.cold(place, to, client_id, reader)
            }
        }
    }

    fn cold(
        &self,
        place: Place,
        to: ReplyTo,
        client_id: String,
        reader: Reader<'_>,
    ) -> Result<Verdict<Pending>, String> {
        let request = Request { context: self.context.clone(), version: to.version, client_id };
        macro_rules! route {
            ($($key:ident => $handler:path),* $(,)?) => {
                match to.key {
                    $(ApiKey::$key => {
                        let body = decode(to, reader)?;
                        self.run(place, to, async move { $handler(&request, body).await })
                    })*
                    other => Err(format!("{other:?} has no handler")),
                }
            };
        }
        route! {
            ApiVersions => handlers::api_versions::handle,
            Metadata => handlers::metadata::handle,
            CreateTopics => handlers::topics::create,
            DeleteTopics => handlers::topics::delete,
            CreatePartitions => handlers::topics::create_partitions,
            DescribeConfigs => handlers::configs::describe,
            IncrementalAlterConfigs => handlers::alter_configs::incremental,
            AlterConfigs => handlers::alter_configs::replace,
            DeleteRecords => handlers::delete_records::delete,
            DescribeLogDirs => handlers::log_dirs::describe,
            DescribeCluster => handlers::cluster::describe_cluster,
            DescribeTopicPartitions => handlers::cluster::describe_topic_partitions,
            ListOffsets => handlers::offsets::list,
            OffsetForLeaderEpoch => handlers::offsets::for_leader_epoch,
            InitProducerId => handlers::producer::init_producer_id,
            FindCoordinator => handlers::coordinator::find,
        }
    }

    /// Runs a handler to its end at once when it needs to wait for nothing,
    /// and as a task otherwise.
    fn run<M: Message + 'static>(
        &self,
        place: Place,
        to: ReplyTo,
        handler: impl Future<Output = M> + 'static,
    ) -> Result<Verdict<Pending>, String> {
        let handler = AssertUnwindSafe(async move { reply::encode(to, &handler.await) });
        let mut handler: Pin<Box<dyn Future<Output = Encoded>>> = Box::pin(async move {
            handler.catch_unwind().await.unwrap_or_else(|_| {
                tracing::error!("the handler of {:?} version {} panicked", to.key, to.version);
                Err("the request's handler panicked".into())
            })
        });
        match handler.as_mut().poll(&mut TaskContext::from_waker(Waker::noop())) {
            Poll::Ready(encoded) => Ok(Verdict::Overlap(Pending::Ready(encoded?))),
            Poll::Pending => {
                let mailbox = self.context.owner.mailbox().clone();
                let task = self.context.owner.env().spawn(async move {
                    let event = match handler.await {
                        Ok(bytes) => PendingEvent::Answer(bytes),
                        Err(reason) => PendingEvent::Abandon(reason),
                    };
                    mailbox.post(place, event);
                });
                task.detach();
                Ok(Verdict::Alone(Pending::Task))
            }
        }
    }
}

/// Logs a panic in the handling of a frame.
fn panicked(state: &ConnectionState) -> String {
    let peer = state.peer;
    tracing::error!("the handler of a request from {peer:?} panicked; its connection is closed");
    "the request's handler panicked".into()
}

fn decode<R: WireRequest>(to: ReplyTo, reader: Reader<'_>) -> Result<R, String> {
    R::decode(reader.with_budget(COLD_REQUEST_BYTES_MAX), to.version)
        .map_err(|e| format!("{} version {}: {e}", R::NAME, to.version))
}

impl<E: Env> ConnectionHandler for Dispatcher<E> {
    type State = ConnectionState;
    type Pending = Pending;

    fn open(&self, _conn: ConnId, peer: Option<SocketAddr>) -> ConnectionState {
        ConnectionState { peer, fetches: 0 }
    }

    fn frame(
        &self,
        place: Place,
        state: &mut ConnectionState,
        frame: &[u8],
        alone: bool,
    ) -> Verdict<Pending> {
        // A bug that one client's bytes reach ends that client's connection.
        if state.fetches >= FETCHES_IN_FLIGHT_MAX {
            return Verdict::Hold;
        }
        let handled = catch_unwind(AssertUnwindSafe(|| self.handle(place, frame, alone)));
        match handled {
            Ok(Ok(verdict)) => {
                let fetch = |pending: &Pending| matches!(pending, Pending::Fetch(_));
                if matches!(&verdict, Verdict::Overlap(p) | Verdict::Partly(p, _) if fetch(p)) {
                    state.fetches += 1;
                }
                verdict
            }
            Ok(Err(reason)) => Verdict::Close(reason),
            Err(_) => Verdict::Close(panicked(state)),
        }
    }

    fn resume(
        &self,
        place: Place,
        state: &mut ConnectionState,
        pending: &mut Pending,
        frame: &[u8],
    ) -> Resumed {
        let go_on = || match pending {
            Pending::Produce(pending) => {
                produce::resume(&self.context, &self.produce, place, pending, frame)
            }
            Pending::Fetch(pending) => fetch::resume(&self.context, place, pending, frame),
            Pending::Ready(_) | Pending::Task => unreachable!("these do not stop"),
        };
        catch_unwind(AssertUnwindSafe(go_on)).unwrap_or_else(|_| Resumed::Close(panicked(state)))
    }

    fn event(
        &self,
        place: Place,
        _state: &mut ConnectionState,
        pending: &mut Pending,
        event: PendingEvent,
    ) -> Result<(), String> {
        match (pending, event) {
            (pending, PendingEvent::Answer(bytes)) => {
                *pending = Pending::Ready(bytes);
                Ok(())
            }
            (_, PendingEvent::Abandon(reason)) => Err(reason),
            (Pending::Produce(produce), event) => {
                produce.event(&self.context, event);
                Ok(())
            }
            (Pending::Fetch(fetch), event) => {
                fetch.event(&self.context, place, event);
                Ok(())
            }
            // A wait that ended in the round in which its answer was found.
            (Pending::Ready(_) | Pending::Task, _) => Ok(()),
        }
    }

    fn is_ready(&self, pending: &Pending) -> bool {
        match pending {
            Pending::Ready(_) => true,
            Pending::Task => false,
            Pending::Produce(produce) => produce.is_ready(),
            Pending::Fetch(fetch) => fetch.is_ready(),
        }
    }

    fn is_overdue(&self, pending: &Pending, now: Duration) -> bool {
        matches!(pending, Pending::Produce(produce) if produce.is_overdue(now))
    }

    fn decides_soon(&self, pending: &Pending) -> bool {
        matches!(pending, Pending::Produce(_) | Pending::Task)
    }

    fn encode(
        &self,
        state: &mut ConnectionState,
        pending: Pending,
        out: &mut Output,
    ) -> Result<bool, String> {
        let mut scratch = self.scratch.borrow_mut();
        scratch.clear();
        Ok(match pending {
            Pending::Ready(bytes) if bytes.len() >= OWNED_REPLY_MIN => {
                out.owned(bytes);
                true
            }
            Pending::Ready(bytes) => out.write(&bytes),
            Pending::Produce(produce) => {
                produce.encode(&mut scratch)?;
                out.write(&scratch)
            }
            Pending::Fetch(fetch) => {
                state.fetches -= 1;
                fetch.encode(&mut scratch, out)?
            }
            Pending::Task => unreachable!("a task's request is not ready"),
        })
    }

    fn forget(&self, _place: Place, pending: Pending) {
        if let Pending::Fetch(fetch) = pending {
            fetch.forget(&self.context);
        }
    }
}
