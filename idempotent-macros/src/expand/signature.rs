//! The two signatures, spanned so that lints see the declaration as it was written.
//!
//! The compiler takes a function's place from its first and its last token. Where both are the user's, a lint about
//! the function is reported (a lint about generated code is not), and a lint about both functions says the same of
//! the same place, so it is reported once.

use proc_macro2::{Punct, Spacing, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};
use syn::{ReturnType, Signature, Token};

use super::Last;
use crate::item::{self, Item};
use crate::model::Model;

/// `pub fn create_order(db: State<Db>, req: Idempotent<Json<NewOrder>>) -> Run<impl Future<Output = Json<Order>>>`
pub(super) fn outer(model: &Model, wrapped: &Last) -> TokenStream {
    let Model {
        root,
        item,
        params,
        ret,
        ..
    } = model;
    let (vis, sig) = (&item.vis, &item.sig);
    let Signature {
        fn_token,
        ident,
        generics,
        ..
    } = sig;
    let bounds = &generics.where_clause;
    let at = Span::mixed_site().located_at(ident.span());
    let before = params.iter().take(params.len().saturating_sub(1));
    let before = before.map(|param| {
        let (name, ty) = (&param.name, &param.ty);
        quote_spanned!(at=> #name: #ty,)
    });
    let Last { name, ty, .. } = wrapped;
    let mut inputs = TokenStream::new();
    sig.paren_token.surround(&mut inputs, |tokens| {
        tokens.extend(quote_spanned!(at=> #(#before)* #name: #root::Idempotent<#ty>));
    });
    let last = last_span(sig);
    let mut end = Punct::new('>', Spacing::Alone);
    end.set_span(last);
    let at = at.located_at(last);
    let future = quote_spanned!(at=> impl ::core::future::Future<Output = #ret>);
    let run = quote_spanned!(at=> -> #root::Run<#future);
    quote!(#vis #fn_token #ident #generics #inputs #run #end #bounds)
}

/// The signature as it was declared. It begins where the visibility stood, and its name is the macro's.
pub(super) fn inner(item: &Item) -> Signature {
    let mut sig = item.sig.clone();
    if let Some(first) = item.vis.to_token_stream().into_iter().next() {
        sig.asyncness = Some(Token![async](first.span()));
    }
    let at = Span::mixed_site().located_at(sig.ident.span());
    sig.ident = item::at(at, &sig.ident);
    sig
}

/// The span of the signature's last token; a `where` clause is not part of it.
fn last_span(sig: &Signature) -> Span {
    let ReturnType::Type(_, ty) = &sig.output else {
        return sig.paren_token.span.close();
    };
    match ty.to_token_stream().into_iter().last() {
        Some(TokenTree::Group(group)) => group.span_close(),
        Some(token) => token.span(),
        None => sig.paren_token.span.close(),
    }
}
