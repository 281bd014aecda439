//! A record as bytes, for the stores that keep bytes.
//!
//! ```text
//! IDP1C <token> <scheme>:<digest> <kept>
//! {"status":201,"headers":[["location","/orders/7"]],"body":12}
//! <the body as it is, as many bytes as that says>
//! ```
//!
//! The [first line](Head) has a fixed length: format, state, and hexadecimal digits for 16 bytes of
//! token, one of scheme, 32 of digest, and 6 of milliseconds for which a claim is kept after its
//! lease. A claim (`IDP1P`) is that line alone. Members of the second line that are not known are
//! ignored; a format that is not known is never overwritten.

use std::{borrow::Cow, fmt, time::Duration};

use axum::http::{HeaderName, HeaderValue, StatusCode};
use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::{
    error::StoreError,
    fingerprint::Fingerprint,
    record::{Record, RecordBody, Token},
    store::hex,
};

/// The length of the first line, its line feed included.
pub(crate) const HEAD: usize = 120;

const FORMAT: &[u8] = b"IDP";
const VERSION: u8 = b'1';
const IN_PROGRESS: &[u8; 5] = b"IDP1P";
const COMPLETED: &[u8; 5] = b"IDP1C";
/// What six bytes can hold: 8,900 years.
const LONGEST_KEPT: u64 = (1 << 48) - 1;
/// The second line without its headers, and somewhat more.
const META: usize = 64;
/// What stands in it around the name and the value of a header.
const AROUND: usize = 8;

/// What the first line says.
pub(crate) struct Head {
    pub(crate) state: State,
    pub(crate) token: Token,
    pub(crate) fingerprint: Fingerprint,
    /// How long a claim is kept after its lease; of a record nothing.
    pub(crate) kept: Duration,
}

/// Of what it is the first line.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    InProgress,
    Completed,
}

impl Head {
    /// The line, and room for so many bytes behind it.
    pub(crate) fn line(&self, room: usize) -> Vec<u8> {
        let mut line = Vec::with_capacity(HEAD + room);
        line.extend_from_slice(self.state.mark());
        line.push(b' ');
        hex::push(&mut line, self.token.as_bytes());
        line.push(b' ');
        hex::push(&mut line, &[self.fingerprint.scheme()]);
        line.push(b':');
        hex::push(&mut line, self.fingerprint.digest());
        line.push(b' ');
        let kept = u64::try_from(self.kept.as_nanos().div_ceil(1_000_000)).unwrap_or(LONGEST_KEPT);
        let [_, _, kept @ ..] = kept.min(LONGEST_KEPT).to_be_bytes();
        hex::push(&mut line, &kept);
        line.push(b'\n');
        line
    }

    /// The first line of a value, and what follows it.
    pub(crate) fn read(value: &[u8]) -> Option<(Self, &[u8])> {
        let (&mark, rest) = value.split_first_chunk()?;
        let (token, rest) = digits(rest.strip_prefix(b" ")?)?;
        let ([scheme], rest) = digits(rest.strip_prefix(b" ")?)?;
        let (digest, rest) = digits(rest.strip_prefix(b":")?)?;
        let (kept, rest) = digits::<6>(rest.strip_prefix(b" ")?)?;
        let rest = rest.strip_prefix(b"\n")?;
        let kept = kept
            .iter()
            .fold(0, |kept, &byte| kept << 8 | u64::from(byte));
        let head = Self {
            state: State::of(mark)?,
            token: Token::from_bytes(token),
            fingerprint: Fingerprint::from_parts(scheme, digest),
            kept: Duration::from_millis(kept),
        };
        Some((head, rest))
    }
}

impl State {
    /// How a value in this state begins.
    pub(crate) fn mark(self) -> &'static [u8; 5] {
        match self {
            Self::InProgress => IN_PROGRESS,
            Self::Completed => COMPLETED,
        }
    }

    fn of(mark: [u8; 5]) -> Option<Self> {
        match &mark {
            IN_PROGRESS => Some(Self::InProgress),
            COMPLETED => Some(Self::Completed),
            _ => None,
        }
    }
}

