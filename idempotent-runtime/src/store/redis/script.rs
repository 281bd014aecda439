//! The steps that compare before they write, as scripts that a server keeps.

use once_cell::sync::Lazy;
use redis::{Cmd, Value};

use crate::connection::{Connection, Fault};

/// A script, and the digest by which a server knows it that has run it before.
pub(super) struct Script {
    text: &'static str,
    digest: Lazy<String>,
}

macro_rules! script {
    ($file:literal) => {
        Script {
            text: include_str!($file),
            digest: Lazy::new(|| {
                redis::Script::new(include_str!($file))
                    .get_hash()
                    .to_owned()
            }),
        }
    };
}

pub(super) static COMPLETE: Script = script!("complete.lua");
pub(super) static LOOK: Script = script!("look.lua");
pub(super) static RENEW: Script = script!("renew.lua");
pub(super) static RELEASE: Script = script!("release.lua");

/// How a server is told which script to run. One that was restarted knows none by its digest.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    Digest,
    Text,
}

/// What a script answers.
pub(super) enum Answer {
    /// What it did, as its first lines say.
    Did(i64),
    /// The value of the record that stands.
    Record(Vec<u8>),
    /// Nothing, from one that says nothing of a key.
    Nothing,
    /// What none of them answers.
    Unknown,
}

impl Script {
    pub(super) fn call(&self, by: By, keys: &[&str], arguments: &[&[u8]]) -> Cmd {
        self.call_with_room(by, keys, arguments, 0)
    }

    /// The call, with room for another argument of so many bytes.
    pub(super) fn call_with_room(
        &self,
        by: By,
        keys: &[&str],
        arguments: &[&[u8]],
        room: usize,
    ) -> Cmd {
        let (name, script) = match by {
            By::Digest => ("EVALSHA", self.digest.as_str()),
            By::Text => ("EVAL", self.text),
        };
        let bytes = keys.iter().map(|key| key.len()).sum::<usize>()
            + arguments
                .iter()
                .map(|argument| argument.len())
                .sum::<usize>();
        let mut call = Cmd::with_capacity(
            4 + keys.len() + arguments.len(),
            name.len() + script.len() + 20 + bytes + room,
        );
        call.arg(name).arg(script);
        call.arg(keys.len()).arg(keys).arg(arguments);
        call
    }

    /// Runs it on a key, by its text where the server does not know it.
    pub(super) async fn run(
        &self,
        connection: &Connection,
        key: &str,
        arguments: &[&[u8]],
    ) -> Result<Answer, Fault> {
        match connection
            .send(&self.call(By::Digest, &[key], arguments))
            .await
        {
            Err(fault) if fault.is_unknown_script() => {}
            answered => return answered.map(Answer::from),
        }
        let again = self.call(By::Text, &[key], arguments);
        connection.send(&again).await.map(Answer::from)
    }
}

impl From<Value> for Answer {
    fn from(value: Value) -> Self {
        if let Value::Int(did) = value {
            Self::Did(did)
        } else if let Value::BulkString(record) = value {
            Self::Record(record)
        } else if value == Value::Nil {
            Self::Nothing
        } else {
            Self::Unknown
        }
    }
}
