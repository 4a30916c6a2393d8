use http::Request;
use serde_json::Value;

use super::judge::Refused;
use super::*;

const TOKEN: &str = "sealog_a";

fn guard(scopes: &[Scope]) -> Guard {
    let mut set = TokenSet::default();
    set.add(digest(b"somebody else's"), Scopes::default().with(Scope::Admin));
    set.add(digest(TOKEN.as_bytes()), scopes.iter().fold(Scopes::default(), |all, one| all.with(*one)));
    Guard { names: AllowedNames::default(), tokens: Some(Tokens::new(set)) }
}

fn request(method: &str, uri: &str, headers: &[(&str, &str)]) -> Request<()> {
    let mut request = Request::builder().method(method).uri(uri);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(()).unwrap()
}

#[track_caller]
fn names(headers: &[(&str, &str)], expected: Result<(), Refused>) {
    let mut names = AllowedNames::default();
    names.add_host("node.example.com").unwrap();
    names.add_host("192.0.2.7").unwrap();
    names.add_host("2001:db8::1").unwrap();
    names.add_origin("https://app.example.com").unwrap();
    let guard = Guard { names, tokens: None };
    assert_eq!(guard.judge(&request("GET", "/v1/runtime", headers)), expected, "{headers:?}");
}

#[test]
fn loopback_names_and_the_added_ones_are_ours() {
    for host in [
        "localhost",
        "LOCALHOST:1",
        "127.0.0.1",
        "127.9.9.9:4320",
        "[::1]",
        "[::1]:4320",
        "node.example.com",
        "Node.Example.Com:8443",
        "192.0.2.7:1",
        "[2001:db8::1]:1",
    ] {
        names(&[("host", host)], Ok(()));
    }
    for host in [
        "",
        "example.com",
        "localhost.example.com",
        "127.0.0.1.example.com",
        "0.0.0.0",
        "[::]",
        "192.0.2.8",
        "xnode.example.com",
        "localhost@example.com",
        "example.com@localhost",
        "localhost:x",
        "localhost:",
        "::1",
        "localhost:99999",
        "localhost:+80",
    ] {
        names(&[("host", host)], Err(Refused::Host));
    }
    names(&[], Err(Refused::Host));
    names(&[("host", "localhost"), ("host", "localhost")], Err(Refused::Host));
}

#[test]
fn a_target_that_names_an_authority_is_judged_with_the_host_beside_it() {
    let guard = Guard::default();
    let judged = |uri: &str, headers: &[(&str, &str)]| guard.judge(&request("GET", uri, headers));
    assert_eq!(judged("http://localhost/v1/runtime", &[]), Ok(()));
    assert_eq!(judged("http://localhost/v1/runtime", &[("host", "127.0.0.1")]), Ok(()));
    assert_eq!(judged("http://evil.example/v1/runtime", &[("host", "localhost")]), Err(Refused::Host));
    assert_eq!(judged("http://localhost/v1/runtime", &[("host", "evil.example")]), Err(Refused::Host));
}

#[test]
fn only_pages_of_the_node_itself_and_added_origins_may_ask() {
    let check = |host: &str, origin: &str, expected| names(&[("host", host), ("origin", origin)], expected);
    check("localhost:4320", "http://localhost:4320", Ok(()));
    check("node.example.com", "https://node.example.com", Ok(()));
    check("node.example.com", "https://node.example.com:443", Ok(()));
    check("localhost:4320", "https://app.example.com", Ok(()));
    for origin in [
        "null",
        "",
        "http://localhost",
        "http://localhost:3000",
        "http://127.0.0.1:4320",
        "http://evil.example",
        "http://app.example.com",
        "https://app.example.com:8443",
        "http://localhost:+4320",
        "file://",
        "localhost:4320",
        "http://localhost:4320/",
        "http://user@localhost:4320",
    ] {
        check("localhost:4320", origin, Err(Refused::Origin));
    }
    names(
        &[("host", "localhost"), ("origin", "http://localhost"), ("origin", "http://localhost")],
        Err(Refused::Origin),
    );
}