/// `N` bytes in hexadecimal digits, and what follows them.
fn digits<const N: usize>(text: &[u8]) -> Option<([u8; N], &[u8])> {
    let (digits, rest) = text.split_at_checked(2 * N)?;
    Some((hex::read(digits)?, rest))
}

/// The second line of a record.
#[derive(Serialize, Deserialize)]
struct Meta<'a> {
    status: u16,
    #[serde(borrow)]
    headers: Vec<(&'a str, Text<'a>)>,
    /// Which headers have a value that is not UTF-8: each of its bytes is written as a character.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    latin1: Vec<usize>,
    /// The length of the body; nothing where there is none to send again. It must be there, as
    /// an optional member with a function of its own must.
    #[serde(deserialize_with = "Option::deserialize")]
    body: Option<usize>,
}

/// Text that is borrowed where it has no escapes.
#[derive(Serialize, Deserialize)]
#[serde(transparent)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// A record as it is stored, in two parts, so that the body need not be copied.
pub(crate) struct Parts<'a> {
    /// The first two lines.
    pub(crate) lines: Vec<u8>,
    pub(crate) body: &'a [u8],
}

impl<'a> Parts<'a> {
    /// What the holder of `token` stores, with room for so many bytes behind the lines.
    pub(crate) fn new(token: Token, record: &'a Record, room: usize) -> Result<Self, StoreError> {
        let headers = record.headers.iter();
        let about = headers.map(|(name, value)| AROUND + name.as_str().len() + value.len());
        let head = Head {
            state: State::Completed,
            token,
            fingerprint: record.fingerprint,
            kept: Duration::ZERO,
        };
        let mut lines = head.line(META + about.sum::<usize>() + room);
        serde_json::to_writer(&mut lines, &meta(record)).map_err(|error| {
            StoreError::unavailable("a record cannot be written as JSON").because(error)
        })?;
        lines.push(b'\n');
        let body = body(record).unwrap_or_default();
        Ok(Self { lines, body })
    }
}

fn body(record: &Record) -> Option<&[u8]> {
    match &record.body {
        RecordBody::Stored(body) => Some(body),
        RecordBody::Unreplayable => None,
    }
}

fn meta(record: &Record) -> Meta<'_> {
    let mut latin1 = Vec::new();
    let mut headers = Vec::with_capacity(record.headers.len());
    for (at, (name, value)) in record.headers.iter().enumerate() {
        let text = if let Ok(text) = str::from_utf8(value.as_bytes()) {
            text.into()
        } else {
            latin1.push(at);
            let bytes = value.as_bytes().iter().copied();
            bytes.map(char::from).collect::<String>().into()
        };
        headers.push((name.as_str(), Text(text)));
    }
    Meta {
        status: record.status.as_u16(),
        headers,
        latin1,
        body: body(record).map(<[u8]>::len),
    }
}

/// The bytes of a record that the holder of `token` stores.
pub(crate) fn encode(token: Token, record: &Record) -> Result<Bytes, StoreError> {
    let room = body(record).unwrap_or_default().len();
    let mut parts = Parts::new(token, record, room)?;
    parts.lines.extend_from_slice(parts.body);
    Ok(parts.lines.into())
}

/// The record in these bytes, and the token of who stored it; its body is a slice of them. `place`
/// is where they stand.
pub(crate) fn decode(
    place: impl fmt::Display,
    value: &Bytes,
) -> Result<(Token, Record), StoreError> {
    let decoded = Head::read(value).and_then(|(head, rest)| {
        let record = record(&head, value, rest)?;
        Some((head.token, record))
    });
    decoded.ok_or_else(|| unreadable(place, value))
}

