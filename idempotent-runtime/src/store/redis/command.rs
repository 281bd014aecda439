//! The four commands of a store, in terms of Redis.

use std::{sync::Arc, time::Duration};

use redis::{Cmd, Pipeline, RedisResult, Value};

use super::{
    key,
    value::{self, Stands, Stored},
};
use crate::{
    connection::{Answer, By, Connection, Fault, Script, millis},
    fingerprint::Fingerprint,
    record::{Record, Token},
    store::{
        Claim, ClaimOutcome, CompleteOutcome, ReleaseOutcome, RenewOutcome, StoreError, value::HEAD,
    },
};

static COMPLETE: Script = Script::new(include_str!("complete.lua"));
static LOOK: Script = Script::new(include_str!("look.lua"));
static RENEW: Script = Script::new(include_str!("renew.lua"));
static RELEASE: Script = Script::new(include_str!("release.lua"));

/// How often a command begins again because what it found has gone before it could say what it was.
const ATTEMPTS: usize = 4;
/// How long a record is kept beside its claim if nobody comes to put it in its place.
const STAGED: Duration = Duration::from_secs(10);
/// Up to how many bytes a record goes through the script. Measured: at 200 bytes that is a tenth
/// faster than staging it, at 4 KiB it is slower.
const SMALL: usize = 2 << 10;
/// The longest value (redis.io/docs/latest/develop/data-types/strings); over it a server closes the
/// connection.
const LARGEST: usize = 512 << 20;

fn lifetime(claim: &Claim) -> u64 {
    millis(claim.lease.saturating_add(claim.kept))
}

/// One command: `SET .. NX GET` takes an empty key or says what stands at it.
pub(super) async fn claim(
    connection: &Connection,
    key: &str,
    claim: &Claim,
) -> Result<ClaimOutcome, StoreError> {
    let mut last = None;
    for _ in 0..ATTEMPTS {
        let Some(value) = set_or_get(connection, key, claim).await? else {
            return Ok(ClaimOutcome::Claimed);
        };
        match value::read(key, value)? {
            Stands::Record(record) => return Ok(ClaimOutcome::Completed(Arc::new(record))),
            Stands::Claim { token, .. } if token == claim.token => {
                // Its reply was lost, and part of its lease has passed since.
                match Box::pin(renew(connection, key, claim)).await? {
                    RenewOutcome::Renewed | RenewOutcome::Restored => {
                        return Ok(ClaimOutcome::Claimed);
                    }
                    RenewOutcome::Completed(record) => return Ok(ClaimOutcome::Completed(record)),
                    RenewOutcome::Lost => {}
                }
            }
            Stands::Claim {
                head,
                fingerprint,
                kept,
                ..
            } => {
                let left = Box::pin(time_left(connection, key, &head)).await?;
                if let Some(left) = left {
                    return Ok(held(fingerprint, left, kept));
                }
                last = Some(fingerprint);
            }
        }
    }
    // Claims come and go at this key faster than they can be looked at.
    match last {
        Some(fingerprint) => Ok(held(fingerprint, Duration::ZERO, Duration::ZERO)),
        None => Err(StoreError::unavailable(format!(
            "the claim at {key} in Redis changed hands {ATTEMPTS} times while it was renewed"
        ))),
    }
}

/// A claim that stands for so long; the last part of that, if it is kept, with its lease over.
fn held(fingerprint: Fingerprint, left: Duration, kept: Duration) -> ClaimOutcome {
    let lease_left = left.saturating_sub(kept);
    if lease_left.is_zero() && !kept.is_zero() {
        return ClaimOutcome::Lapsed { fingerprint };
    }
    ClaimOutcome::InProgress {
        fingerprint,
        lease_left: Some(lease_left),
    }
}

