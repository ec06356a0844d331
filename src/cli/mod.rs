//! The command line: parsing, then a call into `broker`. Nothing else.
//!
//! `millstream` without a subcommand is `millstream serve` with defaults.

mod serve;

use clap::{Parser, Subcommand};

use serve::ServeArgs;

/// A Kafka-protocol message broker for Linux.
#[derive(Parser, Debug)]
#[command(name = "millstream", version, about, args_conflicts_with_subcommands = true)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    serve: ServeArgs,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Run the broker (the default).
    Serve(ServeArgs),
    /// Print every configuration key with its type, default and meaning.
    Configs,
}

/// Runs the command line of this process and answers its exit code.
#[must_use]
pub fn main() -> u8 {
    let cli = Cli::parse();
    match cli.command {
        Some(Command::Configs) => {
            serve::print_configs();
            0
        }
        Some(Command::Serve(args)) => serve::run(args),
        None => serve::run(cli.serve),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn serve_is_the_default() {
        let cli = Cli::try_parse_from(["millstream"]).unwrap();
        assert!(cli.command.is_none());
        let cli = Cli::try_parse_from(["millstream", "--data-dir", "/x"]).unwrap();
        assert_eq!(cli.serve.data_dir.to_str(), Some("/x"));
        let cli = Cli::try_parse_from(["millstream", "serve", "--durability", "os"]).unwrap();
        assert!(matches!(cli.command, Some(Command::Serve(_))));
        assert!(Cli::try_parse_from(["millstream", "serve", "--durability", "none"]).is_err());
    }
}
