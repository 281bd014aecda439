//! B132: nothing is taken from the prelude.
#![no_implicit_prelude]
#![deny(warnings)]

#[::idempotent_runtime::idempotent(
    required,
    subject = body.len(),
    name = "n",
    retention = "24h",
    verdict = verdict,
    ignore("/a")
)]
async fn named(::axum::Json(body): ::axum::Json<::std::string::String>) -> ::axum::http::StatusCode {
    ::std::mem::drop(body);
    ::axum::http::StatusCode::CREATED
}

#[::idempotent_runtime::idempotent]
async fn opaque() -> impl ::axum::response::IntoResponse {
    "text"
}

fn verdict(_: &::axum::http::response::Parts) -> ::idempotent_runtime::Verdict {
    ::idempotent_runtime::Verdict::Store
}

fn main() {
    let router = ::axum::Router::<()>::new().route("/", ::axum::routing::post(named).put(opaque));
    ::std::mem::drop(router);
}
