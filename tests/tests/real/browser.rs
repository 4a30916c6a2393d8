//! A browser's `EventSource` against a node: a page of the node's own origin follows an execution to its end, a page of
//! another origin and a name that was pointed at this machine get nothing.
//!
//! The browser is a headless Chromium behind its WebDriver.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::process::{Child, Command, Stdio};
use std::thread;

use crashbox::http::{Client, Request};
use sealog_tests::workbench::{PATIENCE, Workbench, accepted, mock};
use serde_json::{Value, json};

/// A browser with one page; gone when dropped.
struct Browser {
    driver: Child,
    client: Client,
    session: String,
}

impl Browser {
    fn start() -> Browser {
        let mut driver = Command::new("chromedriver")
            .arg("--port=0")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("chromedriver");
        let mut lines = BufReader::new(driver.stdout.take().unwrap()).lines();
        let port: u16 = lines
            .by_ref()
            .map(Result::unwrap)
            .find_map(|line| line.split("successfully on port ").nth(1)?.trim_end_matches('.').parse().ok())
            .expect("chromedriver says its port");
        // It must never wait for somebody to read.
        thread::spawn(move || lines.for_each(drop));
        let client = Client::new(SocketAddr::from(([127, 0, 0, 1], port)), PATIENCE);
        let mut browser = Browser { driver, client, session: String::new() };
        let arguments = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--host-resolver-rules=MAP rebound.example 127.0.0.1",
        ];
        let options = json!({"args": arguments});
        let wanted = json!({"capabilities": {"alwaysMatch": {"browserName": "chrome", "goog:chromeOptions": options}}});
        let value = browser.command("/session", &wanted);
        browser.session = format!("/session/{}", value["sessionId"].as_str().unwrap());
        browser.told("/timeouts", &json!({"script": 60_000, "pageLoad": 60_000}));
        browser
    }

    fn command(&mut self, path: &str, body: &Value) -> Value {
        let headers = [("content-type", "application/json")];
        let reply = self.client.ask(&Request::post(path, &headers, body.to_string().as_bytes())).unwrap();
        let answer: Value = serde_json::from_slice(&reply.body).unwrap();
        assert_eq!(reply.status, 200, "{path}: {answer}");
        answer["value"].clone()
    }

    fn told(&mut self, below: &str, body: &Value) -> Value {
        let path = format!("{}{below}", self.session);
        self.command(&path, body)
    }

    fn open(&mut self, url: &str) {
        self.told("/url", &json!({ "url": url }));
    }

    /// Runs a script in the page; its last argument is called with the result.
    fn run(&mut self, script: &str, arguments: &[&str]) -> Value {
        self.told("/execute/async", &json!({"script": script, "args": arguments}))
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let session = std::mem::take(&mut self.session);
        if !session.is_empty() {
            // The browser itself goes with its session.
            let _ = self.client.ask(&Request { method: "DELETE", ..Request::get(&session) });
        }
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

/// An empty page on a port of its own.
fn other_origin() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut head = [0; 4096];
            // Whatever was asked for.
            let _ = stream.read(&mut head);
            let page = "<!doctype html><title>other</title>";
            let length = page.len();
            let answer = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{page}"
            );
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    address
}

/// Follows an execution and closes at its end, as a page does; says what was seen and how it ended.
const FOLLOW: &str = "
    const [url, done] = arguments, seen = [];
    const source = new EventSource(url);
    const types = ['execution.accepted', 'route.selected', 'output.delta', 'usage.reported', 'execution.completed',
        'execution.failed'];
    for (const type of types) source.addEventListener(type, event => {
        seen.push([event.lastEventId, event.type, JSON.parse(event.data).sequence]);
        if (type === 'execution.completed' || type === 'execution.failed') {
            source.close();
            done({seen, state: source.readyState});
        }
    });
    source.onerror = () => { if (source.readyState === EventSource.CLOSED) done({seen, state: 'refused'}); };
