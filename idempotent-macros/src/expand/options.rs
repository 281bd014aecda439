//! The attribute's options as one constant.

use std::time::Duration;

use proc_macro2::{Span, TokenStream};
use quote::quote_spanned;
use syn::ext::IdentExt;

use crate::args::{OnLostRun, OnStoreFailure};
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
    match args.on_lost_run {
        Some(OnLostRun::Retry) => {
            options.extend(quote_spanned!(at=> .on_lost_run(#root::OnLostRun::Retry)));
        }
        Some(OnLostRun::Unknown) => {
            options.extend(quote_spanned!(at=> .on_lost_run(#root::OnLostRun::Unknown)));
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

#[cfg(test)]
mod tests {
    use quote::quote;
    use syn::parse_quote;

    use super::options;
    use crate::{args::Args, model::Model};

    fn expanded(args: proc_macro2::TokenStream) -> String {
        let (args, mistakes) = Args::parse(args);
        assert!(mistakes.is_empty(), "{mistakes:?}");
        let item = parse_quote!(
            async fn pay() {}
        );
        let model = Model::new(args, parse_quote!(rt), item);
        options(&model.unwrap_or_else(|errors| panic!("{errors:?}")))
            .to_string()
            .replace(' ', "")
    }

    #[test]
    fn each_option_is_one_call() {
        let new = r#"const{&rt::__private::Options::new(::core::concat!(::core::module_path!(),"::","pay"))"#;
        let duration = |call: &str, seconds: u64, nanos: u32| {
            format!("{new}.{call}(rt::__private::Duration::new({seconds}u64,{nanos}u32))}}")
        };
        assert_eq!(expanded(quote!()), format!("{new}}}"));
        assert_eq!(expanded(quote!(required)), format!("{new}.required()}}"));
        assert_eq!(
            expanded(quote!(name = "n")),
            format!(r#"{new}.name("n")}}"#)
        );
        assert_eq!(
            expanded(quote!(retention = "1day 12h")),
            duration("retention", 36 * 60 * 60, 0)
        );
        assert_eq!(expanded(quote!(wait = "0s")), duration("wait", 0, 0));
        assert_eq!(
            expanded(quote!(lease = "1500ms")),
            duration("lease", 1, 500_000_000)
        );
        for (written, policy) in [("open", "Open"), ("closed", "Closed")] {
            let call = format!("{new}.on_store_failure(rt::OnStoreFailure::{policy})}}");
            assert_eq!(expanded(quote!(on_store_failure = #written)), call);
        }
        for (written, policy) in [("retry", "Retry"), ("unknown", "Unknown")] {
            let call = format!("{new}.on_lost_run(rt::OnLostRun::{policy})}}");
            assert_eq!(expanded(quote!(on_lost_run = #written)), call);
        }
        assert_eq!(
            expanded(quote!(verdict = a::b)),
            format!("{new}.verdict(a::b)}}")
        );
        assert_eq!(
            expanded(quote!(ignore("/a", "/b"))),
            format!(r#"{new}.ignore(&["/a","/b"])}}"#)
        );
    }
}
