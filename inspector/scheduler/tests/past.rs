//! What is told of a job that has ended, and of one whose Pods were made again.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod world;

use std::sync::Arc;

use fluxion_scheduler::event::{Effect, Event};
use fluxion_scheduler::model::{ContainerExit, OwnerDetail, Phase, PodEnd, PodSpec, SharedStr};
use fluxion_scheduler::record::{JournalEntry, LiveJob, Remembered};
use fluxion_scheduler::state::{Job, JobState, ReasonClass, State};
use world::past::{follow, kept, record, restart_with_journal, told_of_all};
use world::{World, in_group};

/// Two nodes on each of which one member of a gang fits.
fn world() -> World {
    let mut world = World::default();
    world.node("n1", "cpu=4000");
    world.node("n2", "cpu=4000");
    world
}

/// As a kubelet writes it.
fn end(world: &mut World, name: &str, phase: Phase, change: impl FnOnce(&mut PodSpec, &mut PodEnd)) {
    let now = world.now;
    world.change_pod(name, |pod| {
        let mut end = PodEnd { at: Some(now), ..PodEnd::default() };
        change(pod, &mut end);
        pod.phase = phase;
        pod.end = Some(Arc::new(end));
    });
}

fn exit(code: i32, reason: &str) -> impl FnOnce(&mut PodSpec, &mut PodEnd) {
    let exit = ContainerExit { name: "main".into(), code, reason: Some(reason.into()) };
    move |_, end| end.container = Some(exit)
}

fn status(reason: &str) -> impl FnOnce(&mut PodSpec, &mut PodEnd) {
    let reason = reason.into();
    move |pod, _| pod.status_reason = Some(reason)
}

#[test]
fn an_ended_job_keeps_what_it_was_though_its_pods_go() {
    let mut world = world();
    let start = world.now;
    for index in 0..2 {
        world.pod_with(&format!("a-{index}"), "cpu=3000", |pod| {
            in_group("a", "2")(pod);
            pod.active_deadline = Some(600);
        });
    }
    world.at(30);
    end(&mut world, "a-0", Phase::Succeeded, |_, _| ());
    world.at(30);
    end(&mut world, "a-1", Phase::Succeeded, |_, _| ());
    let want = format!(
        "Completed 2/2 asked 2x(cpu 3, pods 1) limit Some(600) on n1=a-0 n2=a-1 from Some({start}) to Some({})",
        start + 60
    );
    assert_eq!(record(world.job("group.a")), want);
    assert_eq!(world.job("group.a").planned_end, None, "it has ended");
    // A restarted engine reads the same from the objects, though it comes back later.
    world.at(100);
    world.restart();
    assert_eq!(record(world.job("group.a")), want);
    assert_eq!(world.job("group.a").state_since, start + 60);
    assert_eq!(world.job("group.a").history.last().unwrap().time, start + 60);
    world.delete_pod("a-0");
    world.at(10);
    world.delete_pod("a-1");
    assert_eq!(record(world.job("group.a")), want);
    world.pass(3600);
    assert_eq!(world.names(), Vec::<String>::new(), "an hour after its end it is forgotten");
}

#[test]
fn a_job_whose_pods_are_deleted_tells_where_it_ran_or_what_it_waited_for() {
    let mut world = world();
    let start = world.now;
    for (name, amount) in [("runs", "cpu=3000"), ("waits", "cpu=4000")] {
        for index in 0..2 {
            world.pod_with(&format!("{name}-{index}"), amount, in_group(name, "2"));
        }
    }
    world.at(5);
    for pod in ["waits-1", "waits-0", "runs-0"] {
        world.delete_pod(pod);
    }
    world.at(2);
    world.delete_pod("runs-1");
    assert_eq!(
        record(world.job("group.runs")),
        format!(
            "Cancelled 2/2 asked 2x(cpu 3, pods 1) limit None on n1=runs-0 n2=runs-1 from Some({start}) to Some({})",
            start + 7
        )
    );
    assert_eq!(
        record(world.job("group.waits")),
        format!("Cancelled 0/2 asked 2x(cpu 4, pods 1) limit None on  from None to Some({})", start + 5)
    );
    for name in ["group.runs", "group.waits"] {
        assert_eq!(world.told(name), "Cancelled: the Pods were deleted |  | ");
    }
}

