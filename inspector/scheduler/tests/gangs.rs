//! Gangs start whole or not at all: gathering, sizes, refills, cancelling, restarts.

mod world;

use fluxion_scheduler::event::{BindOutcome, Effect, Event};
use fluxion_scheduler::model::{OwnerDetail, Phase};
use fluxion_scheduler::state::{JobState, ReasonClass};
use world::{World, in_group};

fn two_nodes() -> World {
    let mut world = World::default();
    world.node("n1", "cpu=4000 memory=8192");
    world.node("n2", "cpu=4000 memory=8192");
    world
}

#[test]
fn a_single_pod_is_a_group_of_one() {
    let mut world = two_nodes();
    world.pod("web-0", "cpu=1000");
    assert_eq!(world.line("pod.web-0"), "Running 1/1");
    assert_eq!(world.node_of("web-0"), Some("n1"));
    world.end_pod("web-0", Phase::Succeeded);
    assert_eq!(world.state_of("pod.web-0"), JobState::Completed);
    assert_eq!(world.state.inventory().node("n1").unwrap().free.get("cpu"), 4000);
}

#[test]
fn two_gangs_that_arrive_interleaved_run_one_after_the_other() {
    let mut world = World::default();
    world.node("g1", "cpu=64000 nvidia.com/gpu=8");
    world.node("g2", "cpu=64000 nvidia.com/gpu=8");
    for index in 0..3 {
        for gang in ["a", "b"] {
            world.pod_with(&format!("{gang}-{index}"), "nvidia.com/gpu=4", in_group(gang, "3"));
            let both = (world.bound("a"), world.bound("b"));
            assert!(matches!(both, (0 | 3, 0)), "{both:?}");
        }
        if index < 2 {
            assert_eq!(world.line("group.b"), format!("Gathering {}/3", index + 1));
        }
    }
    assert_eq!((world.line("group.a"), world.bound("b")), ("Running 3/3".to_owned(), 0));
    assert!(world.told("group.b").contains("nvidia.com/gpu"), "{}", world.told("group.b"));
    world.pod("single", "cpu=1000");
    assert_eq!(world.line("pod.single"), "Running 1/1");
    for index in 0..3 {
        world.delete_pod(&format!("a-{index}"));
    }
    assert_eq!((world.state_of("group.a"), world.bound("b")), (JobState::Cancelled, 3));
}

#[test]
fn a_native_group_gathers_until_its_minimum_is_there_and_follows_its_changes() {
    let mut world = two_nodes();
    let member = |pod: &mut fluxion_scheduler::model::PodSpec| pod.scheduling_group = Some("train".into());
    for index in 0..3 {
        world.pod_with(&format!("w-{index}"), "cpu=1000", member);
    }
    assert_eq!(world.bound("w"), 0);
    assert!(
        world.told("podgroup.train").contains("PodGroup train not found"),
        "{}",
        world.told("podgroup.train")
    );
    world.group("train", Some(4), None);
    assert_eq!((world.line("podgroup.train"), world.bound("w")), ("Gathering 3/4".to_owned(), 0));
    world.group("train", Some(3), None);
    assert_eq!((world.line("podgroup.train"), world.bound("w")), ("Running 3/3".to_owned(), 3));
    let scheduled = |effect: &Effect| matches!(effect, Effect::GroupScheduled { scheduled: true, .. });
    assert_eq!(world.effects.iter().filter(|effect| scheduled(effect)).count(), 1);
    world.group("train", Some(5), None);
    assert_eq!(world.bound("w"), 3, "members that run are never undone");
    world.pod_with("w-3", "cpu=1000", member);
    assert_eq!(world.bound("w"), 3, "4 of 5 can't reach the minimum");
    let told = world.told("podgroup.train");
    assert!(told.contains('4') && told.contains('5'), "{told}");
    world.pod_with("w-4", "cpu=1000", member);
    assert_eq!(world.bound("w"), 5);
}

