//! What large answers cost: `cargo test --release -p fluxion-inspector --lib answers_at_size -- --ignored --nocapture`.

use std::time::Instant;

use super::super::auth::Asker;
use super::super::collection;
use super::super::index::Served;
use super::super::query::ListQuery;
use super::super::resource::Resource;
use super::super::resource::jobs::Jobs;
use super::super::selector::Selector;
use super::*;
use crate::view::Viewer;
use fluxion_scheduler::state::JobId;

const NAMESPACES: usize = 50;
const JOBS: usize = 200;
/// Each figure is the middle one of so many.
const ROUNDS: usize = 9;

/// Time in milliseconds and bytes of an answer.
async fn once(server: &Server, path: &str, accept: &str) -> (f64, usize) {
    let mut request = request(Method::GET, path);
    request.headers_mut().insert("accept", accept.parse().unwrap());
    let began = Instant::now();
    let response = server.send(request).await;
    assert_eq!(response.status(), StatusCode::OK, "{path}");
    let bytes = to_bytes(response.into_body(), 1 << 30).await.unwrap().len();
    (began.elapsed().as_secs_f64() * 1e3, bytes)
}

async fn median(what: &str, server: &Server, path: &str, accept: &str) {
    let mut times = Vec::new();
    let mut bytes = 0;
    for _ in 0..ROUNDS {
        let (time, size) = once(server, path, accept).await;
        times.push(time);
        bytes = size;
    }
    told(what, times, bytes);
}

fn told(what: &str, mut times: Vec<f64>, bytes: usize) {
    times.sort_by(f64::total_cmp);
    let (middle, last) = (times[times.len() / 2], times[times.len() - 1]);
    println!("{what:<44} {middle:>9.2} ms (at most {last:.2}) {:>9.1} KiB", bytes as f64 / 1024.0);
}

/// What it takes to select jobs, by rendering each of them and without.
fn selected(served: &Served, everything: &Viewer) {
    let selector = Selector::fields("status.state=Reserved", Jobs::FIELDS).unwrap();
    let (mut rendering, mut looking) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        let visible = crate::view::Visible::of(&served.published, everything);
        let took = |selected: &dyn Fn(&JobId) -> bool| {
            let began = Instant::now();
            let count = served.jobs.rows.values().filter(|row| selected(&row.id)).count();
            (began.elapsed().as_secs_f64() * 1e3, count)
        };
        let rendered = |id: &JobId| {
            let object = Jobs::render(&visible, id).unwrap();
            selector.accepts(|field| Jobs::field(&object, field))
        };
        let (one, other) =
            (took(&rendered), took(&|id| Jobs::selected(&visible, id, &Selector::default(), &selector)));
        assert_eq!(one.1, other.1);
        rendering.push(one.0);
        looking.push(other.0);
    }
    told("10,000 jobs selected by rendering them", rendering, 0);
    told("10,000 jobs selected by looking at them", looking, 0);
}