#[test]
fn what_ended_a_job_is_told_with_container_and_code() {
    type Change = Box<dyn FnOnce(&mut PodSpec, &mut PodEnd)>;
    let cases: Vec<(Change, &str)> = vec![
        (Box::new(exit(3, "Error")), "PodFailed: container main of Pod p exited with code 3"),
        (Box::new(exit(137, "OOMKilled")), "PodFailed: OOMKilled (Pod p, container main, exit code 137)"),
        (
            Box::new(status("DeadlineExceeded")),
            "DeadlineExceeded: DeadlineExceeded (Pod p, activeDeadlineSeconds: 60)",
        ),
        (
            Box::new(|pod, end| {
                status("Evicted")(pod, end);
                end.message = Some("The node was low on resource: memory.".into());
            }),
            "Disrupted: Evicted (Pod p): The node was low on resource: memory.",
        ),
        (Box::new(|_, _| ()), "PodFailed: Error (Pod p)"),
        (Box::new(status("OutOfcpu")), "BindFailed: Pod p was rejected by the kubelet: OutOfcpu"),
        (
            Box::new(status("TopologyAffinityError")),
            "BindFailed: Pod p was rejected by the kubelet: TopologyAffinityError",
        ),
    ];
    for (change, want) in cases {
        let mut world = world();
        world.pod_with("p", "cpu=1000", |pod| pod.active_deadline = Some(60));
        end(&mut world, "p", Phase::Failed, change);
        assert_eq!(world.state_of("pod.p"), JobState::Failed);
        assert_eq!(world.told("pod.p"), format!("{want} |  | "));
        assert_eq!(&*world.job("pod.p").exit.as_ref().unwrap().pod, "p");
    }
}

#[test]
fn the_member_that_failed_first_is_the_one_that_is_named() {
    let mut world = world();
    for index in 0..2 {
        world.pod_with(&format!("a-{index}"), "cpu=3000", in_group("a", "2"));
    }
    world.at(1);
    end(&mut world, "a-1", Phase::Failed, exit(137, "OOMKilled"));
    world.at(1);
    end(&mut world, "a-0", Phase::Failed, exit(1, "Error"));
    assert_eq!(
        world.told("group.a"),
        "PodFailed: 2 Pods failed; first failure: OOMKilled (Pod a-1, container main, exit code 137) |  | "
    );
}

/// A gang Job of two whose members all fail and are made again, `times` times; the last two run.
fn retried(times: u32) -> World {
    let mut world = world();
    let controller = world.job_object("a", 2, 2, true);
    for attempt in 0..=times {
        for index in 0..2 {
            world.pod_with(&format!("a-{attempt}-{index}"), "cpu=3000", |pod| {
                pod.controller = Some(controller.clone());
                pod.active_deadline = Some(60);
            });
        }
        if attempt < times {
            // One after the other, so that the gang is never without a member that runs.
            world.at(50);
            for index in 0..2 {
                end(&mut world, &format!("a-{attempt}-{index}"), Phase::Failed, exit(1, "Error"));
            }
            world.at(10);
        }
    }
    world
}

#[test]
fn start_planned_end_and_counts_are_those_of_the_attempt_that_runs() {
    let mut world = retried(4);
    let start = world.now;
    for _ in 0..2 {
        let job = world.job("job.a");
        assert_eq!((job.started_at, job.planned_end), (Some(start), Some(start + 60)));
        assert_eq!(world.line("job.a"), "Running 2/2");
        assert_eq!(world.job("job.a").members.ended, 8);
        world.restart();
    }
    world.at(20);
    for index in 0..2 {
        end(&mut world, &format!("a-4-{index}"), Phase::Failed, exit(1, "Error"));
    }
    let ended = world.now;
    world.at(5);
    world.change_owner("a", |owner| {
        let OwnerDetail::Job { failed, ended_at, .. } = &mut owner.detail else { panic!("a Job") };
        (*failed, *ended_at) = (Some("BackoffLimitExceeded".into()), Some(ended + 2));
    });
    let want = format!(
        "Failed 2/2 asked 2x(cpu 3, pods 1) limit Some(60) on n1=a-4-0 n2=a-4-1 from Some({start}) to Some({})",
        ended + 2
    );
    assert_eq!(record(world.job("job.a")), want);
    let job = world.job("job.a");
    assert_eq!((job.members.ended, job.reason.as_ref().unwrap().class), (10, ReasonClass::PodFailed));
    assert_eq!(
        world.told("job.a"),
        "PodFailed: the Job failed: BackoffLimitExceeded; container main of Pod a-0-0 exited with code 1 |  | "
    );
    world.restart();
    assert_eq!(record(world.job("job.a")), want);
}

