//! Where the expansion finds the runtime.

use proc_macro_crate::{Error, FoundCrate, crate_name};
use proc_macro2::Span;
use quote::{format_ident, quote};
use syn::{Path, parse_quote};

/// The path that the user named with `crate = ..`, or the runtime under the name it has in the user's Cargo.toml.
pub(crate) fn root(named: Option<&Path>) -> syn::Result<Path> {
    if let Some(path) = named {
        return Ok(path.clone());
    }
    match crate_name("idempotent-runtime") {
        Ok(FoundCrate::Name(name)) => {
            let name = format_ident!("{name}", span = Span::mixed_site());
            Ok(parse_quote!(::#name))
        }
        Err(Error::CrateNotFound { .. }) => Err(syn::Error::new_spanned(
            quote!(),
            "`#[idempotent]` needs the crate `idempotent-runtime`: add it to the dependencies in Cargo.toml, \
             or name the path where it is re-exported: `#[idempotent(crate = path::to::it)]`",
        )),
        // The runtime's own tests and examples; builds that have no Cargo.toml to look into.
        Ok(FoundCrate::Itself) | Err(_) => {
            let name = format_ident!("idempotent_runtime", span = Span::mixed_site());
            Ok(parse_quote!(::#name))
        }
    }
}
