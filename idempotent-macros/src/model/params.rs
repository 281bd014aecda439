//! The arguments, and what the outer function calls them.

use proc_macro2::Span;
use syn::ext::IdentExt;
use syn::visit::{Visit, visit_pat_ident};
use syn::{Error, FnArg, Ident, Pat, PatIdent, Signature, Type};

use crate::item;

/// One argument.
pub(crate) struct Param {
    pub(crate) pat: Pat,
    pub(crate) ty: Type,
    /// `State(db): State<Db>` -> `db`: what documentation shows for the outer function. It resolves in the expansion
    /// only, so it meets no name of the user's.
    pub(crate) name: Ident,
}

pub(super) fn params(sig: &Signature, errors: &mut Vec<Error>) -> Vec<Param> {
    // The nested function is an item of the block that the names are read in, so it would win over an argument.
    // `keyed` is the expansion's own.
    let mut taken = vec![sig.ident.unraw(), Ident::new("keyed", Span::mixed_site())];
    let mut params = Vec::new();
    for arg in &sig.inputs {
        let FnArg::Typed(typed) = arg else { continue };
        if let Some(attr) = typed.attrs.iter().find(|attr| !is_lint_level(attr)) {
            errors.push(Error::new_spanned(
                attr,
                "`#[idempotent]` does not know this attribute of an argument",
            ));
        }
        let name = name(&typed.pat, &taken).unwrap_or_else(|| unique(params.len(), &taken));
        taken.push(name.unraw());
        params.push(Param {
            pat: (*typed.pat).clone(),
            ty: (*typed.ty).clone(),
            name,
        });
    }
    params
}

fn is_lint_level(attr: &syn::Attribute) -> bool {
    ["allow", "warn", "deny", "forbid", "expect"]
        .iter()
        .any(|name| attr.path().is_ident(name))
}

/// The one name that the pattern binds. A name in capitals may be a constant or a unit struct, and is left alone.
fn name(pat: &Pat, taken: &[Ident]) -> Option<Ident> {
    let mut bindings = bindings(pat).into_iter();
    let (Some(only), None) = (bindings.next(), bindings.next()) else {
        return None;
    };
    let text = only.unraw().to_string();
    let text = text.trim_start_matches('_');
    if !text.starts_with(char::is_lowercase) {
        return None;
    }
    // `_type` becomes `r#type`; `_self` stays nameless, for there is no `r#self`.
    let name = syn::parse_str::<Ident>(text)
        .or_else(|_| syn::parse_str(&format!("r#{text}")))
        .ok()?;
    let name = item::at(Span::mixed_site(), &name);
    (!taken.contains(&name.unraw())).then_some(name)
}

fn unique(index: usize, taken: &[Ident]) -> Ident {
    let mut text = format!("arg{index}");
    while taken.iter().any(|name| *name == text) {
        text.push('_');
    }
    Ident::new(&text, Span::mixed_site())
}

/// All names that a pattern binds.
pub(crate) fn bindings(pat: &Pat) -> Vec<Ident> {
    struct Bindings(Vec<Ident>);
    impl<'ast> Visit<'ast> for Bindings {
        fn visit_pat_ident(&mut self, pat: &'ast PatIdent) {
            self.0.push(pat.ident.clone());
            visit_pat_ident(self, pat);
        }
    }
    let mut bindings = Bindings(Vec::new());
    bindings.visit_pat(pat);
    bindings.0
}
