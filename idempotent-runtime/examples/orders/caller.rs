//! Who calls. FOR THE DEMO ONLY: whoever says `Authorization: Bearer alice` is taken for Alice.
//! A service verifies the token here, and then does the same.

use std::net::SocketAddr;

use axum::{
    extract::{ConnectInfo, Request},
    http::{HeaderMap, StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use idempotent_runtime::Subject;

/// The caller's name as the shop writes it beside an order.
#[derive(Clone)]
pub(crate) struct CallerName(pub(crate) String);

/// Puts the caller into the request: a [`Subject`] for the runtime, a name for the handlers.
pub(crate) async fn identify(
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    mut request: Request,
    next: Next,
) -> Response {
    let name = match bearer(request.headers()) {
        Ok(Some(name)) => {
            request.extensions_mut().insert(Subject::new(&name));
            name
        }
        // Nobody in particular: `Caller::peer()` tells such callers apart by their address.
        Ok(None) => peer.ip().to_canonical().to_string(),
        Err(refusal) => return refusal.into_response(),
    };
    request.extensions_mut().insert(CallerName(name));
    next.run(request).await
}

fn bearer(headers: &HeaderMap) -> Result<Option<String>, (StatusCode, &'static str)> {
    let Some(value) = headers.get(header::AUTHORIZATION) else {
        return Ok(None);
    };
    value
        .to_str()
        .ok()
        .and_then(|value| value.strip_prefix("Bearer "))
        .map(str::trim)
        .filter(|name| !name.is_empty())
        .map(|name| Some(name.to_owned()))
        .ok_or((
            StatusCode::UNAUTHORIZED,
            "send `Authorization: Bearer <your name>`, or no such header",
        ))
}
