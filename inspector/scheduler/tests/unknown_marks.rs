//! Labels and annotations that begin as ours do and mean nothing, and what a planned duration is next to a time limit.

mod world;

use fluxion_scheduler::event::Effect;
use fluxion_scheduler::model::PodSpec;
use world::World;

fn annotated(key: &'static str, value: &'static str) -> impl Fn(&mut PodSpec) {
    move |pod: &mut PodSpec| drop(pod.annotations.insert(key.into(), value.into()))
}

fn events(world: &World) -> Vec<(String, String)> {
    let note = |effect: &Effect| match effect {
        Effect::Note { regarding, reason: "UnknownAnnotation", note, warning: true, .. } => {
            Some((format!("{}/{}", regarding.kind, regarding.name), note.clone()))
        }
        _ => None,
    };
    world.effects.iter().filter_map(note).collect()
}

#[test]
fn a_mistyped_annotation_is_named_once_with_what_was_meant() {
    let mut world = World::default();
    world.node("n1", "cpu=1000");
    world.pod("first", "cpu=1000");
    world.pod_with("p", "cpu=1000", annotated("fluxion.flux-framework.org/durration", "1h"));
    let text = "ignoring unknown annotation 'fluxion.flux-framework.org/durration' on the Pods: did you mean \
                fluxion.flux-framework.org/duration?";
    assert_eq!(world.job("pod.p").warnings, [text]);
    assert_eq!(events(&world), [("Pod/p".to_owned(), text.to_owned())]);
    assert!(world.job("pod.first").warnings.is_empty());
    // Whatever else changes, nothing is said again; what is set right is no longer said.
    world.at(60);
    world.change_pod("p", |pod| drop(pod.labels.insert("app".into(), "x".into())));
    assert_eq!(events(&world).len(), 1);
    world.change_pod("p", |pod| drop(pod.annotations.remove("fluxion.flux-framework.org/durration")));
    assert!(world.job("pod.p").warnings.is_empty());
}

#[test]
fn owners_groups_and_labels_count_and_a_running_job_is_not_told_again() {
    let mut world = World::default();
    world.node("n1", "cpu=4000");
    let controller = world.job_object("lammps", 2, 2, true);
    world.change_owner("lammps", |owner| {
        owner.annotations.insert("fluxion.flux-framework.org/timelimit".into(), "1h".into());
        owner.labels.insert("fluxion.flux-framework.org/queue".into(), "fast".into());
        owner.labels.insert("app".into(), "lammps".into());
    });
    for name in ["lammps-0", "lammps-1"] {
        world.pod_with(name, "cpu=1000", |pod| pod.controller = Some(controller.clone()));
    }
    assert_eq!(world.line("job.lammps"), "Running 2/2");
    let warnings = world.job("job.lammps").warnings.clone();
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert_eq!(
        warnings[0],
        "ignoring unknown label 'fluxion.flux-framework.org/queue' on Job lammps: it must be an annotation, not a label"
    );
    assert!(
        warnings[1]
            .starts_with("ignoring unknown annotation 'fluxion.flux-framework.org/timelimit' on Job lammps")
    );
    assert!(warnings[1].contains("valid names are fluxion.flux-framework.org/"), "{warnings:?}");
    assert!(warnings[1].contains("fluxion.flux-framework.org/duration"), "{warnings:?}");
    let told = events(&world);
    assert_eq!(told.len(), 2);
    assert!(told.iter().all(|(object, _)| object == "Job/lammps"), "{told:?}");
    world.restart();
    assert_eq!(world.job("job.lammps").warnings, warnings);
    assert_eq!(events(&world), told);

    world.pod_with("g-0", "cpu=1000", |pod| pod.scheduling_group = Some("train".into()));
    world.group("train", Some(1), None);
    world.change_group("train", |group| {
        drop(group.annotations.insert("fluence.group-szie".into(), "2".into()));
    });
    assert_eq!(
        world.job("podgroup.train").warnings,
        [
            "ignoring unknown annotation 'fluence.group-szie' on PodGroup train: did you mean fluence.group-size?"
        ]
    );
}

#[test]
fn many_are_counted() {
    let mut world = World::default();
    world.pod_with("p", "cpu=1000", |pod| {
        for number in 0..500 {
            pod.annotations.insert(format!("fluxnetes.{number:03}").into(), "x".into());
        }
    });
    let warnings = &world.job("pod.p").warnings;
    assert_eq!(warnings.len(), 11);
    assert_eq!(warnings[10], "ignoring 490 more unknown labels and annotations");
}

#[test]
fn a_planned_duration_is_told_from_what_ends_the_job() {
    let mut world = World::default();
    world.node("n1", "cpu=8000");
    let duration = "fluxion.flux-framework.org/duration";
    for (name, planned, deadline, want) in [
        ("planned", Some("1h"), None, (Some(3600), None)),
        ("limited", None, Some(600), (Some(600), Some(600))),
        ("shorter", Some("5m"), Some(600), (Some(300), Some(600))),
        // What ends the Pod earlier than was planned is what is planned with.
        ("longer", Some("1h"), Some(600), (Some(600), Some(600))),
        ("neither", None, None, (None, None)),
    ] {
        world.pod_with(name, "cpu=100", |pod| {
            if let Some(planned) = planned {
                annotated(duration, planned)(pod);
            }
            pod.active_deadline = deadline;
        });
        let job = world.job(&format!("pod.{name}"));
        assert_eq!((job.duration, job.limit), want, "{name}");
    }
}
