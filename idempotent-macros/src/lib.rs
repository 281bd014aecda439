//! The attributes of `idempotent-runtime`.

mod expand;

mod model;

mod non_idempotent;

mod args;

mod cfg;

mod item;

mod attrs;

mod root;

use proc_macro::TokenStream;

/// Makes an Axum handler idempotent.
#[proc_macro_attribute]
pub fn idempotent(args: TokenStream, item: TokenStream) -> TokenStream {
    expand::attribute(args.into(), item.into()).into()
}

/// Says why a handler is not idempotent.
#[proc_macro_attribute]
pub fn non_idempotent(args: TokenStream, item: TokenStream) -> TokenStream {
    non_idempotent::attribute(args.into(), item.into()).into()
}
