//! The index against the obvious: what differs between two snapshots has a new version, whatever was in between.

use fluxion_scheduler::event::BindOutcome;
use fluxion_scheduler::model::{ControllerRef, OwnerDetail, OwnerSpec};

use super::super::accept::{Form, Include};
use super::super::index::{Index, Indexed, Served};
use super::super::rendered::{Room, Style};
use super::super::resource::{Resource, Source};
use super::super::table::Table;
use super::*;
use crate::engine::Published;
use crate::view::{Viewer, Visible};

fn publish(state: &State, sequence: u64) -> Arc<Published> {
    Arc::new(Published {
        state: state.clone(),
        sequence,
        since: 0,
        term: 0,
        observed_at: START,
        role: Role::Standalone,
        pass_seconds: 0.0,
    })
}

/// Compares the versions with what is shown; how many objects changed.
fn compare<R: Indexed>(before: &Served, after: &Served, what: &str) -> usize {
    let everything = Viewer::everything();
    let (old, new) =
        (Visible::of(&before.published, &everything), Visible::of(&after.published, &everything));
    let (was, is): (&Table<R>, &Table<R>) = (R::table(before), R::table(after));
    let mut changed = 0;
    for (key, row) in &is.rows {
        let Some(known) = was.rows.get(key) else { continue };
        let same = R::render(&old, &known.id) == R::render(&new, &row.id);
        assert_eq!(row.version == known.version, same, "{what}: {key:?}");
        changed += usize::from(!same);
    }
    // What is kept is then of several moments.
    if !after.version.is_multiple_of(3) {
        return changed;
    }
    for viewer in [
        everything.clone(),
        Viewer::namespaces(["team".into()]),
        Viewer::namespaces(["other".into()]),
        Viewer::namespaces(["team".into(), "other".into()]),
    ] {
        as_rendered::<R>(after, &viewer, what);
    }
    changed
}

/// Compares what is sent, of which much was kept from before, with what is rendered anew.
fn as_rendered<R: Indexed>(served: &Served, viewer: &Viewer, what: &str) {
    // What each of them is told of the others is computed anew here, and shared there.
    let (shared, anew) = (served.seen_by(viewer), Visible::of(&served.published, viewer));
    let style = Style { form: Form::Object, include: Include::Metadata, now: START };
    for (key, row) in &R::table(served).rows {
        if !key.namespace.is_empty() && !viewer.sees(&key.namespace) {
            continue;
        }
        let mut object = R::render(&anew, &row.id).unwrap();
        R::meta_mut(&mut object).resource_version = row.version.to_string();
        let rendered = row.rendered(&shared, &served.room).unwrap();
        let mut sent = Vec::new();
        rendered.write::<R>(&mut sent, style, row.version, Source::Now(&shared, &row.id));
        let sent: Value = serde_json::from_slice(&sent).unwrap();
        assert_eq!(sent, serde_json::to_value(&object).unwrap(), "{what}: {key:?}, {viewer:?}");
        let mut was = Vec::new();
        rendered.write::<R>(&mut was, style, row.version, Source::Was(&object));
        assert_eq!(serde_json::from_slice::<Value>(&was).unwrap(), sent, "{what}: {key:?}, {viewer:?}");
    }
}

struct World {
    state: State,
    served: Served,
    now: i64,
    sequence: u64,
    changed: usize,
}

impl World {
    fn new() -> Self {
        let mut state = State::new(Settings { keep_ended: 60, ..Settings::default() });
        state.step(START, vec![node("n1", 4), node("n2", 4), Event::Synced]);
        let served = Served::first(publish(&state, 1), 0, Arc::default());
        Self { state, served, now: START, sequence: 1, changed: 0 }
    }

    /// One step; what it wants bound is bound.
    fn step(&mut self, events: Vec<Event>) {
        let mut effects = self.state.step(self.now, events);
        while !effects.is_empty() {
            let mut answers = Vec::new();
            for effect in effects {
                let Effect::Bind { pod, node, record } = effect else { continue };
                let Some(mut bound) = self.state.pod(&pod.uid).cloned() else { continue };
                (bound.node, bound.record, bound.scheduled_at) = (Some(node), Some(record), Some(self.now));
                answers.push(Event::Bound { pod: pod.uid, outcome: BindOutcome::Done });
                answers.push(Event::Pod(Box::new(bound)));
            }
            effects = if answers.is_empty() { Vec::new() } else { self.state.step(self.now, answers) };
        }
    }

    fn look(&mut self, what: &str) {
        self.sequence += 1;
        let next = self.served.next(publish(&self.state, self.sequence));
        self.changed += compare::<super::super::resource::jobs::Jobs>(&self.served, &next, what);
        self.changed += compare::<super::super::resource::nodes::Nodes>(&self.served, &next, what);
        self.served = next;
    }
}

