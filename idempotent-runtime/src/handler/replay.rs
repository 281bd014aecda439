//! A record as the response it was.

use axum::{
    body::Body,
    http::{HeaderMap, HeaderValue},
    response::Response,
};

use super::problem::Problem;
use crate::{
    metrics,
    record::{Record, RecordBody},
    runtime::Inner,
};

/// The stored response, marked; or a refusal where there is none to send again.
pub(super) fn replay(record: &Record, runtime: &Inner) -> Response {
    let RecordBody::Stored(body) = &record.body else {
        metrics::conflict("response_unavailable");
        return Problem::ResponseUnavailable(record).response(Some(runtime));
    };
    runtime.engine.hot.replayed();
    let mut response = Response::new(Body::from(body.clone()));
    *response.status_mut() = record.status;
    let mut headers = HeaderMap::with_capacity(record.headers.len() + 2);
    for (name, value) in &record.headers {
        headers.append(name.clone(), value.clone());
    }
    headers.insert(
        runtime.settings.replay_header.clone(),
        HeaderValue::from_static("true"),
    );
    *response.headers_mut() = headers;
    response
}