/// The record with this head. `rest` is what follows it in its `value`.
pub(crate) fn record(head: &Head, value: &Bytes, rest: &[u8]) -> Option<Record> {
    if head.state != State::Completed {
        return None;
    }
    let (meta, body) = rest.split_at_checked(memchr::memchr(b'\n', rest)?)?;
    let body = body.strip_prefix(b"\n")?;
    let meta: Meta<'_> = serde_json::from_slice(meta).ok()?;
    let mut headers = Vec::with_capacity(meta.headers.len());
    for (at, (name, Text(text))) in meta.headers.iter().enumerate() {
        let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
        let value = if meta.latin1.contains(&at) {
            let bytes: Option<Vec<u8>> = text.chars().map(|char| u8::try_from(char).ok()).collect();
            HeaderValue::from_bytes(&bytes?)
        } else {
            HeaderValue::from_bytes(text.as_bytes())
        };
        headers.push((name, value.ok()?));
    }
    let body = match meta.body {
        Some(length) if length == body.len() => RecordBody::Stored(value.slice_ref(body)),
        None if body.is_empty() => RecordBody::Unreplayable,
        Some(_) | None => return None,
    };
    let status = StatusCode::from_u16(meta.status).ok()?;
    Some(Record::new(head.fingerprint, status, headers, body))
}