#[test]
fn sizes_that_disagree_start_nothing() {
    let mut world = two_nodes();
    world.pod_with("mix-a", "cpu=1000", in_group("mix", "3"));
    world.pod_with("mix-b", "cpu=1000", in_group("mix", "3"));
    world.pod_with("mix-c", "cpu=1000", in_group("mix", "4"));
    let told = world.told("group.mix");
    assert!(told.contains("group-size") && told.contains('3') && told.contains('4'), "{told}");
    world.restart();
    assert_eq!((world.bound("mix"), world.told("group.mix")), (0, told));
    world.delete_pod("mix-c");
    assert_eq!(world.line("group.mix"), "Gathering 2/3");
    world.pod_with("mix-d", "cpu=1000", in_group("mix", "3"));
    assert_eq!(world.line("group.mix"), "Running 3/3");
}

#[test]
fn sizes_that_are_no_numbers_harm_nobody_else() {
    let mut world = two_nodes();
    for (index, bad) in
        ["0", "-2", "three", "1.5", "", " 3 ", "2147483648", "99999999999999999999"].iter().enumerate()
    {
        let name = format!("bad-{index}");
        world.pod_with(&name, "cpu=100", in_group(&name, bad));
        let job = world.job(&format!("group.{name}"));
        assert_eq!(job.reason.as_ref().unwrap().class, ReasonClass::InvalidRequest);
        assert!(world.told(&format!("group.{name}")).contains(bad));
    }
    world.pod_with("nameless", "cpu=100", in_group("", "2"));
    assert!(world.told("pod.nameless").contains("group is empty"), "{}", world.told("pod.nameless"));
    world.pod("healthy", "cpu=1000");
    assert_eq!((world.bound("bad"), world.bound("nameless"), world.bound("healthy")), (0, 0, 1));
    let events =
        world.effects.iter().filter(|effect| matches!(effect, Effect::Note { warning: true, .. })).count();
    world.at(1);
    world.at(1);
    let later =
        world.effects.iter().filter(|effect| matches!(effect, Effect::Note { warning: true, .. })).count();
    assert_eq!(events, later, "an Event is said once");
}

#[test]
fn the_gang_of_a_job_is_what_can_still_run_at_once() {
    let mut world = World::default();
    world.node("n1", "cpu=4000");
    let controller = world.job_object("sweep", 4, 5, true);
    for index in 0..4 {
        world
            .pod_with(&format!("sweep-{index}"), "cpu=1000", |pod| pod.controller = Some(controller.clone()));
    }
    assert_eq!(world.line("job.sweep"), "Running 4/4");
    for index in 0..4 {
        world.end_pod(&format!("sweep-{index}"), Phase::Succeeded);
    }
    assert_eq!(world.state_of("job.sweep"), JobState::Running, "one completion is left");
    world.change_owner("sweep", |owner| {
        let OwnerDetail::Job { succeeded, .. } = &mut owner.detail else { panic!("a Job") };
        *succeeded = 4;
    });
    world.pod_with("sweep-4", "cpu=1000", |pod| pod.controller = Some(controller.clone()));
    assert_eq!(world.line("job.sweep"), "Running 1/1");
    world.end_pod("sweep-4", Phase::Succeeded);
    world.change_owner("sweep", |owner| {
        let OwnerDetail::Job { succeeded, complete, .. } = &mut owner.detail else { panic!("a Job") };
        (*succeeded, *complete) = (5, true);
    });
    assert_eq!(world.state_of("job.sweep"), JobState::Completed);
}

#[test]
fn a_retry_of_a_labelled_gang_of_a_job_joins_alone() {
    let mut world = two_nodes();
    let controller = world.job_object("mpi", 3, 3, false);
    let member = |controller: &fluxion_scheduler::model::ControllerRef| {
        let controller = controller.clone();
        move |pod: &mut fluxion_scheduler::model::PodSpec| {
            in_group("mpi", "3")(pod);
            pod.controller = Some(controller);
        }
    };
    for index in 0..3 {
        world.pod_with(&format!("mpi-{index}"), "cpu=1000", member(&controller));
    }
    assert_eq!(world.line("group.mpi"), "Running 3/3");
    world.end_pod("mpi-0", Phase::Succeeded);
    world.end_pod("mpi-1", Phase::Succeeded);
    world.end_pod("mpi-2", Phase::Failed);
    world.change_owner("mpi", |owner| {
        let OwnerDetail::Job { succeeded, .. } = &mut owner.detail else { panic!("a Job") };
        *succeeded = 2;
    });
    for restarted in [false, true] {
        if restarted {
            world.end_pod("mpi-retry-0", Phase::Failed);
            world.restart();
        }
        let name = format!("mpi-retry-{}", u8::from(restarted));
        world.pod_with(&name, "cpu=1000", member(&controller));
        assert_eq!(world.bound(&name), 1, "{}", world.told("group.mpi"));
    }
}