#[test]
fn a_member_that_joins_a_started_gang_has_its_own_time_before_it() {
    let mut world = world();
    let controller = world.job_object("a", 2, 4, true);
    let start = world.now;
    let make = |world: &mut World, name: &str| {
        world.pod_with(name, "cpu=3000", |pod| {
            pod.controller = Some(controller.clone());
            pod.active_deadline = Some(60);
        });
    };
    make(&mut world, "a-0");
    make(&mut world, "a-1");
    world.at(50);
    end(&mut world, "a-0", Phase::Succeeded, |_, _| ());
    world.change_owner("a", |owner| {
        let OwnerDetail::Job { succeeded, .. } = &mut owner.detail else { panic!("a Job") };
        *succeeded = 1;
    });
    make(&mut world, "a-2");
    // The one that is left began with the gang; the new one may run for longer than was planned then.
    let job = world.job("job.a");
    assert_eq!((job.started_at, job.planned_end), (Some(start), Some(start + 110)));
    assert_eq!(world.state.inventory().node("n1").unwrap().holders[0].1.until, Some(start + 110));
    world.at(5);
    end(&mut world, "a-1", Phase::Succeeded, |_, _| ());
    world.change_owner("a", |owner| {
        let OwnerDetail::Job { succeeded, .. } = &mut owner.detail else { panic!("a Job") };
        *succeeded = 2;
    });
    make(&mut world, "a-3");
    let job = world.job("job.a");
    assert_eq!((job.started_at, job.planned_end), (Some(start + 50), Some(start + 115)));
}

#[test]
fn a_restart_leaves_ages_as_they_were() {
    let mut world = world();
    let start = world.now;
    world.pod("runs", "cpu=4000");
    world.at(10);
    world.pod("waits", "cpu=8000");
    world.pod_with("few-0", "cpu=1000", in_group("few", "3"));
    world.at(500);
    world.restart();
    let since = |name: &str| world.job(name).state_since - start;
    assert_eq!([since("pod.runs"), since("pod.waits"), since("group.few")], [0, 10, 10]);
    assert_eq!(world.job("pod.runs").history[0].time, start);
}

#[test]
fn a_restart_with_a_journal_tells_the_same_past() {
    let mut world = world();
    world.pod("done", "cpu=1000");
    world.pod("failed", "cpu=1000");
    world.pod("gone", "cpu=1000");
    world.pod("big", "cpu=64000");
    let controller = world.job_object("train", 2, 2, true);
    for index in 0..2 {
        world
            .pod_with(&format!("train-{index}"), "cpu=2500", |pod| pod.controller = Some(controller.clone()));
        world.at(3);
    }
    for index in 0..2 {
        world.pod_with(&format!("late-{index}"), "cpu=4000", in_group("late", "2"));
        world.at(3);
    }
    end(&mut world, "done", Phase::Succeeded, |_, _| ());
    world.at(7);
    end(&mut world, "failed", Phase::Failed, exit(3, "Error"));
    world.at(7);
    world.delete_pod("failed");
    world.step(vec![Event::Cancelled { job: "uid-gone".into(), by: "alice".into() }]);
    world.delete_pod("gone");
    world.delete_pod("done");
    let before = told_of_all(&world);
    assert!(
        before.iter().any(|line| line.contains("pod.gone Cancelled") && line.contains("cancelled by alice"))
    );
    assert_eq!(before.len(), 6, "{before:#?}");
    world.at(60);
    let still = told_of_all(&world);
    for _ in 0..3 {
        restart_with_journal(&mut world);
        assert_eq!(told_of_all(&world), still);
        world.at(1);
    }
    // It goes on from there, and what has ended is forgotten when its time is over.
    for index in 0..2 {
        end(&mut world, &format!("train-{index}"), Phase::Succeeded, |_, _| ());
    }
    let job = world.job("job.train");
    let states: Vec<_> = job.history.iter().map(|entry| entry.state.as_str()).collect();
    assert_eq!(states[states.len() - 2..], ["Running", "Running"], "{states:?}");
    assert_eq!(world.line("group.late"), "Running 2/2");
    world.pass(3600);
    restart_with_journal(&mut world);
    assert!(world.names().iter().all(|name| !name.starts_with("pod.done")), "{:?}", world.names());
}