#[test]
fn names_that_are_none_cannot_be_added() {
    let mut names = AllowedNames::default();
    for host in ["", "a b", "a:1", "user@a", "http://a", "*", "*.a"] {
        assert_eq!(names.add_host(host), Err(BadName::Host), "{host}");
    }
    for origin in ["", "a", "null", "ftp://a", "https://a/", "https://a/b", "https://a?b", "*"] {
        assert_eq!(names.add_origin(origin), Err(BadName::Origin), "{origin}");
    }
    assert_eq!(names, AllowedNames::default());
}

#[track_caller]
fn judged(scopes: &[Scope], method: &str, path: &str) -> Result<(), Refused> {
    let bearer = format!("Bearer {TOKEN}");
    guard(scopes).judge(&request(method, path, &[("host", "localhost"), ("authorization", &bearer)]))
}

#[test]
fn each_scope_opens_what_it_says() {
    use Scope::{Admin, Read, Write};
    for (scopes, read, write, admin) in [
        (&[][..], false, false, false),
        (&[Read], true, false, false),
        (&[Write], true, true, false),
        (&[Admin], false, false, true),
        (&[Read, Admin], true, false, true),
        (&[Write, Admin], true, true, true),
    ] {
        let expected = |allowed: bool| if allowed { Ok(()) } else { Err(Refused::Forbidden) };
        for path in ["/v1/runtime", "/v1/executions/x/events", "/v1/models", "/nowhere"] {
            assert_eq!(judged(scopes, "GET", path), expected(read), "{scopes:?} {path}");
        }
        for (method, path) in [
            ("POST", "/v1/executions"),
            ("POST", "/v1/executions/x/cancel"),
            ("DELETE", "/v1/responses/x"),
            ("POST", "/v1/chat/completions"),
            ("OPTIONS", "/v1/executions"),
        ] {
            assert_eq!(judged(scopes, method, path), expected(write), "{scopes:?} {method} {path}");
        }
        assert_eq!(judged(scopes, "GET", "/metrics"), expected(admin), "{scopes:?}");
        assert_eq!(judged(scopes, "GET", "/healthz"), Ok(()));
        assert_eq!(judged(scopes, "GET", "/readyz"), Ok(()));
    }
}

#[test]
fn a_token_stands_in_either_header_and_nowhere_else() {
    let guard = guard(&[Scope::Read]);
    let check = |headers: &[(&str, &str)], expected: Result<(), Refused>| {
        let headers: Vec<_> = headers.iter().copied().chain([("host", "localhost")]).collect();
        assert_eq!(guard.judge(&request("GET", "/v1/runtime", &headers)), expected, "{headers:?}");
    };
    check(&[("authorization", "Bearer sealog_a")], Ok(()));
    check(&[("authorization", "bearer   sealog_a ")], Ok(()));
    check(&[("x-api-key", "sealog_a")], Ok(()));
    check(&[("authorization", "Bearer sk-unused"), ("x-api-key", "sealog_a")], Ok(()));
    let long = format!("Bearer {}", "a".repeat(TOKEN_LENGTH_MAX + 1));
    for headers in [
        &[][..],
        &[("authorization", "sealog_a")],
        &[("authorization", "Basic sealog_a")],
        &[("authorization", "Bearer")],
        &[("authorization", "Bearer ")],
        &[("authorization", "Bearer sealog_b")],
        &[("authorization", "Bearer sealog_")],
        &[("authorization", &long)],
        &[("x-api-key", "")],
        &[("x-api-key", "sealog_a x")],
        &[("cookie", "sealog_a")],
    ] {
        check(headers, Err(Refused::Unauthenticated));
    }
    let in_the_address =
        request("GET", "/v1/runtime?token=sealog_a&api_key=sealog_a", &[("host", "localhost")]);
    assert_eq!(guard.judge(&in_the_address), Err(Refused::Unauthenticated));
}

