//! `subject = expr`: an expression over the handler's arguments, evaluated before they are handed to the handler.

use proc_macro2::{Span, TokenStream, TokenTree};
use quote::{ToTokens, quote_spanned};
use syn::ext::IdentExt;
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::visit_mut::{
    VisitMut, visit_field_pat_mut, visit_pat_mut, visit_pat_tuple_mut, visit_pat_tuple_struct_mut,
};
use syn::{Block, FieldPat, Ident, Pat, PatIdent, PatTuple, PatTupleStruct, Stmt, Token};

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
    let mut dots = 0;
    for token in tokens {
        let is_dot = matches!(&token, TokenTree::Punct(punct) if punct.as_char() == '.');
        match token {
            // `user.id` mentions `user`; `id` is a field. `0..id` mentions `id`.
            TokenTree::Ident(ident) if dots != 1 => found.push(ident.unraw().to_string()),
            TokenTree::Group(group) => mentions(group.stream(), found),
            TokenTree::Literal(literal) => found.extend(in_format_string(&literal.to_string())),
            TokenTree::Ident(_) | TokenTree::Punct(_) => {}
        }
        dots = if is_dot { dots + 1 } else { 0 };
    }
}

/// The names in `"{user}:{id:width$.digits$}"`
fn in_format_string(literal: &str) -> Vec<String> {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let mut names = Vec::new();
    for part in literal.split('{').skip(1) {
        let part = part.split('}').next().unwrap_or_default();
        names.extend(part.split(|c| !is_name(c)).next());
        let before_dollars = part
            .split_inclusive('$')
            .filter_map(|text| text.strip_suffix('$'));
        names.extend(before_dollars.filter_map(|text| text.rsplit(|c| !is_name(c)).next()));
    }
    names.into_iter().map(ToOwned::to_owned).collect()
}

/// Leaves of a pattern what binds a name that is used: what remains matches a reference, and binds nothing that would
/// be unused.
struct Narrow<'a>(&'a [Ident]);

impl VisitMut for Narrow<'_> {
    fn visit_pat_mut(&mut self, pat: &mut Pat) {
        // `..` stands for any number of elements.
        if matches!(pat, Pat::Rest(_)) {
            return;
        }
        if !self.keeps(pat) && !is_rest(pat) {
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

    fn visit_pat_tuple_mut(&mut self, tuple: &mut PatTuple) {
        visit_pat_tuple_mut(self, tuple);
        drop_beside_rest(&mut tuple.elems);
    }

    fn visit_pat_tuple_struct_mut(&mut self, tuple: &mut PatTupleStruct) {
        visit_pat_tuple_struct_mut(self, tuple);
        drop_beside_rest(&mut tuple.elems);
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

/// `(a, .., _)` becomes `(a, ..)`, as Clippy has it.
fn drop_beside_rest(elems: &mut Punctuated<Pat, Token![,]>) {
    let Some(rest) = elems.iter().position(|pat| matches!(pat, Pat::Rest(_))) else {
        return;
    };
    let binds = |pat: &Pat| !matches!(pat, Pat::Rest(_) | Pat::Verbatim(_));
    let before = elems
        .iter()
        .take(rest)
        .rposition(binds)
        .map_or(0, |last| last + 1);
    let after = elems
        .iter()
        .skip(rest)
        .position(binds)
        .map_or(elems.len(), |first| rest + first);
    *elems = std::mem::take(elems)
        .into_iter()
        .enumerate()
        .filter(|(index, _)| *index < before || *index == rest || *index >= after)
        .map(|(_, pat)| pat)
        .collect();
}

/// `..`, also behind a name: `rest @ ..`
fn is_rest(pat: &Pat) -> bool {
    if let Pat::Ident(PatIdent {
        subpat: Some((_, subpat)),
        ..
    }) = pat
    {
        return is_rest(subpat);
    }
    matches!(pat, Pat::Rest(_))
}