#[test]
fn who_cancelled_a_job_is_known_over_a_restart_between_wish_and_end() {
    let mut world = world();
    world.pod("web", "cpu=1000");
    world.at(5);
    world.step(vec![Event::Cancelled { job: "uid-web".into(), by: "alice".into() }]);
    world.change_pod("web", |pod| pod.deleting = true);
    restart_with_journal(&mut world);
    world.at(2);
    world.delete_pod("web");
    assert_eq!(world.told("pod.web"), "Cancelled: cancelled by alice |  | ");
    let states: Vec<_> = world.job("pod.web").history.iter().map(|entry| entry.state.as_str()).collect();
    assert_eq!(states, ["Pending", "Binding", "Running", "Releasing", "Cancelled"]);
}

#[test]
fn a_second_life_of_a_group_takes_nothing_from_the_first() {
    let mut world = world();
    world.group("g", Some(1), None);
    let member = |pod: &mut PodSpec| pod.scheduling_group = Some("g".into());
    world.pod_with("first", "cpu=1000", member);
    world.at(5);
    end(&mut world, "first", Phase::Succeeded, |_, _| ());
    world.at(5);
    world.pod_with("second", "cpu=1000", member);
    world.at(5);
    let before = told_of_all(&world);
    assert_eq!(before.len(), 2);
    restart_with_journal(&mut world);
    assert_eq!(told_of_all(&world), before);
}

#[test]
fn a_group_without_an_object_goes_on_under_its_uid_and_a_new_one_of_its_name_does_not() {
    let mut world = world();
    world.pod_with("z-first", "cpu=1000", in_group("g", "2"));
    world.at(10);
    world.pod_with("a-second", "cpu=1000", in_group("g", "2"));
    world.at(10);
    let (uid, before) = (world.job("group.g").key.uid.clone(), told_of_all(&world));
    restart_with_journal(&mut world);
    assert_eq!((&world.job("group.g").key.uid, told_of_all(&world)), (&uid, before));
    // All of it goes while nobody looks, and others of the name come.
    world.at(10);
    world.pods.clear();
    world.make_pod("new", "cpu=1000", in_group("g", "2"));
    restart_with_journal(&mut world);
    assert_eq!(&*world.job("group.g").key.uid, "uid-new");
    assert_eq!(world.job("group.g").history.len(), 1);
}

#[test]
fn an_owner_without_pods_keeps_its_past_over_a_restart() {
    let mut world = world();
    for name in ["suspended", "rejected"] {
        world.job_object(name, 2, 2, true);
        world.change_owner(name, |owner| owner.scheduler = Some("fluxion".into()));
    }
    world.at(5);
    world.change_owner("suspended", |owner| {
        let OwnerDetail::Job { suspended, .. } = &mut owner.detail else { panic!("a Job") };
        *suspended = true;
    });
    world.change_owner("rejected", |owner| owner.failure = Some("forbidden: exceeded quota: small".into()));
    world.at(60);
    let before = told_of_all(&world);
    assert_eq!(before.len(), 2, "{before:#?}");
    restart_with_journal(&mut world);
    assert_eq!(told_of_all(&world), before);
}

#[test]
fn a_pod_that_ended_with_its_job_is_no_job_of_its_own_after_a_restart() {
    let mut world = world();
    world.pod("done", "cpu=1000");
    world.at(5);
    end(&mut world, "done", Phase::Succeeded, |_, _| ());
    world.at(5);
    let before = told_of_all(&world);
    restart_with_journal(&mut world);
    assert_eq!(told_of_all(&world), before);
    assert_eq!(world.names(), ["pod.done"]);
}

