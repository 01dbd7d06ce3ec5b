//! Watches, event by event.

use std::time::Duration;

use futures::StreamExt;

use super::*;

/// Reads a watch line by line.
struct Reader {
    body: axum::body::BodyDataStream,
    rest: Vec<u8>,
}

impl Reader {
    async fn open(server: &Server, path: &str) -> Self {
        let response = server.send(request(Method::GET, path)).await;
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.headers()["content-type"], "application/json");
        Self { body: response.into_body().into_data_stream(), rest: Vec::new() }
    }

    async fn open_as(server: &Server, path: &str, accept: &str) -> Self {
        let mut request = request(Method::GET, path);
        request.headers_mut().insert("accept", accept.parse().unwrap());
        let response = server.send(request).await;
        assert_eq!(response.status(), StatusCode::OK);
        Self { body: response.into_body().into_data_stream(), rest: Vec::new() }
    }

    /// The next event, or `None` at the end.
    async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.rest.drain(..=end).collect();
                if line.trim_ascii().is_empty() {
                    continue;
                }
                return Some(serde_json::from_slice(&line).unwrap());
            }
            let chunk = tokio::time::timeout(Duration::from_secs(20), self.body.next()).await;
            self.rest.extend_from_slice(&chunk.expect("an event in time")?.unwrap());
        }
    }

    /// Type and name of the next event.
    async fn short(&mut self) -> (String, String) {
        let event = self.next().await.expect("an event");
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        (text(&event["type"]), text(&event["object"]["metadata"]["name"]))
    }

    /// Whether nothing comes for a while.
    async fn silent(&mut self) -> bool {
        self.rest.is_empty()
            && tokio::time::timeout(Duration::from_millis(300), self.body.next()).await.is_err()
    }
}

/// Proxies and this server close connections on which nothing is sent.
#[tokio::test]
async fn an_idle_watch_without_bookmarks_gets_empty_lines() {
    let server = Server::started(false).await;
    let mut watch = Reader::open(&server, "fluxionjobs?watch=true").await;
    let chunk = tokio::time::timeout(Duration::from_secs(20), watch.body.next()).await.unwrap();
    assert_eq!(&*chunk.unwrap().unwrap(), b"\n");
    server.tell([Event::Pod(Box::new(pod("team", "a")))]).await;
    assert_eq!(watch.short().await, event("ADDED", "pod.a"));
}

fn event(type_: &str, name: &str) -> (String, String) {
    (type_.to_owned(), name.to_owned())
}

fn alone(name: &str) -> Event {
    Event::Pod(Box::new(pod("team", name)))
}

fn ended(name: &str) -> Event {
    let mut ended = pod("team", name);
    ended.node = Some("n1".into());
    ended.phase = Phase::Succeeded;
    Event::Pod(Box::new(ended))
}

