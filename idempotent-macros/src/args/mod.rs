//! What is written between the parentheses of `#[idempotent(..)]`.

mod value;

use std::time::Duration;

use darling::ast::NestedMeta;
use darling::util::path_to_string;
use darling::{Error, FromMeta, Result};
use proc_macro2::TokenStream;
use syn::{Expr, LitStr, Path};

/// Each option's name and how it is written, for the messages.
const OPTIONS: [(&str, &str); 11] = [
    ("required", "required"),
    ("subject", "subject = user.id"),
    ("name", "name = \"create-order\""),
    ("retention", "retention = \"24h\""),
    ("wait", "wait = \"5s\""),
    ("lease", "lease = \"30s\""),
    ("on_store_failure", "on_store_failure = \"closed\""),
    ("on_lost_run", "on_lost_run = \"unknown\""),
    ("verdict", "verdict = path::to::function"),
    ("ignore", "ignore(\"/pointer\")"),
    ("crate", "crate = path::to::idempotent_runtime"),
];

#[derive(Clone, Default, FromMeta)]
#[darling(default)]
pub(crate) struct Args {
    #[darling(with = value::required)]
    pub(crate) required: bool,
    #[darling(with = value::subject)]
    pub(crate) subject: Option<Expr>,
    #[darling(with = value::name)]
    pub(crate) name: Option<LitStr>,
    #[darling(with = value::retention)]
    pub(crate) retention: Option<Duration>,
    #[darling(with = value::wait)]
    pub(crate) wait: Option<Duration>,
    #[darling(with = value::lease)]
    pub(crate) lease: Option<Duration>,
    #[darling(with = value::on_store_failure)]
    pub(crate) on_store_failure: Option<OnStoreFailure>,
    #[darling(with = value::on_lost_run)]
    pub(crate) on_lost_run: Option<OnLostRun>,
    #[darling(with = value::path)]
    pub(crate) verdict: Option<Path>,
    #[darling(with = value::ignore)]
    pub(crate) ignore: Vec<LitStr>,
    #[darling(rename = "crate", with = value::path)]
    pub(crate) root: Option<Path>,
}

#[derive(Clone, Copy)]
pub(crate) enum OnStoreFailure {
    Open,
    Closed,
}

#[derive(Clone, Copy)]
pub(crate) enum OnLostRun {
    Retry,
    Unknown,
}

impl Args {
    /// Reads all options. Mistakes come back beside the options that are right, so that the handler can still
    /// be expanded and nothing that uses it reports a second error.
    pub(crate) fn parse(tokens: TokenStream) -> (Self, Vec<Error>) {
        let items = match NestedMeta::parse_meta_list(tokens) {
            Ok(items) => items,
            Err(error) => {
                let message = format!("{error}. {}", options());
                let error = Error::custom(message).with_span(&error.span());
                return (Self::default(), vec![error]);
            }
        };
        let (mut good, mut errors) = (Vec::<NestedMeta>::new(), Vec::new());
        for item in items {
            match check(&item, &good) {
                Ok(()) => good.push(item),
                Err(error) => errors.push(error.with_span(&item)),
            }
        }
        match Self::from_list(&good) {
            Ok(args) => (args, errors),
            Err(error) => (Self::default(), vec![error]),
        }
    }
}

/// One option by itself: is it known, new and right?
fn check(item: &NestedMeta, before: &[NestedMeta]) -> Result<()> {
    let Some(name) = option_name(item) else {
        return Err(Error::custom(format!("expected an option. {}", options())));
    };
    let names = OPTIONS.map(|(name, _)| name);
    if !names.contains(&name.as_str()) {
        let unknown = Error::unknown_field_with_alts(&name, &names).to_string();
        let unknown = unknown.replace("Unknown field: ", "unknown option ");
        let stop = if unknown.ends_with('?') { "" } else { "." };
        return Err(Error::custom(format!("{unknown}{stop} {}", options())));
    }
    if before
        .iter()
        .any(|earlier| option_name(earlier).as_deref() == Some(&name))
    {
        return Err(Error::custom(format!(
            "`{name}` is given twice; remove one"
        )));
    }
    if matches!(item, NestedMeta::NameValueInvalidExpr(_)) {
        return Err(Error::custom(format!(
            "`{name}` needs a value, {}",
            example(&name)
        )));
    }
    Args::from_list(std::slice::from_ref(item)).map(drop)
}

fn option_name(item: &NestedMeta) -> Option<String> {
    let path = match item {
        NestedMeta::Meta(meta) => meta.path(),
        NestedMeta::NameValueInvalidExpr(meta) => &meta.path,
        NestedMeta::Lit(_) => return None,
    };
    Some(path_to_string(path))
}

fn options() -> String {
    format!(
        "The options of `#[idempotent]` are {}",
        OPTIONS.map(|(name, _)| format!("`{name}`")).join(", ")
    )
}

fn example(name: &str) -> String {
    let written = OPTIONS
        .iter()
        .find(|(option, _)| *option == name)
        .map_or(name, |(_, written)| written);
    format!("as in `{written}`")
}

#[cfg(test)]
mod tests {
    use super::{Args, OPTIONS};

    #[test]
    fn the_examples_of_the_messages_are_right() {
        for (name, written) in OPTIONS {
            let (_, mistakes) = Args::parse(written.parse().expect("tokens"));
            assert!(mistakes.is_empty(), "`{name}`: {mistakes:?}");
        }
    }

    #[test]
    fn a_mistake_leaves_the_other_options() {
        let (args, mistakes) = Args::parse(
            "required, wait = \"a\", retention = \"2h\", required"
                .parse()
                .expect("tokens"),
        );
        assert_eq!(mistakes.len(), 2);
        assert!(args.required && args.wait.is_none());
        assert_eq!(
            args.retention.map(|retention| retention.as_secs()),
            Some(2 * 60 * 60)
        );
    }
}
