//! Tokens of a file: its modules, its imports and every path that leaves it.

use std::iter::Peekable;

use proc_macro2::{Delimiter, TokenStream, TokenTree, token_stream::IntoIter};

/// What a file says of other modules.
#[derive(Debug, Default)]
pub(super) struct Scan {
    /// The modules in files of their own, in the order of their lines.
    pub(super) children: Vec<String>,
    /// Paths that begin with `crate`, `self` or `super`.
    pub(super) paths: Vec<Reference>,
}

/// One path, as written, and the inline modules around it.
#[derive(Debug)]
pub(super) struct Reference {
    pub(super) within: Vec<String>,
    pub(super) segments: Vec<String>,
    /// The name that a `use` gives its last segment.
    pub(super) imported: Option<String>,
}

type Tokens = Peekable<IntoIter>;

/// Reads a file. What is compiled for unit tests only is left out.
pub(super) fn scan(source: &str) -> Scan {
    let mut found = Scan::default();
    scan_tokens(parse(source), &mut Vec::new(), false, &mut found);
    found
}

fn parse(source: &str) -> TokenStream {
    source.parse().expect("a file of Rust tokens")
}

fn scan_tokens(tokens: TokenStream, within: &mut Vec<String>, import: bool, found: &mut Scan) {
    let mut tokens = tokens.into_iter().peekable();
    let mut import = import;
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Punct(punct) if punct.as_char() == '#' && is_for_tests(&mut tokens) => {
                skip_item(&mut tokens);
            }
            TokenTree::Punct(punct) if punct.as_char() == ';' => import = false,
            TokenTree::Ident(ident) if ident == "use" => import = true,
            TokenTree::Ident(ident) if ident == "mod" => {
                if let Some(TokenTree::Ident(name)) = tokens.next() {
                    module(name.to_string(), &mut tokens, within, found);
                }
            }
            TokenTree::Ident(ident) if ident == "crate" || ident == "self" || ident == "super" => {
                path(vec![ident.to_string()], &mut tokens, within, import, found);
            }
            TokenTree::Group(group) => scan_tokens(group.stream(), within, false, found),
            TokenTree::Ident(_) | TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
}

/// What follows `mod name`.
fn module(name: String, tokens: &mut Tokens, within: &mut Vec<String>, found: &mut Scan) {
    match tokens.next() {
        Some(TokenTree::Group(body)) => {
            within.push(name);
            scan_tokens(body.stream(), within, false, found);
            within.pop();
        }
        _ if within.is_empty() => found.children.push(name),
        _ => {}
    }
}

/// What follows the first segment of a path; a group in braces is many paths.
fn path(
    mut segments: Vec<String>,
    tokens: &mut Tokens,
    within: &[String],
    import: bool,
    found: &mut Scan,
) {
    while next_is(tokens, ':') {
        tokens.next();
        if !next_is(tokens, ':') {
            break;
        }
        tokens.next();
        match tokens.next() {
            Some(TokenTree::Ident(ident)) => segments.push(ident.to_string()),
            Some(TokenTree::Punct(star)) if star.as_char() == '*' => segments.push("*".to_owned()),
            Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace => {
                let mut tokens = group.stream().into_iter().peekable();
                while let Some(token) = tokens.next() {
                    if let TokenTree::Ident(ident) = token {
                        let mut branch = segments.clone();
                        if ident != "self" {
                            branch.push(ident.to_string());
                        }
                        path(branch, &mut tokens, within, import, found);
                    } else if token.to_string() == "*" {
                        let mut branch = segments.clone();
                        branch.push("*".to_owned());
                        path(branch, &mut tokens, within, import, found);
                    }
                }
                return;
            }
            Some(TokenTree::Group(_) | TokenTree::Punct(_) | TokenTree::Literal(_)) | None => break,
        }
    }
    let alias = alias(tokens);
    if segments.len() > 1 {
        let last = segments.last().cloned();
        found.paths.push(Reference {
            within: within.to_vec(),
            segments,
            imported: alias.or(last).filter(|_| import),
        });
    }
}

fn alias(tokens: &mut Tokens) -> Option<String> {
    if !matches!(tokens.peek(), Some(TokenTree::Ident(ident)) if ident == "as") {
        return None;
    }
    tokens.next();
    tokens.next().map(|name| name.to_string())
}

fn next_is(tokens: &mut Tokens, punct: char) -> bool {
    matches!(tokens.peek(), Some(TokenTree::Punct(next)) if next.as_char() == punct)
}

/// Whether the attribute after a `#` is `cfg(test)`. Leaves any other attribute in place.
fn is_for_tests(tokens: &mut Tokens) -> bool {
    matches!(tokens.peek(), Some(TokenTree::Group(group)) if {
        let text = group.stream().to_string().replace(' ', "");
        text == "cfg(test)" || text.starts_with("cfg(all(test,")
    })
}

/// Skips to the end of the item that an attribute stands on.
fn skip_item(tokens: &mut Tokens) {
    tokens.next();
    for token in tokens.by_ref() {
        match token {
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => return,
            TokenTree::Punct(punct) if punct.as_char() == ';' => return,
            TokenTree::Group(_)
            | TokenTree::Punct(_)
            | TokenTree::Ident(_)
            | TokenTree::Literal(_) => {}
        }
    }
}

/// The keywords with which the items at the top of a file begin, `mod` and `use` included.
#[must_use]
pub fn declarations(source: &str) -> Vec<String> {
    const ITEMS: [&str; 12] = [
        "mod",
        "use",
        "extern",
        "fn",
        "struct",
        "enum",
        "union",
        "trait",
        "impl",
        "const",
        "static",
        "macro_rules",
    ];
    parse(source)
        .into_iter()
        .filter_map(|token| match token {
            TokenTree::Ident(ident) => Some(ident.to_string()),
            TokenTree::Group(_) | TokenTree::Punct(_) | TokenTree::Literal(_) => None,
        })
        .filter(|word| ITEMS.contains(&&**word) || word == "type")
        .collect()
}

/// How many lines of a file are code: not blank, no comment, no unit test at the end.
#[must_use]
pub fn code_lines(source: &str) -> usize {
    let mut lines = source.lines().map(str::trim).peekable();
    let mut count = 0;
    while let Some(line) = lines.next() {
        if line == "#[cfg(test)]" && lines.peek().is_some_and(|next| *next == "mod tests {") {
            break;
        }
        if !line.is_empty() && !line.starts_with("//") {
            count += 1;
        }
    }
    count
}
