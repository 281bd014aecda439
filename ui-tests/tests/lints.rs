//! "Whatever warns or is silent without the attribute does the same with it."
//!
//! `fixtures/lints` holds handlers that set off lints of the compiler and of Clippy. It is compiled without and with
//! the attribute, and what is said has to be the same, of the same place. The few known differences are in a file of
//! their own.

mod support;

use std::collections::BTreeSet;

use serde_json::Value;
use support::Fixture;

/// No longer said with the attribute.
const LOST: [(&str, &str); 4] = [
    (
        "clippy::implicit_hasher",
        "it looks at the types of public functions as they are written",
    ),
    (
        "clippy::missing_errors_doc",
        "a documented function returns a `Run`, not a `Result`",
    ),
    (
        "clippy::missing_panics_doc",
        "it does not look into a nested function",
    ),
    (
        "clippy::unused_async",
        "a handler counts as used, in whichever crate the router is",
    ),
];

/// Said only with the attribute.
const NEW: [(&str, &str); 1] = [(
    "clippy::box_collection",
    "the nested function is not public, whose type could not be changed",
)];

#[test]
fn b123_b124_b125_the_attribute_changes_no_lint() {
    let fixture = Fixture::new("lints");
    let without = said(&fixture, &[]);
    let with = said(&fixture, &["--features", "annotated"]);
    assert!(
        without.len() >= 100,
        "the fixture sets off {} lints only",
        without.len()
    );
    let (known_lost, lost) = split(without.difference(&with));
    let (known_new, new) = split(with.difference(&without));
    assert!(
        lost.is_empty() && new.is_empty(),
        "no longer said with the attribute: {lost:#?}\nsaid only with it: {new:#?}"
    );
    assert_eq!(lints(&known_lost), LOST.map(|(lint, _)| lint).into());
    assert_eq!(lints(&known_new), NEW.map(|(lint, _)| lint).into());
}

/// What is said of the file of known differences, and of the others.
fn split<'a>(said: impl Iterator<Item = &'a String>) -> (Vec<&'a str>, Vec<&'a str>) {
    said.map(String::as_str)
        .partition(|said| said.starts_with("src/differences.rs:"))
}

fn lints<'a>(said: &[&'a str]) -> BTreeSet<&'a str> {
    said.iter().filter_map(|said| lint(said)).collect()
}

fn lint(said: &str) -> Option<&str> {
    said.split(' ')
        .nth(1)
        .map(|lint| lint.trim_end_matches(':'))
}

fn said(fixture: &Fixture, arguments: &[&str]) -> BTreeSet<String> {
    let output = fixture.cargo(&[&["clippy", "--message-format=json"], arguments].concat());
    let lines = output
        .stdout
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let messages: Vec<_> = lines
        .filter(|line| line["reason"] == "compiler-message")
        .map(|line| line["message"].clone())
        .collect();
    let errors = messages
        .iter()
        .filter(|message| message["level"] == "error");
    let errors: Vec<_> = errors
        .map(|message| message["rendered"].to_string())
        .collect();
    assert!(
        output.success,
        "the fixture does not compile: {errors:#?} {}",
        output.stderr
    );
    // Cargo shows equal texts once. A lint's first in a crate has another text than its second, since it says where the
    // level of the lint is from; so that one may be seen twice.
    let (mut texts, mut said, mut twice) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for message in messages {
        let Some(line) = one(&message) else { continue };
        if texts.insert(message["rendered"].to_string()) && !said.insert(line.clone()) {
            let lint = lint(&line).unwrap_or_default().to_owned();
            assert!(twice.insert(lint), "said twice: {line}");
        }
    }
    said
}

/// `src/items.rs:6:1 missing_docs: missing documentation for a function`
fn one(message: &Value) -> Option<String> {
    let span = message["spans"]
        .as_array()?
        .iter()
        .find(|span| span["is_primary"] == true)?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (file, lint, message) = (
        text(&span["file_name"]),
        text(&message["code"]["code"]),
        text(&message["message"]),
    );
    Some(format!(
        "{file}:{}:{} {lint}: {message}",
        span["line_start"], span["column_start"]
    ))
}