/// Stores the claim on an empty key, and returns what stands at another.
async fn set_or_get(
    connection: &Connection,
    key: &str,
    claim: &Claim,
) -> Result<Option<Vec<u8>>, StoreError> {
    let mut set = Cmd::with_capacity(7, key.len() + HEAD + 32);
    set.arg("SET").arg(key).arg(value::claim(claim));
    set.arg("NX").arg("GET").arg("PX").arg(lifetime(claim));
    match connection.send(&set).await {
        Err(refused) if refused.refuses_writes() => {
            // It refuses the command even where it has only to read.
            let mut get = Cmd::new();
            get.arg("GET").arg(key);
            match Box::pin(connection.send(&get)).await {
                Ok(Value::Nil) => Err(refused.into_error(key)),
                read => found(key, read),
            }
        }
        read => found(key, read),
    }
}

fn found(key: &str, read: Result<Value, Fault>) -> Result<Option<Vec<u8>>, StoreError> {
    let value = read.map_err(|fault| fault.into_error(key))?;
    if let Value::BulkString(value) = value {
        return Ok(Some(value));
    }
    if value == Value::Nil {
        return Ok(None);
    }
    Err(unknown(key))
}

/// How long the claim with this head still stands; `None` if it does not.
async fn time_left(
    connection: &Connection,
    key: &str,
    head: &[u8],
) -> Result<Option<Duration>, StoreError> {
    let answer = LOOK.run(connection, key, &[head]).await;
    match answer.map_err(|fault| fault.into_error(key))? {
        Answer::Nothing => Ok(None),
        // Somebody has made it stand for ever.
        Answer::Did(-1) => Ok(Some(Duration::MAX)),
        Answer::Did(left) => Ok(u64::try_from(left).ok().map(Duration::from_millis)),
        Answer::Value(_) | Answer::Unknown => Err(unknown(key)),
    }
}

pub(super) async fn renew(
    connection: &Connection,
    key: &str,
    claim: &Claim,
) -> Result<RenewOutcome, StoreError> {
    let (stored, lifetime) = (value::claim(claim), lifetime(claim).to_string());
    let arguments: [&[u8]; 2] = [&stored, lifetime.as_bytes()];
    let answer = RENEW.run(connection, key, &arguments).await;
    Ok(match answer.map_err(|fault| fault.into_error(key))? {
        Answer::Did(1) => RenewOutcome::Renewed,
        Answer::Did(2) => RenewOutcome::Restored,
        Answer::Did(0) => RenewOutcome::Lost,
        Answer::Value(value) => RenewOutcome::Completed(record(key, value)?),
        Answer::Did(-1) => return Err(Box::pin(foreign(connection, key)).await),
        Answer::Did(_) | Answer::Nothing | Answer::Unknown => return Err(unknown(key)),
    })
}

pub(super) async fn release(
    connection: &Connection,
    key: &str,
    token: Token,
) -> Result<ReleaseOutcome, StoreError> {
    let token = value::token(token);
    let answer = RELEASE.run(connection, key, &[&token]).await;
    Ok(match answer.map_err(|fault| fault.into_error(key))? {
        Answer::Did(1) => ReleaseOutcome::Released,
        Answer::Did(0) => ReleaseOutcome::NotHeld,
        Answer::Value(value) => ReleaseOutcome::Completed(record(key, value)?),
        Answer::Did(-1) => return Err(Box::pin(foreign(connection, key)).await),
        Answer::Did(_) | Answer::Nothing | Answer::Unknown => return Err(unknown(key)),
    })
}

/// One round trip. A large record is staged at a key of its own, and the script puts it in place, so
/// that its body never goes through Lua, which copies it several times; a small one the script
/// writes itself, which is one command less.
pub(super) async fn complete(
    connection: &Connection,
    key: &str,
    token: Token,
    record: &Record,
    retention: Duration,
) -> Result<CompleteOutcome, StoreError> {
    let stored = Stored::new(token, record)?;
    if stored.len() > LARGEST {
        return Err(StoreError::full(format!(
            "the record for {key} has {} bytes, more than one value of Redis can hold: lower `max_response_bytes`",
            stored.len()
        )));
    }
    let retention = millis(retention).to_string();
    if stored.len() <= SMALL {
        let (token, mut by) = (value::token(token), By::Digest);
        loop {
            match put(connection, by, key, [&token, retention.as_bytes()], &stored).await {
                Err(fault) if fault.is_unknown_script() && by == By::Digest => by = By::Text,
                answer => return completed(connection, key, answer).await,
            }
        }
    }
    // On the heap, so that the future of a small record is a small one.
    Box::pin(stage(connection, key, token, &retention, &stored)).await
}

