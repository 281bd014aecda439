//! What is stored comes back byte for byte.

use std::sync::Arc;

use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use bytes::Bytes;

use super::bench::{Bench, Checked, Outcome as _, Party, broken};
use crate::{
    fingerprint::Fingerprint,
    record::{Record, RecordBody},
    store::{ClaimOutcome, CompleteOutcome},
};

super::check_list! { "record":
    ALL keeps_its_status,
    ALL keeps_the_order_of_headers,
    ALL keeps_repeated_headers,
    ALL keeps_values_that_are_not_text,
    ALL keeps_an_empty_body,
    ALL keeps_a_large_body,
    ALL keeps_every_byte,
    ALL keeps_the_note_that_it_cannot_be_replayed,
    ALL keeps_the_scheme_of_its_fingerprint,
}

/// Completes with this record, and compares it part by part with what a claim finds.
async fn comes_back(bench: &Bench, what: &str, record: Record) -> Checked {
    let bench = bench.elsewhere();
    let mut a = Party::same();
    a.fingerprint = record.fingerprint;
    a.record = Arc::new(record);
    bench.claim(&a).await?;
    let stored = bench.complete(&a).await?;
    stored.must_be(
        &format!("a completion with {what}"),
        &CompleteOutcome::Stored,
    )?;
    let found = match bench.claim(&Party::same()).await? {
        ClaimOutcome::Completed(found) => found,
        other @ (ClaimOutcome::Claimed
        | ClaimOutcome::InProgress { .. }
        | ClaimOutcome::Lapsed { .. }) => {
            let wanted = ClaimOutcome::Completed(Arc::clone(&a.record));
            return other.must_be(
                &format!("a claim where a record with {what} stands"),
                &wanted,
            );
        }
    };
    let differs = |part: &str| {
        broken(format!(
            "a record with {what} came back with another {part}, the rule wants it byte for byte"
        ))
    };
    if found.fingerprint != a.record.fingerprint {
        return differs("fingerprint");
    }
    if found.status != a.record.status {
        return differs("status");
    }
    if found.headers != a.record.headers {
        return differs("list of headers");
    }
    if found.body != a.record.body {
        return differs("body");
    }
    Ok(())
}

fn record(body: impl Into<Bytes>) -> Record {
    let body = RecordBody::Stored(body.into());
    Record::new(Party::same().fingerprint, StatusCode::CREATED, [], body)
}

fn with_headers(headers: &[(HeaderName, &[u8])]) -> Record {
    let headers = headers
        .iter()
        .filter_map(|(name, value)| Some((name.clone(), HeaderValue::from_bytes(value).ok()?)));
    let headers: Vec<_> = headers.collect();
    Record {
        headers: headers.into(),
        ..record("with headers")
    }
}

async fn keeps_its_status(bench: Bench) -> Checked {
    for code in [200, 201, 204, 299, 303, 402, 599, 999] {
        let Ok(status) = StatusCode::from_u16(code) else {
            continue;
        };
        let record = Record {
            status,
            ..record("with a status")
        };
        comes_back(&bench, &format!("the status {code}"), record).await?;
    }
    Ok(())
}

async fn keeps_the_order_of_headers(bench: Bench) -> Checked {
    let names = ["x-c", "x-a", "content-type", "x-b", "location"];
    let headers: Vec<_> = names
        .into_iter()
        .map(|name| (HeaderName::from_static(name), name.as_bytes()))
        .collect();
    comes_back(&bench, "headers out of order", with_headers(&headers)).await
}

async fn keeps_repeated_headers(bench: Bench) -> Checked {
    let headers: [(_, &[u8]); 4] = [
        (header::LINK, b"</2>; rel=next"),
        (header::VARY, b"accept"),
        (header::LINK, b"</0>; rel=prev"),
        (header::LINK, b""),
    ];
    comes_back(&bench, "repeated headers", with_headers(&headers)).await
}

async fn keeps_values_that_are_not_text(bench: Bench) -> Checked {
    let headers: [(_, &[u8]); 3] = [
        (header::LOCATION, b"/caf\xe9"),
        (header::ETAG, b"\"\x80\xff\t\""),
        (header::SERVER, "naïve".as_bytes()),
    ];
    let record = with_headers(&headers);
    comes_back(&bench, "header values that are not UTF-8", record).await
}

async fn keeps_an_empty_body(bench: Bench) -> Checked {
    comes_back(&bench, "an empty body", record(Bytes::new())).await
}

async fn keeps_a_large_body(bench: Bench) -> Checked {
    let body: Vec<u8> = (0..=250).cycle().take(1024 * 1024).collect();
    comes_back(&bench, "a body of 1 MiB", record(body)).await
}

async fn keeps_every_byte(bench: Bench) -> Checked {
    let body: Vec<u8> = (0..=255).chain(*b"\r\n\n\0").collect();
    comes_back(&bench, "a body of all bytes", record(body)).await
}

async fn keeps_the_note_that_it_cannot_be_replayed(bench: Bench) -> Checked {
    let record = Record {
        body: RecordBody::Unreplayable,
        ..with_headers(&[(header::LOCATION, b"/orders/1")])
    };
    comes_back(&bench, "the note that it cannot be replayed", record).await
}

async fn keeps_the_scheme_of_its_fingerprint(bench: Bench) -> Checked {
    for scheme in [0, 2, 255] {
        let fingerprint = Fingerprint::from_parts(scheme, *Party::same().fingerprint.digest());
        let record = Record {
            fingerprint,
            ..record("of a scheme")
        };
        comes_back(&bench, &format!("a fingerprint of scheme {scheme}"), record).await?;
    }
    Ok(())
}
