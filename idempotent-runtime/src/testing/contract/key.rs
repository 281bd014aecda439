//! Keys do not mix.

use std::sync::Arc;

use super::bench::{Bench, Checked, Outcome as _, Party};
use crate::{
    key::StorageKey,
    store::{ClaimOutcome, CompleteOutcome, Level},
};

super::check_list! { "key":
    ALL that_differs_in_one_bit_is_another,
}

async fn that_differs_in_one_bit_is_another(bench: Bench) -> Checked {
    let mut parties = vec![(bench.key, Party::same())];
    for byte in 0..32 {
        let mut bytes = *bench.key.as_bytes();
        if let Some(byte) = bytes.get_mut(byte) {
            *byte ^= 1;
        }
        parties.push((StorageKey::from_bytes(bytes), Party::same()));
    }
    let at = |key: &StorageKey| Bench {
        key: *key,
        store: Arc::clone(&bench.store),
        unit: bench.unit,
    };
    for (key, party) in &parties {
        let found = at(key).claim(party).await?;
        let situation = "a claim while another stands at a key of which one bit differs";
        found.must_be(situation, &ClaimOutcome::Claimed)?;
        // Its lock may be another key's too, but not its record.
        if bench.store.level() == Level::Locked {
            at(key).release(party).await?;
        }
    }
    for (key, party) in &parties {
        let stored = at(key).complete(party).await?;
        let situation = "a completion beside a key of which one bit differs";
        stored.must_be(situation, &CompleteOutcome::Stored)?;
    }
    for (key, party) in &parties {
        let situation = "a record beside a key of which one bit differs";
        at(key).stands(situation, party).await?;
    }
    Ok(())
}