fn controller(uid: &str) -> ControllerRef {
    ControllerRef {
        api_version: "example.com/v1".into(),
        kind: "Set".into(),
        name: uid.into(),
        uid: uid.into(),
    }
}

fn owner(uid: &str, above: Option<&str>) -> OwnerSpec {
    OwnerSpec {
        uid: uid.into(),
        namespace: "team".into(),
        api_version: "example.com/v1".into(),
        kind: "Set".into(),
        name: uid.into(),
        created: START,
        deleting: false,
        labels: Marks::new(),
        annotations: Marks::new(),
        controller: above.map(controller),
        scheduler: None,
        failure: None,
        detail: OwnerDetail::Replicas { replicas: 1 },
    }
}

#[test]
fn a_change_between_two_snapshots_is_never_missed() {
    let mut seed = 7_u64;
    let mut draw = |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    };
    let mut world = World::new();
    // How many Pods of a name there were; a uid never comes back.
    let mut born = [0_u64; 6];
    for round in 0..250 {
        // Several steps between two looks: what changes there and back again is no change.
        for _ in 0..=draw(3) {
            let place = usize::try_from(draw(6)).unwrap();
            let name = format!("p{place}");
            let mut made = pod(if place < 4 { "team" } else { "other" }, &name);
            // Of two of a name the older one is on its way out.
            made.uid = format!("{name}-{}", born[place].saturating_sub(draw(2))).into();
            let known = world.state.pod(&made.uid).cloned();
            let event = match draw(12) {
                0..=3 => {
                    born[place] += 1;
                    made.uid = format!("{name}-{}", born[place]).into();
                    made.active_deadline = (draw(2) == 0).then_some(60);
                    made.needs = Ok(Arc::new(resources(&[("cpu", 1000 * (1 + draw(4))), ("pods", 1)])));
                    made.controller = (draw(3) == 0).then(|| controller("low"));
                    Event::Pod(Box::new(made))
                }
                4 => Event::PodGone(made.uid),
                5 | 6 => match known {
                    Some(pod) if pod.node.is_some() => {
                        let phase = [Phase::Running, Phase::Succeeded, Phase::Failed]
                            [usize::try_from(draw(3)).unwrap()];
                        Event::Pod(Box::new(PodSpec { phase, ..pod }))
                    }
                    Some(pod) => Event::Pod(Box::new(PodSpec { deleting: draw(2) == 0, ..pod })),
                    None => Event::Tick,
                },
                7 => node("n1", 1 + draw(8)),
                8 => node("n3", 2),
                9 => Event::NodeGone("n3".into()),
                10 => Event::Owner(Box::new(owner("low", (draw(2) == 0).then_some("high")))),
                _ => match draw(3) {
                    0 => Event::Owner(Box::new(owner("high", None))),
                    1 => Event::OwnerGone("high".into()),
                    _ => {
                        world.now += i64::try_from(draw(50)).unwrap();
                        Event::Tick
                    }
                },
            };
            world.step(vec![event]);
        }
        world.look(&format!("round {round}"));
    }
    assert!(world.changed > 200, "{} changes are not much of a test", world.changed);
}

#[test]
fn who_is_called_otherwise_changes_where_it_is_named() {
    let mut world = World::new();
    let first = PodSpec { uid: "first".into(), active_deadline: Some(600), ..pod("team", "p") };
    world.step(vec![Event::Pod(Box::new(first.clone()))]);
    let placed = world.state.pod("first").cloned().unwrap();
    assert!(placed.node.is_some());
    world.look("the first");
    world.step(vec![Event::Pod(Box::new(PodSpec { deleting: true, ..placed }))]);
    world.look("it is deleted");
    // Its successor comes while it still holds its node, and fits nowhere: all that changes of the node is the name.
    let named = |world: &World| {
        let everything = Viewer::everything();
        let visible = Visible::of(&world.served.published, &everything);
        super::super::resource::nodes::Nodes::render(&visible, &"n1".into()).unwrap().status.jobs
    };
    assert_eq!(named(&world), ["team/pod/p"]);
    let needs = Ok(Arc::new(resources(&[("cpu", 8000), ("pods", 1)])));
    world.step(vec![Event::Pod(Box::new(PodSpec { uid: "second".into(), needs, ..first }))]);
    world.look("the second");
    assert_eq!(named(&world), ["team/pod/p.first"]);
    world.step(vec![Event::PodGone("first".into())]);
    world.look("the first is gone");
    // Nobody remembers it any more.
    world.now += 61;
    world.step(vec![Event::Tick]);
    world.look("forgotten");
}