#[test]
fn a_gang_whose_members_all_failed_starts_again_whole_or_not_at_all() {
    let mut world = two_nodes();
    let controller = world.job_object("retry", 2, 2, true);
    let member = |pod: &mut fluxion_scheduler::model::PodSpec| {
        pod.controller = Some(controller.clone());
        pod.active_deadline = Some(100);
    };
    for index in 0..2 {
        world.pod_with(&format!("first-{index}"), "cpu=4000", member);
    }
    assert_eq!(world.line("job.retry"), "Running 2/2");
    let first_end = world.job("job.retry").planned_end;
    for index in 0..2 {
        world.end_pod(&format!("first-{index}"), Phase::Failed);
    }
    let between = world.job("job.retry");
    assert_eq!((between.degraded, between.planned_end), (false, None), "it holds nothing");
    // Meanwhile somebody else takes one of the two nodes.
    world.pod("other", "cpu=4000");
    for index in 0..2 {
        world.pod_with(&format!("second-{index}"), "cpu=4000", member);
    }
    assert_eq!(world.bound("second"), 0, "{}", world.told("job.retry"));
    assert_eq!(world.line("job.retry"), "Reserved 2/2");
    world.restart();
    assert_eq!((world.bound("second"), world.line("job.retry")), (0, "Reserved 2/2".to_owned()));
    world.at(50);
    world.end_pod("other", Phase::Succeeded);
    assert_eq!((world.bound("second"), world.line("job.retry")), (2, "Running 2/2".to_owned()));
    assert_eq!(world.job("job.retry").planned_end, first_end.map(|end| end + 50));
}

#[test]
fn an_annotation_that_says_neither_true_nor_false_starts_nothing() {
    let mut world = two_nodes();
    let controller = world.job_object("sure", 2, 2, false);
    for bad in ["yes", "1", ""] {
        let name = format!("m-{bad}");
        world.pod_with(&name, "cpu=1000", |pod| {
            pod.controller = Some(controller.clone());
            pod.annotations.insert("fluxion.flux-framework.org/gang".into(), bad.into());
        });
        assert!(world.told(&format!("pod.{name}")).contains("must be \"true\" or \"false\""));
    }
    assert_eq!(world.bound("m"), 0);
}

#[test]
fn pods_whose_job_goes_first_stay_its_pods() {
    let mut world = two_nodes();
    let controller = world.job_object("gone", 2, 2, true);
    for index in 0..2 {
        world.pod_with(&format!("m-{index}"), "cpu=1000", |pod| pod.controller = Some(controller.clone()));
    }
    assert_eq!(world.line("job.gone"), "Running 2/2");
    let uid = world.owners.values().next().unwrap().uid.clone();
    world.owners.clear();
    world.step(vec![Event::OwnerGone(uid)]);
    assert_eq!(world.names(), ["job.gone"]);
    for index in 0..2 {
        world.delete_pod(&format!("m-{index}"));
    }
    assert_eq!(
        (world.names(), world.state_of("job.gone")),
        (vec!["job.gone".to_owned()], JobState::Cancelled)
    );
}

#[test]
fn pods_of_a_job_that_is_no_gang_go_alone() {
    let mut world = two_nodes();
    let controller = world.job_object("many", 3, 3, false);
    world.pod_with("many-0", "cpu=1000", |pod| pod.controller = Some(controller.clone()));
    assert_eq!(world.line("pod.many-0"), "Running 1/1");
    world.pod_with("many-1", "cpu=9000", |pod| pod.controller = Some(controller.clone()));
    world.owners.clear();
    world.step(vec![Event::OwnerGone("job-many".into())]);
    world.delete_pod("many-1");
    assert_eq!(
        world.names(),
        ["pod.many-0", "pod.many-1"],
        "each stays a job of its own when its Job goes first"
    );
}