/// A follower, which saw all objects but made no decisions, becomes the leader and is told what the one before recorded.
#[test]
fn what_a_leader_recorded_is_merged_into_what_its_successor_saw() {
    let mut world = world();
    world.pod_with("a", "cpu=3000", in_group("g", "2"));
    world.at(5);
    world.pod_with("b", "cpu=3000", in_group("g", "2"));
    world.pod("done", "cpu=1000");
    world.at(5);
    let by = SharedStr::from("alice");
    world.step(vec![Event::CancelStarted { job: "uid-done".into(), by }]);
    end(&mut world, "done", Phase::Succeeded, |_, _| ());
    world.at(5);
    let told = |world: &World| {
        let told =
            |job: &Job| (job.key.object_name(), job.state, job.history.clone(), job.cancelled_by.clone());
        world.state.jobs().map(told).collect::<Vec<_>>()
    };
    let before = told(&world);
    let remembered = kept(&world);

    follow(&mut world);
    assert_ne!(told(&world), before, "a successor has not seen what only its predecessor knew");
    world.step(remembered.clone());
    assert_eq!(told(&world), before);
    world.step(remembered.into_iter().chain([Event::Synced]).collect());
    assert_eq!(told(&world), before, "told twice, nothing is there twice");
    // What it would record from here on is what was recorded.
    let records: Vec<JournalEntry> = world.state.jobs().flat_map(Job::records).collect();
    assert!(
        records.iter().any(|entry| matches!(entry, JournalEntry::Ended(job) if &*job.key.uid == "uid-done"))
    );
}

#[test]
fn a_group_without_an_object_goes_on_under_the_uid_that_a_leader_gave_it() {
    let mut world = world();
    world.pod_with("z-first", "cpu=1000", in_group("g", "2"));
    world.at(10);
    world.pod_with("a-second", "cpu=1000", in_group("g", "2"));
    world.at(10);
    let (uid, before) = (world.job("group.g").key.uid.clone(), told_of_all(&world));
    let remembered = kept(&world);
    follow(&mut world);
    assert_ne!(world.job("group.g").key.uid, uid);
    world.step(remembered.clone());
    assert_eq!((&world.job("group.g").key.uid, told_of_all(&world)), (&uid, before));
    // All of it goes while nobody records anything, and others of the name come.
    world.at(10);
    world.pods.clear();
    world.make_pod("new", "cpu=1000", in_group("g", "2"));
    follow(&mut world);
    world.step(remembered);
    assert_eq!(&*world.job("group.g").key.uid, "uid-new");
    assert_eq!(world.job("group.g").history.len(), 1);
}

/// A leader with a gang and a Pod that Alice is cancelling, and an engine that follows.
fn leader_and_follower() -> (World, World) {
    let mut world = world();
    for name in ["z-first", "a-second"] {
        world.pod_with(name, "cpu=1000", in_group("g", "2"));
        world.at(10);
    }
    world.pod("web", "cpu=1000");
    world.at(10);
    let settings = world.state.settings().clone();
    let mut leader = std::mem::replace(&mut world, World::new(settings));
    (world.pods, world.nodes, world.now) = (leader.pods.clone(), leader.nodes.clone(), leader.now);
    follow(&mut world);
    leader.step(vec![Event::CancelStarted { job: "uid-web".into(), by: "alice".into() }]);
    (leader, world)
}

/// Each engine notices by itself that Pods were deleted, and a group without an object has the UID of the first member seen.
#[test]
fn a_job_whose_end_two_engines_saw_is_told_once() {
    let (mut leader, mut world) = leader_and_follower();
    world.now += 2;
    for name in ["z-first", "a-second", "web"] {
        for world in [&mut leader, &mut world] {
            world.delete_pod(name);
        }
    }
    assert_ne!(told_of_all(&world), told_of_all(&leader));
    world.step(kept(&leader));
    assert_eq!(told_of_all(&world), told_of_all(&leader));
    let ends = |world: &World| {
        let jobs = world.state.jobs();
        jobs.map(|job| (job.key.uid.clone(), job.ended_at.unwrap())).collect::<Vec<_>>()
    };
    assert_eq!(ends(&world), ends(&leader));
    // It is forgotten as what it was recorded as.
    let (web, at) = (SharedStr::from("uid-web"), world.job("pod.web").ended_at);
    world.at(3_598);
    let forgotten = Effect::Journal(JournalEntry::Forgotten { uid: web, ended_at: at });
    assert!(world.effects.contains(&forgotten) && world.names().is_empty(), "{:?}", world.names());
}