async fn version(server: &Server, path: &str) -> String {
    server.get(path).await.1["metadata"]["resourceVersion"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn what_comes_changes_and_goes_is_told_once() {
    let server = Server::started(true).await;
    let mut watch = Reader::open(&server, "fluxionnodes?watch=true").await;
    assert_eq!(watch.short().await, event("ADDED", "n1"));
    assert_eq!(watch.short().await, event("ADDED", "n2"));
    server.tell([node("n3", 2)]).await;
    assert_eq!(watch.short().await, event("ADDED", "n3"));
    server.tell([node("n3", 8)]).await;
    let changed = watch.next().await.unwrap();
    assert_eq!(
        (&changed["type"], &changed["object"]["status"]["capacity"]["cpu"]),
        (&"MODIFIED".into(), &"8".into())
    );
    // Said again without a change, it is no event.
    server.tell([node("n3", 8)]).await;
    server.tell([Event::NodeGone("n3".into())]).await;
    let gone = watch.next().await.unwrap();
    assert_eq!(
        (&gone["type"], &gone["object"]["status"]["capacity"]["cpu"]),
        (&"DELETED".into(), &"8".into())
    );
    assert!(watch.silent().await);
}

/// Events that come fast are paced; one that comes after a rest need not wait.
#[tokio::test(flavor = "multi_thread")]
async fn an_event_after_a_rest_is_told_at_once() {
    let server = Server::started(true).await;
    let mut watch = Reader::open(&server, "fluxionnodes?watch=true").await;
    watch.short().await;
    watch.short().await;
    let mut fastest = Duration::MAX;
    for index in 0..10 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let began = std::time::Instant::now();
        server.tell([node(&format!("new-{index}"), 2)]).await;
        assert_eq!(watch.short().await, event("ADDED", &format!("new-{index}")));
        fastest = fastest.min(began.elapsed());
    }
    assert!(fastest < Duration::from_millis(50), "{fastest:?}");
}

#[tokio::test]
async fn a_watch_goes_on_where_a_list_or_an_event_stood() {
    let server = Server::started(true).await;
    let start = version(&server, "fluxionnodes").await;
    server.tell([node("n3", 2), node("n4", 2)]).await;
    let mut watch = Reader::open(&server, &format!("fluxionnodes?watch=1&resourceVersion={start}")).await;
    let first = watch.next().await.unwrap();
    assert_eq!(first["object"]["metadata"]["name"], "n3");
    // Broken off between two events of one moment, it goes on with the second.
    let middle = first["object"]["metadata"]["resourceVersion"].as_str().unwrap();
    let mut again = Reader::open(&server, &format!("fluxionnodes?watch=1&resourceVersion={middle}")).await;
    assert_eq!(again.short().await, event("ADDED", "n4"));
    assert!(again.silent().await);
}

#[tokio::test]
async fn initial_events_end_with_a_marked_bookmark() {
    let server = Server::started(true).await;
    let path = "fluxionnodes?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let mut watch = Reader::open(&server, path).await;
    watch.short().await;
    watch.short().await;
    let mark = watch.next().await.unwrap();
    assert_eq!((&mark["type"], &mark["object"]["kind"]), (&"BOOKMARK".into(), &"FluxionNode".into()));
    assert_eq!(mark["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
    // Also when there is nothing to begin with.
    let mut empty = Reader::open(&server, "fluxionjobs?watch=true&sendInitialEvents=true").await;
    assert_eq!(empty.next().await.unwrap()["type"], "BOOKMARK");
}

#[tokio::test]
async fn an_idle_watch_is_told_that_it_lives() {
    let server = Server::started(true).await;
    let mut watch = Reader::open(&server, "fluxionjobs?watch=true&allowWatchBookmarks=true").await;
    let mark = watch.next().await.unwrap();
    assert_eq!(mark["type"], "BOOKMARK");
    assert_eq!(mark["object"]["metadata"]["resourceVersion"], version(&server, "fluxionjobs").await);
}

#[tokio::test]
async fn versions_that_are_not_known_are_expired() {
    let server = Server::started(true).await;
    let now: u64 = version(&server, "fluxionjobs").await.parse().unwrap();
    for version in [1, now - 1, now + 1_000_000] {
        let mut watch =
            Reader::open(&server, &format!("fluxionjobs?watch=true&resourceVersion={version}")).await;
        let error = watch.next().await.unwrap();
        assert_eq!((&error["type"], &error["object"]["kind"]), (&"ERROR".into(), &"Status".into()));
        assert_eq!((&error["object"]["code"], &error["object"]["reason"]), (&410.into(), &"Expired".into()));
        assert_eq!(watch.next().await, None);
    }
}

#[tokio::test]
async fn what_leaves_a_selector_is_deleted_to_the_watch() {
    let server = Server::started(true).await;
    server.tell([Event::Pod(Box::new(pod("team", "a")))]).await;
    let path = "namespaces/team/fluxionjobs?watch=true&fieldSelector=status.state!%3DCompleted";
    let mut watch = Reader::open(&server, path).await;
    assert_eq!(watch.short().await, event("ADDED", "pod.a"));
    server.tell([Event::Pod(Box::new(pod("other", "b"))), ended("a")]).await;
    let mut last = watch.short().await;
    while last.0 == "MODIFIED" {
        last = watch.short().await;
    }
    assert_eq!(last, event("DELETED", "pod.a"));
    server.tell([alone("c")]).await;
    assert_eq!(watch.short().await, event("ADDED", "pod.c"));
}

#[tokio::test]
async fn one_object_can_be_waited_for() {
    let server = Server::started(true).await;
    server.tell([alone("a"), alone("b")]).await;
    let path = "namespaces/team/fluxionjobs?watch=true&resourceVersion=0&fieldSelector=metadata.name%3Dpod.b";
    let mut watch = Reader::open(&server, path).await;
    assert_eq!(watch.short().await, event("ADDED", "pod.b"));
    server.tell([ended("b")]).await;
    loop {
        let next = watch.next().await.unwrap();
        assert_eq!(next["object"]["metadata"]["name"], "pod.b");
        if next["object"]["status"]["state"] == "Completed" {
            break;
        }
    }
}

#[tokio::test]
async fn the_selected_one_of_many_is_found() {
    let server = Server::started(true).await;
    server.tell((0..500).map(|index| node(&format!("m{index:03}"), 1))).await;
    let path = "fluxionnodes?watch=true&fieldSelector=metadata.name%3Dm499";
    let mut watch = Reader::open(&server, path).await;
    assert_eq!(watch.short().await, event("ADDED", "m499"));
    server.tell((0..500).map(|index| node(&format!("m{index:03}"), 2))).await;
    assert_eq!(watch.short().await, event("MODIFIED", "m499"));
}

#[tokio::test]
async fn who_reads_slowly_gets_the_latest_and_who_sleeps_is_expired() {
    let server = Server::started(true).await;
    let mut slow = Reader::open(&server, "fluxionnodes?watch=true").await;
    slow.short().await;
    slow.short().await;
    // Many changes while nobody reads are one event.
    for cpus in 1..=50 {
        server.tell([node("n1", cpus)]).await;
    }
    let event = slow.next().await.unwrap();
    assert_eq!(
        (&event["type"], &event["object"]["status"]["capacity"]["cpu"]),
        (&"MODIFIED".into(), &"50".into())
    );
    assert!(slow.silent().await);
    // More changes than are remembered, with somebody who sees them.
    for round in 0..3 {
        server.tell((0..2000).map(|index| node(&format!("m{index}"), 1 + round))).await;
        server.get("fluxionnodes?limit=1").await;
    }
    let error = slow.next().await.unwrap();
    assert_eq!((&error["type"], &error["object"]["code"]), (&"ERROR".into(), &410.into()));
    assert_eq!(slow.next().await, None);
}

#[tokio::test]
async fn a_watch_ends_when_it_is_asked_to_and_when_the_server_goes() {
    let server = Server::started(true).await;
    let mut short = Reader::open(&server, "fluxionjobs?watch=true&timeoutSeconds=1").await;
    assert_eq!(short.next().await, None);
    let mut long = Reader::open(&server, "fluxionjobs?watch=true").await;
    server.stopping.cancel();
    assert_eq!(long.next().await, None);
}

#[tokio::test]
async fn one_user_can_not_have_all_watches() {
    use crate::http::app::{WATCHES, WATCHES_OF_ONE};
    let server = Server::started(true).await;
    let mut open = Vec::new();
    for _ in 0..WATCHES_OF_ONE {
        open.push(Reader::open(&server, "fluxionjobs?watch=true").await);
    }
    let response = server.send(request(Method::GET, "fluxionjobs?watch=true")).await;
    assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
    let held: Vec<_> = (0..WATCHES)
        .map_while(|number| {
            let user = format!("user-{}", number / 16);
            server.app.watch_ticket(&user.into()).ok()
        })
        .collect();
    assert_eq!(held.len(), WATCHES - WATCHES_OF_ONE);
    open.pop();
    Reader::open(&server, "fluxionjobs?watch=true").await;
}

#[tokio::test]
async fn a_watch_of_tables_says_once_what_its_columns_are() {
    let server = Server::started(true).await;
    let accept = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
    let path = "fluxionnodes?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let mut watch = Reader::open_as(&server, path, accept).await;
    server.tell([node("n1", 8)]).await;
    let mut events = Vec::new();
    while events.last().is_none_or(|event: &Value| event["type"] != "BOOKMARK") {
        events.push(watch.next().await.unwrap());
    }
    server.tell([Event::NodeGone("n2".into())]).await;
    events.push(watch.next().await.unwrap());
    assert_eq!(events.last().unwrap()["type"], "DELETED");
    for (index, event) in events.iter().enumerate() {
        let table = &event["object"];
        assert_eq!((&table["kind"], &table["apiVersion"]), (&"Table".into(), &"meta.k8s.io/v1".into()));
        assert_eq!(table.get("columnDefinitions").is_some(), index == 0, "{event}");
        assert_eq!(table["rows"].as_array().unwrap().len(), 1);
        let object = &table["rows"][0]["object"];
        assert_eq!(object["kind"], "PartialObjectMetadata");
        assert_eq!(object["metadata"]["resourceVersion"], table["metadata"]["resourceVersion"]);
    }
    let mark = &events[events.len() - 2]["object"]["rows"][0]["object"];
    assert_eq!(mark["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
}

#[tokio::test]
async fn informers_of_metadata_get_it_alone() {
    let server = Server::started(true).await;
    let accept = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,\
                  application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";
    let path = "fluxionnodes?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let mut watch = Reader::open_as(&server, path, accept).await;
    for name in ["n1", "n2"] {
        let event = watch.next().await.unwrap();
        assert_eq!(event["object"]["kind"], "PartialObjectMetadata");
        assert_eq!(event["object"]["metadata"]["name"], name);
        assert!(event["object"].get("status").is_none());
    }
    let mark = watch.next().await.unwrap();
    assert_eq!(
        (&mark["type"], &mark["object"]["kind"]),
        (&"BOOKMARK".into(), &"PartialObjectMetadata".into())
    );
    assert_eq!(mark["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
}
