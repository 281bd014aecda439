//! Redis servers of a test's own: on free ports, in directories of their own, gone with the test.

mod cluster;
mod sentinel;
mod server;

pub use self::{cluster::RedisCluster, sentinel::RedisSentinel, server::RedisServer};
