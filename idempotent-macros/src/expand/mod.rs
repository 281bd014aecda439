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
mod subject;

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::{Error, GenericParam, Ident, Path};

use crate::args::Args;
use crate::attrs::{Split, take_utoipa};
use crate::cfg::Alternatives;
use crate::item::Item;
use crate::model::{Model, joined};
use crate::root::root;

/// `#[idempotent(args)] item`
pub(crate) fn attribute(args: TokenStream, item: TokenStream) -> TokenStream {
    let (options, mistakes) = Args::parse(args.clone());
    match checked(&args, options, item.clone(), mistakes.is_empty()) {
        Ok(expansion) => with_errors(&expansion, joined(mistakes, vec![])),
        // The function as it was written, so that its name resolves.
        Err(errors) => with_errors(&item, joined(mistakes, errors)),
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
    let Model {
        root,
        item,
        params,
        ret,
        ..
    } = model;
    let Split { outer, inner } = Split::new(&item.attrs);
    let (vis, sig, ident) = (&item.vis, &item.sig, &item.sig.ident);
    let (generics, bounds) = (&sig.generics, &sig.generics.where_clause);

    let no_arguments = Ident::new("request", at);
    let (last, last_ty, binder) = params.last().map_or_else(
        || {
            (
                &no_arguments,
                quote_spanned!(at=> #root::__private::NoArgs),
                quote_spanned!(at=> _),
            )
        },
        |param| {
            (
                &param.name,
                param.ty.to_token_stream(),
                param.name.to_token_stream(),
            )
        },
    );
    let names: Vec<_> = params.iter().map(|param| &param.name).collect();
    let before = params.iter().take(params.len().saturating_sub(1));
    let before = before.map(|param| {
        let (name, ty) = (&param.name, &param.ty);
        quote_spanned!(at=> #name: #ty,)
    });

    let body = subject::body(model);
    let body = checks::body(model, body);
    let mut block = TokenStream::new();
    item.brace
        .surround(&mut block, |tokens| tokens.extend(body));

    let checks = checks::declared(model);
    let options = options::options(model);
    let turbofish = turbofish(model);
    let call = quote_spanned!(at=> #ident #turbofish(#(#names),*));
    let call = checks::send(model, call);
    let subject::Subject { keyed, subject } = subject::subject(model);
    // Where the future cannot be a handler's, the name of the function is what to point at.
    let run = quote_spanned! {at.located_at(ident.span())=>
        #root::Run<impl ::core::future::Future<Output = #ret>>
    };
    quote_spanned! {at=>
        #(#outer)*
        #vis fn #ident #generics (#(#before)* #last: #root::Idempotent<#last_ty>) -> #run #bounds {
            #(#inner)*
            #sig #block
            #checks
            #root::Run::new(#options, #last, |#binder, #keyed| (#subject, #call))
        }
    }
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
