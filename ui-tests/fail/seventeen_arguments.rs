use axum::http::Method;
use idempotent_runtime::idempotent;

#[idempotent]
async fn create(
    _a: Method, _b: Method, _c: Method, _d: Method, _e: Method, _f: Method, _g: Method, _h: Method, _i: Method,
    _j: Method, _k: Method, _l: Method, _m: Method, _n: Method, _o: Method, _p: Method, _q: String,
) {
}

fn main() {
    let _ = create;
}