#[test]
fn tokens_in_both_headers_count_together() {
    let mut set = TokenSet::default();
    set.add(digest(b"sealog_admin"), Scopes::default().with(Scope::Admin));
    set.add(digest(b"sealog_write"), Scopes::default().with(Scope::Write));
    let guard = Guard { names: AllowedNames::default(), tokens: Some(Tokens::new(set)) };
    for (first, second) in [("sealog_admin", "sealog_write"), ("sealog_write", "sealog_admin")] {
        for (method, path) in [("GET", "/metrics"), ("GET", "/v1/runtime"), ("POST", "/v1/executions")] {
            let bearer = format!("Bearer {first}");
            let headers = [("host", "localhost"), ("authorization", &*bearer), ("x-api-key", second)];
            assert_eq!(guard.judge(&request(method, path, &headers)), Ok(()), "{first} {path}");
        }
    }
}

#[test]
fn without_tokens_a_key_is_ignored_and_with_an_empty_file_nobody_gets_in() {
    let with_key = request("GET", "/v1/runtime", &[("host", "localhost"), ("x-api-key", "sk-unused")]);
    assert_eq!(Guard::default().judge(&with_key), Ok(()));
    let tokens = Tokens::new(TokenSet::default());
    let closed = Guard { names: AllowedNames::default(), tokens: Some(tokens.clone()) };
    assert_eq!(closed.judge(&with_key), Err(Refused::Unauthenticated));
    let mut set = TokenSet::default();
    set.add(digest(b"sk-unused"), Scopes::default().with(Scope::Read));
    tokens.replace(set);
    assert_eq!(closed.judge(&with_key), Ok(()));
}

async fn said(refused: Refused, path: &str, headers: &[(&str, &str)]) -> (u16, Value) {
    let head = request("GET", path, headers);
    let response = super::refusal::answer(refused, path, head.headers());
    assert_eq!(response.headers().contains_key("www-authenticate"), refused == Refused::Unauthenticated);
    let status = response.status().as_u16();
    let body = axum::body::to_bytes(response.into_body(), 4096).await.unwrap();
    (status, serde_json::from_slice(&body).unwrap())
}

#[tokio::test]
async fn a_refusal_speaks_the_dialect_of_its_path() {
    let ours = said(Refused::Unauthenticated, "/v1/executions", &[]).await;
    let message = "A valid bearer token is required";
    let envelope =
        serde_json::json!({"error": {"code": "unauthorized", "message": message, "retryable": false}});
    assert_eq!(ours, (401, envelope));
    for path in ["/v1/chat/completions", "/v1/responses", "/v1/responses/resp_1/cancel", "/v1/models"] {
        let (status, body) = said(Refused::Unauthenticated, path, &[]).await;
        assert_eq!((status, &body["error"]["code"]), (401, &Value::from("invalid_api_key")), "{path}");
        let (status, body) = said(Refused::Forbidden, path, &[]).await;
        assert_eq!((status, &body["error"]["type"]), (403, &Value::from("invalid_request_error")), "{path}");
    }
    let version = [("anthropic-version", "2023-06-01")];
    for (path, headers) in [("/v1/messages", &[][..]), ("/v1/models", &version)] {
        let (status, body) = said(Refused::Unauthenticated, path, headers).await;
        assert_eq!((status, &body["type"]), (401, &Value::from("error")));
        assert_eq!(body["error"]["type"], "authentication_error");
        let (status, body) = said(Refused::Host, path, headers).await;
        assert_eq!((status, &body["error"]["type"]), (403, &Value::from("permission_error")));
    }
    let (status, body) = said(Refused::Origin, "/v1/responsesx", &[]).await;
    assert_eq!((status, &body["error"]["code"]), (403, &Value::from("forbidden")));
}
