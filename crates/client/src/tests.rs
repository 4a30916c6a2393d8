use crate::script::{json, node};
use crate::{Client, ClientError, ClientOptions, ListPage, ListQuery, Outcome};

const ACCEPTED: &str = r#"{"execution_id":"e","status":"accepted","created_at":"2026-01-01T00:00:00.000Z","idempotent_replay":false}"#;

#[tokio::test]
async fn a_submission_is_one_request_with_its_key() {
    let (client, serving) = node(vec![json("202 Accepted", ACCEPTED)]).await;
    let submission = client.submit(br#"{"ability":"a"}"#, Some("key")).await.unwrap();
    assert_eq!((submission.execution_id.as_str(), submission.idempotent_replay), ("e", false));
    let requests = serving.await.unwrap();
    let (head, body) = requests[0].split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("POST /v1/executions HTTP/1.1\r\n"), "{head}");
    assert!(head.contains("\r\ncontent-type: application/json\r\n"), "{head}");
    assert!(head.contains("\r\nidempotency-key: key"), "{head}");
    assert_eq!(body, r#"{"ability":"a"}"#);
}

#[tokio::test]
async fn a_token_goes_with_every_request_and_must_be_one() {
    let (client, serving) = node(vec![json("202 Accepted", ACCEPTED)]).await;
    let client = client.with_token("sealog_1").unwrap();
    assert!(!format!("{client:?}").contains("sealog_1"));
    client.submit(b"{}", None).await.unwrap();
    let requests = serving.await.unwrap();
    assert!(requests[0].contains("\r\nauthorization: Bearer sealog_1\r\n"), "{}", requests[0]);
    for bad in ["", "a b", "a\r\nb: c", "\u{e9}"] {
        assert!(matches!(client.clone().with_token(bad), Err(ClientError::BadArgument(_))), "{bad}");
    }
}

#[tokio::test]
async fn a_refused_submission_keeps_the_nodes_words() {
    let body = r#"{"error":{"code":"queue_full","message":"Full","retryable":true}}"#;
    let (client, _serving) = node(vec![json("503 Service Unavailable", body)]).await;
    let error = client.submit(b"{}", None).await.unwrap_err();
    assert!(!error.may_have_taken_effect());
    let ClientError::Api(failure) = error else { panic!("{error:?}") };
    assert_eq!((failure.status, failure.code.as_str(), failure.retryable), (503, "queue_full", true));
}

#[tokio::test]
async fn a_redirect_is_an_error_and_a_lost_answer_is_uncertain() {
    let redirect =
        "HTTP/1.1 307 Temporary Redirect\r\nlocation: http://elsewhere/\r\ncontent-length: 0\r\n\r\n";
    let (client, _serving) = node(vec![redirect.to_owned()]).await;
    let error = client.submit(b"{}", None).await.unwrap_err();
    assert!(matches!(&error, ClientError::Api(failure) if failure.status == 307), "{error:?}");

    let (client, _serving) = node(vec![String::new()]).await;
    let error = client.submit(b"{}", None).await.unwrap_err();
    assert!(matches!(error, ClientError::Transport(_)) && error.may_have_taken_effect());
}

/// A TLS server has not read what it could not decrypt; other bytes may be anybody's.
#[tokio::test]
async fn tls_where_none_was_asked_for_has_taken_no_request() {
    let (client, _serving) =
        node(vec!["\u{15}\u{3}\u{3}\0\u{2}\u{2}\u{2f}".to_owned(), "SSH-2.0-x\r\n".to_owned()]).await;
    let error = client.submit(b"{}", None).await.unwrap_err();
    assert!(matches!(error, ClientError::NeedsTls(_)) && !error.may_have_taken_effect(), "{error:?}");
    let error = client.submit(b"{}", None).await.unwrap_err();
    assert!(matches!(error, ClientError::NotHttp(_)) && error.may_have_taken_effect(), "{error:?}");
}

#[tokio::test]
async fn a_key_that_would_split_the_head_is_refused_here() {
    let (client, serving) = node(vec![]).await;
    let error = client.submit(b"{}", Some("a\r\nb: c")).await.unwrap_err();
    assert!(matches!(error, ClientError::BadArgument(_)) && !error.may_have_taken_effect());
    serving.await.unwrap();
}

#[tokio::test]
async fn a_node_says_why_it_takes_no_new_work() {
    let (client, serving) = node(vec![
        json("200 OK", r#"{"ready":true}"#),
        json("503 Service Unavailable", r#"{"ready":false,"reasons":["fenced","full"]}"#),
        json("503 Service Unavailable", "busy"),
        json("404 Not Found", "{}"),
    ])
    .await;
    assert!(client.not_ready().await.unwrap().is_empty());
    assert_eq!(client.not_ready().await.unwrap(), ["fenced", "full"]);
    assert!(matches!(client.not_ready().await, Err(ClientError::Protocol(_))));
    assert!(matches!(client.not_ready().await, Err(ClientError::Api(api)) if api.status == 404));
    assert!(serving.await.unwrap().iter().all(|request| request.starts_with("GET /readyz HTTP/1.1\r\n")));
}

#[tokio::test]
async fn looking_and_cancelling() {
    let snapshot = r#"{"execution_id":"e","status":"running","last_sequence":3,"usage":[]}"#;
    let (client, serving) = node(vec![
        json("200 OK", snapshot),
        json("404 Not Found", "{}"),
        json("409 Conflict", r#"{"status":"failed","error":{}}"#),
        json("200 OK", r#"{"execution_id":"e"}"#),
        json("202 Accepted", r#"{"status":"cancellation_requested"}"#),
        json("404 Not Found", r#"{"status":"not_found"}"#),
    ])
    .await;
    let known = client.snapshot("e").await.unwrap().unwrap();
    assert_eq!((known.status.as_str(), known.last_sequence, known.json.as_str()), ("running", 3, snapshot));
    assert!(client.snapshot("e").await.unwrap().is_none());
    let unfinished = client.result("e").await.unwrap().unwrap();
    assert!(matches!(unfinished, Outcome::Unfinished { status, .. } if status == "failed"));
    let done = client.result("e").await.unwrap().unwrap();
    assert_eq!(done, Outcome::Succeeded { json: r#"{"execution_id":"e"}"#.to_owned() });
    assert!(client.cancel("e").await.unwrap());
    assert!(!client.cancel("e").await.unwrap());
    let requests = serving.await.unwrap();
    assert!(requests[4].starts_with("POST /v1/executions/e/cancel HTTP/1.1\r\n"));
}

#[tokio::test]
async fn a_list_is_asked_for_page_by_page() {
    let first = r#"{"data":[{"execution_id":"a"}, {"execution_id":"b"}],"next":"1-b"}"#;
    let (client, serving) = node(vec![
        json("200 OK", first),
        json("200 OK", r#"{"data":[]}"#),
        json("400 Bad Request", r#"{"error":{"code":"invalid_request","message":"No","retryable":false}}"#),
    ])
    .await;
    let query = ListQuery { ability: Some("a b&c=d".to_owned()), limit: Some(2), ..ListQuery::default() };
    let page = client.list(&query).await.unwrap();
    assert_eq!(page.entries, [r#"{"execution_id":"a"}"#, r#"{"execution_id":"b"}"#]);
    let last = client.list(&ListQuery { after: page.next, ..ListQuery::default() }).await.unwrap();
    assert_eq!(last, ListPage { entries: vec![], next: None });
    let refused = client.list(&ListQuery { status: Some("odd".to_owned()), ..ListQuery::default() }).await;
    assert!(matches!(refused, Err(ClientError::Api(failure)) if failure.status == 400));
    let requests = serving.await.unwrap();
    let asked: Vec<&str> = requests.iter().map(|request| request.split(' ').nth(1).unwrap()).collect();
    assert_eq!(
        asked,
        [
            "/v1/executions?ability=a%20b%26c%3Dd&limit=2",
            "/v1/executions?after=1-b",
            "/v1/executions?status=odd"
        ]
    );
}

#[tokio::test]
async fn a_token_goes_in_every_request_and_is_shown_nowhere() {
    let (client, serving) = node(vec![json("404 Not Found", "{}")]).await;
    let client = client.with_token("canary-token").unwrap();
    assert!(!format!("{client:?}").contains("canary"));
    client.snapshot("e").await.unwrap();
    assert!(serving.await.unwrap()[0].contains("\r\nauthorization: Bearer canary-token\r\n"));
    for bad in ["", "two words", "a\r\nb: c"] {
        let (client, _serving) = node(vec![]).await;
        assert!(matches!(client.with_token(bad), Err(ClientError::BadArgument(_))), "{bad:?}");
    }
}

#[test]
fn who_is_trusted_and_what_is_said_in_the_clear_is_settled_before_anything_is_sent() {
    let options = ClientOptions::default;
    for text in ["http://node", "http://192.0.2.1:4320"] {
        let client = Client::new(text).unwrap();
        let error = client.with_token("sealog_1").unwrap_err();
        assert!(matches!(error, ClientError::TokenInTheClear) && !error.may_have_taken_effect(), "{error:?}");
    }
    for text in ["http://localhost:1", "unix:node.sock"] {
        Client::new(text).unwrap().with_token("sealog_1").unwrap();
        let refused = Client::with_ca(text, options(), b"");
        assert!(matches!(refused, Err(ClientError::BadArgument(_))), "{text}");
    }
    for pem in ["", "text", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"] {
        let refused = Client::with_ca("https://node", options(), pem.as_bytes());
        assert!(matches!(refused, Err(ClientError::BadCa)), "{pem:?}");
    }
}

/// The members this client cannot do without are required in the node's document.
#[test]
fn what_is_read_here_is_promised_there() {
    const SPEC: &str = include_str!("../../../spec/openapi.yaml");
    for (schema, members) in [
        ("Submission", &["execution_id", "status", "created_at", "idempotent_replay"][..]),
        ("Snapshot", &["status", "last_sequence"]),
        ("ErrorEnvelope", &["error"]),
        ("Error", &["code", "message"]),
    ] {
        let text = SPEC.split(&format!("\n    {schema}:\n")).nth(1).expect(schema);
        let required =
            text.split("\n      required: [").nth(1).and_then(|text| text.split(']').next()).expect(schema);
        let required: Vec<&str> = required.split(", ").collect();
        for member in members {
            assert!(required.contains(member), "{schema} requires {required:?}, not {member}");
        }
    }
}
