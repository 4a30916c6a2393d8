//! The list of executions: order, filters, places, and what is refused.

use serde_json::Value;

use super::node::{Node, PLAIN, STALLING, Setup};

async fn page(node: &Node, query: &str) -> (Vec<Value>, Option<String>) {
    let (status, _, body) = node.get(&format!("/v1/executions{query}")).await;
    assert_eq!(status, 200, "{query}: {body}");
    let page: Value = serde_json::from_str(&body).unwrap();
    let next = page.get("next").map(|next| next.as_str().unwrap().to_owned());
    (page["data"].as_array().unwrap().clone(), next)
}

fn ids(entries: &[Value]) -> Vec<String> {
    entries.iter().map(|entry| entry["execution_id"].as_str().unwrap().to_owned()).collect()
}

/// PA-35, PA-36.
#[tokio::test]
async fn executions_are_listed_newest_first_and_page_by_page() {
    let node = Node::new(Setup::default());
    assert_eq!(page(&node, "").await, (vec![], None));
    let mut submitted = Vec::new();
    for _ in 0..5 {
        let id = node.submit(PLAIN).await;
        node.finished(id).await;
        submitted.push(id.to_string());
    }
    let (all, next) = page(&node, "").await;
    assert_eq!(next, None);
    let mut found = ids(&all);
    // Those of one millisecond stand by their ids.
    found.sort();
    submitted.sort();
    assert_eq!(found, submitted);
    let times: Vec<&str> = all.iter().map(|entry| entry["created_at"].as_str().unwrap()).collect();
    assert!(times.is_sorted_by(|left, right| left >= right), "{times:?}");

    let (mut seen, mut after) = (Vec::new(), String::new());
    loop {
        let (entries, next) = page(&node, &format!("?limit=2{after}")).await;
        assert!(entries.len() <= 2);
        seen.extend(ids(&entries));
        match next {
            Some(next) => after = format!("&after={next}"),
            None => break,
        }
    }
    assert_eq!(seen, ids(&all));
}

/// PA-37.
#[tokio::test]
async fn an_entry_is_a_snapshot_without_its_result_and_with_its_ability() {
    let node = Node::new(Setup::default());
    let id = node.submit(PLAIN).await;
    node.finished(id).await;
    let (_, _, body) = node.get(&format!("/v1/executions/{id}")).await;
    let mut snapshot: Value = serde_json::from_str(&body).unwrap();
    assert!(snapshot.as_object_mut().unwrap().remove("result").is_some());
    snapshot["ability"] = "text-generation".into();
    assert_eq!(page(&node, "").await.0, [snapshot]);
}

/// PA-38.
#[tokio::test]
async fn filters_take_what_they_name_and_unknown_ones_are_refused() {
    let node = Node::new(Setup::default());
    let done = node.submit(PLAIN).await;
    node.finished(done).await;
    let open = node.submit(STALLING).await;
    let nobody = node.submit(&PLAIN.replace("text-generation", "nobody-has-it")).await;
    node.finished(nobody).await;
    assert_eq!(ids(&page(&node, "?status=succeeded").await.0), [done.to_string()]);
    assert_eq!(ids(&page(&node, "?status=failed").await.0), [nobody.to_string()]);
    assert_eq!(ids(&page(&node, "?ability=nobody-has-it").await.0), [nobody.to_string()]);
    assert_eq!(ids(&page(&node, "?ability=text-generation&status=succeeded").await.0), [done.to_string()]);
    assert_eq!(page(&node, "?ability=text").await.0, Vec::<Value>::new());
    assert_eq!(page(&node, "").await.0.len(), 3);
    for bad in
        ["?state=failed", "?status=odd", "?limit=0", "?limit=101", "?after=x", "?status=failed&status=failed"]
    {
        let (status, _, body) = node.get(&format!("/v1/executions{bad}")).await;
        assert_eq!(status, 400, "{bad}");
        assert!(body.contains("invalid_request"), "{body}");
    }
    assert!(node.engine.cancel(open).await.unwrap());
}

/// PA-36.
#[tokio::test]
async fn a_place_stays_valid_when_its_execution_is_gone() {
    let node = Node::new(Setup::default());
    let id = node.submit(PLAIN).await;
    node.finished(id).await;
    let before_all = "1-11111111-2222-4333-8444-555555555555";
    assert_eq!(page(&node, &format!("?after={before_all}")).await, (vec![], None));
    let behind_all = "999999999999999-11111111-2222-4333-8444-555555555555";
    assert_eq!(ids(&page(&node, &format!("?after={behind_all}")).await.0), [id.to_string()]);
}
