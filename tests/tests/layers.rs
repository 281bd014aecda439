//! The order of `mod` lines is the path of a request: a module uses only modules listed after it.

use std::collections::HashMap;

use idempotent_tests::source::{Module, code_lines, declarations, rust_files, upward, workspace};

const CRATES: [&str; 2] = ["idempotent-macros", "idempotent-runtime"];

#[test]
fn modules_reach_only_downward() {
    for name in CRATES {
        let modules = Module::of_crate(&workspace().join(name).join("src"));
        assert!(
            modules.count() > 5,
            "{name}: only {} modules found",
            modules.count()
        );
        let upward = upward(&modules);
        assert!(upward.is_empty(), "{name}:\n{}", upward.join("\n"));
    }
}

/// A crate of `top` above `middle` (with `first` above `second`) above `bottom`, where `first`
/// says one more thing.
fn with(module: &str, text: &str) -> Vec<String> {
    let mut texts = HashMap::from([
        (
            "",
            "mod top; mod middle; mod bottom; pub use self::top::Top;",
        ),
        (
            "top",
            "use crate::{middle::Middle, bottom}; pub struct Top;",
        ),
        (
            "middle",
            "mod first; mod second; pub use self::first::First; use crate::bottom; pub struct Middle; pub struct Own;",
        ),
        (
            "middle::first",
            "use super::{Own, second::Second}; use crate::bottom; pub struct First;",
        ),
        ("middle::second", "use super::Own; pub struct Second;"),
        ("bottom", "pub struct Bottom;"),
    ]);
    let more = texts
        .remove(module)
        .map(|before| format!("{before} {text}"));
    texts.extend(more.as_deref().map(|text| (module, text)));
    upward(&Module::of_texts(&texts))
}

#[test]
fn what_is_listed_later_may_be_used() {
    assert_eq!(with("bottom", ""), [""; 0]);
    for (module, text) in [
        ("top", "fn f() { crate::middle::first::go(); }"),
        ("middle", "fn f() { self::first::go(); }"),
        ("middle::first", "use super::super::bottom::Bottom;"),
        ("middle::second", "use super::bottom;"),
        ("bottom", "mod inner { use super::Bottom; }"),
        ("bottom", "#[cfg(test)] mod tests { use crate::top::Top; }"),
        ("bottom", "/// See [`crate::top::Top`].\nstruct S;"),
    ] {
        assert_eq!(with(module, text), [""; 0], "{module}: {text}");
    }
}

#[test]
fn an_upward_use_is_found_wherever_it_hides() {
    for (module, text) in [
        ("bottom", "use crate::top::Top;"),
        ("bottom", "use crate::{self as root, top};"),
        ("bottom", "use super::top;"),
        ("bottom", "use crate::Top;"),
        ("bottom", "use crate::*;"),
        ("bottom", "fn f() { let x = crate::middle::Middle; }"),
        ("bottom", "fn f() { println!(\"{}\", crate::top::NAME); }"),
        ("bottom", "macro_rules! m { () => { $crate::top::Top } }"),
        ("bottom", "mod inner { use super::super::top::Top; }"),
        ("bottom", "pub(in crate::top) fn f() {}"),
        ("middle", "use crate::{bottom::Bottom, top::{self, Top}};"),
        ("middle::second", "use super::first::First;"),
        ("middle::second", "use super::First;"),
        ("middle::second", "use crate::middle::First;"),
        ("middle::second", "use super::*;"),
        ("middle::second", "use super::super::top::Top;"),
        ("middle::first", "use crate::top;"),
    ] {
        assert!(!with(module, text).is_empty(), "{module}: {text}");
    }
}

#[test]
fn no_file_is_too_long_to_read() {
    let mut seen = 0;
    for name in CRATES.into_iter().chain(["tests", "ui-tests"]) {
        for file in rust_files(&workspace().join(name)) {
            let text = std::fs::read_to_string(&file).expect("a readable file");
            let lines = code_lines(&text);
            assert!(
                lines <= 400,
                "{}: {lines} code lines, over 400",
                file.display()
            );
            seen += 1;
        }
    }
    assert!(seen > 30, "only {seen} files found");
}

#[test]
fn code_lines_are_counted_without_comments_and_unit_tests() {
    let text = "//! Page.\n\nfn a() {\n    // why\n    b();\n}\n\n#[cfg(test)]\nmod tests {\n    fn c() {}\n}\n";
    assert_eq!(code_lines(text), 3);
}

#[test]
fn each_root_is_a_map() {
    for name in CRATES {
        let root = workspace().join(name).join("src/lib.rs");
        let text = std::fs::read_to_string(root).expect("a readable lib.rs");
        let odd: Vec<_> = declarations(&text)
            .into_iter()
            .filter(|word| !["mod", "use", "extern"].contains(&&**word))
            // A proc macro's entry point has to stand in the root.
            .filter(|word| !(word == "fn" && name == "idempotent-macros"))
            .collect();
        assert!(odd.is_empty(), "{name}: lib.rs declares {odd:?} itself");
    }
    assert_eq!(
        declarations("mod a; pub fn b() { struct C; }"),
        ["mod", "fn"]
    );
}
