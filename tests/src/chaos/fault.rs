//! What goes wrong: each kind once a round, in an order and with numbers that the seed decides.

use std::time::Duration;

use super::{
    history::{Effect, History, Ms, Struck},
    random::Random,
    time::{now, pause},
    world::World,
};
use crate::proxy::{Proxy, Then};

/// The lease of the copies under test, the shortest that there is.
pub(super) const LEASE: Ms = 1000;
/// Their `store_timeout`.
pub(super) const STORE_TIMEOUT: Ms = 250;
/// The longest standstill that loses no lease: it is renewed at a third, and that takes its time.
const KEPT: Ms = 450;
/// The longest standstill that no command notices.
const UNNOTICED: Ms = 100;
/// How long a store may still be taken for down after it has come back.
const RECOVERY: Ms = 2000;

#[derive(Debug, Clone, Copy)]
enum Kind {
    /// kill -9, and a new process after a while.
    Kill,
    /// No connection to Redis for a while, then kill -9: what was to be reported is lost.
    KillCut,
    /// SIGSTOP, and SIGCONT after a while.
    Freeze,
    /// A slow network, within the store's timeout.
    Delay,
    /// A network slower than the store's timeout.
    Crawl,
    LoseReplies(Then),
    /// No connection to Redis.
    Cut,
    /// Nothing flows between a copy and Redis.
    Stall,
    /// The copy's connections are dead without a word; new ones work.
    Strand,
    RedisRestartsEmpty,
    RedisFreezes,
}

/// What strikes in a round, and how many milliseconds it lasts.
const KINDS: [(Kind, Ms, Ms); 15] = [
    (Kind::Kill, 0, 100),
    (Kind::Kill, 500, 1500),
    (Kind::KillCut, 100, 500),
    (Kind::Freeze, 20, UNNOTICED),
    (Kind::Freeze, 1300, 2500),
    (Kind::Delay, 800, 1500),
    (Kind::Crawl, 500, 1500),
    (Kind::LoseReplies(Then::Close), 300, 500),
    (Kind::LoseReplies(Then::Hang), 300, 500),
    (Kind::Cut, 20, 300),
    (Kind::Cut, 1300, 2000),
    (Kind::Stall, 50, 2000),
    (Kind::Strand, 500, 1000),
    (Kind::RedisRestartsEmpty, 0, 1500),
    (Kind::RedisFreezes, 100, 1800),
];

/// A fault, the copy that it hits where it hits one, and its numbers.
#[derive(Debug, Clone)]
pub(super) struct Fault {
    kind: Kind,
    copy: usize,
    ms: Ms,
    /// From 1 to 5: how many replies are lost, or how slow a network is.
    strength: u64,
}

impl Fault {
    /// All kinds, some of them in two strengths.
    pub(super) fn all(random: &mut Random, copies: usize) -> Vec<Self> {
        let mut kinds = KINDS;
        random.shuffle(&mut kinds);
        // What comes before it is excused by it, so it comes soon.
        let lost = |kind: &(Kind, Ms, Ms)| matches!(kind.0, Kind::RedisRestartsEmpty);
        let at = kinds.iter().position(lost).expect("it is among them");
        kinds.swap(at, random.below(3));
        let faults = kinds.into_iter().map(|(kind, least, most)| Self {
            kind,
            copy: random.below(copies),
            ms: random.between(least, most),
            strength: random.between(1, 5),
        });
        faults.collect()
    }

