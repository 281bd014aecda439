//! The tokens that take the handler's place.
//!
//! The function keeps its name and its arguments, but for the last one, which is wrapped, and hands the declared
//! `async fn`, nested in it unchanged, to the runtime:
//!
//! ```text
//! pub fn create_order(db: State<Db>, req: Idempotent<Json<NewOrder>>) -> Run<impl Future<Output = Json<Order>>> {
//!     async fn create_order(State(db): State<Db>, Json(req): Json<NewOrder>) -> Json<Order> { .. }
//!     let _ = || { /* checks of the return type, never called */ };
//!     Run::new(const { &Options::new("shop::create_order") }, req, |req, _| (None, create_order(db, req)))
//! }
//! ```
//!
//! Generated names and punctuation carry the hygiene of the macro: they meet no name of the user's and set off no
//! lint. There is no `#[allow]`, which a crate under `#![forbid(..)]` could not compile.

mod checks;
mod options;
mod signature;
mod subject;

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::{AttrStyle, Attribute, Error, GenericParam, Ident, Path};

use crate::args::Args;
use crate::attrs::{Split, take_utoipa};
use crate::cfg::Alternatives;
use crate::item::{self, Item};
use crate::model::{Model, joined};
use crate::root::root;

/// `#[idempotent(args)] item`
pub(crate) fn attribute(args: &TokenStream, item: &TokenStream) -> TokenStream {
    let (options, mistakes) = Args::parse(args.clone());
    match checked(args, options, item.clone(), mistakes.is_empty()) {
        Ok(expansion) => with_errors(&expansion, joined(mistakes, vec![])),
        // The function as it was written, so that its name resolves.
        Err(errors) => with_errors(item, joined(mistakes, errors)),
    }
}

fn checked(
    raw: &TokenStream,
    args: Args,
    item: TokenStream,
    right: bool,
) -> Result<TokenStream, Vec<Error>> {
    let item: Item = syn::parse2(item).map_err(|error| {
        vec![Error::new(
            error.span(),
            format!("`#[idempotent]` goes on an `async fn` handler: {error}"),
        )]
    })?;
    let root = root(args.root.as_ref()).map_err(|error| vec![error])?;
    if right && let Some(again) = again(&root, raw, &item) {
        return Ok(again);
    }
    Model::new(args, root, item).map(|model| expand(&model))
}

fn with_errors(item: &TokenStream, errors: Vec<Error>) -> TokenStream {
    let errors = errors.into_iter().map(Error::into_compile_error);
    quote!(#item #(#errors)*)
}

/// The function with this attribute still on it, where something else has to be expanded first.
fn again(root: &Path, raw: &TokenStream, item: &Item) -> Option<TokenStream> {
    let at = Span::mixed_site();
    if let Some(Alternatives {
        condition,
        when_true,
        when_false,
    }) = Alternatives::of(item)
    {
        return Some(quote_spanned! {at=>
            #[cfg(#condition)] #[#root::idempotent(#raw)] #when_true
            #[cfg(not(#condition))] #[#root::idempotent(#raw)] #when_false
        });
    }
    let mut item = item.clone();
    let utoipa = take_utoipa(&mut item.attrs)?;
    Some(quote_spanned!(at=> #utoipa #[#root::idempotent(#raw)] #item))
}

fn expand(model: &Model) -> TokenStream {
    let at = Span::mixed_site();
    let Model { root, item, .. } = model;
    let Split { outer, inner } = Split::new(&item.attrs);
    let (outer, top) = by_style(&outer);
    let (inner, inner_top) = by_style(&inner);
    let last = last(model);
    let outer_sig = signature::outer(model, &last);
    let inner_sig = signature::inner(item);

    let body = subject::body(model);
    let body = checks::body(model, body);
    let inner_block = block(item, quote!(#(#inner_top)* #body));

    let function = function(model);
    let checks = checks::declared(model, &function);
    let options = options::options(model);
    let call = checks::send(model, &function);
    let subject::Subject { keyed, subject } = subject::subject(model);
    let Last { name, binder, .. } = last;
    let outer_block = block(
        item,
        quote_spanned! {at=>
            #(#top)*
            #(#inner)*
            #inner_sig #inner_block
            #checks
            #root::Run::new(#options, #name, |#binder, #keyed| (#subject, #call))
        },
    );
    quote!(#(#outer)* #outer_sig #outer_block)
}

/// The argument that is wrapped.
struct Last {
    name: Ident,
    ty: TokenStream,
    /// What the runtime hands back is bound to.
    binder: TokenStream,
}

fn last(model: &Model) -> Last {
    let at = Span::mixed_site();
    let root = &model.root;
    model.params.last().map_or_else(
        || Last {
            name: Ident::new("request", at),
            ty: quote_spanned!(at=> #root::__private::NoArgs),
            binder: quote_spanned!(at=> _),
        },
        |param| Last {
            name: param.name.clone(),
            ty: param.ty.to_token_stream(),
            binder: param.name.to_token_stream(),
        },
    )
}

/// The nested function as a value. It is located at the name, which is where a future that is not `Send` is reported.
fn function(model: &Model) -> TokenStream {
    let function = &model.item.sig.ident;
    let at = Span::mixed_site().located_at(function.span());
    let function = item::at(at, function);
    let turbofish = turbofish(model);
    quote_spanned!(at=> #function #turbofish)
}

/// `#[..]` and `#![..]`
fn by_style(attrs: &[Attribute]) -> (Vec<&Attribute>, Vec<&Attribute>) {
    attrs
        .iter()
        .partition(|attr| matches!(attr.style, AttrStyle::Outer))
}

/// Both functions have the user's braces.
fn block(item: &Item, body: TokenStream) -> TokenStream {
    let mut block = TokenStream::new();
    item.brace
        .surround(&mut block, |tokens| tokens.extend(body));
    block
}

fn turbofish(model: &Model) -> Option<TokenStream> {
    let params = model
        .item
        .sig
        .generics
        .params
        .iter()
        .filter_map(|param| match param {
            GenericParam::Type(param) => Some(&param.ident),
            GenericParam::Const(param) => Some(&param.ident),
            GenericParam::Lifetime(_) => None,
        });
    let params: Vec<_> = params.collect();
    (!params.is_empty()).then(|| quote_spanned!(Span::mixed_site()=> ::<#(#params),*>))
}
