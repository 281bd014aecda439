//! Three copies of the example `orders` over one Redis, clients that retry as real ones do, faults
//! drawn from a seed, and a judge who reads the rows and the answers afterwards.

mod round;

mod client;
mod fault;
mod judge;

mod world;

mod history;

mod random;
mod time;

pub use self::{
    history::{Ms, Row},
    judge::Verdict,
    random::Random,
    round::{Plan, Report, round},
    time::{now, pause},
    world::{Copy, Mode, everlasting, rows},
};
