//! Lists, single objects and documents, on states that the engine made.

use fluxion::jobspec::Jobspec;
use fluxion_scheduler::extension::GangReader;
use fluxion_scheduler::request::Request;

use super::super::resource::Resource as _;
use super::super::resource::jobs::Jobs;
use super::super::selector::Selector;
use super::*;
use crate::view::Viewer;

/// Runs what is bound, as a kubelet would.
async fn run(server: &Server, namespace: &str, name: &str, node: &str, seconds: i64) {
    let mut running = pod(namespace, name);
    running.node = Some(node.into());
    running.phase = Phase::Running;
    running.scheduled_at = Some(START);
    running.active_deadline = Some(seconds);
    running.needs = Ok(Arc::new(resources(&[("cpu", 4000), ("pods", 1)])));
    server.tell([Event::Pod(Box::new(running))]).await;
}

/// A cluster with a running job on each node, one that waits for both, and one in another namespace.
async fn busy() -> Server {
    let server = Server::started(true).await;
    run(&server, "team", "a", "n1", 600).await;
    run(&server, "other", "b", "n2", 900).await;
    server.tell(gang("team", "wide", 2, 4, 300)).await;
    server
}

/// Without the versions, which depend on how often the engine published.
fn unversioned(mut body: Value) -> Value {
    match &mut body {
        Value::Object(members) => {
            members.remove("resourceVersion");
            members.values_mut().for_each(|member| *member = unversioned(member.take()));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| *item = unversioned(item.take())),
        _ => {}
    }
    body
}

#[tokio::test]
async fn a_job_as_its_users_see_it() {
    let server = busy().await;
    let (status, mut body) = server.get("namespaces/team/fluxionjobs/group.wide").await;
    assert_eq!(status, StatusCode::OK);
    // Whether the engine took a step between its two members is a matter of luck.
    body["status"]["history"].as_array_mut().unwrap().retain(|entry| entry["state"] != "Gathering");
    insta::assert_json_snapshot!("job_reserved", unversioned(body));
    let (_, body) = server.get("namespaces/team/fluxionjobs/pod.a").await;
    insta::assert_json_snapshot!("job_running", unversioned(body));
}

#[tokio::test]
async fn nodes_and_queues_as_users_see_them() {
    let server = busy().await;
    let (_, body) = server.get("fluxionnodes/n1").await;
    insta::assert_json_snapshot!("node", unversioned(body));
    let (_, mut body) = server.get("fluxionqueues").await;
    let seconds = body["items"][0]["status"]["lastPass"]["seconds"].take();
    assert!(seconds.as_f64().is_some_and(|seconds| seconds > 0.0 && seconds < 60.0), "{seconds}");
    insta::assert_json_snapshot!("queues", unversioned(body));
}

#[tokio::test]
async fn documents_are_objects_and_lists_of_one() {
    let server = busy().await;
    for (plural, kind) in [
        ("fluxiongraphs", "FluxionGraph"),
        ("fluxiontimelines", "FluxionTimeline"),
        ("fluxionaudits", "FluxionAudit"),
    ] {
        let (_, one) = server.get(&format!("{plural}/live")).await;
        assert_eq!((&one["kind"], &one["metadata"]["name"]), (&kind.into(), &"live".into()));
        let (_, list) = server.get(plural).await;
        assert_eq!(list["kind"], format!("{kind}List"));
        assert_eq!(list["items"].as_array().unwrap().len(), 1);
    }
    let (_, audit) = server.get("fluxionaudits/live").await;
    assert_eq!(audit["findings"], Value::Array(Vec::new()));
    let (_, timeline) = server.get("fluxiontimelines/live").await;
    insta::assert_json_snapshot!("timeline", timeline["spans"]);
}

#[tokio::test]
async fn the_graph_comes_bare_or_in_an_object() {
    let server = busy().await;
    let mut bare = request(Method::GET, "fluxiongraphs/live");
    bare.headers_mut()
        .insert("accept", "application/json;q=0.1, application/vnd.flux.jgf+json".parse().unwrap());
    let response = server.send(bare).await;
    assert_eq!(response.headers()["content-type"], "application/vnd.flux.jgf+json");
    let (_, jgf) = read(response).await;
    insta::assert_json_snapshot!("jgf", jgf);
    let (_, object) = server.get("fluxiongraphs/live").await;
    assert_eq!(object["status"]["graph"], jgf);
    let (_, summary) = server.get("fluxiongraphs/live?summary=true").await;
    assert_eq!(summary["status"]["graph"], Value::Null);
    insta::assert_json_snapshot!("graph_summary", summary["status"]["summary"]);
}

