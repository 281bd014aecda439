//! How a request waits for who is in its way: woken where that can be, polling besides.

use std::{sync::Arc, time::Duration};

use tokio::time;

use super::{Attempt, Busy, Look};
use crate::{
    clock::{self, Instant},
    engine::{
        register::{Followed, State},
        work::Phase,
    },
    metrics,
};

/// The first pause between two looks at a key that the store does not watch, or watches in vain;
/// doubled each time.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
/// The longest such pause.
const LONGEST_PAUSE: Duration = Duration::from_millis(250);
/// The pause where the store wakes its waiters, in case that it does not.
const BACKSTOP: Duration = Duration::from_secs(1);

impl Attempt {
    /// Waits until the key is free or has a record, at most as long as the policy says; then it
    /// is still [`Look::Busy`].
    pub(super) async fn wait(&mut self, busy: Busy, phase: &Phase) -> Look {
        let mut busy = match self.until_asked(busy, phase).await {
            Look::Busy(busy) => busy,
            look @ (Look::Run { .. } | Look::Replay(_) | Look::Refuse(_)) => return look,
        };
        let request = Arc::clone(&self.request);
        let Some(_waiting) = request.engine.waiters.enter(request.key) else {
            return Look::Busy(busy);
        };
        let began = clock::now();
        let deadline = began + request.policy.wait;
        let mut pause = FIRST_PAUSE;
        let look = loop {
            if clock::now() >= deadline || phase.detached() {
                break Look::Busy(busy);
            }
            let look = match busy {
                Busy::Behind(first) => self.follow(first, deadline, phase).await,
                Busy::Claim { lease_left } => {
                    if self.until_gone(lease_left, pause, deadline, phase).await {
                        pause = (pause * 2).min(LONGEST_PAUSE);
                    }
                    self.ask_again().await
                }
            };
            match look {
                Look::Busy(still) => busy = still,
                look @ (Look::Run { .. } | Look::Replay(_) | Look::Refuse(_)) => break look,
            }
        };
        metrics::waited(clock::now() - began);
        look
    }

    /// Waits while another request of this process asks the store for the same key: nobody may be
    /// in the way at all, so no limit of waiting counts yet.
    async fn until_asked(&mut self, mut busy: Busy, phase: &Phase) -> Look {
        let until = clock::now() + self.request.engine.store_timeout;
        loop {
            match busy {
                Busy::Behind(first)
                    if matches!(first.state(), State::Asking)
                        && clock::now() < until
                        && !phase.detached() =>
                {
                    match self.follow(first, until, phase).await {
                        Look::Busy(still) => busy = still,
                        look @ (Look::Run { .. } | Look::Replay(_) | Look::Refuse(_)) => {
                            return look;
                        }
                    }
                }
                busy @ (Busy::Behind(..) | Busy::Claim { .. }) => return Look::Busy(busy),
            }
        }
    }

    /// Waits until the first request of this process has got on, or until some time.
    async fn follow(&mut self, mut first: Followed, until: Instant, phase: &Phase) -> Look {
        phase.waiting(true);
        // Its end is a change too.
        drop(time::timeout_at(until, first.changed()).await);
        phase.waiting(false);
        match self.behind(first) {
            Some(look) => look,
            None => self.ask_again().await,
        }
    }

    /// Waits until another's claim has gone, or it is time to look again; whether the next pause is
    /// to be a longer one.
    async fn until_gone(
        &self,
        lease_left: Option<Duration>,
        pause: Duration,
        deadline: Instant,
        phase: &Phase,
    ) -> bool {
        let now = clock::now();
        let turn = |longest| lease_left.map_or(longest, |left| left.clamp(FIRST_PAUSE, longest));
        let until = |longest| deadline.min(now + turn(longest));
        phase.waiting(true);
        let watched = self.request.engine.store.watch(&self.request.key);
        let longer = if let Some(gone) = watched {
            let woken = time::timeout_at(until(BACKSTOP), gone).await.is_ok();
            // The first end is believed at once; one that was too early has company.
            if woken && pause > FIRST_PAUSE {
                time::sleep_until(until(pause)).await;
            }
            woken
        } else {
            time::sleep_until(until(pause)).await;
            true
        };
        phase.waiting(false);
        longer
    }
}
