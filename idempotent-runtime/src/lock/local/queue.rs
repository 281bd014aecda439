//! Who holds one lock, and who waits for it in which order. Knows no clock and no key.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use tokio::sync::Notify;

use crate::{clock::Instant, record::Token};

/// One lock. Whoever asks settles what is due by then, so that it needs no task of its own.
#[derive(Debug, Default)]
pub(in crate::lock) struct Queue {
    holder: Option<Holder>,
    waiters: VecDeque<Waiter>,
}

#[derive(Debug)]
struct Holder {
    token: Token,
    /// `None`: never.
    lapses: Option<Instant>,
}

/// One that waits, in the order of arrival.
#[derive(Debug)]
pub(super) struct Waiter {
    pub(super) token: Token,
    pub(super) ttl: Duration,
    pub(super) wake: Arc<Notify>,
}

impl Queue {
    /// Nobody holds it or waits for it.
    pub(in crate::lock) fn is_idle(&self) -> bool {
        self.holder.is_none() && self.waiters.is_empty()
    }

    /// Takes it for the holder of `token`, or finds that it has been handed over: it is held for
    /// `ttl` from now. Not where others wait for it.
    pub(super) fn take(&mut self, token: Token, ttl: Duration, now: Instant) -> bool {
        self.settle(now);
        let lapses = now.checked_add(ttl);
        match self.holder.replace(Holder { token, lapses }) {
            Some(other) if other.token != token => {
                self.holder = Some(other);
                return false;
            }
            Some(before) if is_sooner(lapses, before.lapses) => self.wake_front(),
            Some(_) | None => {}
        }
        true
    }

    /// Waits in line, unless it does so already.
    pub(super) fn enter(&mut self, waiter: Waiter) {
        if !self.waiters.iter().any(|other| other.token == waiter.token) {
            self.waiters.push_back(waiter);
        }
    }

    /// When the one at the front must look again by itself; the others are woken.
    pub(super) fn lapses(&self, token: Token) -> Option<Instant> {
        let is_front = self.waiters.front()?.token == token;
        self.holder.as_ref().filter(|_| is_front)?.lapses
    }

    /// Whether it was held; it is for another `ttl`.
    pub(super) fn renew(&mut self, token: Token, ttl: Duration, now: Instant) -> bool {
        self.holds(token, now) && self.take(token, ttl, now)
    }

    /// Gives up what the holder of `token` holds or waits for. Whether it was held.
    pub(super) fn leave(&mut self, token: Token, now: Instant) -> bool {
        let held = self.holds(token, now);
        if self
            .holder
            .as_ref()
            .is_some_and(|holder| holder.token == token)
        {
            self.holder = None;
        }
        let was_front = self
            .waiters
            .front()
            .is_some_and(|front| front.token == token);
        self.waiters.retain(|waiter| waiter.token != token);
        if was_front {
            self.wake_front();
        }
        self.settle(now);
        held
    }

    fn holds(&self, token: Token, now: Instant) -> bool {
        self.holder.as_ref().is_some_and(|holder| {
            holder.token == token && holder.lapses.is_none_or(|lapses| now < lapses)
        })
    }

    /// Takes it from a holder that has lapsed, and hands it to whoever waits longest.
    fn settle(&mut self, now: Instant) {
        let lapsed = |holder: &Holder| holder.lapses.is_some_and(|lapses| lapses <= now);
        if self.holder.as_ref().is_some_and(lapsed) {
            self.holder = None;
        }
        if self.holder.is_none()
            && let Some(next) = self.waiters.pop_front()
        {
            self.holder = Some(Holder {
                token: next.token,
                lapses: now.checked_add(next.ttl),
            });
            next.wake.notify_one();
            // It minds from now on when the new holder lapses.
            self.wake_front();
        }
    }

    fn wake_front(&self) {
        if let Some(front) = self.waiters.front() {
            front.wake.notify_one();
        }
    }
}

fn is_sooner(lapses: Option<Instant>, than: Option<Instant>) -> bool {
    lapses.is_some_and(|lapses| than.is_none_or(|than| lapses < than))
}