#[tokio::test]
async fn what_nobody_asks_for_is_forgotten_and_versions_go_on() {
    let mut state = State::new(Settings::default());
    state.step(START, vec![node("n1", 4), Event::Synced]);
    state.step(START, vec![Event::Pod(Box::new(pod("team", "a"))), Event::Pod(Box::new(pod("team", "b")))]);
    let published = publish(&state, 1);
    let index = Index::default();
    let first = index.at(Arc::clone(&published)).await.unwrap();
    index.tidy().await;
    assert!(Arc::ptr_eq(&first, &index.at(Arc::clone(&published)).await.unwrap()), "somebody had asked");
    index.tidy().await;
    index.tidy().await;
    assert!(
        Arc::ptr_eq(&first, &index.at(Arc::clone(&published)).await.unwrap()),
        "an answer is being written"
    );
    let versions = |served: &Served| served.jobs.rows.values().map(|row| row.version).collect::<Vec<_>>();
    let (version, rows, kept) = (first.version, versions(&first), Arc::downgrade(&first));
    drop(first);
    index.tidy().await;
    index.touch();
    index.tidy().await;
    assert!(kept.upgrade().is_some(), "pages of an earlier one were read");
    index.tidy().await;
    assert!(kept.upgrade().is_none());

    // What is unchanged keeps its version, and a watch of it goes on.
    let again = index.at(published).await.unwrap();
    assert_eq!(versions(&again), rows);
    assert!(again.jobs.floor <= version);
    drop(again);

    // What has changed in the meantime has another, and a watch has to list again.
    index.tidy().await;
    index.tidy().await;
    state.step(START + 1, vec![Event::PodGone("uid-team-b".into())]);
    let changed = index.at(publish(&state, 2)).await.unwrap();
    assert!(changed.version > version && changed.jobs.floor > version);
    assert_eq!(versions(&changed)[0], rows[0]);
    assert!(versions(&changed)[1] > version, "{:?}", versions(&changed));

    let version = changed.version;
    drop(changed);
    for _ in 0..=100 {
        index.tidy().await;
    }
    let later = index.at(publish(&state, 2)).await.unwrap();
    assert!(later.version > version && later.jobs.floor > version && later.jobs.log.is_empty());
}

#[test]
fn what_is_kept_is_limited_and_goes_with_its_object() {
    let mut state = State::new(Settings::default());
    let pods = |count: u32| (0..count).map(|index| Event::Pod(Box::new(pod("team", &format!("p{index}")))));
    state.step(START, std::iter::once(Event::Synced).chain(pods(20)).collect());
    let everything = Viewer::everything();
    let room = Arc::new(Room::of(10_000));
    let served = Served::first(publish(&state, 1), 0, Arc::clone(&room));
    let visible = served.seen_by(&everything);
    for row in served.jobs.rows.values() {
        assert!(row.rendered(&visible, &room).is_some());
    }
    let kept = served.jobs.rows.values().filter(|row| row.is_kept()).count();
    assert!((2..20).contains(&kept), "{kept}");
    let left = room.left();
    assert!(left < 10_000 / kept, "{left}");
    // A changed object is written anew, the others stay.
    state.step(START + 1, vec![Event::PodGone("uid-team-p0".into())]);
    let next = served.next(publish(&state, 2));
    assert!(next.jobs.rows.values().filter(|row| row.is_kept()).count() >= kept - 1);
    drop(served);
    assert!(room.left() >= left);
    drop(next);
    assert_eq!(room.left(), 10_000);
}

#[tokio::test]
async fn versions_from_before_a_term_have_expired_and_none_is_lower() {
    let mut state = State::new(Settings::default());
    state.step(START, vec![node("n1", 4), Event::Synced]);
    let index = Index::default();
    let of = |state: &State, since: u64, sequence: u64| {
        let published = publish(state, sequence);
        Arc::new(Published { since, ..(*published).clone() })
    };
    let first = index.at(of(&state, 10, 10)).await.unwrap();
    state.step(START, vec![node("n2", 4)]);
    let same_term = index.at(of(&state, 10, 11)).await.unwrap();
    assert!(same_term.nodes.floor <= first.version, "its changes are known");
    // Another leader has given out versions up to the term.
    for term in [1_000, 1_001] {
        state.step(START, vec![node(&format!("n{term}"), 4)]);
        let next = index.at(of(&state, term, term)).await.unwrap();
        assert!(next.version >= term && next.version > same_term.version);
        assert_eq!(
            (next.nodes.floor, next.jobs.floor, next.queues.floor),
            (next.version, next.version, next.version)
        );
        assert!(next.nodes.rows.values().all(|row| row.version == next.version));
    }
}