#[tokio::test]
async fn explain_says_what_stands_in_the_way() {
    let server = busy().await;
    let (status, body) = server.get("namespaces/team/fluxionjobs/group.wide/explain").await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(body["job"]["metadata"]["name"], "group.wide");
    insta::assert_json_snapshot!("explain", (&body["nodes"], &body["nearest"], &body["suggestions"]));
    let jobspec = Jobspec::parse_with(body["jobspec"].as_str().unwrap(), &|_| true, &GangReader).unwrap();
    let gang = jobspec.extra.unwrap();
    let members: u32 = gang.get::<Request>().unwrap().shapes.iter().map(|shape| shape.count).sum();
    assert_eq!(body["job"]["status"]["members"]["wanted"], members);
    assert_eq!(server.get("namespaces/team/fluxionjobs/group.none/explain").await.0, StatusCode::NOT_FOUND);
}

fn names(list: &Value) -> Vec<&str> {
    list["items"].as_array().unwrap().iter().map(|item| item["metadata"]["name"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn selectors_select() {
    let server = busy().await;
    for (path, expected) in [
        ("fluxionjobs", vec!["pod.b", "group.wide", "pod.a"]),
        ("namespaces/team/fluxionjobs", vec!["group.wide", "pod.a"]),
        ("namespaces/none/fluxionjobs", vec![]),
        ("fluxionjobs?fieldSelector=metadata.namespace%3Dother", vec!["pod.b"]),
        ("fluxionjobs?fieldSelector=status.state%3DRunning", vec!["pod.b", "pod.a"]),
        ("fluxionjobs?fieldSelector=status.state!%3DRunning", vec!["group.wide"]),
        ("fluxionjobs?fieldSelector=node%3Dn1", vec!["group.wide", "pod.a"]),
        ("fluxionjobs?fieldSelector=spec.group.kind%3DPod,metadata.name%3Dpod.a", vec!["pod.a"]),
        ("fluxionjobs?fieldSelector=spec.queue%3Dnone", vec![]),
        ("fluxionjobs?labelSelector=fluxion.flux-framework.org/group", vec!["group.wide"]),
        ("fluxionnodes?fieldSelector=metadata.name%3Dn2", vec!["n2"]),
    ] {
        let (status, body) = server.get(path).await;
        assert_eq!(status, StatusCode::OK, "{path}: {body}");
        assert_eq!(names(&body), expected, "{path}");
    }
}

/// Selectors look at the state, not at objects: the same has to come of it.
#[tokio::test]
async fn selectors_take_what_is_shown() {
    let server = busy().await;
    let mut labelled = pod("team", "labelled");
    labelled.labels.insert("app".into(), "sim".into());
    let mut done = pod("team", "done");
    (done.phase, done.node) = (Phase::Succeeded, Some("n1".into()));
    server.tell([Event::Pod(Box::new(labelled)), Event::Pod(Box::new(done))]).await;
    let served = server.app.index.at(server.engine.snapshot()).await.unwrap();
    let everything = Viewer::everything();
    let visible = served.seen_by(&everything);
    let objects: Vec<_> =
        served.jobs.rows.values().map(|row| (row.id, Jobs::render(&visible, &row.id).unwrap())).collect();
    assert!(objects.len() >= 5);
    let others = Jobs::FIELDS.iter().filter(|field| **field != "metadata.name");
    for field in others {
        let values: std::collections::BTreeSet<&str> =
            objects.iter().flat_map(|(_, object)| Jobs::field(object, field)).chain(["none"]).collect();
        for value in values {
            for operator in ["=", "!="] {
                let text = format!("{field}{operator}{value}");
                let fields = Selector::fields(&text, Jobs::FIELDS).unwrap();
                for (id, object) in &objects {
                    let shown = fields.accepts(|field| Jobs::field(object, field));
                    let selected = Jobs::selected(&visible, id, &Selector::default(), &fields);
                    assert_eq!(selected, shown, "{text}: {}", object.metadata.name);
                }
            }
        }
    }
    for text in ["app=sim", "app!=sim", "app", "!app", "app in (a,sim)"] {
        let labels = Selector::labels(text).unwrap();
        let taken: Vec<bool> = objects
            .iter()
            .map(|(id, object)| {
                let shown = labels.accepts_labels(&object.metadata.labels);
                let selected = Jobs::selected(&visible, id, &labels, &Selector::default());
                assert_eq!(selected, shown, "{text}: {}", object.metadata.name);
                selected
            })
            .collect();
        assert!(taken.contains(&true) && taken.contains(&false), "{text}");
    }
}

#[tokio::test]
async fn pages_show_one_moment() {
    let server = Server::started(true).await;
    server.tell((0..7).map(|index| Event::Pod(Box::new(pod("team", &format!("p{index}")))))).await;
    let (_, first) = server.get("fluxionjobs?limit=3").await;
    assert_eq!(names(&first), ["pod.p0", "pod.p1", "pod.p2"]);
    assert_eq!(first["metadata"]["remainingItemCount"], 4);
    // What comes and goes meanwhile is not in a list that was begun before.
    server.tell([Event::PodGone("uid-team-p3".into()), Event::Pod(Box::new(pod("team", "p9")))]).await;
    let mut seen = Vec::new();
    let mut page = first.clone();
    while let Some(token) = page["metadata"]["continue"].as_str() {
        let token: String = form_urlencoded::byte_serialize(token.as_bytes()).collect();
        page = server.get(&format!("fluxionjobs?limit=3&continue={token}")).await.1;
        assert_eq!(page["metadata"]["resourceVersion"], first["metadata"]["resourceVersion"]);
        seen.extend(names(&page).into_iter().map(str::to_owned));
    }
    assert_eq!(seen, ["pod.p3", "pod.p4", "pod.p5", "pod.p6"]);
    // The snapshot of a finished list is not kept, and of one that never began there is none.
    let finished = first["metadata"]["continue"].as_str().unwrap();
    for token in [finished, "12345:team/pod.p2"] {
        let token: String = form_urlencoded::byte_serialize(token.as_bytes()).collect();
        let expired = server.get(&format!("fluxionjobs?limit=3&continue={token}")).await;
        assert_eq!((expired.0, &expired.1["reason"]), (StatusCode::GONE, &"Expired".into()));
    }
}

#[tokio::test]
async fn versions_change_with_objects_only() {
    let server = busy().await;
    let version =
        |body: &Value| body["metadata"]["resourceVersion"].as_str().unwrap().parse::<u64>().unwrap();
    let (_, before) = server.get("namespaces/team/fluxionjobs/pod.a").await;
    server.tell([Event::Pod(Box::new(pod("third", "c")))]).await;
    let (_, after) = server.get("namespaces/team/fluxionjobs/pod.a").await;
    assert_eq!(version(&before), version(&after));
    let (_, list) = server.get("fluxionjobs").await;
    assert!(version(&list) >= version(&after));
    let (_, new) = server.get("namespaces/third/fluxionjobs/pod.c").await;
    assert!(version(&new) > version(&before));
}

#[tokio::test]
async fn answers_say_when_and_by_whom() {
    let server = busy().await;
    let response = server.send(request(Method::GET, "fluxionnodes/n1")).await;
    assert_eq!(response.headers()["fluxion-observed-at"], "2026-01-01T00:00:00Z");
    assert_eq!(response.headers()["fluxion-role"], "standalone");
    let (_, list) = server.get("fluxionnodes").await;
    assert_eq!(list["metadata"]["observedAt"], "2026-01-01T00:00:00Z");
    assert_eq!(list["metadata"]["role"], "standalone");
}

/// The answer to somebody who accepts compression.
async fn ask_compressed(server: &Server, path: &str) -> axum::response::Response {
    let mut request = request(Method::GET, path);
    request.headers_mut().insert("accept-encoding", "gzip".parse().unwrap());
    server.send(request).await
}

#[tokio::test]
async fn large_answers_are_compressed_when_that_is_accepted() {
    let server = Server::started(true).await;
    server.tell((0..40).map(|index| Event::Pod(Box::new(pod("team", &format!("p{index}")))))).await;
    let large = ask_compressed(&server, "fluxionjobs").await;
    assert_eq!(large.headers()["content-encoding"], "gzip");
    let body = to_bytes(large.into_body(), 1 << 24).await.unwrap();
    assert_eq!(body[..2], [0x1f, 0x8b]);
    for path in ["fluxionnodes", "fluxionjobs?watch=true"] {
        assert!(!ask_compressed(&server, path).await.headers().contains_key("content-encoding"), "{path}");
    }
}

/// Lists that are put together while they are read: at some sizes, the compression asks for more after the end.
#[tokio::test]
async fn compressed_lists_are_complete_whatever_their_size() {
    let server = Server::started(true).await;
    let mut next = 0;
    for count in [60, 5, 5, 5, 5, 5, 200, 3, 3, 3] {
        server.tell((next..next + count).map(|n| Event::Pod(Box::new(pod("team", &format!("p{n}")))))).await;
        next += count;
        for path in ["fluxionjobs", "fluxionjobs?pretty=true"] {
            let answer = ask_compressed(&server, path).await;
            assert_eq!(answer.headers()["content-encoding"], "gzip");
            let body = to_bytes(answer.into_body(), 1 << 24).await.unwrap();
            let list: Value = serde_json::from_reader(flate2::read::GzDecoder::new(&body[..])).unwrap();
            assert_eq!(names(&list).len(), next, "{path}");
        }
    }
}
