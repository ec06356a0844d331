//! The `millstream` binary: the command line and nothing else.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(millstream::cli::main())
}
