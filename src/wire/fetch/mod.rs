//! Fetch without copies: a view of the request over its frame, and a plan of
//! the response in which record bytes stay where they lie.
//!
//! The response is a list of [`Piece`]s: stretches of one scratch vector with
//! everything but records, and references to the caller's record slices. The
//! socket sends them in order; nothing joins them.

mod request;
mod response;

pub use request::{FetchPlace, FetchStep, FetchTopicView, FetchView, FetchWalk, ForgottenView};
pub use response::{
    FetchOutcome, FetchResponsePlan, FetchResponseTop, Piece, PlanState, RecordsRef,
};
