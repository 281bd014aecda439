//! Each mistake with the message it gets, and shapes that have to compile.

use std::{fs, path::Path};

/// Cases that `directory` holds now; a directory that lost some is a test that lost its point.
fn assert_cases(directory: &str, least: usize) {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join(directory);
    let entries =
        fs::read_dir(&directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    let cases = entries
        .filter_map(Result::ok)
        .filter(|entry| entry.path().extension().is_some_and(|end| end == "rs"));
    let cases = cases.count();
    assert!(
        cases >= least,
        "{} holds {cases} cases, expected {least}",
        directory.display()
    );
}

#[test]
fn messages() {
    assert_cases("fail", 30);
    assert_cases("pass", 2);
    let cases = trybuild::TestCases::new();
    cases.compile_fail("fail/*.rs");
    cases.pass("pass/*.rs");
}
