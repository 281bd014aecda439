//! The client's key, and the digest under which its request is stored.

use std::{borrow::Cow, fmt, ops::Range, str};

use axum::http::{HeaderMap, HeaderName};
use sha2::{Digest, Sha256};
use smallvec::SmallVec;

/// The most bytes a client's key may have.
pub(crate) const MAX_KEY_BYTES: usize = 255;

/// The value of the `Idempotency-Key` header: what the client calls its request.
///
/// 1 to 255 bytes of printable ASCII. The string `"abc"` and the bare token `abc` are the same
/// key (draft-ietf-httpapi-idempotency-key-header-07, section 2.1, asks for the string; most
/// clients send the token). A store never sees it: see [`StorageKey`].
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct IdempotencyKey(Box<str>);

impl IdempotencyKey {
    pub(crate) fn from_ascii(bytes: &[u8]) -> Option<Self> {
        str::from_utf8(bytes).ok().map(|text| Self(text.into()))
    }

    /// The key without its quotes and escapes.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for IdempotencyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for IdempotencyKey {
    /// Keys can be secrets of the client's, so none is printed by accident.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("IdempotencyKey(..)")
    }
}

/// Where a request is stored: SHA-256 over its method, route or name, key, scope headers and caller.
///
/// Each part is tagged and prefixed with its length, so no two requests share a digest because
/// of where one part ends. This is what log lines show.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StorageKey([u8; 32]);

impl StorageKey {
    /// The key of these bytes. They must be evenly distributed, as a digest is.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The digest.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// What picks a table's bucket: a key is a digest already, so its first bytes do. Its last one
    /// picks a stripe.
    pub(crate) fn hash(&self) -> u64 {
        let first = self.0.first_chunk();
        first.map_or(0, |bytes| u64::from_le_bytes(*bytes))
    }
}

impl fmt::Display for StorageKey {
    /// 64 hexadecimal digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for StorageKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StorageKey({self})")
    }
}

/// What a part of the scope is. The tag goes into the digest.
#[derive(Clone, Copy)]
#[repr(u8)]
pub(crate) enum Part {
    Method = b'M',
    Key = b'K',
    HeaderName = b'H',
    HeaderValue = b'V',
    Route = b'R',
    Path = b'P',
    Name = b'N',
    Subject = b'S',
    Bearer = b'A',
    Basic = b'B',
    Peer = b'I',
    Shared = b'*',
}

/// The parts of a storage key in the order of the digest: what the request alone decides, then the
/// place (a route, replaced by a name), then the caller (replaced by a subject).
#[derive(Debug)]
pub(crate) struct Scope {
    parts: SmallVec<[u8; 192]>,
    key: Range<usize>,
    place: usize,
    caller: usize,
}

/// Changes whenever the layout of the parts does.
const DOMAIN: &[u8] = &[1];

impl Scope {
    /// Starts a scope that holds no part yet.
    pub(crate) fn new() -> Self {
        let parts = SmallVec::from_slice(DOMAIN);
        Self {
            parts,
            key: 0..0,
            place: 0,
            caller: 0,
        }
    }

    pub(crate) fn push(&mut self, part: Part, bytes: &[u8]) {
        push(&mut self.parts, part, bytes);
    }

    /// Adds the client's key, which [`key`](Self::key) gives back.
    pub(crate) fn push_key(&mut self, key: &[u8]) {
        self.push(Part::Key, key);
        self.key = self.parts.len() - key.len()..self.parts.len();
    }

    pub(crate) fn key(&self) -> &[u8] {
        self.parts.get(self.key.clone()).unwrap_or_default()
    }

    /// Ends what the request alone decides.
    pub(crate) fn place(&mut self, part: Part, bytes: &[u8]) {
        self.place = self.parts.len();
        self.push(part, bytes);
        self.caller = self.parts.len();
    }

    /// The digest; `name` stands in for the place and `subject` for the caller.
    pub(crate) fn digest(&self, name: Option<&str>, subject: Option<&str>) -> StorageKey {
        if name.is_none() && subject.is_none() {
            return StorageKey(Sha256::digest(&self.parts).into());
        }
        let (request, rest) = self.parts.split_at_checked(self.place).unwrap_or_default();
        let (place, caller) = rest
            .split_at_checked(self.caller - self.place)
            .unwrap_or_default();
        let mut parts = SmallVec::from_slice(request);
        match name {
            Some(name) => push(&mut parts, Part::Name, name.as_bytes()),
            None => parts.extend_from_slice(place),
        }
        match subject {
            Some(subject) => push(&mut parts, Part::Subject, subject.as_bytes()),
            None => parts.extend_from_slice(caller),
        }
        StorageKey(Sha256::digest(&parts).into())
    }
}

