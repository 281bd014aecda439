//! A store that comes and goes faster than anything settles.

use std::time::Duration;

use idempotent_runtime::testing::{Fault, Operation};
use idempotent_tests::{
    http::{keyed, send},
    replica::World,
};
use tokio::{task::JoinSet, time::sleep};

use super::millis;

const KEYS: u64 = 40;
const DUPLICATES: u64 = 8;

/// Numbers that look random, and are the same each time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        // The generator of Knuth's MMIX.
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = self.0.wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

fn fault(n: u64) -> Fault {
    match n {
        0 => Fault::Fail,
        1 => Fault::Hang,
        2 => Fault::LoseReply,
        3 => Fault::Delay(millis(90)),
        4 => Fault::Delay(millis(110)),
        _ => Fault::Late(millis(30)),
    }
}

/// Whatever the store does, and whoever hangs up: what is refused without it takes effect once, and
/// in the end the store knows of all.
#[tokio::test(start_paused = true)]
async fn each_key_that_fails_closed_takes_effect_once() {
    for seed in 0..30 {
        let world = World::default();
        let mut one = world.replica();
        let mut numbers = Numbers(seed);
        for _ in 0..4 * KEYS {
            let status = if numbers.below(4) == 0 { 502 } else { 201 };
            one = one.plan(numbers.below(300), status);
        }
        let mut requests = JoinSet::new();
        for key in 0..KEYS {
            for _ in 0..DUPLICATES {
                let app = one.app.clone();
                let (begins, leaves) = (numbers.below(2000), numbers.below(600));
                requests.spawn(async move {
                    sleep(millis(begins)).await;
                    let request = keyed("/closed", &format!("k{key}"), "x");
                    let reply = tokio::time::timeout(millis(leaves), send(&app, request)).await;
                    (key, reply.ok())
                });
            }
        }
        for _ in 0..60 {
            for operation in Operation::ALL {
                one.link.always(operation, fault(numbers.below(6)));
            }
            sleep(millis(50)).await;
            one.link.heal();
            sleep(millis(50)).await;
        }
        let mut answers = vec![None; 40];
        while let Some(answered) = requests.join_next().await {
            let (key, reply) = answered.unwrap();
            let Some(reply) = reply.filter(|reply| reply.status == 201) else {
                continue;
            };
            let answer = answers.get_mut(usize::try_from(key).unwrap()).unwrap();
            let first = answer.get_or_insert_with(|| reply.text());
            assert_eq!(*first, reply.text(), "seed {seed}: answers to k{key}");
        }
        one.runtime.drain(Duration::from_mins(1)).await.unwrap();
        let health = one.runtime.health().await;
        assert_eq!((health.pending_reports, health.pending_bytes), (0, 0));
        let two = world.replica();
        for (key, answer) in answers.iter().enumerate() {
            let reply = two
                .spawn_with("/closed", &format!("k{key}"), "x")
                .await
                .unwrap();
            if let Some(answer) = answer {
                let replayed = (reply.outcome(), reply.text());
                assert_eq!(
                    replayed,
                    ((201, true), answer.clone()),
                    "seed {seed}: k{key}"
                );
            }
        }
        assert_eq!(world.effects.count(), 40, "seed {seed}");
    }
}
