use fluxion_scheduler::state::Settings;
use tokio::time::Instant;

use super::shutdown::prolong;
use super::*;
use crate::health::{Leadership, Verb, Watched};

struct Deciding {
    engine: EngineHandle,
    health: Arc<Health>,
    writes: signal::Receiver<Option<Term>>,
    nodes: Arc<Watched>,
    _tasks: Tasks,
}

fn start() -> Deciding {
    let metrics = Arc::new(Metrics::new());
    let engine = Engine {
        state: State::new(Settings::default()),
        role: Role::Follower,
        clock: system_clock(),
        metrics: Arc::clone(&metrics),
    };
    let (engine, _effects) = engine.start().unwrap();
    let health = Arc::new(Health::default());
    let nodes = health.watch("Node", "nodes");
    let (grant, writes) = signal::channel(None);
    let mut tasks = Tasks::default();
    tasks.spawn("the leadership", decide_while_right(grant, engine.clone(), Arc::clone(&health), metrics));
    Deciding { engine, health, writes, nodes, _tasks: tasks }
}

impl Deciding {
    /// We hold the Lease for so many seconds, or do not.
    fn lead(&self, seconds: Option<u64>) {
        let held =
            seconds.map(|seconds| Term { number: 7, until: Instant::now() + Duration::from_secs(seconds) });
        self.health.set_leadership(Leadership { held, ..Leadership::default() });
    }

    async fn becomes(&mut self, right: bool) {
        let wait = Duration::from_secs(20);
        tokio::time::timeout(wait, self.writes.wait_for(|until| until.is_some() == right))
            .await
            .unwrap()
            .unwrap();
        assert_eq!(self.engine.fresh().await.unwrap().state.ready(), right);
    }

    /// Whether everything was seen, and whether it is decided on.
    async fn is(&self) -> (bool, bool) {
        tokio::time::sleep(Duration::from_millis(300)).await;
        let published = self.engine.fresh().await.unwrap();
        assert_eq!(published.state.ready(), self.writes.borrow().is_some());
        (published.state.whole(), published.state.ready())
    }
}

#[tokio::test]
async fn it_is_decided_only_while_we_lead_and_every_watch_stands() {
    let mut cluster = start();
    cluster.lead(Some(60));
    cluster.nodes.heard();
    cluster.nodes.listed();
    cluster.nodes.failed(Verb::Watch, true, "nodes is forbidden".to_owned());
    assert_eq!(cluster.is().await, (false, false), "listed, but changes would not be seen");
    cluster.nodes.stands();
    cluster.becomes(true).await;
    cluster.nodes.failed(Verb::Watch, true, "nodes is forbidden".to_owned());
    cluster.becomes(false).await;
    assert_eq!(cluster.is().await, (true, false), "what was seen can still be read");
    cluster.nodes.stands();
    cluster.becomes(true).await;
    cluster.nodes.failed(Verb::Watch, false, "connection reset".to_owned());
    assert_eq!(cluster.is().await, (true, true), "a failure that may pass is given time");
    cluster.lead(None);
    cluster.becomes(false).await;
    assert_eq!(cluster.engine.fresh().await.unwrap().role, Role::Follower);
}

#[tokio::test]
async fn a_term_that_is_not_renewed_ends_by_itself() {
    let mut cluster = start();
    cluster.nodes.heard();
    cluster.nodes.listed();
    cluster.nodes.stands();
    cluster.lead(Some(1));
    cluster.becomes(true).await;
    let ends = cluster.writes.borrow().unwrap().until;
    cluster.becomes(false).await;
    assert!(Instant::now() >= ends);
    assert_eq!(cluster.engine.fresh().await.unwrap().role, Role::Follower);
}

#[tokio::test]
async fn renewals_prolong_the_right_to_write_and_do_not_grant_it() {
    let health = Health::default();
    let later = |number, seconds| Some(Term { number, until: Instant::now() + Duration::from_secs(seconds) });
    let (first, second, of_another) = (later(1, 10), later(1, 20), later(2, 20));
    for (granted, held, expected) in
        [(first, second, second), (first, None, None), (None, second, None), (first, of_another, None)]
    {
        health.set_leadership(Leadership { held, ..Leadership::default() });
        let (grant, right) = signal::channel(granted);
        let prolonged = tokio::time::timeout(Duration::from_millis(50), prolong(&grant, &health)).await;
        assert!(prolonged.is_err() && *right.borrow() == expected);
    }
}
