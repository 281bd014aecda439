//! `Self`, which a function inside the function cannot name.

use proc_macro2::{Delimiter, Span, TokenStream, TokenTree};
use quote::ToTokens;
use syn::Error;

use crate::item::Item;

/// The first `Self` that means the type around the handler.
pub(super) fn self_type(item: &Item) -> Option<Error> {
    // A receiver has its own message.
    if item.sig.receiver().is_some() {
        return None;
    }
    let span = search(item.sig.to_token_stream()).or_else(|| search(item.body.clone()))?;
    Some(Error::new(
        span,
        "an `#[idempotent]` handler can't use `Self`: name the type",
    ))
}

/// Items within the body have a `Self` of their own, so they are passed over.
fn search(tokens: TokenStream) -> Option<Span> {
    const ITEMS: [&str; 5] = ["impl", "trait", "struct", "enum", "union"];
    let mut in_item = false;
    for token in tokens {
        match token {
            TokenTree::Ident(ident) if ident == "Self" && !in_item => return Some(ident.span()),
            TokenTree::Ident(ident) if ITEMS.iter().any(|item| ident == item) => in_item = true,
            TokenTree::Punct(punct) if punct.as_char() == ';' => in_item = false,
            TokenTree::Group(group) if in_item => in_item = group.delimiter() != Delimiter::Brace,
            TokenTree::Group(group) => {
                if let Some(span) = search(group.stream()) {
                    return Some(span);
                }
            }
            TokenTree::Ident(_) | TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
    None
}
