//! Crash histories of the log: the production code of `log` and `partition` on
//! a simulated machine, against a model that knows what was acknowledged.
//!
//! `cargo test --test log_sim` runs 2,000 histories, `MILLSTREAM_LONG=1` runs
//! 20,000. A failure prints the command that replays its seed alone:
//! `MILLSTREAM_SIM_SEED=<seed> cargo test --test log_sim replay -- --nocapture`.

#[path = "log_sim/damage.rs"]
mod damage;
#[path = "log_sim/driver.rs"]
mod driver;
#[path = "log_sim/endings.rs"]
mod endings;
#[path = "log_sim/errors.rs"]
mod errors;
#[path = "log_sim/events.rs"]
mod events;
#[path = "log_sim/files.rs"]
mod files;
#[path = "log_sim/history.rs"]
mod history;
#[path = "log_sim/model.rs"]
mod model;
#[path = "log_sim/plan.rs"]
mod plan;
#[path = "log_sim/retention.rs"]
mod retention;
#[path = "log_sim/runner.rs"]
mod runner;
#[path = "log_sim/verify.rs"]
mod verify;

use millstream::model::planted::Bug;

/// A tenth of what the design asks for, unless the whole is wanted.
fn histories() -> u64 {
    if std::env::var_os("MILLSTREAM_LONG").is_some() { 20_000 } else { 2_000 }
}

#[test]
fn no_history_breaks_a_promise() {
    let events = runner::run_all(histories());
    events.demand(histories());
}

/// One seed, given or not, twice: the log behaves alike both times.
#[test]
fn replay() {
    runner::replay();
}

macro_rules! planted {
    ($($name:ident: $bug:ident within $seeds:expr;)*) => {$(
        #[test]
        fn $name() {
            runner::must_find(Bug::$bug, $seeds);
        }
    )*};
}

planted! {
    finds_no_journal_sync: NoJournalSync within 200;
    finds_no_segment_sync_before_recycle: NoSegmentSyncBeforeRecycle within 300;
    finds_acknowledge_on_extent_alone: AcknowledgeOnExtentAlone within 300;
    finds_tail_split_in_two: TailSplitInTwo within 300;
    finds_no_reset_at_recovery: NoResetAtRecovery within 300;
    finds_frame_matched_by_topic_name: FrameMatchedByTopicName within 300;
    finds_no_directory_sync: NoDirectorySync within 300;
    finds_acknowledgements_out_of_order: AcknowledgementsOutOfOrder within 300;
    finds_high_watermark_past_durable: HighWatermarkPastDurable within 200;
    finds_producer_state_not_rolled_back: ProducerStateNotRolledBack within 200;
    finds_log_start_not_persisted: LogStartNotPersisted within 200;
    finds_segments_dropped_before_checkpoint: SegmentsDroppedBeforeCheckpoint within 300;
}
