//! Checks by the compiler, each at the token that it is about.

use proc_macro2::{Span, TokenStream};
use quote::quote_spanned;
use syn::spanned::Spanned;
use syn::{Ident, Type};

use crate::model::{Model, contains_impl, leaves};

/// Can the declared type be replayed, and is it a response? A closure that nobody calls: it is type-checked and
/// leaves no code.
///
/// It mentions the nested function, which is otherwise only called: Clippy asks whether `async` is needed only where
/// a function is never used as a value, and a handler is. With `impl Trait` in its arguments it has no value.
pub(super) fn declared(model: &Model, function: &TokenStream) -> TokenStream {
    let root = &model.root;
    let leaves = leaves(&model.ret)
        .into_iter()
        .filter(|leaf| needs_probe(leaf));
    let probes: Vec<_> = leaves
        .map(|leaf| {
            let at = Span::mixed_site().located_at(leaf.span());
            quote_spanned!(at=> check::require_replayable((&&&check::Probe::<#leaf>::NEW).__idempotent_verdict());)
        })
        .collect();
    let at = Span::mixed_site();
    let traits = (!probes.is_empty()).then(|| {
        quote_spanned!(at=> use #root::__private::check::{self, Fine as _, Never as _, NeverErr as _};)
    });
    let response = (!model.is_generic() && !contains_impl(&model.ret)).then(|| {
        let (ret, at) = (&model.ret, at.located_at(model.ret.span()));
        quote_spanned!(at=> #root::__private::check::require_into_response::<#ret>();)
    });
    let value = (!model.params.iter().any(|param| contains_impl(&param.ty)))
        .then(|| quote_spanned!(at=> let _ = #function;));
    quote_spanned! {at=>
        let _ = || {
            #value
            #traits
            #(#probes)*
            #response
        };
    }
}

/// `()`, `&'static str`, `[u8; 4]`: nothing that is refused hides in them.
fn needs_probe(leaf: &Type) -> bool {
    matches!(leaf, Type::Path(_) | Type::Macro(_)) && !contains_impl(leaf)
}

/// `-> impl IntoResponse` hides the type from everybody but the function's own body, so the check goes there.
pub(super) fn body(model: &Model, body: TokenStream) -> TokenStream {
    if !matches!(model.ret, Type::ImplTrait(_)) {
        return body;
    }
    let root = &model.root;
    let at = Span::mixed_site();
    let response = Ident::new("response", at);
    let mut block = TokenStream::new();
    model
        .item
        .brace
        .surround(&mut block, |tokens| tokens.extend(body));
    // Located in the body: the compiler names a variable that a block of its own captures, and not one of a macro's.
    let start = quote_spanned!(model.item.brace.span.open()=> async move);
    let located = at.located_at(model.ret.span());
    let probe = quote_spanned! {located=>
        check::require_replayable((&&&check::probe_of(&#response)).__idempotent_verdict());
    };
    quote_spanned! {at=>
        let #response = #start #block.await;
        {
            use #root::__private::check::{self, Fine as _, Never as _, NeverErr as _};
            #probe
        }
        #response
    }
}

/// Calls the function, and says at its name what is not `Send` in its future. A generic function is checked where it
/// is used, as Axum does.
pub(super) fn send(model: &Model, function: &TokenStream) -> TokenStream {
    let root = &model.root;
    let at = Span::mixed_site().located_at(model.item.sig.ident.span());
    let names = model.params.iter().map(|param| &param.name);
    let call = quote_spanned!(at=> #function(#(#names),*));
    if model.is_generic() {
        return call;
    }
    quote_spanned!(at=> #root::__private::check::require_send(#call))
}
