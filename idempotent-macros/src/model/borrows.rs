//! Arguments that borrow from the request.

use proc_macro2::Span;
use syn::visit::{Visit, visit_trait_bound, visit_type_reference};
use syn::{
    Error, GenericParam, Ident, Lifetime, ParenthesizedGenericArguments, TraitBound, Type,
    TypeFnPtr, TypeReference,
};

/// The first borrow in an argument's type.
pub(super) fn borrow(ty: &Type) -> Option<Error> {
    let mut search = Search::default();
    search.visit_type(ty);
    search.found.map(|span| {
        Error::new(
            span,
            "an `#[idempotent]` handler can't borrow: it may outlive the request, so it owns its arguments",
        )
    })
}

#[derive(Default)]
struct Search {
    /// Lifetimes of an enclosing `for<'a>`.
    bound: Vec<Ident>,
    found: Option<Span>,
}

impl<'ast> Visit<'ast> for Search {
    fn visit_lifetime(&mut self, lifetime: &'ast Lifetime) {
        if lifetime.ident != "static" && !self.bound.contains(&lifetime.ident) {
            self.found = self.found.or_else(|| Some(lifetime.span()));
        }
    }

    fn visit_type_reference(&mut self, reference: &'ast TypeReference) {
        if reference.lifetime.is_none() {
            self.found = self.found.or(Some(reference.and_token.span));
        }
        visit_type_reference(self, reference);
    }

    fn visit_trait_bound(&mut self, bound: &'ast TraitBound) {
        let before = self.bound.len();
        let params = bound
            .lifetimes
            .iter()
            .flat_map(|lifetimes| &lifetimes.lifetimes);
        self.bound.extend(params.filter_map(|param| match param {
            GenericParam::Lifetime(param) => Some(param.lifetime.ident.clone()),
            GenericParam::Type(_) | GenericParam::Const(_) => None,
        }));
        visit_trait_bound(self, bound);
        self.bound.truncate(before);
    }

    // `fn(&str)` and `dyn Fn(&str)` take a borrow; they do not hold one.
    fn visit_type_fn_ptr(&mut self, _: &'ast TypeFnPtr) {}
    fn visit_parenthesized_generic_arguments(&mut self, _: &'ast ParenthesizedGenericArguments) {}
}
