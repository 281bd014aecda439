//! What waits for the store after an outage does not keep running handlers from it.

use idempotent_runtime::testing::{Fault, Operation};
use idempotent_tests::{http::until, replica::World};
use tokio::time::sleep;

use super::millis;

/// Ten thousand reports at ten milliseconds each take longer than a lease.
#[tokio::test(start_paused = true)]
async fn a_claim_is_renewed_before_reports_that_have_waited_longer() {
    let world = World::default();
    let (one, two) = (world.replica(), world.replica());
    one.link.down(Fault::Fail);
    for n in 0..20_000 {
        let reply = one.spawn_with("/", &format!("k{n}"), "x").await.unwrap();
        assert_eq!(reply.outcome(), (201, false));
    }
    one.link.heal();
    for operation in Operation::ALL {
        one.link.always(operation, Fault::Delay(millis(10)));
    }
    until(|| one.link.seen(Operation::Complete) > 0).await;
    let one = one.plan(10_000, 201);
    let runs = world.runs.count();
    let first = one.spawn("/", "x");
    sleep(millis(4000)).await;
    assert_eq!(world.runs.count(), runs + 1);
    let second = two.spawn("/", "x");
    assert_eq!(first.await.unwrap().outcome(), (201, false));
    drop(second.await.unwrap());
    assert_eq!(one.leases_lost().last(), Some(&false));
    assert_eq!(world.runs.count(), runs + 1);
}
