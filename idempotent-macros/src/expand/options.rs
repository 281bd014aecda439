//! The attribute's options as one constant.

use std::time::Duration;

use proc_macro2::{Span, TokenStream};
use quote::quote_spanned;
use syn::ext::IdentExt;

use crate::args::OnStoreFailure;
use crate::model::Model;

/// `const { &Options::new("path::of::handler").required() }`
pub(super) fn options(model: &Model) -> TokenStream {
    let at = Span::mixed_site();
    let Model {
        args, root, item, ..
    } = model;
    let handler = item.sig.ident.unraw().to_string();
    let mut options = quote_spanned! {at=>
        #root::__private::Options::new(::core::concat!(::core::module_path!(), "::", #handler))
    };
    if args.required {
        options.extend(quote_spanned!(at=> .required()));
    }
    if let Some(name) = &args.name {
        options.extend(quote_spanned!(at=> .name(#name)));
    }
    let duration = |duration: Duration| {
        let (seconds, nanos) = (duration.as_secs(), duration.subsec_nanos());
        quote_spanned!(at=> #root::__private::Duration::new(#seconds, #nanos))
    };
    if let Some(retention) = args.retention.map(duration) {
        options.extend(quote_spanned!(at=> .retention(#retention)));
    }
    if let Some(wait) = args.wait.map(duration) {
        options.extend(quote_spanned!(at=> .wait(#wait)));
    }
    if let Some(lease) = args.lease.map(duration) {
        options.extend(quote_spanned!(at=> .lease(#lease)));
    }
    match args.on_store_failure {
        Some(OnStoreFailure::Open) => {
            options.extend(quote_spanned!(at=> .on_store_failure(#root::OnStoreFailure::Open)));
        }
        Some(OnStoreFailure::Closed) => {
            options.extend(quote_spanned!(at=> .on_store_failure(#root::OnStoreFailure::Closed)));
        }
        None => {}
    }
    if let Some(verdict) = &args.verdict {
        options.extend(quote_spanned!(at=> .verdict(#verdict)));
    }
    if !args.ignore.is_empty() {
        let pointers = &args.ignore;
        options.extend(quote_spanned!(at=> .ignore(&[#(#pointers),*])));
    }
    quote_spanned!(at=> const { &#options })
}