/// Has the script write the record.
async fn put(
    connection: &Connection,
    by: By,
    key: &str,
    arguments: [&[u8]; 2],
    stored: &Stored<'_>,
) -> Result<Answer, Fault> {
    let mut put = COMPLETE.call_with_room(by, &[key], &arguments, stored.len());
    put.arg(stored);
    connection.send(&put).await.map(Answer::from)
}

/// Sends the record, and has the script put it in place.
async fn stage(
    connection: &Connection,
    key: &str,
    token: Token,
    retention: &str,
    stored: &Stored<'_>,
) -> Result<CompleteOutcome, StoreError> {
    let staged = key::staged(key, token);
    let token = value::token(token);
    let arguments: [&[u8]; 2] = [&token, retention.as_bytes()];
    let mut by = By::Digest;
    for _ in 0..ATTEMPTS {
        let mut set = Cmd::with_capacity(5, staged.len() + stored.len() + 16);
        set.arg("SET").arg(&staged).arg(stored);
        set.arg("PX").arg(millis(STAGED));
        let mut commands = Pipeline::with_capacity(2);
        commands.add_command(set);
        commands.add_command(COMPLETE.call(by, &[key, &staged], &arguments));
        let (set, answer) = match connection.send_all(commands).await {
            Ok(replies) => {
                let (set, answer) = two(replies);
                (set, answer.map(Answer::from))
            }
            // While a cluster moves a slot it takes no command of two keys.
            Err(fault) if fault.is_moving() => {
                let answer = put(connection, By::Text, key, arguments, stored).await;
                (Ok(Value::Nil), answer)
            }
            Err(fault) => return Err(fault.into_error(key)),
        };
        match answer {
            Err(fault) if fault.is_unknown_script() => by = By::Text,
            // Nothing was staged: why, the first reply says. Or what was is gone already.
            Ok(Answer::Did(0)) => drop(set.map_err(|fault| fault.into_error(key))?),
            answer => return completed(connection, key, answer).await,
        }
    }
    Err(StoreError::unavailable(format!(
        "what was staged at {staged} in Redis was gone {ATTEMPTS} times before it was put in place: is it deleted or evicted?"
    )))
}

fn two(replies: Vec<RedisResult<Value>>) -> (Result<Value, Fault>, Result<Value, Fault>) {
    let mut replies = replies.into_iter();
    let mut next = || {
        replies
            .next()
            .unwrap_or(Ok(Value::Nil))
            .map_err(Fault::from)
    };
    (next(), next())
}

async fn completed(
    connection: &Connection,
    key: &str,
    answer: Result<Answer, Fault>,
) -> Result<CompleteOutcome, StoreError> {
    Ok(match answer.map_err(|fault| fault.into_error(key))? {
        Answer::Did(1) => CompleteOutcome::Stored,
        Answer::Did(2) => CompleteOutcome::Displaced,
        Answer::Value(value) => CompleteOutcome::Completed(record(key, value)?),
        Answer::Did(-1) => return Err(Box::pin(foreign(connection, key)).await),
        Answer::Did(_) | Answer::Nothing | Answer::Unknown => return Err(unknown(key)),
    })
}

fn record(key: &str, value: Vec<u8>) -> Result<Arc<Record>, StoreError> {
    match value::read(key, value)? {
        Stands::Record(record) => Ok(Arc::new(record)),
        Stands::Claim { .. } => Err(unknown(key)),
    }
}

/// What to say of a value that a script did not recognise.
async fn foreign(connection: &Connection, key: &str) -> StoreError {
    let mut look = Cmd::new();
    look.arg("GETRANGE").arg(key).arg(0).arg(HEAD - 1);
    match connection.send(&look).await {
        Ok(Value::BulkString(head)) => value::foreign(key, &head),
        Ok(_) => unknown(key),
        Err(fault) => fault.into_error(key),
    }
}

fn unknown(key: &str) -> StoreError {
    StoreError::unavailable(format!(
        "Redis answered for {key} what this version cannot read: is there a proxy in between?"
    ))
}
