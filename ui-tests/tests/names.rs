//! B133: the runtime under another name, and through another crate.

mod support;

use support::Fixture;

#[test]
fn b133_renamed() {
    let output = Fixture::new("renamed").cargo(&["check"]);
    assert!(output.success, "{}{}", output.stdout, output.stderr);
}

#[test]
fn b133_reexported() {
    let fixture = Fixture::new("reexported");
    let output = fixture.cargo(&["check"]);
    assert!(output.success, "{}{}", output.stdout, output.stderr);

    let output = fixture.cargo(&["check", "--features", "forgotten"]);
    let errors: Vec<_> = output
        .stderr
        .lines()
        .filter(|line| line.starts_with("error") && !line.contains("could not compile"))
        .collect();
    let expected = "error: `#[idempotent]` needs the crate `idempotent-runtime`: add it to the dependencies in Cargo.toml, or name the path where it is re-exported: `#[idempotent(crate = path::to::it)]`";
    assert_eq!(errors, [expected], "{}", output.stderr);
}