    /// Strikes, and returns once the cause has gone.
    pub(super) async fn strike(&self, world: &World) {
        let copy = &world.copies[self.copy];
        let from = now();
        match self.kind {
            Kind::Kill => {
                self.kill(world);
                pause(self.ms).await;
                copy.restart();
                world.born(self.copy);
            }
            Kind::KillCut => {
                copy.proxy.cut();
                pause(self.ms).await;
                self.kill(world);
                copy.proxy.pass();
                self.note(world, Effect::Apart, from, now());
                copy.restart();
                world.born(self.copy);
            }
            Kind::Freeze => {
                copy.freeze();
                pause(self.ms).await;
                copy.thaw();
                let effect = standstill(now() - from, Effect::Frozen);
                self.note(world, effect, from, now());
            }
            Kind::RedisRestartsEmpty => {
                world.redis.lock().kill();
                self.note(world, Effect::Lost, from, now());
                pause(self.ms).await;
                world.redis.lock().restart_empty();
                self.note(world, Effect::Apart, from, now() + RECOVERY);
            }
            Kind::RedisFreezes => {
                world.redis.lock().freeze();
                pause(self.ms).await;
                world.redis.lock().thaw();
                let effect = standstill(now() - from, Effect::Apart);
                self.note(world, effect, from, now() + RECOVERY);
            }
            Kind::Delay
            | Kind::Crawl
            | Kind::LoseReplies(_)
            | Kind::Cut
            | Kind::Stall
            | Kind::Strand => {
                let effect = self.disturb(&copy.proxy);
                pause(self.ms).await;
                copy.proxy.pass();
                self.note(world, effect, from, now() + RECOVERY);
            }
        }
    }

    fn kill(&self, world: &World) {
        let from = now();
        world.copies[self.copy].kill();
        world.history.killed(self.copy, now());
        self.note(world, Effect::Killed, from, now());
    }

    /// Changes the network of a copy; what that can do.
    fn disturb(&self, proxy: &Proxy) -> Effect {
        match self.kind {
            Kind::Delay => {
                proxy.delay(Duration::from_millis(4 * self.strength));
                Effect::None
            }
            Kind::Crawl => {
                proxy.delay(Duration::from_millis(STORE_TIMEOUT + 50));
                Effect::Apart
            }
            Kind::LoseReplies(then) => {
                let count = usize::try_from(self.strength).expect("at most 5");
                proxy.lose_replies(count, then);
                match then {
                    Then::Close => Effect::Troubled,
                    // Nobody notices before a timeout, or several.
                    Then::Hang => Effect::Apart,
                }
            }
            Kind::Cut => {
                proxy.cut();
                Effect::Apart
            }
            Kind::Stall => {
                proxy.stall();
                standstill(self.ms, Effect::Apart)
            }
            Kind::Strand => {
                proxy.strand();
                Effect::Apart
            }
            Kind::Kill
            | Kind::KillCut
            | Kind::Freeze
            | Kind::RedisRestartsEmpty
            | Kind::RedisFreezes => Effect::None,
        }
    }

    fn note(&self, world: &World, effect: Effect, from: Ms, until: Ms) {
        let all = matches!(self.kind, Kind::RedisRestartsEmpty | Kind::RedisFreezes);
        let copy = (!all).then_some(self.copy);
        let whom = copy.map_or_else(|| "all".to_owned(), |copy| format!("copy {copy}"));
        world.history.struck(Struck {
            what: format!("{:?} of {whom} for {} ms", self.kind, self.ms),
            effect,
            copy,
            from,
            until,
        });
    }
}

/// What a standstill of this length can do, where `long` is the worst.
fn standstill(ms: Ms, long: Effect) -> Effect {
    if ms <= UNNOTICED {
        Effect::None
    } else if ms <= KEPT {
        Effect::Troubled
    } else {
        long
    }
}

/// Notes when this machine stands still: then all that runs on it does.
pub(super) async fn watch_machine(history: &History) {
    const STEP: Ms = 10;
    let mut before = now();
    loop {
        pause(STEP).await;
        let ms = now() - before;
        if ms > STEP + UNNOTICED {
            history.struck(Struck {
                what: format!("the machine stood still for {ms} ms"),
                effect: standstill(ms, Effect::Frozen),
                copy: None,
                from: before,
                until: now(),
            });
        }
        before = now();
    }
}
