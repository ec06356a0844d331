//! Several futures at once inside one task: syncs that run together share the
//! file system's commits.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

use super::error::Result;

/// Completes when all futures have; their outputs in the same order. The caller
/// bounds how many there are: each may hold the task's waker.
pub(crate) async fn all<T: Future>(futures: Vec<T>) -> Vec<T::Output> {
    let mut running: Vec<Option<Pin<Box<T>>>> =
        futures.into_iter().map(|future| Some(Box::pin(future))).collect();
    let mut outputs: Vec<Option<T::Output>> = running.iter().map(|_| None).collect();
    poll_fn(|cx| {
        let mut pending = false;
        for (slot, output) in running.iter_mut().zip(&mut outputs) {
            let Some(future) = slot else { continue };
            match future.as_mut().poll(cx) {
                Poll::Ready(value) => (*slot, *output) = (None, Some(value)),
                Poll::Pending => pending = true,
            }
        }
        if pending { Poll::Pending } else { Poll::Ready(()) }
    })
    .await;
    outputs.into_iter().map(|output| output.expect("all have completed")).collect()
}

/// As `all`; the first error, if there is one.
pub(crate) async fn all_well<T: Future<Output = Result<()>>>(futures: Vec<T>) -> Result<()> {
    all(futures).await.into_iter().collect()
}