/// Tag, length, bytes: short, so that most scopes fit into two blocks of the digest.
fn push(parts: &mut SmallVec<[u8; 192]>, part: Part, bytes: &[u8]) {
    parts.push(part as u8);
    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    parts.extend_from_slice(&length.to_be_bytes());
    parts.extend_from_slice(bytes);
}

/// Why the header is no key. The text completes "the header ...".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Malformed(pub(crate) &'static str);

const BLANK: Malformed =
    Malformed("is blank: send a key of 1 to 255 characters, unique to the request");
const REPEATED: Malformed = Malformed("is sent more than once: send one key a request");
const TOO_LONG: Malformed =
    Malformed("is over 255 characters: send a shorter key, for example a UUID");
const NOT_PRINTABLE: Malformed = Malformed(
    "has a character outside of printable ASCII: send letters, digits and punctuation only",
);
const NOT_A_TOKEN: Malformed =
    Malformed("is neither a quoted string nor a single token: put it in double quotes");
const A_LIST: Malformed = Malformed("is a list: send one key a request");
const UNTERMINATED: Malformed = Malformed("is a string without its closing quote: end it with \"");
const BAD_ESCAPE: Malformed = Malformed(r#"has an escape other than \" and \\"#);
const TRAILING: Malformed = Malformed("goes on after the closing quote: send one quoted string");

/// The key of a request; `None` where the header is absent.
pub(crate) fn parse<'a>(
    headers: &'a HeaderMap,
    name: &HeaderName,
) -> Result<Option<Cow<'a, [u8]>>, Malformed> {
    let mut lines = headers.get_all(name).iter();
    let Some(value) = lines.next() else {
        return Ok(None);
    };
    if lines.next().is_some() {
        return Err(REPEATED);
    }
    parse_value(value.as_bytes()).map(Some)
}

fn parse_value(raw: &[u8]) -> Result<Cow<'_, [u8]>, Malformed> {
    let key = match raw.trim_ascii() {
        [] => return Err(BLANK),
        [b'"', plain @ .., b'"'] if is_plain(plain) => Cow::Borrowed(plain),
        [b'"', rest @ ..] => unquote(rest)?,
        token => bare(token)?,
    };
    if key.trim_ascii().is_empty() {
        return Err(BLANK);
    }
    if key.len() > MAX_KEY_BYTES {
        return Err(TOO_LONG);
    }
    Ok(key)
}

/// Printable, nothing to unescape. Without an early exit, so that it is vectorised.
fn is_plain(bytes: &[u8]) -> bool {
    let bad = |byte: u8| u8::from(!(0x20..=0x7e).contains(&byte) || byte == b'"' || byte == b'\\');
    bytes.iter().fold(0, |any, &byte| any | bad(byte)) == 0
}

/// A token, as clients send it that do not know of structured fields. Parameters are ignored.
fn bare(raw: &[u8]) -> Result<Cow<'_, [u8]>, Malformed> {
    let end = raw.iter().position(|&byte| byte == b';');
    let (token, rest) = raw
        .split_at_checked(end.unwrap_or(raw.len()))
        .unwrap_or_default();
    let token = token.trim_ascii_end();
    if !token.iter().all(|&byte| is_printable(byte)) {
        return Err(NOT_PRINTABLE);
    }
    if token
        .iter()
        .any(|&byte| matches!(byte, b' ' | b',' | b'"' | b'\\'))
    {
        return Err(NOT_A_TOKEN);
    }
    parameters(rest)?;
    Ok(Cow::Borrowed(token))
}

/// What follows a key. It is ignored, but no list may hide in it.
fn parameters(raw: &[u8]) -> Result<(), Malformed> {
    let (mut quoted, mut escaped) = (false, false);
    for &byte in raw {
        match byte {
            _ if !is_printable(byte) => return Err(NOT_PRINTABLE),
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b',' if !quoted => return Err(A_LIST),
            _ => {}
        }
    }
    if quoted { Err(UNTERMINATED) } else { Ok(()) }
}

