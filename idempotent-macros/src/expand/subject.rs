//! `subject = expr`: an expression over the handler's arguments, evaluated before they are handed to the handler.

use proc_macro2::{Span, TokenStream, TokenTree};
use quote::{ToTokens, quote_spanned};
use syn::ext::IdentExt;
use syn::parse::Parser;
use syn::spanned::Spanned;
use syn::visit_mut::{VisitMut, visit_field_pat_mut, visit_pat_mut};
use syn::{Block, FieldPat, Ident, Pat, Stmt};

use crate::model::{Model, bindings};

/// Two parts of the closure that makes the run.
pub(super) struct Subject {
    /// The parameter that says whether the request has a key.
    pub(super) keyed: TokenStream,
    /// `Option<Subject>`
    pub(super) subject: TokenStream,
}

pub(super) fn subject(model: &Model) -> Subject {
    let at = Span::mixed_site();
    let root = &model.root;
    let Some(expr) = &model.args.subject else {
        return Subject {
            keyed: quote_spanned!(at=> _),
            subject: quote_spanned!(at=> ::core::option::Option::None),
        };
    };
    let read = used(model);
    let params = model
        .params
        .iter()
        .filter(|param| bindings(&param.pat).iter().any(|name| read.contains(name)));
    let (names, pats): (Vec<_>, Vec<_>) = params
        .map(|param| {
            let mut pat = param.pat.clone();
            Narrow(&read).visit_pat_mut(&mut pat);
            (&param.name, pat)
        })
        .unzip();
    let uses = uses(&read);
    let located = at.located_at(expr.span());
    let value = quote_spanned!(located=> #root::__private::subject(&(#expr)));
    let value = quote_spanned! {at=>
        match (#(&#names,)*) {
            (#(#pats,)*) => {
                #uses
                #value
            }
        }
    };
    let keyed = Ident::new("keyed", at);
    Subject {
        subject: quote_spanned!(at=> #keyed.then(|| #value)),
        keyed: keyed.into_token_stream(),
    }
}

/// The body, with a use of each argument that the subject reads: it is not unused only because the body has no use
/// of it. Items stay first.
pub(super) fn body(model: &Model) -> TokenStream {
    let body = model.item.body.clone();
    let uses = uses(&used(model));
    if uses.is_empty() {
        return body;
    }
    let at = Span::mixed_site();
    let Ok(mut items) = Block::parse_within.parse2(body.clone()) else {
        return quote_spanned!(at=> #uses #body);
    };
    let rest = items.split_off(
        items
            .iter()
            .take_while(|stmt| matches!(stmt, Stmt::Item(_)))
            .count(),
    );
    quote_spanned!(at=> #(#items)* #uses #(#rest)*)
}

/// Nothing warns about a `_name` without a use.
fn uses(names: &[Ident]) -> TokenStream {
    let names = names
        .iter()
        .filter(|name| !name.to_string().starts_with('_'));
    quote_spanned!(Span::mixed_site()=> #(let _ = &#names;)*)
}

/// The bindings that the subject's expression mentions, as the patterns write them.
fn used(model: &Model) -> Vec<Ident> {
    let Some(expr) = &model.args.subject else {
        return Vec::new();
    };
    let mut mentioned = Vec::new();
    mentions(expr.to_token_stream(), &mut mentioned);
    let bindings = model.params.iter().flat_map(|param| bindings(&param.pat));
    bindings
        .filter(|name| mentioned.contains(&name.unraw().to_string()))
        .collect()
}

fn mentions(tokens: TokenStream, found: &mut Vec<String>) {
    let mut after_dot = false;
    for token in tokens {
        let is_dot = matches!(&token, TokenTree::Punct(punct) if punct.as_char() == '.');
        match token {
            // `user.id` mentions `user`; `id` is a field.
            TokenTree::Ident(ident) if !after_dot => found.push(ident.unraw().to_string()),
            TokenTree::Group(group) => mentions(group.stream(), found),
            TokenTree::Literal(literal) => found.extend(in_format_string(&literal.to_string())),
            TokenTree::Ident(_) | TokenTree::Punct(_) => {}
        }
        after_dot = is_dot;
    }
}

/// The names in `"{user}:{id:?}"`
fn in_format_string(literal: &str) -> Vec<String> {
    let name = |part: &str| {
        part.chars()
            .take_while(|c| c.is_alphanumeric() || *c == '_')
            .collect()
    };
    literal.split('{').skip(1).map(name).collect()
}

/// Leaves of a pattern what binds a name that is used: what remains matches a reference, and binds nothing that would
/// be unused.
struct Narrow<'a>(&'a [Ident]);

impl VisitMut for Narrow<'_> {
    fn visit_pat_mut(&mut self, pat: &mut Pat) {
        if !self.keeps(pat) {
            *pat = Pat::Verbatim(quote_spanned!(Span::mixed_site()=> _));
            return;
        }
        if let Pat::Ident(binding) = pat {
            if let Some((_, subpat)) = &binding.subpat
                && !self.0.contains(&binding.ident)
            {
                *pat = (**subpat).clone();
                return self.visit_pat_mut(pat);
            }
            binding.by_ref = None;
            binding.mutability = None;
        }
        // The value is behind a reference of the match already.
        if let Pat::Reference(reference) = pat {
            *pat = (*reference.pat).clone();
            return self.visit_pat_mut(pat);
        }
        visit_pat_mut(self, pat);
    }

    fn visit_field_pat_mut(&mut self, field: &mut FieldPat) {
        // `Order { n, .. }` becomes `Order { n: _, .. }`.
        if !self.keeps(&field.pat) {
            field.colon_token.get_or_insert_default();
        }
        visit_field_pat_mut(self, field);
    }
}

impl Narrow<'_> {
    fn keeps(&self, pat: &Pat) -> bool {
        bindings(pat).iter().any(|name| self.0.contains(name))
    }
}