";

const SUBMIT: &str = "
    const [url, body, done] = arguments;
    fetch(url, {method: 'POST', headers: {'content-type': 'application/json'}, body})
        .then(answer => answer.json().then(value => done({status: answer.status, id: value.execution_id})),
            error => done({error: error.name}));
";

const SUBMIT_BLINDLY: &str = "
    const [url, body, done] = arguments;
    fetch(url, {method: 'POST', mode: 'no-cors', headers: {'content-type': 'text/plain'}, body})
        .then(answer => done({type: answer.type, status: answer.status}), error => done({error: error.name}));
";

fn metric(client: &mut Client, name: &str) -> f64 {
    let page = String::from_utf8(client.ask(&Request::get("/metrics")).unwrap().body).unwrap();
    let line = page.lines().find_map(|line| line.strip_prefix(name));
    line.map_or(0.0, |value| value.trim().parse().unwrap())
}

#[test]
fn an_event_source_of_the_own_origin_reads_to_the_end_and_others_get_nothing() {
    let bench = Workbench::new();
    let node = bench.start();
    let mut client = Workbench::client(&node);
    let own = format!("http://{}", node.address());
    let mut browser = Browser::start();

    browser.open(&format!("{own}/healthz"));
    let body = mock("hi", &json!({"chunks": 20, "delay_ms": 20})).to_string();
    let submitted = browser.run(SUBMIT, &["/v1/executions", &body]);
    assert_eq!(submitted["status"], 202, "{submitted}");
    let id = submitted["id"].as_str().unwrap();
    let events = format!("/v1/executions/{id}/events");
    let followed = browser.run(FOLLOW, &[&events]);
    assert_eq!(followed["state"], 2, "closed by the page: {followed}");
    let seen = followed["seen"].as_array().unwrap();
    assert_eq!(seen.len(), 24, "{followed}");
    for (index, event) in seen.iter().enumerate() {
        assert_eq!(
            (event[0].as_str(), event[2].as_u64()),
            (Some(&*format!("{}", index + 1)), Some(index as u64 + 1))
        );
    }
    assert_eq!((&seen[0][1], &seen[23][1]), (&"execution.accepted".into(), &"execution.completed".into()));
    let resumed = browser.run(FOLLOW, &[&format!("{events}?after=22")]);
    assert_eq!(resumed["seen"].as_array().unwrap().len(), 2, "{resumed}");

    let accepted_before = metric(&mut client, "sealog_executions_accepted_total");
    let refused_before = metric(&mut client, "sealog_http_refused_total{rule=\"origin\"}");
    browser.open(&format!("http://{}/", other_origin()));
    let known = accepted(&mut client, &mock("hi", &json!({})), None);
    let followed = browser.run(FOLLOW, &[&format!("{own}/v1/executions/{known}/events")]);
    assert_eq!(followed, json!({"seen": [], "state": "refused"}));
    let submitted = browser.run(SUBMIT, &[&format!("{own}/v1/executions"), &body]);
    assert_eq!(submitted["error"], "TypeError", "{submitted}");
    let blind = browser.run(SUBMIT_BLINDLY, &[&format!("{own}/v1/executions/{known}/cancel"), ""]);
    assert_eq!(blind["type"], "opaque", "{blind}");
    // The one that was submitted from here, and nothing from the page.
    assert_eq!(metric(&mut client, "sealog_executions_accepted_total"), accepted_before + 1.0);
    assert!(metric(&mut client, "sealog_http_refused_total{rule=\"origin\"}") >= refused_before + 3.0);

    browser.open(&format!("http://rebound.example:{}/healthz", node.address().port()));
    let page = browser.run("arguments[0](document.body.innerText)", &[]);
    assert!(page.as_str().unwrap().contains("\"forbidden\""), "{page}");
    let rebound = browser.run(FOLLOW, &[&events]);
    assert_eq!(rebound, json!({"seen": [], "state": "refused"}));
}
