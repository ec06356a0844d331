//! Calls that block, on glommio's blocking pool.

use std::any::Any;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What a panic says, when it says it in words.
#[must_use]
pub fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default()
}

/// Runs `call` on the blocking pool. A panic in it would hang the caller for
/// ever in glommio; here it comes back as an error.
pub async fn blocking<T: Send + 'static>(
    call: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    glommio::executor()
        .spawn_blocking(move || {
            catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|panic| {
                let text = panic_text(&*panic);
                Err(io::Error::other(format!("a blocking call panicked: {text}")))
            })
        })
        .await
}
