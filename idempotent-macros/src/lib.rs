//! The attributes of [`idempotent-runtime`](https://docs.rs/idempotent-runtime), which re-exports them. Depend on that
//! crate; this page is the attributes' manual.

mod expand;

mod model;

mod non_idempotent;

mod args;

mod cfg;

mod item;

mod attrs;

mod root;

use proc_macro::TokenStream;

/// Makes an Axum handler idempotent: a client's retry with the same `Idempotency-Key` gets the stored response, and
/// the handler does not run again.
///
/// ```
/// use axum::{Json, Router, http::StatusCode, routing::post};
/// use idempotent_runtime::idempotent;
///
/// #[idempotent]
/// async fn create_order(Json(items): Json<Vec<String>>) -> (StatusCode, Json<usize>) {
///     (StatusCode::CREATED, Json(items.len()))
/// }
///
/// let app: Router = Router::new().route("/orders", post(create_order));
/// ```
///
/// The function stays a function: it is routed, documented, nested and layered as before, in any state, generic or
/// not, and other attributes (`instrument`, `debug_handler`, `utoipa::path`) may stand above or below. A request
/// without a key runs it as if the attribute were not there.
///
/// # Options
///
/// Several are separated by commas, in any order, each once. What an attribute leaves out, the runtime's settings
/// decide.
///
/// ## `required`
///
/// A request without a key is refused with 400. The store failing then means 503 by default
/// (see [`on_store_failure`](#on_store_failure--open--closed)).
///
/// ```
/// # use idempotent_runtime::idempotent;
/// #[idempotent(required)]
/// async fn pay() {}
/// ```
///
/// ## `subject = expression`
///
/// Whose key it is, as an expression over the arguments. It wins over the runtime's way to tell callers apart. The
/// arguments are borrowed, the value implements [`Display`](std::fmt::Display), and it is evaluated only for a request
/// with a key. An empty one counts as none. It is evaluated ahead of the handler, so it has no `.await`, `?` or `return`
/// of its own.
///
/// ```
/// # use axum::{Extension, Json, extract::Path};
/// # use idempotent_runtime::idempotent;
/// # #[derive(Clone)] struct User { id: u64 }
/// #[idempotent(subject = user.id)]
/// async fn close(Extension(user): Extension<User>, Path(ticket): Path<u64>) {}
///
/// #[idempotent(subject = format!("{tenant}:{}", user.id))]
/// async fn open(Path(tenant): Path<String>, Extension(user): Extension<User>, body: String) {}
/// ```
///
/// ## `name = "create-order"`
///
/// Stands for the route in the scope of a key, which then belongs to the name (and, still, to the method). The same key on
/// another path is refused with 422 instead of run again, as for any other request under a used key.
///
/// ```
/// # use idempotent_runtime::idempotent;
/// #[idempotent(name = "create-order")]
/// async fn create_order() {}
/// ```
///
/// ## `retention = "24h"`
///
/// How long a response is kept, from `1h` to `168h` (one week). Durations are written as the crate
/// [humantime](https://docs.rs/humantime) reads them: `90min`, `1day 12h`.
///
/// ```
/// # use idempotent_runtime::idempotent;
/// #[idempotent(retention = "2days")]
/// async fn create_order() {}
/// ```
///
/// ## `wait = "5s"`
///
/// How long a duplicate waits for the first request to finish before it is told 409, from `0s` to `60s`.
///
/// ```
/// # use idempotent_runtime::idempotent;
/// #[idempotent(wait = "0s")]
/// async fn create_order() {}
/// ```
///
/// ## `lease = "30s"`
///
/// How soon a key is free again after the process that runs it died, from `1s` to `1h`. While the handler runs it is
/// renewed, so the handler may take longer; the memory store needs none.
///
/// ```
/// # use idempotent_runtime::idempotent;
/// #[idempotent(lease = "2min")]
/// async fn create_order() {}
/// ```
///
/// ## `on_store_failure = "open" | "closed"`
///
/// What a request with a key meets while the store cannot be reached: with `"open"` the handler runs without
/// protection, with `"closed"` the answer is 503.
///
/// ```
/// # use idempotent_runtime::idempotent;
/// #[idempotent(on_store_failure = "closed")]
/// async fn pay() {}
/// ```
///
/// ## `on_lost_run = "retry" | "unknown"`
///
/// What a retry meets whose first attempt ended without a word, because its process died or was cut off from the store
/// for longer than the lease. With `"retry"`, the default, it runs. With `"unknown"` it is refused with 409
/// `outcome-unknown` for as long as the first attempt's record would have been kept: for handlers whose effect must not
/// happen twice, and can be looked up. It takes a store of the level *leased*, such as `RedisStore`: one in memory or made
/// of a cache and a lock forgets the attempt, and the retry runs.
///
/// ```
/// # use idempotent_runtime::idempotent;
/// #[idempotent(required, on_lost_run = "unknown")]
/// async fn pay() {}
/// ```
///
/// ## `verdict = path`
///
/// Which responses are results, and so stored: a function from the response's head to a `Verdict`. Without it, those
/// with a 2xx status.
///
/// ```
/// use axum::http::{StatusCode, response::Parts};
/// use idempotent_runtime::{Verdict, idempotent};
///
/// fn a_decline_is_a_result(response: &Parts) -> Verdict {
///     if response.status.is_success() || response.status == StatusCode::PAYMENT_REQUIRED {
///         Verdict::Store
///     } else {
///         Verdict::Release
///     }
/// }
///
/// #[idempotent(verdict = a_decline_is_a_result)]
/// async fn pay() {}
/// ```
///
/// ## `ignore("/pointer", ..)`
///
/// JSON pointers (RFC 6901) to members that a retry may change. They are left out when a request is compared with the
/// first one; the handler sees them.
///
/// ```
/// # use axum::Json;
/// # use idempotent_runtime::idempotent;
/// #[idempotent(ignore("/sentAt", "/client/attempt"))]
/// async fn create_order(Json(order): Json<Vec<String>>) {}
/// ```
///
/// ## `crate = path`
///
/// Where the runtime is, for a crate that has it through another one. A renamed dependency is found without it.
///
/// ```
/// mod framework {
///     pub use idempotent_runtime as idempotency;
/// }
///
/// #[framework::idempotency::idempotent(crate = framework::idempotency)]
/// async fn create_order() {}
/// ```
///
/// # What can be annotated
///
/// An `async fn` that Axum takes as a handler. Refused, each with its own message: a function that is not `async`,
/// `self`, `Self`, lifetime parameters and borrows in arguments (a run may outlive its request), more than 16
/// arguments, this attribute twice. Within an `impl` block the function has no access to the block's generic
/// parameters: give it its own.
///
/// A response has to be one that can be sent again. `Redirect`, `Sse`, a raw `Body`, streams and file downloads are
/// errors at the return type, also behind `-> impl IntoResponse`. Types of other crates are known by their names
/// (`AsyncReadBody`, `FileStream`, `ReaderStream`, `StreamBody`): a type of your own that bears one passes behind an
/// alias. What only the run can show, the runtime handles.
///
/// ```compile_fail
/// use axum::response::Redirect;
/// use idempotent_runtime::idempotent;
///
/// #[idempotent]
/// async fn login() -> Redirect {
///     Redirect::to("/")
/// }
/// ```
///
/// A `#[cfg]` on an argument is fine, also on the last one.
///
/// # Calling it
///
/// The function returns a `Run`, which gives the response when it is awaited. In a unit test `original` gives the
/// declared type, and `.into()` wraps the last argument:
///
/// ```
/// use axum::Json;
/// use idempotent_runtime::idempotent;
///
/// #[idempotent(required)]
/// async fn double(Json(n): Json<u32>) -> Result<Json<u32>, String> {
///     Ok(Json(n * 2))
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let Ok(Json(n)) = double(Json(21).into()).original().await else { panic!() };
/// assert_eq!(n, 42);
/// # }
/// ```
#[proc_macro_attribute]
pub fn idempotent(args: TokenStream, item: TokenStream) -> TokenStream {
    expand::attribute(&args.into(), &item.into()).into()
}

/// Says that a handler is not idempotent, and why that is right. It changes nothing; it is there for who reads the
/// code, and for a review that asks it of every handler that writes.
///
/// ```
/// use idempotent_runtime::non_idempotent;
///
/// #[non_idempotent("a search, sent as POST for its length")]
/// async fn search(query: String) -> String {
///     query
/// }
/// ```
///
/// The reason is required. Beside [`macro@idempotent`] it is an error.
#[proc_macro_attribute]
pub fn non_idempotent(args: TokenStream, item: TokenStream) -> TokenStream {
    non_idempotent::attribute(args.into(), &item.into()).into()
}
