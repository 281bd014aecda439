//! Every refusal: its type, status and words (RFC 9457).

use axum::{
    body::Body,
    http::{HeaderValue, StatusCode, header},
    response::Response,
};
use serde::Serialize;

use crate::{engine::Refusal, metrics, record::Record, runtime::Inner};

const BLANK: &str = "about:blank";

/// Why a request is refused.
#[derive(Debug, Clone, Copy)]
pub(super) enum Problem<'a> {
    KeyMissing,
    KeyMalformed(&'static str),
    KeyReused,
    InFlight,
    OutcomeUnknown,
    ResponseUnavailable(&'a Record),
    CallerUnidentified,
    RuntimeMissing,
    StoreUnavailable,
    RecordUnreadable,
    Overloaded,
    BodyTooLarge {
        most: usize,
    },
    /// Over the limit of a layer around the handler.
    BodyOverLimit,
    BodyUnreadable,
}

impl Problem<'_> {
    /// What the `type` ends with, and the title.
    fn kind(&self) -> (&'static str, &'static str) {
        match self {
            Self::KeyMissing => ("key-missing", "Idempotency key missing"),
            Self::KeyMalformed(_) => ("key-malformed", "Idempotency key malformed"),
            Self::KeyReused => ("key-reused", "Idempotency key reused"),
            Self::InFlight => ("in-flight", "Request in flight"),
            Self::OutcomeUnknown => ("outcome-unknown", "Outcome unknown"),
            Self::ResponseUnavailable(_) => ("response-unavailable", "Response unavailable"),
            Self::CallerUnidentified => ("caller-unidentified", "Caller unidentified"),
            Self::RuntimeMissing => ("runtime-missing", "Idempotency runtime missing"),
            Self::StoreUnavailable | Self::RecordUnreadable => {
                ("store-unavailable", "Idempotency store unavailable")
            }
            Self::Overloaded => ("overloaded", "Overloaded"),
            // No problems of ours: the status says it all (RFC 9457, section 4.2.1).
            Self::BodyTooLarge { .. } | Self::BodyOverLimit => (BLANK, "Content Too Large"),
            Self::BodyUnreadable => (BLANK, "Bad Request"),
        }
    }

    fn status(&self) -> StatusCode {
        match self {
            Self::KeyMissing | Self::KeyMalformed(_) | Self::BodyUnreadable => {
                StatusCode::BAD_REQUEST
            }
            Self::KeyReused => StatusCode::UNPROCESSABLE_ENTITY,
            Self::InFlight | Self::OutcomeUnknown | Self::ResponseUnavailable(_) => {
                StatusCode::CONFLICT
            }
            Self::CallerUnidentified | Self::RuntimeMissing => StatusCode::INTERNAL_SERVER_ERROR,
            Self::StoreUnavailable | Self::RecordUnreadable | Self::Overloaded => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            Self::BodyTooLarge { .. } | Self::BodyOverLimit => StatusCode::PAYLOAD_TOO_LARGE,
        }
    }

    /// Whether the same request may succeed in a second.
    fn passes(&self) -> bool {
        matches!(
            self,
            Self::InFlight | Self::StoreUnavailable | Self::RecordUnreadable | Self::Overloaded
        )
    }

    fn detail(&self, header: &str) -> String {
        match self {
            Self::KeyMissing => format!("This operation requires the `{header}` header: send a key unique to the request, and the same key with its retries."),
            Self::KeyMalformed(why) => format!("The `{header}` header {why}."),
            Self::KeyReused => "This key was used with another request: send a new key with a new request, and the same path, query and body with a retry.".to_owned(),
            Self::InFlight => "A request with this key is still being processed: retry it with the same key.".to_owned(),
            Self::OutcomeUnknown => "This request was being processed when the service lost sight of it, and it may have taken effect: do not send it again under another key; look its result up.".to_owned(),
            Self::ResponseUnavailable(_) => "This request has been processed, but its response was not stored: do not send it again; look its result up.".to_owned(),
            Self::CallerUnidentified => "The service cannot tell whose key this is. The request was not processed.".to_owned(),
            Self::RuntimeMissing => "The service is not set up for requests with a key. The request was not processed.".to_owned(),
            Self::StoreUnavailable => "The service cannot tell whether it has processed this request: retry it with the same key.".to_owned(),
            Self::RecordUnreadable => "The service cannot read what it knows of this key: retry the request with the same key.".to_owned(),
            Self::Overloaded => "The service processes as many requests as it can: retry this one with the same key.".to_owned(),
            Self::BodyTooLarge { most } => format!("The request body is larger than {most} bytes, the most for a request with a key."),
            Self::BodyOverLimit => "The request body is larger than this operation accepts.".to_owned(),
            Self::BodyUnreadable => "The request body ended before it was complete.".to_owned(),
        }
    }

    /// The response; `runtime` gives the base of types and the name of the header.
    pub(super) fn response(&self, runtime: Option<&Inner>) -> Response {
        let (base, header) = runtime.map_or(("urn:idempotency:", "idempotency-key"), |runtime| {
            (&*runtime.problem_base, runtime.settings.header.as_str())
        });
        let (kind, title) = self.kind();
        let status = self.status();
        let mut body = Document {
            r#type: if kind == BLANK {
                kind.to_owned()
            } else {
                format!("{base}{kind}")
            },
            title,
            status: status.as_u16(),
            detail: self.detail(header),
            original_status: None,
        };
        let mut location = None;
        if let Self::ResponseUnavailable(record) = self {
            body.original_status = Some(record.status.as_u16());
            location = record.location().cloned();
        }
        let mut response = Response::new(Body::from(serde_json::to_vec(&body).unwrap_or_default()));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/problem+json"),
        );
        if self.passes() {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        if let Some(location) = location {
            headers.insert(header::LOCATION, location);
        }
        response
    }
}

#[derive(Serialize)]
struct Document {
    r#type: String,
    title: &'static str,
    status: u16,
    detail: String,
    /// An extension member (RFC 9457, section 3.2): the status of the response that was not stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    original_status: Option<u16>,
}

/// The answer to a request that the engine refused.
pub(super) fn refuse(refusal: Refusal, runtime: &Inner) -> Response {
    let problem = match refusal {
        Refusal::Reused => {
            metrics::conflict("body_mismatch");
            Problem::KeyReused
        }
        Refusal::InFlight => {
            metrics::conflict("in_flight");
            Problem::InFlight
        }
        Refusal::OutcomeUnknown => {
            metrics::conflict("outcome_unknown");
            Problem::OutcomeUnknown
        }
        Refusal::Unavailable => Problem::StoreUnavailable,
        Refusal::Unreadable => Problem::RecordUnreadable,
        Refusal::Overloaded => Problem::Overloaded,
    };
    problem.response(Some(runtime))
}
