use std::{convert::Infallible, pin::Pin, task::{Context, Poll}};

use axum::{
    body::Body,
    http::StatusCode,
    response::{IntoResponse, Response, Sse, sse::Event},
};
use futures_core::Stream;
use idempotent_runtime::idempotent;

struct Events;

impl Stream for Events {
    type Item = Result<Event, Infallible>;

    fn poll_next(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(None)
    }
}

struct AsyncReadBody;

impl IntoResponse for AsyncReadBody {
    fn into_response(self) -> Response {
        Response::default()
    }
}

#[idempotent]
async fn raw() -> Body {
    Body::empty()
}

#[idempotent]
async fn events() -> Sse<Events> {
    Sse::new(Events)
}

#[idempotent]
async fn hidden_events() -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, StatusCode> {
    Ok(Sse::new(Events))
}

#[idempotent]
async fn file() -> AsyncReadBody {
    AsyncReadBody
}

fn main() {}
