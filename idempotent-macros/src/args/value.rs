//! The value of one option, checked.

use std::time::Duration;

use darling::ast::NestedMeta;
use darling::util::path_to_string;
use darling::{Error, Result};
use proc_macro2::Span;
use syn::visit::Visit;
use syn::{
    Expr, ExprAsync, ExprAwait, ExprClosure, ExprLit, ExprPath, ExprReturn, ExprTry, ExprTryBlock,
    Item, Lit, LitStr, Meta, Path,
};

use super::{OnLostRun, OnStoreFailure, example};

const HOUR: u64 = 60 * 60;

/// The expression after `=`.
fn value(meta: &Meta) -> Result<&Expr> {
    let Meta::NameValue(pair) = meta else {
        let name = path_to_string(meta.path());
        return Err(
            Error::custom(format!("`{name}` needs a value, {}", example(&name))).with_span(meta),
        );
    };
    let mut value = &pair.value;
    // What a `macro_rules!` fragment wraps around the value.
    while let Expr::Group(group) = value {
        value = &group.expr;
    }
    Ok(value)
}

fn text(meta: &Meta) -> Result<LitStr> {
    let value = value(meta)?;
    if let Expr::Lit(ExprLit {
        lit: Lit::Str(text),
        ..
    }) = value
    {
        return Ok(text.clone());
    }
    let name = path_to_string(meta.path());
    Err(Error::custom(format!(
        "`{name}` takes a string literal, {}",
        example(&name)
    ))
    .with_span(value))
}

pub(super) fn required(meta: &Meta) -> Result<bool> {
    match meta {
        Meta::Path(_) => Ok(true),
        Meta::List(_) | Meta::NameValue(_) => Err(Error::custom(
            "`required` takes no value: leave it out, or write `required`",
        )
        .with_span(meta)),
    }
}

/// Where the subject leaves its expression: it is evaluated on its own, ahead of the handler.
fn leaves(expr: &Expr) -> Option<Error> {
    let mut search = Leaves(None);
    search.visit_expr(expr);
    search.0
}

struct Leaves(Option<Error>);

impl Leaves {
    fn refuse(&mut self, at: Span, what: &str) {
        let message = format!(
            "`subject` can't {what}: it is evaluated before the handler runs; \
             let an extractor find the caller, and name its argument here, {}",
            example("subject")
        );
        self.0
            .get_or_insert_with(|| Error::custom(message).with_span(&at));
    }
}

impl<'ast> Visit<'ast> for Leaves {
    fn visit_expr_await(&mut self, expr: &'ast ExprAwait) {
        self.refuse(expr.await_token.span, "`.await`");
    }

    fn visit_expr_try(&mut self, expr: &'ast ExprTry) {
        self.refuse(expr.question_token.span, "give up with `?`");
    }

    fn visit_expr_return(&mut self, expr: &'ast ExprReturn) {
        self.refuse(expr.return_token.span, "`return`");
    }

