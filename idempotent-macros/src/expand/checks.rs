//! Checks by the compiler, each at the token that it is about.

use proc_macro2::{Span, TokenStream};
use quote::quote_spanned;
use syn::spanned::Spanned;
use syn::{Ident, Type};

use crate::model::{Model, contains_impl, leaves};

/// Can the declared type be replayed, and is it a response? A closure that nobody calls: it is type-checked and
/// leaves no code.
pub(super) fn declared(model: &Model) -> Option<TokenStream> {
    let root = &model.root;
    let leaves = leaves(&model.ret)
        .into_iter()
        .filter(|leaf| needs_probe(leaf));
    let probes: Vec<_> = leaves
        .map(|leaf| {
            let at = Span::mixed_site().located_at(leaf.span());
            quote_spanned!(at=> check::require_replayable((&&&check::Probe::<#leaf>::NEW).verdict());)
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
    if probes.is_empty() && response.is_none() {
        return None;
    }
    Some(quote_spanned! {at=>
        let _ = || {
            #traits
            #(#probes)*
            #response
        };
    })
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
    let located = at.located_at(model.ret.span());
    let probe = quote_spanned! {located=>
        check::require_replayable((&&&check::probe_of(&#response)).verdict());
    };
    quote_spanned! {at=>
        let #response = async move #block.await;
        {
            use #root::__private::check::{self, Fine as _, Never as _, NeverErr as _};
            #probe
        }
        #response
    }
}

/// Says at the function what is not `Send`. A generic function is checked where it is used, as Axum does.
pub(super) fn send(model: &Model, call: TokenStream) -> TokenStream {
    if model.is_generic() {
        return call;
    }
    let root = &model.root;
    let at = Span::mixed_site().located_at(model.item.sig.ident.span());
    quote_spanned!(at=> #root::__private::check::require_send(#call))
}
