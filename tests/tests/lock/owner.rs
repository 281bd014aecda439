//! What owners are told apart by: tokens that nobody else has.

use std::{
    collections::HashSet,
    process::{Command, Stdio},
    thread,
};

use idempotent_runtime::store::Token;

#[test]
fn no_two_threads_have_a_token_in_common() {
    let threads: Vec<_> = (0..8)
        .map(|_| {
            // More than one block of them.
            let tokens = || (0..100_000).map(|_| Token::unique()).collect::<Vec<_>>();
            thread::spawn(tokens)
        })
        .collect();
    let mut seen = HashSet::new();
    for thread in threads {
        seen.extend(thread.join().expect("no panic"));
    }
    assert_eq!(seen.len(), 800_000);
}

/// Not a test of its own: a process of [`no_two_processes_have_a_token_in_common`].
#[test]
#[ignore = "run by another test, in a process of its own"]
#[expect(clippy::print_stdout, reason = "how the other process is told")]
fn says_its_first_tokens() {
    for _ in 0..3 {
        println!("\n{:?}", Token::unique());
    }
}

#[test]
fn no_two_processes_have_a_token_in_common() {
    let mut seen = HashSet::new();
    for _ in 0..10 {
        let said = Command::new(std::env::current_exe().expect("this test"))
            .args(["owner::says_its_first_tokens", "--exact", "--ignored"])
            .arg("--nocapture")
            .stderr(Stdio::null())
            .output()
            .expect("this test, once more");
        let said = String::from_utf8(said.stdout).expect("text");
        let tokens = said.lines().filter(|line| line.starts_with("Token("));
        seen.extend(tokens.map(str::to_owned));
    }
    assert_eq!(seen.len(), 30, "{seen:?}");
}