#[test]
fn a_pod_waits_until_its_owner_was_seen() {
    let mut world = two_nodes();
    let mut controller = None;
    {
        let mut other = World::default();
        controller.replace(other.job_object("late", 2, 2, true));
    }
    let controller = controller.unwrap();
    world.pod_with("late-0", "cpu=1000", |pod| pod.controller = Some(controller.clone()));
    assert_eq!(world.bound("late"), 0);
    world.job_object("late", 2, 2, true);
    assert_eq!(world.line("job.late"), "Gathering 1/2");
    world.pod_with("late-1", "cpu=1000", |pod| pod.controller = Some(controller.clone()));
    assert_eq!(world.line("job.late"), "Running 2/2");
    // That lasted no time: which watch delivers first is no part of the story.
    assert_eq!(world.job("job.late").history[0].reason, "waiting for members: 1 of 2 created");
}

#[test]
fn members_whose_pod_group_is_deleted_run_on_and_say_so() {
    let mut world = two_nodes();
    world.group("train", Some(2), None);
    for name in ["w-0", "w-1"] {
        world.pod_with(name, "cpu=1000", |pod| pod.scheduling_group = Some("train".into()));
    }
    world.groups.remove("pg-train");
    world.step(vec![Event::GroupGone("pg-train".into())]);
    for _ in 0..2 {
        assert_eq!((world.state_of("podgroup.train"), world.bound("w")), (JobState::Running, 2));
        assert!(
            world.told("podgroup.train").contains("PodGroup train was deleted"),
            "{}",
            world.told("podgroup.train")
        );
        world.restart();
    }
}

#[test]
fn an_ordered_stateful_set_is_told_at_once_that_it_can_never_gather() {
    let mut world = two_nodes();
    let mut controller = world.job_object("db", 1, 1, true);
    world.change_owner("db", |owner| {
        owner.kind = "StatefulSet".into();
        owner.api_version = "apps/v1".into();
        owner.detail = OwnerDetail::StatefulSet { replicas: 3, ordered: true };
    });
    controller.kind = "StatefulSet".into();
    world.pod_with("db-0", "cpu=1000", |pod| pod.controller = Some(controller));
    assert!(world.told("statefulset.db").contains("podManagementPolicy"), "{}", world.told("statefulset.db"));
}

#[test]
fn a_kill_between_two_bindings_of_a_gang_leaves_it_whole_in_the_end() {
    for bound_before in 0..=5 {
        let mut world = two_nodes();
        world.binding = false;
        for index in 0..5 {
            world.pod_with(&format!("m-{index}"), "cpu=1000", in_group("m", "5"));
        }
        let binds: Vec<_> = world
            .effects
            .iter()
            .filter_map(|effect| match effect {
                Effect::Bind { pod, node, record } => Some((pod.clone(), node.clone(), record.clone())),
                _ => None,
            })
            .collect();
        assert_eq!(binds.len(), 5);
        for (pod, node, record) in binds.into_iter().take(bound_before) {
            let pod = world.pods.get_mut(&pod.uid).unwrap();
            (pod.node, pod.record, pod.phase, pod.scheduled_at) =
                (Some(node), Some(record), Phase::Running, Some(world.now));
        }
        // Somebody else wants the rest of the space at the same time.
        let thief = world.make_pod("a-thief", "cpu=4000", |pod| pod.priority = 100);
        world.pods.insert(thief.uid.clone(), thief);
        world.binding = true;
        world.restart();
        world.pass(2);
        if bound_before == 0 {
            assert_eq!(world.bound("a-thief"), 1, "nothing was started, so the order decides");
        } else {
            assert_eq!(
                (world.bound("m"), world.bound("a-thief")),
                (5, 0),
                "{bound_before} were bound before"
            );
        }
    }
}

#[test]
fn a_member_that_is_gone_while_it_is_bound_waits_for_its_replacement() {
    let mut world = two_nodes();
    world.bind = |pod, _| (&*pod.name == "m-1").then(|| BindOutcome::Gone("not found".into()));
    for index in 0..3 {
        world.pod_with(&format!("m-{index}"), "cpu=1000", in_group("m", "3"));
        if index == 2 {
            break;
        }
    }
    world.bind = |_, _| None;
    world.delete_pod("m-1");
    let job = world.job("group.m");
    assert!(job.degraded, "{:?}", job.members);
    world.pod_with("m-3", "cpu=1000", in_group("m", "3"));
    assert_eq!(world.line("group.m"), "Running 3/3");
    assert!(!world.job("group.m").degraded);
}

