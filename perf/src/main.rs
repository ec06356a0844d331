//! `millstream-perf`: what does a client see, and what does it cost the
//! broker? It speaks the protocol itself with requests encoded beforehand, so
//! that the load costs as little as a load can.
//!
//! It runs outside the broker and knows nothing of its inside but the wire and
//! record layers. Real time and threads are its business, so the lints that
//! keep both out of the broker's layers do not hold here.
#![allow(clippy::disallowed_methods, reason = "it measures real time, with threads of its own")]

mod echo;
mod fetch;
mod idle;
mod measure;
mod options;
mod plain;
mod poll;
mod process;
mod produce;
mod report;
mod send;
mod stream;
mod template;

use std::process::ExitCode;

use clap::Parser as _;

use options::{Command, Options};

/// What goes wrong in a load run: text for people, never matched on.
type Error = Box<dyn std::error::Error + Send + Sync>;

/// The result of anything here.
type Result<T> = std::result::Result<T, Error>;

fn main() -> ExitCode {
    let outcome = match Options::parse().command {
        Command::Produce(options) => {
            produce::run(&options).map(|report| report.print(options.json))
        }
        Command::Fetch(options) => {
            let run = if options.bare { send::read } else { fetch::run };
            run(&options).map(|report| report.print(options.json))
        }
        Command::Echo(options) => echo::run(&options),
        Command::Send(options) => send::run(&options),
        Command::Idle(options) => idle::run(&options),
        Command::Delete(target) => plain::delete(&target),
        Command::Measure(options) => measure::run(&options),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("millstream-perf: {error}");
            ExitCode::FAILURE
        }
    }
}
