//! Bugs that tests plant to see that they are found. Without the feature
//! `planted-bugs`, [`armed`] is a constant `false` and costs nothing.

/// A named bug; the simulation must find each, but for those that say otherwise.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the names are the documentation")]
pub enum Bug {
    NoJournalSync,
    NoSegmentSyncBeforeRecycle,
    AcknowledgeOnExtentAlone,
    TailSplitInTwo,
    NoResetAtRecovery,
    FrameMatchedByTopicName,
    NoDirectorySync,
    AcknowledgementsOutOfOrder,
    HighWatermarkPastDurable,
    ProducerStateNotRolledBack,
    /// Not for the simulation, which has no requests.
    PanicInsideAppend,
    LogStartNotPersisted,
    SegmentsDroppedBeforeCheckpoint,
}

/// Every bug with the name that a command line uses.
pub const ALL: &[(Bug, &str)] = &[
    (Bug::NoJournalSync, "no-journal-sync"),
    (Bug::NoSegmentSyncBeforeRecycle, "no-segment-sync-before-recycle"),
    (Bug::AcknowledgeOnExtentAlone, "acknowledge-on-extent-alone"),
    (Bug::TailSplitInTwo, "tail-split-in-two"),
    (Bug::NoResetAtRecovery, "no-reset-at-recovery"),
    (Bug::FrameMatchedByTopicName, "frame-matched-by-topic-name"),
    (Bug::NoDirectorySync, "no-directory-sync"),
    (Bug::AcknowledgementsOutOfOrder, "acknowledgements-out-of-order"),
    (Bug::HighWatermarkPastDurable, "high-watermark-past-durable"),
    (Bug::ProducerStateNotRolledBack, "producer-state-not-rolled-back"),
    (Bug::PanicInsideAppend, "panic-inside-append"),
    (Bug::LogStartNotPersisted, "log-start-not-persisted"),
    (Bug::SegmentsDroppedBeforeCheckpoint, "segments-dropped-before-checkpoint"),
];

#[cfg(feature = "planted-bugs")]
mod state {
    use std::cell::Cell;

    use super::Bug;

    thread_local! {
        static ARMED: Cell<Option<Bug>> = const { Cell::new(None) };
    }

    /// Plants `bug` on this thread, or none.
    pub fn arm(bug: Option<Bug>) {
        ARMED.set(bug);
    }

    /// Whether `bug` is planted on this thread.
    #[must_use]
    pub fn armed(bug: Bug) -> bool {
        ARMED.get() == Some(bug)
    }
}

#[cfg(feature = "planted-bugs")]
pub use state::{arm, armed};

/// Whether `bug` is planted: never, in this build.
#[cfg(not(feature = "planted-bugs"))]
#[must_use]
#[inline(always)]
pub const fn armed(_bug: Bug) -> bool {
    false
}
