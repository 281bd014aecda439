//! The checked handler: every rule about what can be annotated.

mod borrows;
mod params;
mod returns;
mod self_type;

use darling::Error as DarlingError;
use proc_macro2::Span;
use syn::spanned::Spanned;
use syn::{
    Attribute, Error, FnArg, GenericParam, Path, ReturnType, Safety, Signature, Type, parse_quote,
};

pub(crate) use self::params::{Param, bindings};
pub(crate) use self::returns::{contains_impl, leaves};
use crate::args::Args;
use crate::attrs::is_named;
use crate::item::Item;
use crate::non_idempotent::beside;

/// What Axum implements `Handler` for.
const MOST_ARGUMENTS: usize = 16;

/// A handler that keeps all rules.
pub(crate) struct Model {
    pub(crate) args: Args,
    pub(crate) root: Path,
    pub(crate) item: Item,
    pub(crate) params: Vec<Param>,
    /// What the handler is declared to return.
    pub(crate) ret: Type,
}

impl Model {
    /// # Errors
    /// Every rule that is broken, each at its own token.
    pub(crate) fn new(args: Args, root: Path, item: Item) -> Result<Self, Vec<Error>> {
        let mut errors = Vec::new();
        errors.extend(attributes(&item.attrs));
        qualifiers(&item.sig, &mut errors);
        errors.extend(item.sig.generics.params.iter().filter_map(lifetime));
        let params = params::params(&item.sig, &mut errors);
        errors.extend(params.iter().filter_map(|param| borrows::borrow(&param.ty)));
        if let Some(beyond) = item.sig.inputs.iter().nth(MOST_ARGUMENTS) {
            errors.push(Error::new_spanned(
                beyond,
                "an Axum handler takes at most 16 arguments: take several as one tuple",
            ));
        }
        errors.extend(self_type::self_type(&item));
        let ret = declared(&item.sig.output);
        errors.extend(returns::never_replayable(&ret));
        if errors.is_empty() {
            Ok(Self {
                args,
                root,
                item,
                params,
                ret,
            })
        } else {
            Err(errors)
        }
    }

    /// Whether the types in the signature are known where the function is defined.
    pub(crate) fn is_generic(&self) -> bool {
        !self.item.sig.generics.params.is_empty()
            || self.params.iter().any(|param| contains_impl(&param.ty))
    }
}

fn attributes(attrs: &[Attribute]) -> Option<Error> {
    attrs.iter().find_map(|attr| {
        if is_named(attr, "idempotent") {
            Some(Error::new(
                attr.path().span(),
                "`#[idempotent]` is applied twice; remove one",
            ))
        } else if is_named(attr, "non_idempotent") {
            Some(beside(attr))
        } else {
            None
        }
    })
}

fn qualifiers(sig: &Signature, errors: &mut Vec<Error>) {
    let mut refuse = |span: Span, message: &str| errors.push(Error::new(span, message));
    if sig.asyncness.is_none() {
        refuse(
            sig.fn_token.span,
            "an `#[idempotent]` handler is an `async fn`: add `async`",
        );
    }
    if let Some(token) = &sig.constness {
        refuse(token.span, "an `#[idempotent]` handler can't be `const`");
    }
    if let Safety::Unsafe(token) = &sig.safety {
        refuse(
            token.span,
            "an `#[idempotent]` handler can't be `unsafe`: Axum can't call it",
        );
    }
    if let Some(abi) = &sig.abi {
        refuse(
            abi.span(),
            "an `#[idempotent]` handler can't be `extern`: Axum can't call it",
        );
    }
    if let Some(dots) = &sig.variadic {
        refuse(
            dots.span(),
            "an `#[idempotent]` handler can't be variadic: Axum can't call it",
        );
    }
    if let Some(FnArg::Receiver(receiver)) = sig.inputs.first() {
        refuse(
            receiver.self_token.span,
            "an `#[idempotent]` handler can't take `self`: put shared data in Axum's `State`",
        );
    }
}

fn lifetime(param: &GenericParam) -> Option<Error> {
    let GenericParam::Lifetime(lifetime) = param else {
        return None;
    };
    Some(Error::new(
        lifetime.span(),
        "an `#[idempotent]` handler can't have lifetime parameters: it may outlive the request, so it owns its arguments",
    ))
}

fn declared(output: &ReturnType) -> Type {
    match output {
        ReturnType::Default => parse_quote!(()),
        ReturnType::Type(_, ty) => (**ty).clone(),
    }
}

/// Errors of both kinds as one list.
pub(crate) fn joined(args: Vec<DarlingError>, model: Vec<Error>) -> Vec<Error> {
    args.into_iter()
        .flat_map(DarlingError::into_iter)
        .map(Error::from)
        .chain(model)
        .collect()
}