    // What is left within these is left for them.
    fn visit_expr_async(&mut self, _: &'ast ExprAsync) {}
    fn visit_expr_closure(&mut self, _: &'ast ExprClosure) {}
    fn visit_expr_try_block(&mut self, _: &'ast ExprTryBlock) {}
    fn visit_item(&mut self, _: &'ast Item) {}
}

pub(super) fn subject(meta: &Meta) -> Result<Option<Expr>> {
    let expr = value(meta)?;
    match leaves(expr) {
        Some(error) => Err(error),
        None => Ok(Some(expr.clone())),
    }
}

pub(super) fn name(meta: &Meta) -> Result<Option<LitStr>> {
    let name = text(meta)?;
    if name.value().trim().is_empty() {
        return Err(
            Error::custom("`name` is empty: leave it out to use the route's path").with_span(&name),
        );
    }
    Ok(Some(name))
}

pub(super) fn path(meta: &Meta) -> Result<Option<Path>> {
    let value = value(meta)?;
    if let Expr::Path(ExprPath {
        qself: None, path, ..
    }) = value
    {
        return Ok(Some(path.clone()));
    }
    let name = path_to_string(meta.path());
    Err(Error::custom(format!("`{name}` takes a path, {}", example(&name))).with_span(value))
}

pub(super) fn retention(meta: &Meta) -> Result<Option<Duration>> {
    duration(
        meta,
        HOUR,
        168 * HOUR,
        "a record is kept for `1h` to `168h` (one week)",
    )
}

pub(super) fn wait(meta: &Meta) -> Result<Option<Duration>> {
    duration(meta, 0, 60, "a duplicate waits for `0s` to `60s`")
}

pub(super) fn lease(meta: &Meta) -> Result<Option<Duration>> {
    duration(meta, 1, HOUR, "a lease lasts `1s` to `1h`")
}

fn duration(meta: &Meta, least: u64, most: u64, range: &str) -> Result<Option<Duration>> {
    let text = text(meta)?;
    let name = path_to_string(meta.path());
    let value = humantime::parse_duration(&text.value()).map_err(|error| {
        Error::custom(format!(
            "`{name}` is not a duration ({error}); write it {}",
            example(&name)
        ))
        .with_span(&text)
    })?;
    if value < Duration::from_secs(least) || value > Duration::from_secs(most) {
        return Err(Error::custom(format!("`{name}` is out of range: {range}")).with_span(&text));
    }
    Ok(Some(value))
}

pub(super) fn on_store_failure(meta: &Meta) -> Result<Option<OnStoreFailure>> {
    let text = text(meta)?;
    match text.value().as_str() {
        "open" => Ok(Some(OnStoreFailure::Open)),
        "closed" => Ok(Some(OnStoreFailure::Closed)),
        _ => Err(Error::custom(
            "`on_store_failure` is \"open\" (run without protection) or \"closed\" (answer 503)",
        )
        .with_span(&text)),
    }
}

pub(super) fn on_lost_run(meta: &Meta) -> Result<Option<OnLostRun>> {
    let text = text(meta)?;
    match text.value().as_str() {
        "retry" => Ok(Some(OnLostRun::Retry)),
        "unknown" => Ok(Some(OnLostRun::Unknown)),
        _ => Err(Error::custom(
            "`on_lost_run` is \"retry\" (a retry runs again) or \"unknown\" (answer 409)",
        )
        .with_span(&text)),
    }
}

pub(super) fn ignore(meta: &Meta) -> Result<Vec<LitStr>> {
    let malformed = || {
        Error::custom(format!(
            "`ignore` takes JSON pointers, {}",
            example("ignore")
        ))
    };
    let Meta::List(list) = meta else {
        return Err(malformed().with_span(meta));
    };
    let items = NestedMeta::parse_meta_list(list.tokens.clone())?;
    if items.is_empty() {
        return Err(malformed().with_span(meta));
    }
    let mut errors = Error::accumulator();
    let pointers = items.iter().filter_map(|item| {
        errors.handle_in(|| match item {
            NestedMeta::Lit(Lit::Str(pointer)) => check_pointer(&pointer.value())
                .map(|()| pointer.clone())
                .map_err(|message| Error::custom(message).with_span(pointer)),
            NestedMeta::Lit(_) | NestedMeta::Meta(_) | NestedMeta::NameValueInvalidExpr(_) => {
                Err(malformed().with_span(item))
            }
        })
    });
    let pointers = pointers.collect();
    errors.finish_with(pointers)
}

/// RFC 6901: empty or `/`-led reference tokens, in which `~` stands only in `~0` and `~1`.
fn check_pointer(pointer: &str) -> std::result::Result<(), String> {
    if pointer.is_empty() {
        return Err(
            "the pointer \"\" is the whole body: name a member, as in `ignore(\"/sentAt\")`".into(),
        );
    }
    if !pointer.starts_with('/') {
        return Err(format!(
            "a JSON pointer starts with `/`: write \"/{pointer}\""
        ));
    }
    if pointer
        .split('~')
        .skip(1)
        .any(|rest| !rest.starts_with(['0', '1']))
    {
        return Err(
            "`~` in a JSON pointer is written `~0`, and `/` within a name `~1` (RFC 6901)".into(),
        );
    }
    Ok(())
}
