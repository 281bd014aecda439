//! Which of the function's attributes go where.

use proc_macro2::{TokenStream, TokenTree};
use quote::quote;
use syn::parse::{ParseStream, Parser};
use syn::{AttrStyle, Attribute, Meta, Path, parse_quote};

/// The attributes of the two functions in the expansion.
#[derive(Default)]
pub(crate) struct Split {
    /// On the function that takes the user's function's place: what readers, callers and lints look at. Lint levels
    /// stand here only; they reach the nested function from here, so each is counted once.
    pub(crate) outer: Vec<Attribute>,
    /// On the nested function: whatever looks at arguments or rewrites the body.
    pub(crate) inner: Vec<Attribute>,
}

const OUTER: [&str; 8] = [
    "doc",
    "cfg",
    "deprecated",
    "allow",
    "warn",
    "deny",
    "forbid",
    "expect",
];

impl Split {
    pub(crate) fn new(attrs: &[Attribute]) -> Self {
        let mut split = Self::default();
        for attr in attrs {
            if let Some((condition, attrs)) = conditional(attr) {
                let (outer, inner): (Vec<_>, Vec<_>) = attrs.into_iter().partition(is_outer);
                split
                    .outer
                    .extend(conditionally(attr.style, &condition, &outer));
                split
                    .inner
                    .extend(conditionally(attr.style, &condition, &inner));
            } else if OUTER.iter().any(|name| attr.path().is_ident(name)) {
                split.outer.push(attr.clone());
            } else {
                split.inner.push(attr.clone());
            }
        }
        split
    }
}

fn is_outer(attr: &TokenStream) -> bool {
    path_of(attr).is_some_and(|path| OUTER.iter().any(|name| path.is_ident(name)))
}

fn conditionally(
    style: AttrStyle,
    condition: &TokenStream,
    attrs: &[TokenStream],
) -> Option<Attribute> {
    let attr: Option<Attribute> =
        (!attrs.is_empty()).then(|| parse_quote!(#[cfg_attr(#condition, #(#attrs),*)]));
    attr.map(|attr| Attribute { style, ..attr })
}

/// Takes the first `#[utoipa::path(..)]` out of the attributes. It adds an item beside the function and reads the
/// declared signature, so it has to be expanded before this attribute, wherever it was written.
pub(crate) fn take_utoipa(attrs: &mut Vec<Attribute>) -> Option<Attribute> {
    let is_utoipa = |path: &Path| {
        path.segments.len() > 1 && path.segments.last().is_some_and(|s| s.ident == "path")
    };
    let index = attrs.iter().position(|attr| {
        is_utoipa(attr.path())
            || conditional(attr).is_some_and(|(_, attrs)| {
                attrs
                    .iter()
                    .filter_map(path_of)
                    .any(|path| is_utoipa(&path))
            })
    })?;
    Some(attrs.remove(index))
}

/// Is this the attribute `name`, by whatever path?
pub(crate) fn is_named(attr: &Attribute, name: &str) -> bool {
    attr.path()
        .segments
        .last()
        .is_some_and(|segment| segment.ident == name)
}

/// `#[cfg_attr(condition, a, b)]` -> `(condition, [a, b])`
pub(crate) fn conditional(attr: &Attribute) -> Option<(TokenStream, Vec<TokenStream>)> {
    let Meta::List(list) = &attr.meta else {
        return None;
    };
    if !list.path.is_ident("cfg_attr") {
        return None;
    }
    let mut parts = split_at_commas(list.tokens.clone()).into_iter();
    Some((parts.next()?, parts.collect()))
}

/// The attributes that `#[cfg_attr]` stands for where its condition holds.
pub(crate) fn unconditional(attrs: &[TokenStream], style: AttrStyle) -> Vec<Attribute> {
    let attrs = quote!(#(#[#attrs])*);
    let attrs = Attribute::parse_outer.parse2(attrs).unwrap_or_default();
    attrs
        .into_iter()
        .map(|attr| Attribute { style, ..attr })
        .collect()
}

fn path_of(attr: &TokenStream) -> Option<Path> {
    let parser = |input: ParseStream<'_>| {
        let path = input.call(Path::parse_mod_style)?;
        input.parse::<TokenStream>()?;
        Ok(path)
    };
    parser.parse2(attr.clone()).ok()
}

fn split_at_commas(tokens: TokenStream) -> Vec<TokenStream> {
    let mut parts = Vec::new();
    let mut part = TokenStream::new();
    for token in tokens {
        if matches!(&token, TokenTree::Punct(punct) if punct.as_char() == ',') {
            parts.push(std::mem::take(&mut part));
        } else {
            part.extend([token]);
        }
    }
    parts.push(part);
    parts.retain(|part| !part.is_empty());
    parts
}