fn is_printable(byte: u8) -> bool {
    (0x20..=0x7e).contains(&byte)
}

/// A string after its opening quote (RFC 9651, section 4.2.5), and parameters, which are ignored.
fn unquote(raw: &[u8]) -> Result<Cow<'_, [u8]>, Malformed> {
    let mut key = Vec::new();
    let mut bytes = raw.iter();
    loop {
        match bytes.next() {
            None => return Err(UNTERMINATED),
            Some(b'"') => break,
            Some(b'\\') => match bytes.next() {
                Some(&escaped @ (b'"' | b'\\')) => key.push(escaped),
                _ => return Err(BAD_ESCAPE),
            },
            Some(&byte @ 0x20..=0x7e) => key.push(byte),
            Some(_) => return Err(NOT_PRINTABLE),
        }
    }
    match bytes.as_slice().trim_ascii_start() {
        [] => Ok(Cow::Owned(key)),
        [b';', rest @ ..] => parameters(rest).map(|()| Cow::Owned(key)),
        _ => Err(TRAILING),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(raw: &str) -> Result<String, Malformed> {
        parse_value(raw.as_bytes()).map(|key| String::from_utf8_lossy(&key).into_owned())
    }

    #[test]
    fn strings_and_tokens_name_the_same_key() {
        for raw in [
            "abc",
            "\"abc\"",
            " abc ",
            "\"abc\";p=1",
            "abc;p=1",
            "\"abc\" ; p",
            "abc;p=\"a,b\"",
        ] {
            assert_eq!(key(raw).as_deref(), Ok("abc"), "{raw}");
        }
        assert_eq!(key(r#""a\"b\\c""#).as_deref(), Ok(r#"a"b\c"#));
        assert_eq!(key("\"a b,c;d\"").as_deref(), Ok("a b,c;d"));
        assert_eq!(key(&"k".repeat(255)).map(|key| key.len()), Ok(255));
    }

    #[test]
    fn everything_else_is_malformed() {
        let cases = [
            ("", BLANK),
            ("   ", BLANK),
            ("\t", BLANK),
            ("\"\"", BLANK),
            ("\"  \"", BLANK),
            (";p", BLANK),
            ("a,b", NOT_A_TOKEN),
            ("a b", NOT_A_TOKEN),
            ("a\"b", NOT_A_TOKEN),
            ("\"abc", UNTERMINATED),
            ("\"", UNTERMINATED),
            (r#""a\"#, BAD_ESCAPE),
            (r#""a\n""#, BAD_ESCAPE),
            ("\"a\";p=1, \"b\"", A_LIST),
            ("a;p, b", A_LIST),
            ("a;p=\"x", UNTERMINATED),
            ("a;p=\u{e9}", NOT_PRINTABLE),
            ("\"a\" \"b\"", TRAILING),
            ("\"a\",\"b\"", TRAILING),
            ("k\u{e9}y", NOT_PRINTABLE),
            ("\"k\u{e9}y\"", NOT_PRINTABLE),
            ("a\tb", NOT_PRINTABLE),
        ];
        for (raw, why) in cases {
            assert_eq!(key(raw), Err(why), "{raw:?}");
        }
        assert_eq!(key(&"k".repeat(256)), Err(TOO_LONG));
    }

    #[test]
    fn parts_do_not_run_into_each_other() {
        let digest = |method: &[u8], key: &[u8], route: &[u8], caller: &[u8]| {
            let mut scope = Scope::new();
            scope.push(Part::Method, method);
            scope.push(Part::Key, key);
            scope.place(Part::Route, route);
            scope.push(Part::Subject, caller);
            scope
        };
        let base = digest(b"POST", b"k", b"/a", b"u");
        for other in [
            digest(b"POS", b"Tk", b"/a", b"u"),
            digest(b"POST", b"k/", b"a", b"u"),
            digest(b"POST", b"k", b"/au", b""),
        ] {
            assert_ne!(base.digest(None, None), other.digest(None, None));
        }
        assert_eq!(base.digest(None, Some("u")), base.digest(None, None));
        assert_ne!(base.digest(Some("/a"), None), base.digest(None, None));
        assert_ne!(base.digest(None, Some("v")), base.digest(None, None));
    }
}
