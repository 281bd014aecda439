//! Settings as people write them in a file: every bad value is kept and named later, so that one
//! error names all of them.

use std::{fmt, str::FromStr, time::Duration};

use axum::http::HeaderName;
use serde::{Deserialize, Deserializer, de};

use super::{OnStoreFailure, Settings};

/// The settings of a file: what is absent keeps its default.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Raw {
    retention: Option<Value>,
    lease: Option<Value>,
    wait: Option<Value>,
    store_timeout: Option<Value>,
    max_request_bytes: Option<Value>,
    max_response_bytes: Option<Value>,
    max_in_flight: Option<Value>,
    max_waiters_per_key: Option<Value>,
    on_store_failure: Option<Value>,
    header: Option<Value>,
    replay_header: Option<Value>,
}

impl From<Raw> for Settings {
    fn from(raw: Raw) -> Self {
        let mut settings = Self::default();
        let bad = &mut settings.unreadable;
        macro_rules! read {
            ($($name:ident: $parse:ident),* $(,)?) => {
                $(read(bad, stringify!($name), raw.$name, &mut settings.$name, $parse);)*
            };
        }
        read! {
            retention: duration,
            lease: duration,
            wait: duration,
            store_timeout: duration,
            max_request_bytes: number,
            max_response_bytes: number,
            max_in_flight: number,
            max_waiters_per_key: number,
            on_store_failure: policy,
            header: header,
            replay_header: header,
        }
        settings
    }
}

fn read<T>(
    bad: &mut Vec<String>,
    name: &str,
    raw: Option<Value>,
    setting: &mut T,
    parse: fn(&str) -> Result<T, String>,
) {
    let Some(Value(text)) = raw else { return };
    match parse(&text) {
        Ok(value) => *setting = value,
        Err(why) => bad.push(format!("`{name}` is \"{text}\", {why}")),
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    match humantime::parse_duration(text) {
        Ok(duration) => Ok(duration),
        Err(_) if text.parse::<f64>().is_ok() => Err(format!(
            "which lacks a unit: write \"24h\" or \"{text}s\", as you mean"
        )),
        Err(_) => Err("not a duration such as \"24h\", \"5s\" or \"1h 30m\"".to_owned()),
    }
}

fn number(text: &str) -> Result<usize, String> {
    text.parse()
        .map_err(|_| "not a whole number, such as 16777216 for 16 MiB".to_owned())
}

fn policy(text: &str) -> Result<OnStoreFailure, String> {
    match text {
        "open" => Ok(OnStoreFailure::Open),
        "closed" => Ok(OnStoreFailure::Closed),
        _ => Err("neither \"open\" nor \"closed\"".to_owned()),
    }
}

fn header(text: &str) -> Result<HeaderName, String> {
    HeaderName::from_str(text).map_err(|_| "not a header name".to_owned())
}

/// A text or a number, as its text. Formats without types, such as the environment, give texts only.
struct Value(String);

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = Value;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text or a number")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Value, E> {
                Ok(Value(text.to_owned()))
            }
            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Value, E> {
                Ok(Value(number.to_string()))
            }
            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Value, E> {
                Ok(Value(number.to_string()))
            }
            fn visit_f64<E: de::Error>(self, number: f64) -> Result<Value, E> {
                Ok(Value(number.to_string()))
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}