#[test]
fn a_binding_that_fails_for_a_while_is_tried_again() {
    let mut world = two_nodes();
    world.bind = |_, _| Some(BindOutcome::Transient("503".into()));
    world.pod("p", "cpu=1000");
    assert_eq!((world.state_of("pod.p"), world.bound("p")), (JobState::Binding, 0));
    assert!(world.told("pod.p").contains("503"));
    world.bind = |_, _| None;
    world.pass(5);
    assert_eq!(world.line("pod.p"), "Running 1/1");
}

#[test]
fn a_gang_that_can_not_be_bound_in_time_is_released_when_its_pods_come_back() {
    let mut world = two_nodes();
    let controller = world.job_object("j", 2, 2, true);
    world.bind = |pod, _| (&*pod.name == "j-1").then(|| BindOutcome::Refused("forbidden".into()));
    for index in 0..2 {
        world.pod_with(&format!("j-{index}"), "cpu=1000", |pod| pod.controller = Some(controller.clone()));
    }
    world.pass(310);
    let evicted =
        world.effects.iter().any(|effect| matches!(effect, Effect::Evict { pod, .. } if &*pod.name == "j-0"));
    assert!(evicted, "{:?}", world.told("job.j"));
}

#[test]
fn bare_pods_of_a_gang_that_is_bound_in_part_are_kept_and_found_by_the_audit() {
    let mut world = two_nodes();
    world.bind = |pod, _| (&*pod.name == "m-1").then(|| BindOutcome::Refused("forbidden".into()));
    for index in 0..2 {
        world.pod_with(&format!("m-{index}"), "cpu=1000", in_group("m", "2"));
    }
    world.pass(310);
    assert!(!world.effects.iter().any(|effect| matches!(effect, Effect::Delete { .. })));
    let findings = world.state.audit();
    assert!(
        findings.iter().any(|finding| finding.class == "PartlyBound" && finding.text.contains("1 of 2")),
        "{findings:?}"
    );
}

#[test]
fn a_member_of_a_started_gang_comes_before_what_waiting_jobs_were_promised() {
    let mut world = World::default();
    world.node("n1", "cpu=2000");
    world.bind = |pod, _| (&*pod.name == "m-1").then(|| BindOutcome::Transient("busy".into()));
    for index in 0..2 {
        world.pod_with(&format!("m-{index}"), "cpu=1000", |pod| {
            in_group("m", "2")(pod);
            pod.active_deadline = Some(200);
        });
    }
    world.pod("promised", "cpu=2000");
    world.pass(305);
    assert_eq!((world.bound("m"), world.state_of("pod.promised")), (1, JobState::Reserved));
    world.bind = |_, _| None;
    world.pass(1000);
    assert_eq!(world.line("group.m"), "Running 2/2");
}

#[test]
fn what_ended_members_asked_for_does_not_order_those_that_wait() {
    let mut world = World::default();
    let member = |world: &mut World, name: &str, priority| {
        world.pod_with(name, "cpu=4000", |pod| {
            in_group("g", "1")(pod);
            pod.priority = priority;
        });
    };
    member(&mut world, "g-0", 9);
    world.end_pod("g-0", Phase::Succeeded);
    member(&mut world, "g-1", -1);
    world.pod("single", "cpu=4000");
    world.restart();
    world.node("n1", "cpu=4000");
    assert_eq!((world.bound("g-1"), world.bound("single")), (0, 1));
}

#[test]
fn members_under_other_schedulers_stop_the_gang() {
    let mut world = two_nodes();
    world.group("g", Some(2), None);
    let member = |pod: &mut fluxion_scheduler::model::PodSpec| pod.scheduling_group = Some("g".into());
    world.pod_with("other", "cpu=1000", |pod| {
        member(pod);
        pod.scheduler_name = "default-scheduler".into();
    });
    assert!(world.names().is_empty(), "no job of ours");
    world.pod_with("ours", "cpu=1000", member);
    assert!(world.told("podgroup.g").contains("schedulerName"), "{}", world.told("podgroup.g"));
    assert_eq!(world.bound("ours") + world.bound("other"), 0);
}

