//! Which module may use which: only those listed after it.

use std::{collections::HashMap, path::Path};

use super::scan::{Reference, scan};

/// A module and the modules below it.
#[derive(Debug)]
pub struct Module {
    name: String,
    children: Vec<Self>,
    paths: Vec<Reference>,
}

impl Module {
    /// The modules of a crate, from its `lib.rs` down.
    ///
    /// # Panics
    ///
    /// Where a module's file cannot be read.
    #[must_use]
    pub fn of_crate(src: &Path) -> Self {
        Self::build("crate", &|path: &[&str]| {
            let mut file = src.to_owned();
            file.extend(path);
            let candidates = if path.is_empty() {
                [src.join("lib.rs"), src.join("main.rs")]
            } else {
                [file.with_extension("rs"), file.join("mod.rs")]
            };
            candidates
                .iter()
                .find_map(|file| std::fs::read_to_string(file).ok())
                .unwrap_or_else(|| panic!("no file of module {path:?} in {}", src.display()))
        })
    }

    /// The same, from texts by path: `""` is the root, `"a::b"` a child of `a`.
    ///
    /// # Panics
    ///
    /// Where a module has no text.
    #[must_use]
    pub fn of_texts(texts: &HashMap<&str, &str>) -> Self {
        Self::build("crate", &|path: &[&str]| {
            (*texts
                .get(&*path.join("::"))
                .expect("a text for each module"))
            .to_owned()
        })
    }

    fn build(root: &str, read: &dyn Fn(&[&str]) -> String) -> Self {
        fn grow(name: &str, path: &[&str], read: &dyn Fn(&[&str]) -> String) -> Module {
            let found = scan(&read(path));
            let children = found.children.iter();
            Module {
                name: name.to_owned(),
                children: children
                    .map(|child| grow(child, &[path, &[child]].concat(), read))
                    .collect(),
                paths: found.paths,
            }
        }
        grow(root, &[], read)
    }

    /// How many modules there are, this one included.
    #[must_use]
    pub fn count(&self) -> usize {
        1 + self.children.iter().map(Self::count).sum::<usize>()
    }

    fn position(&self, name: &str) -> Option<usize> {
        self.children.iter().position(|child| child.name == name)
    }

    fn at(&self, path: &[usize]) -> &Self {
        path.iter()
            .fold(self, |module, &child| &module.children[child])
    }
}

/// Every use of a module that is listed before its user, as a sentence each.
///
/// A module may use what is below it: its own children, the siblings listed after it, and
/// whatever is listed after a module that holds it. It may also use what its parent's file itself
/// defines, as one idea in two files; the crate's root defines nothing.
#[must_use]
pub fn upward(root: &Module) -> Vec<String> {
    let mut found = Vec::new();
    visit(root, &mut Vec::new(), &mut found);
    found
}

fn visit(root: &Module, user: &mut Vec<usize>, found: &mut Vec<String>) {
    let module = root.at(user);
    // The root re-exports everything.
    if !user.is_empty() {
        for reference in &module.paths {
            for target in resolve(root, user, reference, 0) {
                if let Some(why) = forbidden(user, &target) {
                    found.push(format!(
                        "`{}` {why}: `{}`",
                        name(root, user),
                        reference.segments.join("::")
                    ));
                }
            }
        }
    }
    for child in 0..module.children.len() {
        user.push(child);
        visit(root, user, found);
        user.pop();
    }
}

fn forbidden(user: &[usize], target: &[usize]) -> Option<&'static str> {
    if target.is_empty() {
        return Some("uses something that the crate's root defines");
    }
    let fork = user
        .iter()
        .zip(target)
        .position(|(user, target)| user != target);
    match fork {
        Some(fork) if target[fork] < user[fork] => Some("uses a module listed before it"),
        _ => None,
    }
}

/// The modules that a path leads to from the one that says it, by way of what re-exports its last
/// name.
fn resolve(root: &Module, user: &[usize], reference: &Reference, depth: usize) -> Vec<Vec<usize>> {
    assert!(depth < 16, "imports in a circle: {reference:?}");
    let mut inline = reference.within.len();
    let mut at = user.to_vec();
    let mut segments = reference.segments.iter().map(String::as_str).peekable();
    while let Some(&segment) = segments.peek() {
        match segment {
            "self" => {}
            "crate" => {
                at.clear();
                inline = 0;
            }
            "super" if inline > 0 => inline -= 1,
            "super" => {
                at.pop();
            }
            _ => break,
        }
        segments.next();
    }
    if inline > 0 {
        // Inside of an inline module, which belongs to its file.
        return vec![user.to_vec()];
    }
    while let Some(child) = segments.peek().and_then(|name| root.at(&at).position(name)) {
        at.push(child);
        segments.next();
    }
    let Some(name) = segments.next() else {
        return vec![at];
    };
    if at == user {
        return vec![at];
    }
    // Only in a module that holds the user does it matter where a name comes from: what any
    // other module re-exports is below that module.
    if !user.starts_with(&at) {
        return vec![at];
    }
    let imports = root.at(&at).paths.iter().filter(|import| {
        import.within.is_empty()
            && import
                .imported
                .as_deref()
                .is_some_and(|imported| name == "*" || imported == name)
    });
    let targets: Vec<_> = imports
        .flat_map(|import| resolve(root, &at, import, depth + 1))
        .collect();
    if targets.is_empty() {
        vec![at]
    } else {
        targets
    }
}

fn name(root: &Module, path: &[usize]) -> String {
    let mut module = root;
    let mut name = Vec::new();
    for &child in path {
        module = &module.children[child];
        name.push(&*module.name);
    }
    name.join("::")
}
