//! Composition.
pub mod error;
pub mod listeners;
pub mod lock;
pub mod settings;
pub use error::StartError;
pub use settings::Settings;
/// x
pub fn run(_: Settings) -> Result<(), StartError> { Ok(()) }
