//! The stores that need no server keep the contract.

use idempotent_runtime::{
    MemoryStore,
    store::WhenFull,
    testing::{self, Faulty, LeasedStore},
};

#[tokio::test(start_paused = true)]
async fn b011_memory_by_the_same_contract() {
    testing::contract(async || MemoryStore::new()).await;
    testing::contract(async || MemoryStore::new().when_full(WhenFull::Refuse)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn memory_in_real_time_on_threads() {
    testing::contract(async || MemoryStore::new()).await;
}

#[tokio::test(start_paused = true)]
async fn b011_leased_by_the_same_contract() {
    testing::contract(async || LeasedStore::new()).await;
}

#[tokio::test(start_paused = true)]
async fn any_store_in_a_faulty_one_without_faults() {
    testing::contract(async || Faulty::new(MemoryStore::new())).await;
    testing::contract(async || Faulty::new(MemoryStore::new()).awaiting()).await;
    testing::contract(async || Faulty::new(LeasedStore::new()).awaiting().unwatched()).await;
}
