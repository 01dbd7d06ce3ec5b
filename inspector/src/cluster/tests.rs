use fluxion_scheduler::state::Settings;

use super::*;
use crate::health::{Verb, Watched};

struct Deciding {
    engine: EngineHandle,
    lead: signal::Sender<bool>,
    writes: signal::Receiver<bool>,
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
    let (lead, leading) = signal::channel(false);
    let (decide, writes) = signal::channel(false);
    let mut tasks = Tasks::default();
    tasks.spawn("the leadership", decide_while_right(leading, decide, engine.clone(), health, metrics));
    Deciding { engine, lead, writes, nodes, _tasks: tasks }
}

impl Deciding {
    async fn becomes(&mut self, right: bool) {
        let wait = Duration::from_secs(20);
        tokio::time::timeout(wait, self.writes.wait_for(|now| *now == right)).await.unwrap().unwrap();
        assert_eq!(self.engine.fresh().await.unwrap().state.ready(), right);
    }

    /// Whether everything was seen, and whether it is decided on.
    async fn is(&self) -> (bool, bool) {
        tokio::time::sleep(Duration::from_millis(300)).await;
        let published = self.engine.fresh().await.unwrap();
        assert_eq!(published.state.ready(), *self.writes.borrow());
        (published.state.whole(), published.state.ready())
    }
}

#[tokio::test]
async fn it_is_decided_only_while_we_lead_and_every_watch_stands() {
    let mut cluster = start();
    cluster.lead.send_replace(true);
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
    cluster.lead.send_replace(false);
    cluster.becomes(false).await;
    assert_eq!(cluster.engine.fresh().await.unwrap().role, Role::Follower);
}
