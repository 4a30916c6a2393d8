use axum::routing::get as axum_get;
use tower::ServiceExt;

use super::*;

/// PA-34.
#[tokio::test]
async fn a_panic_is_an_answer_like_every_other() {
    let panicking = axum_get(|| async {
        if std::hint::black_box(true) {
            panic!("canary-panic");
        }
    });
    let router = wrapped(Router::new().route("/panic", panicking), Arc::new(ServerOptions::default()));
    for body in [Body::empty(), Body::from("unread")] {
        let request = Request::get("/panic").header("host", "localhost").body(body).unwrap();
        let response = router.clone().oneshot(request).await.unwrap();
        assert_eq!(response.status(), 500);
        assert_eq!(response.headers()["x-content-type-options"], "nosniff");
        assert_eq!(response.headers()["cache-control"], "no-store");
        assert_eq!(response.headers()["content-type"], "application/json; charset=utf-8");
        let body = axum::body::to_bytes(response.into_body(), 4096).await.unwrap();
        assert_eq!(
            std::str::from_utf8(&body).unwrap(),
            r#"{"error":{"code":"internal_error","message":"Runtime request could not be completed","retryable":false}}"#
        );
    }
}
