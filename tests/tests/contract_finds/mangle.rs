//! What a store's encoding can do to a record.

use std::{collections::HashSet, sync::Arc};

use axum::http::{HeaderValue, StatusCode};
use bytes::Bytes;
use idempotent_runtime::store::{Fingerprint, Record, RecordBody};

use crate::flaw::Flaw;

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "most flaws are of other kinds"
)]
pub(crate) fn mangle(flaw: Option<Flaw>, record: &Arc<Record>) -> Arc<Record> {
    let Some(flaw) = flaw else {
        return Arc::clone(record);
    };
    let mut changed = Record::clone(record);
    match flaw {
        Flaw::ChangesTheStatus => changed.status = StatusCode::OK,
        Flaw::SortsHeaders => changed.headers.sort_by_key(|(name, _)| name.to_string()),
        Flaw::KeepsOneOfAName => {
            let mut names = HashSet::new();
            let headers = changed.headers.iter().cloned();
            changed.headers = headers
                .filter(|(name, _)| names.insert(name.clone()))
                .collect();
        }
        Flaw::ReadsValuesAsText => {
            for (_, value) in &mut changed.headers {
                let text = String::from_utf8_lossy(value.as_bytes()).into_owned();
                if let Ok(text) = HeaderValue::from_bytes(text.as_bytes()) {
                    *value = text;
                }
            }
        }
        Flaw::TakesEmptyForUnreplayable if changed.body == RecordBody::Stored(Bytes::new()) => {
            changed.body = RecordBody::Unreplayable;
        }
        Flaw::TakesUnreplayableForEmpty if changed.body == RecordBody::Unreplayable => {
            changed.body = RecordBody::Stored(Bytes::new());
        }
        Flaw::CutsBodies => {
            if let RecordBody::Stored(body) = &mut changed.body {
                body.truncate(65_535);
            }
        }
        Flaw::ReadsBodiesAsText => {
            if let RecordBody::Stored(body) = &mut changed.body {
                *body = String::from_utf8_lossy(body).into_owned().into();
            }
        }
        Flaw::ForgetsTheScheme => {
            changed.fingerprint = Fingerprint::from_parts(1, *changed.fingerprint.digest());
        }
        _ => {}
    }
    Arc::new(changed)
}
