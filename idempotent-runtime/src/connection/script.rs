//! Steps that compare before they write, as scripts that a server keeps.

use std::sync::OnceLock;

use redis::{Cmd, Value};

use super::{Connection, fault::Fault};

/// A script, and the digest by which a server knows it that has run it before.
pub(crate) struct Script {
    text: &'static str,
    digest: OnceLock<String>,
}

/// How a server is told which script to run. One that was restarted knows none by its digest.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum By {
    Digest,
    Text,
}

/// What a script answers.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// What it did, as its first lines say.
    Did(i64),
    /// The value that stands.
    Value(Vec<u8>),
    /// Nothing, from one that says nothing of a key.
    Nothing,
    /// What none of them answers.
    Unknown,
}

impl Script {
    pub(crate) const fn new(text: &'static str) -> Self {
        Self {
            text,
            digest: OnceLock::new(),
        }
    }

    pub(crate) fn call(&self, by: By, keys: &[&str], arguments: &[&[u8]]) -> Cmd {
        self.call_with_room(by, keys, arguments, 0)
    }

    /// The call, with room for another argument of so many bytes.
    pub(crate) fn call_with_room(
        &self,
        by: By,
        keys: &[&str],
        arguments: &[&[u8]],
        room: usize,
    ) -> Cmd {
        let (name, script) = match by {
            By::Digest => ("EVALSHA", self.digest()),
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

    fn digest(&self) -> &str {
        let digest = || redis::Script::new(self.text).get_hash().to_owned();
        self.digest.get_or_init(digest)
    }

    /// Runs it on a key, by its text where the server does not know it.
    pub(crate) async fn run(
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
        } else if let Value::BulkString(value) = value {
            Self::Value(value)
        } else if value == Value::Nil {
            Self::Nothing
        } else {
            Self::Unknown
        }
    }
}
