//! `#[cfg]` on an argument or a generic parameter.
//!
//! Which argument is the last, and so which one is wrapped, depends on conditions that only the compiler knows. So it
//! is asked: the function is written twice, once for each answer, with the attribute still on it. The compiler keeps
//! one of them, and expands that one again.

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::punctuated::Punctuated;
use syn::{Attribute, FnArg, GenericParam, Meta, Token};

use crate::attrs;
use crate::item::Item;

/// The function under the first condition in its signature.
pub(crate) struct Alternatives {
    pub(crate) condition: TokenStream,
    pub(crate) when_true: Item,
    pub(crate) when_false: Item,
}

impl Alternatives {
    /// `None` where no argument and no generic parameter has a condition.
    pub(crate) fn of(item: &Item) -> Option<Self> {
        let (mut when_true, mut when_false) = (item.clone(), item.clone());
        let (params, args) = (&item.sig.generics.params, &item.sig.inputs);
        let condition = if let Some((index, condition)) = first(params, generic_attrs) {
            resolve(
                &mut when_true.sig.generics.params,
                index,
                generic_attrs_mut,
                true,
            );
            resolve(
                &mut when_false.sig.generics.params,
                index,
                generic_attrs_mut,
                false,
            );
            condition
        } else if let Some((index, condition)) = first(args, arg_attrs) {
            resolve(&mut when_true.sig.inputs, index, arg_attrs_mut, true);
            resolve(&mut when_false.sig.inputs, index, arg_attrs_mut, false);
            condition
        } else {
            return None;
        };
        Some(Self {
            condition,
            when_true,
            when_false,
        })
    }
}

/// The first element that has a condition, and that condition.
fn first<T>(
    list: &Punctuated<T, Token![,]>,
    attrs_of: fn(&T) -> &[Attribute],
) -> Option<(usize, TokenStream)> {
    list.iter()
        .enumerate()
        .find_map(|(index, element)| Some((index, attrs_of(element).iter().find_map(condition)?)))
}

/// `#[cfg(condition)]`, `#[cfg_attr(condition, ..)]`
fn condition(attr: &Attribute) -> Option<TokenStream> {
    let Meta::List(list) = &attr.meta else {
        return None;
    };
    if list.path.is_ident("cfg") {
        return Some(list.tokens.clone());
    }
    attrs::conditional(attr).map(|(condition, _)| condition)
}

/// Rewrites the list for one answer to the first condition of its element `index`.
fn resolve<T: Clone + ToTokens>(
    list: &mut Punctuated<T, Token![,]>,
    index: usize,
    attrs_of: fn(&mut T) -> &mut Vec<Attribute>,
    holds: bool,
) {
    let keep = |(place, mut element): (usize, T)| {
        if place != index {
            return Some(element);
        }
        let attrs = attrs_of(&mut element);
        let at = attrs.iter().position(|attr| condition(attr).is_some())?;
        let attr = attrs.remove(at);
        match attrs::conditional(&attr) {
            Some((_, conditional)) if holds => {
                attrs.splice(at..at, attrs::unconditional(&conditional, attr.style));
            }
            Some(_) => {}
            None if holds => {}
            None => return None,
        }
        Some(element)
    };
    *list = list.iter().cloned().enumerate().filter_map(keep).collect();
}

fn arg_attrs(arg: &FnArg) -> &[Attribute] {
    match arg {
        FnArg::Receiver(receiver) => &receiver.attrs,
        FnArg::Typed(typed) => &typed.attrs,
    }
}

fn arg_attrs_mut(arg: &mut FnArg) -> &mut Vec<Attribute> {
    match arg {
        FnArg::Receiver(receiver) => &mut receiver.attrs,
        FnArg::Typed(typed) => &mut typed.attrs,
    }
}

fn generic_attrs(param: &GenericParam) -> &[Attribute] {
    match param {
        GenericParam::Lifetime(param) => &param.attrs,
        GenericParam::Type(param) => &param.attrs,
        GenericParam::Const(param) => &param.attrs,
    }
}

fn generic_attrs_mut(param: &mut GenericParam) -> &mut Vec<Attribute> {
    match param {
        GenericParam::Lifetime(param) => &mut param.attrs,
        GenericParam::Type(param) => &mut param.attrs,
        GenericParam::Const(param) => &mut param.attrs,
    }
}
