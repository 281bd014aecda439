//! What the request was: the digest that tells a retry from another request under the same key.

mod json;

use std::fmt;

use memchr::memmem;
use sha2::{Digest, Sha256};

/// SHA-256 over the concrete path, the query and the body, with the scheme it was made by.
///
/// Bodies are compared byte for byte: the same JSON with its members in another order is another
/// request. Two exceptions: the boundary of `multipart/form-data` is left out, since clients make
/// a new one each attempt, and a handler with `ignore(..)` compares its JSON without those members
/// and without regard to order and white space.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint {
    scheme: u8,
    digest: [u8; 32],
}

/// Path, query and raw body.
const RAW: u8 = 1;
/// Path, query, the ignored pointers, and canonical JSON without them; the raw body where it is no
/// JSON.
const JSON: u8 = 2;

impl Fingerprint {
    /// The fingerprint of this scheme and digest, as a store kept them.
    #[must_use]
    pub const fn from_parts(scheme: u8, digest: [u8; 32]) -> Self {
        Self { scheme, digest }
    }

    /// What the digest is over. Fingerprints of two schemes cannot be compared.
    #[must_use]
    pub const fn scheme(&self) -> u8 {
        self.scheme
    }

    /// The digest.
    #[must_use]
    pub const fn digest(&self) -> &[u8; 32] {
        &self.digest
    }

    /// The fingerprint of a request; `ignored` are JSON pointers (RFC 6901).
    pub(crate) fn of(
        target: &[u8],
        content_type: Option<&[u8]>,
        body: &[u8],
        ignored: &[&str],
    ) -> Self {
        let mut hasher = Sha256::new();
        part(&mut hasher, target);
        // The options decide the scheme, so that all requests of one handler can be compared.
        let scheme = if ignored.is_empty() { RAW } else { JSON };
        if scheme == JSON {
            for pointer in ignored {
                part(&mut hasher, pointer.as_bytes());
            }
            let json = json::canonical(body, ignored);
            hasher.update([u8::from(json.is_some())]);
            if let Some(json) = json {
                hasher.update(json);
                return Self {
                    scheme,
                    digest: hasher.finalize().into(),
                };
            }
        }
        match content_type.and_then(boundary) {
            Some(boundary) => multipart(&mut hasher, body, &boundary),
            None => hasher.update(body),
        }
        Self {
            scheme,
            digest: hasher.finalize().into(),
        }
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fingerprint({}:", self.scheme)?;
        self.digest
            .iter()
            .try_for_each(|byte| write!(f, "{byte:02x}"))?;
        f.write_str(")")
    }
}

fn part(hasher: &mut Sha256, bytes: &[u8]) {
    hasher.update((bytes.len() as u64).to_be_bytes());
    hasher.update(bytes);
}

/// The delimiter of a `multipart/form-data` body: two dashes and the boundary.
fn boundary(content_type: &[u8]) -> Option<Vec<u8>> {
    let (essence, parameters) =
        content_type.split_at_checked(content_type.iter().position(|&byte| byte == b';')?)?;
    if !essence
        .trim_ascii()
        .eq_ignore_ascii_case(b"multipart/form-data")
    {
        return None;
    }
    let value = parameters
        .split(|&byte| byte == b';')
        .find_map(|parameter| {
            let (name, value) =
                parameter.split_at_checked(parameter.iter().position(|&byte| byte == b'=')?)?;
            name.trim_ascii()
                .eq_ignore_ascii_case(b"boundary")
                .then(|| value.trim_ascii())
        })?;
    let value = value.strip_prefix(b"=")?.trim_ascii();
    let value = value
        .strip_prefix(b"\"")
        .and_then(|value| value.strip_suffix(b"\""))
        .unwrap_or(value);
    (!value.is_empty()).then(|| [b"--", value].concat())
}

/// The stretches between delimiters, each with its length. A delimiter stands at the start of a
/// line (RFC 2046, section 5.1.1).
fn multipart(hasher: &mut Sha256, body: &[u8], delimiter: &[u8]) {
    let mut from = 0;
    for at in memmem::find_iter(body, delimiter) {
        let stretch = body.get(from..at).unwrap_or_default();
        if stretch.is_empty() || stretch.ends_with(b"\r\n") {
            part(hasher, stretch);
            from = at + delimiter.len();
        }
    }
    part(hasher, body.get(from..).unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(boundary: &str, value: &str) -> Fingerprint {
        let body = format!(
            "--{boundary}\r\ncontent-disposition: form-data; name=\"a\"\r\n\r\n{value}\r\n--{boundary}--\r\n"
        );
        let content_type = format!("Multipart/Form-Data; charset=utf-8; boundary=\"{boundary}\"");
        Fingerprint::of(b"/", Some(content_type.as_bytes()), body.as_bytes(), &[])
    }

    #[test]
    fn the_boundary_of_a_form_is_left_out() {
        assert_eq!(form("one", "x"), form("another", "x"));
        assert_ne!(form("one", "x"), form("one", "y"));
        // the other's boundary inside of a value is data
        assert_ne!(form("one", "a --two b"), form("two", "a --one b"));
    }

    #[test]
    fn target_and_body_do_not_run_into_each_other() {
        assert_ne!(
            Fingerprint::of(b"/a", None, b"b", &[]),
            Fingerprint::of(b"/ab", None, b"", &[])
        );
    }

    #[test]
    fn ignored_members_are_left_out_and_nothing_else() {
        let of =
            |body: &str| Fingerprint::of(b"/", None, body.as_bytes(), &["/sentAt", "/meta/try"]);
        let base = of(r#"{"a":1,"sentAt":"x","meta":{"try":1,"b":2}}"#);
        assert_eq!(base, of(r#"{ "meta" : {"b":2,"try":7}, "a":1 }"#));
        for other in [
            r#"{"a":2,"meta":{"b":2}}"#,
            r#"{"a":1,"meta":{}}"#,
            r#"{"a":1,"meta":{"b":2},"x":{"sentAt":1}}"#,
            "{",
        ] {
            assert_ne!(base, of(other), "{other}");
        }
    }
}