/// What stands there was not written by this version.
pub(crate) fn unreadable(place: impl fmt::Display, value: &[u8]) -> StoreError {
    let why = match value.strip_prefix(FORMAT) {
        Some([version, ..]) if *version != VERSION => {
            "has a format of another version: let all replicas run the same release"
        }
        Some(_) => "is damaged: delete it once nobody needs its answer any more",
        None => "is not of this library: give each service a namespace of its own",
    };
    StoreError::unreadable(format!("the value at {place} {why}"))
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use axum::http::header;

    use super::*;
    use crate::error::StoreErrorKind;

    const TOKEN: Token = Token::from_bytes([0xab; 16]);

    fn record(body: RecordBody) -> Record {
        let headers = [
            (header::LOCATION, HeaderValue::from_static("/orders/1")),
            (
                header::ETAG,
                HeaderValue::from_bytes(b"\"\xe9\xff\t\"").unwrap(),
            ),
            (
                header::SERVER,
                HeaderValue::from_bytes("é\\".as_bytes()).unwrap(),
            ),
            (header::LINK, HeaderValue::from_static("</a>")),
            (header::LINK, HeaderValue::from_static("")),
        ];
        let fingerprint = Fingerprint::from_parts(0xfe, [0xab; 32]);
        Record::new(fingerprint, StatusCode::CREATED, headers, body)
    }

    fn stored(body: &'static [u8]) -> RecordBody {
        RecordBody::Stored(Bytes::from_static(body))
    }

    #[test]
    fn what_goes_in_comes_out() {
        let all: Vec<u8> = (0..=255).collect();
        for body in [
            RecordBody::Unreplayable,
            stored(b""),
            stored(b"\n\n{}\n"),
            RecordBody::Stored(all.into()),
        ] {
            let (token, record) = (Token::unique(), record(body));
            let bytes = encode(token, &record).unwrap();
            let (decoded_token, decoded) = decode("here", &bytes).unwrap();
            assert_eq!((decoded_token, &decoded), (token, &record));
            let parts = Parts::new(token, &record, 0).unwrap();
            assert_eq!([&*parts.lines, parts.body].concat(), bytes);
            if let RecordBody::Stored(body) = decoded.body
                && !body.is_empty()
            {
                assert!(bytes.as_ptr_range().contains(&body.as_ptr()), "copied");
            }
        }
    }

    #[test]
    fn it_can_be_read_by_people() {
        let text = |record: &Record| {
            let bytes = encode(TOKEN, record).unwrap();
            String::from_utf8(bytes.to_vec()).unwrap()
        };
        let first = format!("IDP1C {0} fe:{0}{0} 000000000000", "ab".repeat(16));
        assert_eq!(first.len() + 1, HEAD);
        assert_eq!(
            text(&record(stored(b"{\"id\":1}"))),
            format!(
                "{first}\n{}\n{}",
                r#"{"status":201,"headers":[["location","/orders/1"],["etag","\"éÿ\t\""],["server","é\\"],["link","</a>"],["link",""]],"latin1":[1],"body":8}"#,
                r#"{"id":1}"#
            )
        );
        let mut unreplayable = record(RecordBody::Unreplayable);
        unreplayable.headers = Box::default();
        assert_eq!(
            text(&unreplayable),
            format!(
                "{first}\n{}\n",
                r#"{"status":201,"headers":[],"body":null}"#
            )
        );
    }

    #[test]
    fn a_head_is_one_line_of_fixed_length() {
        for kept in [
            Duration::ZERO,
            Duration::from_nanos(1),
            Duration::from_hours(168),
            Duration::MAX,
        ] {
            let head = Head {
                state: State::InProgress,
                token: TOKEN,
                fingerprint: Fingerprint::from_parts(1, [7; 32]),
                kept,
            };
            let line = head.line(0);
            assert_eq!(line.len(), HEAD);
            let (read, rest) = Head::read(&line).unwrap();
            assert!(rest.is_empty() && read.state == head.state);
            assert_eq!((read.token, read.fingerprint), (TOKEN, head.fingerprint));
            let longest = Duration::from_millis(LONGEST_KEPT);
            assert!(read.kept >= kept.min(longest), "{:?}", read.kept);
        }
    }

    /// Why these bytes cannot be read.
    fn told(bytes: Vec<u8>) -> String {
        let error = decode("this key", &bytes.into()).unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Unreadable);
        assert!(error.source().is_none());
        let text = error.to_string();
        assert!(text.starts_with("the value at this key "), "{text}");
        text
    }

    #[test]
    fn what_is_cut_off_or_changed_is_unreadable() {
        for body in [stored(b"a body"), stored(b""), RecordBody::Unreplayable] {
            let bytes = encode(TOKEN, &record(body)).unwrap();
            for end in 0..bytes.len() {
                told(bytes.get(..end).unwrap().to_vec());
            }
            told([&*bytes, b"x"].concat());
            // All of the first line is digits, or stands where it must.
            for at in 0..HEAD {
                let mut changed = bytes.to_vec();
                *changed.get_mut(at).unwrap() = b'+';
                told(changed);
            }
            let text = String::from_utf8(bytes.to_vec()).unwrap();
            for (from, to) in [
                ("\"status\":201", "\"status\":20"),
                ("\"status\"", "\"x\""),
                ("\"headers\"", "\"x\""),
                ("\"latin1\":[1]", "\"latin1\":[-1]"),
                ("\"body\":", "\"body\":9"),
                ("\"body\":", "\"x\":"),
                ("location", "loca tion"),
                ("/orders", "Ā\\n"),
            ] {
                let changed = text.replacen(from, to, 1);
                assert_ne!(changed, text, "{to}");
                told(changed.into());
            }
        }
        let bytes = encode(TOKEN, &record(stored(b"a body"))).unwrap();
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        told(text.replacen("\"body\":6", "\"body\":null", 1).into());
        let claim = text.replacen("IDP1C", "IDP1P", 1);
        told(claim.as_bytes().first_chunk::<HEAD>().unwrap().to_vec());
        told(claim.into());
    }

    #[test]
    fn it_is_told_what_stands_there() {
        for (bytes, why) in [
            ("", "is not of this library"),
            ("42", "is not of this library"),
            ("{\"status\":201}", "is not of this library"),
            ("IDP2C ", "another version"),
            ("IDP1C ", "is damaged"),
        ] {
            let text = told(bytes.into());
            assert!(text.contains(why), "{bytes}: {text}");
        }
    }

    #[test]
    fn members_that_a_later_release_adds_are_ignored() {
        let record = record(stored(b"a body"));
        let bytes = encode(TOKEN, &record).unwrap();
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        let later = text.replacen("{\"", "{\"later\":{\"a\":[1]},\"", 1);
        assert_ne!(later, text);
        assert_eq!(decode("here", &later.into()).unwrap(), (TOKEN, record));
    }
}