/// How long it takes from an event until each of so many watches of all jobs has told of it, where it causes a pass over all
/// jobs.
async fn told_to_watches(server: &Server, count: usize) {
    use futures::StreamExt as _;
    let version = server.get("fluxionjobs?limit=1").await.1["metadata"]["resourceVersion"].clone();
    let path = format!("fluxionjobs?watch=true&resourceVersion={}", version.as_str().unwrap());
    let (tell, mut told_at) = tokio::sync::mpsc::channel(count);
    for _ in 0..count {
        let mut body = server.send(request(Method::GET, &path)).await.into_body().into_data_stream();
        let tell = tell.clone();
        tokio::spawn(async move {
            let mut round = 0;
            while let Some(Ok(chunk)) = body.next().await {
                let text = String::from_utf8_lossy(&chunk).into_owned();
                if text.contains(&format!("\"pod.seen-{round}\"")) {
                    round += 1;
                    tell.send(Instant::now()).await.unwrap();
                }
            }
        });
    }
    let mut times = Vec::new();
    for round in 0..10 {
        tokio::time::sleep(Duration::from_millis(700)).await;
        let mut seen = pod("team-02", &format!("seen-{round}"));
        seen.priority = 1_000 + round;
        let began = Instant::now();
        server.engine.send(Event::Pod(Box::new(seen)));
        for _ in 0..count {
            let at = tokio::time::timeout(Duration::from_mins(1), told_at.recv()).await.unwrap().unwrap();
            times.push(at.saturating_duration_since(began).as_secs_f64() * 1e3);
        }
        server.tell([]).await;
    }
    times.sort_by(f64::total_cmp);
    let (middle, most) = (times[times.len() / 2], times[times.len() * 99 / 100]);
    println!("an event reaches {count} watches: median {middle:.1} ms, 99 % within {most:.1} ms");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a measurement"]
async fn answers_at_size() {
    let server = Server::started(true).await;
    server.tell((0..500).map(|index| node(&format!("n{index:03}"), 4))).await;
    for namespace in 0..NAMESPACES {
        let jobs = (0..JOBS)
            .flat_map(|job| gang(&format!("team-{namespace:02}"), &format!("job-{job:03}"), 2, 2, 600));
        server.tell(jobs).await;
    }
    // Until nothing changes any more.
    let mut last = 0;
    loop {
        server.tell([]).await;
        let now = server.engine.snapshot().sequence;
        if now == last {
            break;
        }
        last = now;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    let json = "application/json";
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
    let served = server.app.index.at(server.engine.snapshot()).await.unwrap();
    let (room, everything) = (served.room.left(), Viewer::everything());
    let mut anew = Vec::new();
    for _ in 0..3 {
        let began = Instant::now();
        let visible = crate::view::Visible::of(&served.published, &everything);
        let objects = served.jobs.rows.values().filter_map(|row| Jobs::render(&visible, &row.id));
        let objects: Vec<_> = objects.collect();
        let bytes = serde_json::to_vec(&objects).unwrap().len();
        anew.push((began.elapsed().as_secs_f64() * 1e3, bytes));
    }
    selected(&served, &everything);
    told("10,000 jobs rendered anew", anew.iter().map(|(time, _)| *time).collect(), anew[0].1);
    let (first, bytes) = once(&server, "fluxionjobs", json).await;
    told("10,000 jobs, for the first time", vec![first], bytes);
    let kept = served.jobs.rows.values().filter(|row| row.is_kept()).count();
    println!("{kept} jobs are kept in {:.0} bytes each", (room - served.room.left()) as f64 / kept as f64);
    drop(served);
    median("10,000 jobs", &server, "fluxionjobs", json).await;
    median("10,000 jobs as a table", &server, "fluxionjobs", table).await;
    median("500 jobs of 10,000", &server, "fluxionjobs?limit=500", json).await;
    median("200 jobs of a namespace", &server, "namespaces/team-07/fluxionjobs", json).await;
    median("... as a table", &server, "namespaces/team-07/fluxionjobs", table).await;
    median(
        "10,000 jobs by a state that 200 have",
        &server,
        "fluxionjobs?fieldSelector=status.state%3DReserved",
        json,
    )
    .await;
    median("... by a label that none has", &server, "fluxionjobs?labelSelector=app%3Dnone", json).await;
    median("... by a node", &server, "fluxionjobs?fieldSelector=node%3Dn007", json).await;
    median("one job", &server, "namespaces/team-07/fluxionjobs/group.job-007", json).await;
    median(
        "one job of a list",
        &server,
        "namespaces/team-07/fluxionjobs?fieldSelector=metadata.name%3Dgroup.job-007",
        json,
    )
    .await;
    median("502 nodes", &server, "fluxionnodes", json).await;
    let mut times = Vec::new();
    let mut bytes = 0;
    for _ in 0..ROUNDS {
        let began = Instant::now();
        let asker =
            Asker { name: "someone".into(), viewer: Viewer::namespaces(["team-07".into()]), standing: None };
        let namespace = Some("team-07".into());
        let answer =
            collection::list::<Jobs>(server.app.clone(), asker, namespace, ListQuery::default()).await;
        bytes = to_bytes(answer.unwrap().into_body(), 1 << 30).await.unwrap().len();
        times.push(began.elapsed().as_secs_f64() * 1e3);
    }
    told("200 jobs of a namespace, for its user", times, bytes);
    let (mut after, mut single) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let mut changed = pod("team-49", "late");
        changed.priority = i32::try_from(round).unwrap();
        changed.labels.insert("round".into(), round.to_string().into());
        server.tell([Event::Pod(Box::new(changed.clone()))]).await;
        single.push(once(&server, "namespaces/team-07/fluxionjobs/group.job-007", json).await.0);
        changed.labels.insert("again".into(), "yes".into());
        server.tell([Event::Pod(Box::new(changed))]).await;
        after.push(once(&server, "fluxionjobs", json).await.0);
    }
    told("one job, after another one has changed", single, 0);
    told("10,000 jobs, after one has changed", after, 0);
    for count in [1, 1_000] {
        told_to_watches(&server, count).await;
    }
}