#[test]
fn members_of_a_label_group_under_another_scheduler_stop_it_whoever_comes_first() {
    for foreign in [0, 1] {
        let mut world = two_nodes();
        for index in 0..2 {
            world.pod_with(&format!("m-{index}"), "cpu=1000", |pod| {
                in_group("mpi", "2")(pod);
                if index == foreign {
                    pod.scheduler_name = "default-scheduler".into();
                }
            });
        }
        assert!(world.told("group.mpi").contains("schedulerName"), "{}", world.told("group.mpi"));
        assert_eq!(world.bound("m"), 0);
        // Once it is gone the other one is what it was before.
        world.delete_pod(&format!("m-{foreign}"));
        assert_eq!(world.line("group.mpi"), "Gathering 1/2");
    }
}

#[test]
fn a_deleted_node_degrades_the_gang_on_it_at_once() {
    let mut world = two_nodes();
    for index in 0..2 {
        world.pod_with(&format!("m-{index}"), "cpu=3000", in_group("mpi", "2"));
    }
    assert_eq!(world.line("group.mpi"), "Running 2/2");
    let spec = world.nodes.remove("n2").unwrap();
    world.step(vec![Event::NodeGone("n2".into())]);
    assert!(world.job("group.mpi").degraded);
    let told = world.told("group.mpi");
    assert!(told.contains("NodesDown: 1 of 2 members were on deleted nodes (n2)"), "{told}");
    // A restart says the same.
    world.restart();
    assert!(world.job("group.mpi").degraded);
    // It comes back under its name, and the member is where it was.
    world.step(vec![Event::Node(Box::new(spec))]);
    assert!(!world.job("group.mpi").degraded);
    assert_eq!(world.job("group.mpi").reason, None);
}

#[test]
fn gated_members_are_not_seen_yet_and_said() {
    let mut world = two_nodes();
    world.pod_with("g-0", "cpu=1000", in_group("g", "2"));
    world.pod_with("g-1", "cpu=1000", |pod| {
        in_group("g", "2")(pod);
        pod.gates = vec!["wait".into()];
    });
    let told = world.told("group.g");
    assert!(
        told.contains("waiting for members: 1 of 2 are schedulable; 1 is blocked by scheduling gate wait"),
        "{told}"
    );
    world.change_pod("g-1", |pod| pod.gates.clear());
    assert_eq!(world.line("group.g"), "Running 2/2");
}

#[test]
fn a_terminating_pod_holds_what_it_holds() {
    let mut world = World::default();
    world.node("gpu", "cpu=64000 nvidia.com/gpu=8");
    world.pod("old", "nvidia.com/gpu=8");
    world.change_pod("old", |pod| pod.deleting = true);
    assert_eq!(world.line("pod.old"), "Releasing 1/1");
    world.pod("new", "nvidia.com/gpu=8");
    world.restart();
    assert_eq!(world.bound("new"), 0);
    assert!(matches!(world.state_of("pod.new"), JobState::Pending | JobState::Reserved));
    world.delete_pod("old");
    assert_eq!(world.line("pod.new"), "Running 1/1");
}

#[test]
fn a_pod_that_another_scheduler_preempts_is_shown_as_that() {
    let mut world = two_nodes();
    world.pod("p", "cpu=1000");
    world.change_pod("p", |pod| {
        pod.deleting = true;
        pod.disruption = Some("PreemptionByScheduler".into());
    });
    assert!(world.told("pod.p").contains("preempted by another scheduler"), "{}", world.told("pod.p"));
    world.delete_pod("p");
    assert_eq!(world.state_of("pod.p"), JobState::Failed);
}

#[test]
fn cancelling_deletes_the_owner_so_that_nothing_comes_back() {
    let mut world = two_nodes();
    let controller = world.job_object("run", 2, 2, true);
    for index in 0..2 {
        world.pod_with(&format!("run-{index}"), "cpu=1000", |pod| pod.controller = Some(controller.clone()));
    }
    let plan = world.state.cancel_plan(world.job("job.run"));
    assert_eq!(
        plan.targets.iter().map(|target| (&*target.kind, &*target.name)).collect::<Vec<_>>(),
        [("Job", "run")]
    );
    assert_eq!((plan.pods, plan.frees.get("cpu"), plan.ending), (2, 2000, false));
    world.step(vec![Event::Cancelled { job: "job-run".into(), by: "alice".into() }]);
    assert!(
        world
            .effects
            .iter()
            .any(|effect| matches!(effect, Effect::Delete { object, .. } if &*object.kind == "Job"))
    );
    let uid = controller.uid.clone();
    world.owners.remove(&uid);
    world.step(vec![Event::OwnerGone(uid)]);
    world.delete_pod("run-0");
    world.delete_pod("run-1");
    assert_eq!(world.state_of("job.run"), JobState::Cancelled);
    assert!(world.told("job.run").contains("alice"));
}

