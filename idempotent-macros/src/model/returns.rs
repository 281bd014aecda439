//! Return types that can never be sent a second time.
//!
//! Types that the runtime knows are refused by a trait (`handler::check`). Here are the ones that it cannot name: they
//! belong to crates it does not depend on, or are written with `impl` and so cannot be repeated.

use syn::visit::Visit;
use syn::{Error, GenericArgument, PathArguments, Type, TypeImplTrait};

const NEVER: [&str; 4] = ["AsyncReadBody", "FileStream", "ReaderStream", "StreamBody"];

pub(super) fn never_replayable(ret: &Type) -> Option<Error> {
    leaves(ret).into_iter().find_map(|leaf| {
        let Type::Path(path) = leaf else { return None };
        let name = &path.path.segments.last()?.ident;
        let never = NEVER.iter().any(|never| name == never) || (name == "Sse" && contains_impl(leaf));
        never.then(|| {
            let message = format!(
                "`#[idempotent]` can't store and replay the response type `{name}`: return the created resource, \
                 e.g. `(StatusCode, Json<T>)`, or mark the handler `#[non_idempotent(\"why\")]`"
            );
            Error::new_spanned(name, message)
        })
    })
}

/// The types that become the response: `Result<(A, Json<T>), E>` -> `Json<T>`, `E`.
pub(crate) fn leaves(ty: &Type) -> Vec<&Type> {
    if let Type::Paren(paren) = ty {
        return leaves(&paren.elem);
    }
    if let Type::Group(group) = ty {
        return leaves(&group.elem);
    }
    if let Type::Tuple(tuple) = ty {
        return tuple.elems.last().map(leaves).unwrap_or_default();
    }
    if let Type::Path(path) = ty
        && let Some(last) = path.path.segments.last()
        && last.ident == "Result"
        && let PathArguments::AngleBracketed(arguments) = &last.arguments
    {
        let types = arguments.args.iter().filter_map(|argument| {
            let GenericArgument::Type(ty) = argument else {
                return None;
            };
            Some(leaves(ty))
        });
        return types.flatten().collect();
    }
    vec![ty]
}

/// `impl Trait`, anywhere in the type.
pub(crate) fn contains_impl(ty: &Type) -> bool {
    struct Search(bool);
    impl<'ast> Visit<'ast> for Search {
        fn visit_type_impl_trait(&mut self, _: &'ast TypeImplTrait) {
            self.0 = true;
        }
    }
    let mut search = Search(false);
    search.visit_type(ty);
    search.0
}
