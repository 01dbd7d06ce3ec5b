//! A user with rights in one namespace learns nothing of others, on no path.

use super::secure::Secure;
use super::*;

const CANARY: &str = "canary-7f3a";

/// A job of one cpu in a namespace, with the canary wherever its owner may write.
fn theirs(name: &str) -> PodSpec {
    let mut pod = pod(&format!("{CANARY}-ns"), &format!("{CANARY}-{name}"));
    pod.labels.insert(CANARY.into(), format!("{CANARY}-value").into());
    pod.annotations.insert("note".into(), CANARY.into());
    pod
}

/// Nodes with the canary as a label and as a domain; a namespace that holds one of them, waits, and is planned; and one
/// of ours that is held up by all of that.
async fn world(secure: &Secure) {
    let mut events = Vec::new();
    for name in ["n1", "n2"] {
        let Event::Node(mut spec) = node(name, 4) else { unreachable!() };
        spec.labels.insert("team".into(), CANARY.into());
        spec.labels.insert("topology.kubernetes.io/zone".into(), CANARY.into());
        events.push(Event::Node(spec));
    }
    let busy = |mut pod: PodSpec, cpus: u64, node: Option<&str>| {
        pod.needs = Ok(Arc::new(resources(&[("cpu", cpus * 1000), ("pods", 1)])));
        pod.active_deadline = Some(600);
        if let Some(node) = node {
            pod.node = Some(node.into());
            pod.phase = Phase::Running;
            pod.scheduled_at = Some(START);
        }
        Event::Pod(Box::new(pod))
    };
    events.push(busy(theirs("runs"), 3, Some("n1")));
    events.push(busy(theirs("runs-too"), 4, Some("n2")));
    let mut wrong = theirs("wrong");
    wrong.annotations.insert("fluxion.flux-framework.org/duration".into(), CANARY.into());
    events.push(Event::Pod(Box::new(wrong)));
    events.extend(["a", "b", "c"].map(|name| busy(theirs(name), 4, None)));
    events.push(busy(pod("ours", "z"), 4, None));
    events.push(busy(pod("ours", "zz"), 4, None));
    // What is left is promised to one of theirs. Both ask for the same: what was found out for one holds for the other,
    // but not the names in it.
    events.extend(gang(&format!("{CANARY}-ns"), &format!("{CANARY}-g"), 2, 1, 6000));
    events.extend(gang("ours", "mpi", 2, 1, 6000));
    secure.server.tell(events).await;
}

#[tokio::test]
async fn no_body_of_any_path_tells_of_others() {
    let secure = Secure::started().await;
    // Everything in one namespace, and what belongs to none but the graph and the nodes, whose readers see labels.
    secure.reviewer.allow(&[
        "jane * ours *",
        "jane * - fluxionqueues",
        "jane * - fluxiontimelines",
        "jane * - fluxionaudits",
        "admin * * *",
    ]);
    world(&secure).await;
    let hidden = format!("{CANARY}-ns");
    let name = format!("pod.{CANARY}-a");
    let mut paths = vec![
        (Method::GET, "fluxionjobs".to_owned()),
        (Method::GET, "fluxionnodes".to_owned()),
        (Method::GET, "fluxionnodes/n1".to_owned()),
        (Method::GET, "fluxiongraphs/live".to_owned()),
        (Method::GET, "/metrics".to_owned()),
    ];
    for own in [
        "fluxionqueues",
        "fluxionqueues/default",
        "fluxiontimelines",
        "fluxiontimelines/live",
        "fluxionaudits",
        "fluxionaudits/live",
    ] {
        paths.push((Method::GET, own.to_owned()));
    }
    for job in ["pod.z", "pod.zz", "group.mpi"] {
        paths.push((Method::GET, format!("namespaces/ours/fluxionjobs/{job}")));
        paths.push((Method::GET, format!("namespaces/ours/fluxionjobs/{job}/explain")));
        paths.push((Method::POST, format!("namespaces/ours/fluxionjobs/{job}/cancel?dryRun=All")));
        paths.push((Method::POST, format!("namespaces/ours/fluxionjobs/{job}/cancel")));
    }
    paths.push((Method::GET, "namespaces/ours/fluxionjobs".to_owned()));
    paths.push((Method::GET, "namespaces/ours/fluxionjobs?limit=1".to_owned()));
    paths.push((Method::GET, "namespaces/ours/fluxionjobs?watch=true&timeoutSeconds=1".to_owned()));
    let mut read = 0;
    for (method, path) in paths {
        let (status, text) = text(&secure, "jane", method, &path).await;
        assert!(!text.contains(CANARY), "{path}: {text}");
        read += usize::from(status.is_success());
    }
    assert!(read >= 16, "only {read} were answered");
    for path in
        [format!("namespaces/{hidden}/fluxionjobs"), format!("namespaces/{hidden}/fluxionjobs/{name}")]
    {
        // What the asker wrote comes back, and nothing else.
        let (status, text) = text(&secure, "jane", Method::GET, &path).await;
        assert_eq!(status, StatusCode::FORBIDDEN);
        assert!(!text.contains("runs") && !text.contains("-value"), "{text}");
    }
    // The test can fail: who may see all does.
    let (_, text) =
        text(&secure, "admin", Method::GET, "namespaces/ours/fluxionjobs/group.mpi/explain").await;
    assert!(text.contains(CANARY), "{text}");
}

/// Positions and counts are relative to what is seen.
#[tokio::test]
async fn places_and_counts_are_those_of_ones_own() {
    let secure = Secure::started().await;
    secure.reviewer.allow(&["jane * ours *", "jane * - fluxionqueues", "admin * * *"]);
    world(&secure).await;
    let path = "namespaces/ours/fluxionjobs/pod.z";
    let position = |body: &Value| body["status"]["position"].as_u64();
    let ours = position(&secure.ask("jane", Method::GET, path).await.1).unwrap();
    let all = position(&secure.ask("admin", Method::GET, path).await.1).unwrap();
    assert!(ours < all, "{ours} of ours is {all} of all");
    let counts = secure.ask("jane", Method::GET, "fluxionqueues/default").await.1["status"]["jobs"].clone();
    assert_eq!(counts, serde_json::json!({}), "a request about no namespace shows jobs of none: {counts}");
}

async fn text(secure: &Secure, user: &str, method: Method, path: &str) -> (StatusCode, String) {
    let mut request = request(method, path);
    request.headers_mut().insert("authorization", format!("Bearer token-of-{user}").parse().unwrap());
    let response = secure.send(request).await;
    let (status, headers) = (response.status(), format!("{:?}", response.headers()));
    let body = to_bytes(response.into_body(), 1 << 24).await.unwrap();
    (status, headers + std::str::from_utf8(&body).unwrap())
}
