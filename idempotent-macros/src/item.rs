//! The annotated function as it was written.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote};
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::{AttrStyle, Attribute, Signature, Visibility, braced, token::Brace};

/// A function whose body stays as the user's own tokens: nothing in it is taken apart, so the compiler
/// sees what was written and syntax that this crate does not know passes through.
#[derive(Clone)]
pub(crate) struct Item {
    pub(crate) attrs: Vec<Attribute>,
    pub(crate) vis: Visibility,
    pub(crate) sig: Signature,
    pub(crate) brace: Brace,
    pub(crate) body: TokenStream,
}

/// The user's name with the hygiene of the macro. That brings the macro's edition along: `gen` is a name up to the
/// edition 2021, and a keyword after it.
pub(crate) fn at(span: Span, name: &Ident) -> Ident {
    let name = name.unraw();
    let raw = name == "gen" || syn::parse_str::<Ident>(&name.to_string()).is_err();
    if raw {
        Ident::new_raw(&name.to_string(), span)
    } else {
        Ident::new(&name.to_string(), span)
    }
}

impl Parse for Item {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let mut attrs = input.call(Attribute::parse_outer)?;
        let vis = input.parse()?;
        let sig = input.parse()?;
        let content;
        let brace = braced!(content in input);
        // `#![allow(..)]` at the top of the body belongs to the function.
        attrs.extend(content.call(Attribute::parse_inner)?);
        let body = content.parse()?;
        Ok(Self {
            attrs,
            vis,
            sig,
            brace,
            body,
        })
    }
}

impl ToTokens for Item {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        let Self {
            attrs,
            vis,
            sig,
            brace,
            body,
        } = self;
        let (above, within): (Vec<_>, Vec<_>) = attrs
            .iter()
            .partition(|attr| matches!(attr.style, AttrStyle::Outer));
        tokens.extend(quote!(#(#above)* #vis #sig));
        brace.surround(tokens, |tokens| tokens.extend(quote!(#(#within)* #body)));
    }
}