/// The successor leads before it notices that Pods were deleted, and reads what was recorded before or after that.
#[test]
fn an_end_that_two_leaders_record_is_one_in_the_journal() {
    for read_first in [false, true] {
        let (mut leader, mut world) = leader_and_follower();
        for name in ["z-first", "a-second", "web"] {
            leader.delete_pod(name);
        }
        world.effects.clear();
        world.now += 2;
        world.step(vec![Event::Synced]);
        let recorded = kept(&leader);
        if read_first {
            world.step(recorded.clone());
        }
        for name in ["z-first", "a-second", "web"] {
            world.delete_pod(name);
        }
        if !read_first {
            world.step(recorded.clone());
        }
        assert_eq!(told_of_all(&world), told_of_all(&leader), "read first: {read_first}");
        leader.effects.append(&mut world.effects);
        assert_eq!(kept(&leader), recorded, "read first: {read_first}");
        // The next life of a name is another one.
        world.pod("web", "cpu=1000");
        world.delete_pod("web");
        assert_eq!(world.state.jobs().filter(|job| &*job.key.name == "web").count(), 2);
    }
}

#[test]
fn a_finished_job_of_which_no_object_is_left_is_shown_by_a_successor_too() {
    let mut world = world();
    world.pod("done", "cpu=1000");
    world.at(5);
    end(&mut world, "done", Phase::Succeeded, |_, _| ());
    world.at(5);
    let before = told_of_all(&world);
    let remembered = kept(&world);
    world.pods.clear();
    let settings = world.state.settings().clone();
    world.state = State::new(settings.clone());
    world.step(vec![Event::Paused]);
    world.step(remembered.clone());
    assert_eq!(told_of_all(&world), before);
    // Unless that is long ago.
    world.state = State::new(settings);
    world.at(3_600);
    world.step(vec![Event::Paused]);
    world.step(remembered);
    assert!(told_of_all(&world).is_empty());
}

#[test]
fn what_is_remembered_of_a_job_that_never_comes_is_given_up_in_time() {
    let mut world = World::default();
    let remembered = || {
        let live = LiveJob {
            uid: "uid-lost".into(),
            job: "default/pod.lost".into(),
            next: 0,
            history: Vec::new(),
            cancelled_by: None,
        };
        Event::Remembered(Box::new(Remembered::Live(live)))
    };
    world.state = State::new(world.state.settings().clone());
    world.step(vec![remembered(), Event::Synced]);
    let given_up = |world: &World| {
        let forgotten = |effect: &Effect| matches!(effect, Effect::Journal(JournalEntry::Forgotten { uid, .. }) if &**uid == "uid-lost");
        world.effects.iter().any(forgotten)
    };
    world.at(3_599);
    assert!(!given_up(&world));
    world.at(1);
    assert!(given_up(&world));
    // What is only told then is kept for as long.
    world.effects.clear();
    world.at(100);
    world.step(vec![remembered()]);
    world.at(3_599);
    assert!(!given_up(&world));
    world.at(1);
    assert!(given_up(&world));
}

/// The objects are deleted elsewhere: the engine only remembers who did it, until it hears that it failed.
#[test]
fn who_deletes_a_job_is_recorded_and_withdrawn_if_that_fails() {
    let mut world = world();
    for name in ["web", "db"] {
        world.pod(name, "cpu=1000");
    }
    world.at(5);
    let by = |by: &str| -> SharedStr { by.into() };
    for (job, who) in [("uid-web", "alice"), ("uid-db", "bob")] {
        world.step(vec![Event::CancelStarted { job: job.into(), by: by(who) }]);
    }
    world.step(vec![
        Event::CancelFailed { job: "uid-db".into(), by: by("bob") },
        // Somebody else's failure.
        Event::CancelFailed { job: "uid-web".into(), by: by("carol") },
    ]);
    assert!(!world.effects.iter().any(|effect| matches!(effect, Effect::Delete { .. })));
    restart_with_journal(&mut world);
    world.at(2);
    for name in ["web", "db"] {
        world.delete_pod(name);
    }
    assert_eq!(world.told("pod.web"), "Cancelled: cancelled by alice |  | ");
    assert!(!world.told("pod.db").contains("bob"), "{}", world.told("pod.db"));
    let last = world.job("pod.web").history.last().cloned().unwrap();
    assert_eq!((last.state.as_str(), &*last.reason), ("Cancelled", "cancelled by alice"));
    restart_with_journal(&mut world);
    assert_eq!(world.told("pod.web"), "Cancelled: cancelled by alice |  | ");
}
