//! Work that goes on although whoever began it has left.

use std::{
    mem,
    pin::Pin,
    task::{Context, Poll},
};

use tokio::runtime::Handle;

use crate::step::BoxFuture;

/// Something that is carried out in the background. Dropped before its end, as by a Tokio runtime
/// that shuts down or has done so, it sets out on the next one.
struct Errand {
    work: Option<BoxFuture<()>>,
    /// Where it may go on, the last one first.
    runtimes: Vec<Handle>,
    /// What to do if it comes to no end anywhere; `None` once it has.
    lost: Option<Box<dyn FnOnce() + Send>>,
}

/// Carries `work` out on the current Tokio runtime, or else on the `other`: where neither does so to
/// the end, `lost` is called. A handle alone does not tell whether its runtime still lives.
pub(super) fn carry_out(
    work: impl Future<Output = ()> + Send + 'static,
    other: Option<Handle>,
    lost: impl FnOnce() + Send + 'static,
) {
    drop(Errand {
        work: Some(Box::pin(work)),
        runtimes: other.into_iter().chain(Handle::try_current()).collect(),
        lost: Some(Box::new(lost)),
    });
}

impl Future for Errand {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        // Taken out while it is polled: what panics is not polled again.
        if let Some(mut work) = self.work.take()
            && work.as_mut().poll(cx).is_pending()
        {
            self.work = Some(work);
            return Poll::Pending;
        }
        self.lost = None;
        Poll::Ready(())
    }
}

impl Drop for Errand {
    fn drop(&mut self) {
        let Some(lost) = self.lost.take() else {
            return;
        };
        match (self.work.take(), self.runtimes.pop()) {
            (Some(work), Some(runtime)) => drop(runtime.spawn(Self {
                work: Some(work),
                runtimes: mem::take(&mut self.runtimes),
                lost: Some(lost),
            })),
            (Some(_) | None, _) => lost(),
        }
    }
}
