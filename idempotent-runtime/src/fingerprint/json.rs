//! JSON in one form: members sorted, no white space, some members left out.
//!
//! Numbers keep their text: parsed to a float, two large amounts could become one.

use std::borrow::Cow;

use serde::de::IgnoredAny;

/// As deep as `serde_json` itself goes. A deeper document has no canonical form.
const MAX_DEPTH: usize = 128;

/// The canonical form without the members at `ignored`; `None` where `body` is not JSON.
pub(super) fn canonical(body: &[u8], ignored: &[&str]) -> Option<Vec<u8>> {
    serde_json::from_slice::<IgnoredAny>(body).ok()?;
    let ignored = ignored.iter().map(|pointer| segments(pointer)).collect();
    let mut walk = Walk {
        rest: body,
        path: Vec::new(),
        ignored,
    };
    let mut out = Vec::with_capacity(body.len());
    walk.value(&mut out)?;
    Some(out)
}

/// The unescaped segments of a pointer (RFC 6901, section 4).
fn segments(pointer: &str) -> Vec<String> {
    pointer
        .split('/')
        .skip(1)
        .map(|segment| segment.replace("~1", "/").replace("~0", "~"))
        .collect()
}

/// A walk over text that is known to be JSON.
struct Walk<'a> {
    rest: &'a [u8],
    path: Vec<Cow<'a, str>>,
    ignored: Vec<Vec<String>>,
}

impl<'a> Walk<'a> {
    fn value(&mut self, out: &mut Vec<u8>) -> Option<()> {
        match self.peek()? {
            b'{' => self.object(out),
            b'[' => self.array(out),
            b'"' => {
                let text = self.string()?;
                serde_json::to_writer(out, &text).ok()
            }
            _ => {
                out.extend_from_slice(
                    self.take(|byte| {
                        matches!(byte, b',' | b']' | b'}') || byte.is_ascii_whitespace()
                    }),
                );
                Some(())
            }
        }
    }

    /// Members sorted by name. Of a repeated name the last stands, as for most parsers.
    fn object(&mut self, out: &mut Vec<u8>) -> Option<()> {
        let mut members: Vec<(Cow<'a, str>, Vec<u8>)> = Vec::new();
        self.next()?;
        while self.peek()? != b'}' {
            let name = self.string()?;
            self.peek()?; // the colon
            self.next()?;
            if let (value, true) = self.entry(name.clone())? {
                members.push((name, value));
            }
            if self.peek()? == b',' {
                self.next()?;
            }
        }
        self.next()?;
        members.sort_by(|(one, _), (other, _)| one.cmp(other));
        out.push(b'{');
        let mut members = members.into_iter().peekable();
        while let Some((name, value)) = members.next() {
            if members.peek().is_some_and(|(next, _)| *next == name) {
                continue;
            }
            serde_json::to_writer(&mut *out, &name).ok()?;
            out.push(b':');
            out.extend_from_slice(&value);
            out.push(b',');
        }
        out.push(b'}');
        Some(())
    }

    fn array(&mut self, out: &mut Vec<u8>) -> Option<()> {
        self.next()?;
        out.push(b'[');
        let mut index = 0_usize;
        while self.peek()? != b']' {
            if let (value, true) = self.entry(index.to_string().into())? {
                out.extend_from_slice(&value);
                out.push(b',');
            }
            index += 1;
            if self.peek()? == b',' {
                self.next()?;
            }
        }
        self.next()?;
        out.push(b']');
        Some(())
    }

    /// The value of a member or element, and whether it stays.
    fn entry(&mut self, name: Cow<'a, str>) -> Option<(Vec<u8>, bool)> {
        self.path.push(name);
        if self.path.len() > MAX_DEPTH {
            return None;
        }
        let mut value = Vec::new();
        self.value(&mut value)?;
        let keep = !self
            .ignored
            .iter()
            .any(|pointer| pointer.iter().eq(self.path.iter()));
        self.path.pop();
        Some((value, keep))
    }

    fn string(&mut self) -> Option<Cow<'a, str>> {
        self.peek()?;
        let text = self.rest;
        let mut escaped = true; // the opening quote does not close
        let end = text.iter().position(|&byte| {
            let closes = byte == b'"' && !escaped;
            escaped = byte == b'\\' && !escaped;
            closes
        })?;
        let (text, rest) = text.split_at_checked(end + 1)?;
        self.rest = rest;
        match serde_json::from_slice::<&str>(text) {
            Ok(plain) => Some(Cow::Borrowed(plain)),
            Err(_) => serde_json::from_slice::<String>(text).ok().map(Cow::Owned),
        }
    }

    /// The next byte that is not white space, without taking it.
    fn peek(&mut self) -> Option<u8> {
        self.rest = self.rest.trim_ascii_start();
        self.rest.first().copied()
    }

    fn next(&mut self) -> Option<()> {
        self.rest = self.rest.get(1..)?;
        Some(())
    }

    fn take(&mut self, end: impl Fn(&u8) -> bool) -> &'a [u8] {
        let at = self.rest.iter().position(end).unwrap_or(self.rest.len());
        let (token, rest) = self.rest.split_at_checked(at).unwrap_or((self.rest, b""));
        self.rest = rest;
        token
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(json: &str) -> Option<String> {
        canonical(json.as_bytes(), &["/gone", "/list/1", "/a~1b"])
            .map(|out| String::from_utf8_lossy(&out).into_owned())
    }

    #[test]
    fn one_form_for_all_spellings() {
        let form_of = |json| form(json).unwrap_or_default();
        assert_eq!(
            form_of(" {\"b\" : [ 1 , \"x\\u0041\" ] , \"a\":{} } "),
            form_of("{\"a\":{},\"b\":[1,\"xA\"]}")
        );
        assert_eq!(form_of(r#"{"a":1,"a":2}"#), form_of(r#"{"a":2}"#));
        assert_eq!(
            form_of(r#"{"gone":{"x":[1]},"list":[1,2,3],"a/b":0}"#),
            form_of(r#"{"list":[1,9,3]}"#)
        );
        assert_ne!(
            form_of(r#"{"n":12345678901234567890123}"#),
            form_of(r#"{"n":12345678901234567890124}"#)
        );
        assert_ne!(form_of(r#"["1"]"#), form_of("[1]"));
        assert_ne!(form_of("[[1],[2]]"), form_of("[[1,2]]"));
        assert_eq!(form_of(r#""a\\\"b""#), r#""a\\\"b""#);
    }

    #[test]
    fn no_form_for_what_is_not_json_or_too_deep() {
        assert_eq!(form("{"), None);
        assert_eq!(form(""), None);
        assert_eq!(
            form(&format!("{}{}", "[".repeat(200), "]".repeat(200))),
            None
        );
    }
}
