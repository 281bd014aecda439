//! `#[non_idempotent("why")]`

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote};
use syn::spanned::Spanned;
use syn::{Error, LitStr};

use crate::attrs::is_named;
use crate::item::Item;

/// The function as it was written, and an error where the reason is missing.
pub(crate) fn attribute(args: TokenStream, item: &TokenStream) -> TokenStream {
    let errors = [check_reason(args), check_item(item.clone())]
        .into_iter()
        .filter_map(Result::err);
    let errors = errors.map(|error| error.to_compile_error());
    quote!(#item #(#errors)*)
}

fn check_reason(args: TokenStream) -> syn::Result<()> {
    const EXAMPLE: &str =
        "say why a retry may run this handler again: `#[non_idempotent(\"only reads\")]`";
    if args.is_empty() {
        return Err(Error::new(Span::call_site(), EXAMPLE));
    }
    let reason: LitStr = syn::parse2(args).map_err(|error| Error::new(error.span(), EXAMPLE))?;
    if reason.value().trim().is_empty() {
        return Err(Error::new(
            reason.span(),
            format!("the reason is empty: {EXAMPLE}"),
        ));
    }
    Ok(())
}

fn check_item(item: TokenStream) -> syn::Result<()> {
    let item: Item = syn::parse2(item).map_err(|error| {
        Error::new(
            error.span(),
            format!("`#[non_idempotent]` goes on a handler function: {error}"),
        )
    })?;
    match item
        .attrs
        .iter()
        .find(|attr| is_named(attr, "idempotent") || is_named(attr, "non_idempotent"))
    {
        Some(attr) if is_named(attr, "idempotent") => Err(beside(attr)),
        Some(attr) => Err(Error::new(
            attr.path().span(),
            "`#[non_idempotent]` is applied twice; remove one",
        )),
        None => Ok(()),
    }
}

/// The other attribute, seen from either of the two.
pub(crate) fn beside(other: &impl ToTokens) -> Error {
    Error::new_spanned(
        other,
        "a handler is `#[idempotent]` or `#[non_idempotent]`, not both; remove one",
    )
}