#[test]
fn one_name_in_two_namespaces_is_two_jobs() {
    let mut world = two_nodes();
    for namespace in ["team-a", "team-b"] {
        world.pod_with(&format!("rank-0-{namespace}"), "cpu=1000", |pod| {
            pod.namespace = namespace.into();
            in_group("train", "2")(pod);
        });
    }
    assert_eq!(world.names(), ["group.train", "group.train"]);
    assert_eq!(world.bound("rank"), 0);
}

#[test]
fn a_job_has_the_labels_that_all_its_members_share() {
    let mut world = two_nodes();
    let labelled = |index: &'static str, tier: &'static str| {
        move |pod: &mut fluxion_scheduler::model::PodSpec| {
            in_group("mpi", "2")(pod);
            pod.labels.insert("app".into(), "lammps".into());
            pod.labels.insert("tier".into(), tier.into());
            pod.labels.insert("batch.kubernetes.io/job-completion-index".into(), index.into());
        }
    };
    let labels = |world: &World| {
        let own = |key: &&String| !key.starts_with("fluxion.");
        let keys = world.job("group.mpi").labels.keys().map(ToString::to_string);
        keys.collect::<Vec<_>>().iter().filter(own).cloned().collect::<Vec<_>>()
    };
    let index = "batch.kubernetes.io/job-completion-index";
    world.pod_with("mpi-0", "cpu=1000", labelled("0", "hot"));
    assert_eq!(labels(&world), ["app", index, "tier"]);
    world.pod_with("mpi-1", "cpu=1000", labelled("1", "hot"));
    assert_eq!(labels(&world), ["app", "tier"]);
    world.pod_with("mpi-2", "cpu=1000", labelled("2", "cold"));
    assert_eq!(labels(&world), ["app"]);
    world.change_pod("mpi-2", |pod| drop(pod.labels.insert("tier".into(), "hot".into())));
    assert_eq!(labels(&world), ["app", "tier"]);
    world.change_pod("mpi-2", |pod| drop(pod.labels.remove("app")));
    assert_eq!(labels(&world), ["tier"]);
    world.delete_pod("mpi-2");
    assert_eq!(labels(&world), ["app", "tier"]);
    world.delete_pod("mpi-1");
    world.delete_pod("mpi-0");
    assert_eq!(labels(&world), ["app", index, "tier"], "an ended job keeps what it had");
}

#[test]
fn a_job_that_is_invalid_as_it_is_written_can_never_run_and_is_looked_at_again_when_it_is_mended() {
    let mut world = two_nodes();
    world.pod_with("p", "cpu=1000", |pod| {
        pod.annotations.insert("fluxion.flux-framework.org/duration".into(), "soon".into());
    });
    assert_eq!(world.line("pod.p"), "Unsatisfiable 1/1");
    assert!(world.told("pod.p").starts_with("InvalidRequest"), "{}", world.told("pod.p"));
    world.change_pod("p", |pod| {
        pod.annotations.insert("fluxion.flux-framework.org/duration".into(), "10s".into());
    });
    assert_eq!(world.line("pod.p"), "Running 1/1");
}

#[test]
fn a_job_for_nodes_that_still_start_up_waits() {
    let mut world = World::default();
    world.node_with("n1", "cpu=4000", |node| {
        node.taints = vec![fluxion_scheduler::constraint::Taint {
            key: "karpenter.sh/unregistered".into(),
            value: "".into(),
            effect: fluxion_scheduler::constraint::TaintEffect::NoExecute,
        }];
    });
    world.pod("p", "cpu=1000");
    assert_eq!(world.line("pod.p"), "Pending 1/1");
    assert!(world.told("pod.p").contains("karpenter.sh/unregistered"), "{}", world.told("pod.p"));
    world.node("n1", "cpu=4000");
    assert_eq!(world.line("pod.p"), "Running 1/1");
}
