use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

use super::*;
use crate::standalone::admission::admit;

const NOW: i64 = 1_700_000_000;

/// A Job with its Pods, stepped by hand.
struct World {
    job: Job,
    pods: Vec<Pod>,
    now: i64,
}

impl World {
    fn new(spec: Value) -> Self {
        let mut value = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": {
            "template": {"spec": {"containers": [{"name": "c"}]}}}});
        for (key, field) in spec.as_object().unwrap() {
            value["spec"][key] = field.clone();
        }
        let mut object = Object::from_value(value).unwrap();
        admit(&mut object, NOW, 1, &[Arc::from("fluxion")], &|_| None).unwrap();
        let Object::Job(job) = object else { unreachable!() };
        Self { job: *job, pods: Vec::new(), now: NOW }
    }

    fn step(&mut self) -> &mut Self {
        let briefs: Vec<Brief> = self.pods.iter().map(Brief::of).collect();
        let actions = reconcile(&self.job, &briefs, self.now);
        self.pods.retain(|pod| !actions.delete.iter().any(|uid| Some(&**uid) == pod.metadata.uid.as_deref()));
        for mut object in actions.create {
            admit(&mut object, self.now, self.pods.len() as u64 + 100, &[Arc::from("fluxion")], &|_| None)
                .unwrap();
            let Object::Pod(pod) = object else { unreachable!() };
            self.pods.push(*pod);
        }
        if let Some(Object::Job(job)) = actions.owner {
            self.job = *job;
        }
        self
    }

    fn end(&mut self, place: usize, phase: &str) -> &mut Self {
        self.pods[place].status.as_mut().unwrap().phase = Some(phase.to_owned());
        self.step()
    }

    fn status(&self) -> (i32, i32, i32) {
        let status = self.job.status.as_ref().unwrap();
        (status.active.unwrap_or(0), status.succeeded.unwrap_or(0), status.failed.unwrap_or(0))
    }

    fn ended(&self) -> Option<&str> {
        let conditions = self.job.status.as_ref()?.conditions.as_ref()?;
        conditions.last()?.reason.as_deref()
    }
}

#[test]
fn pods_come_one_by_one_until_all_completions_are_there() {
    let mut world = World::new(json!({"completions": 3, "parallelism": 2}));
    assert_eq!(world.step().status(), (2, 0, 0));
    assert_eq!(world.end(0, "Succeeded").status(), (2, 1, 0));
    assert_eq!(world.end(1, "Succeeded").status(), (1, 2, 0));
    assert_eq!(world.ended(), None);
    assert_eq!(world.end(2, "Succeeded").status(), (0, 3, 0));
    assert_eq!(world.ended(), Some("CompletionsReached"));
    assert_eq!(due(&world.job, 60), Some(NOW + 60));
    assert!(world.pods.iter().all(|pod| pod.metadata.name.as_deref().unwrap().starts_with("j-")));
}

#[test]
fn a_failed_index_is_tried_again_and_others_are_not() {
    let mut world = World::new(json!({"completions": 3, "parallelism": 3, "completionMode": "Indexed"}));
    world.step().end(0, "Succeeded").end(1, "Failed");
    let indexes: Vec<_> = world.pods.iter().map(|pod| Brief::of(pod).index.unwrap()).collect();
    assert_eq!(indexes, [0, 1, 2, 1]);
    assert_eq!(world.status(), (2, 1, 1));
    world.end(2, "Succeeded").end(3, "Succeeded");
    assert_eq!(world.job.status.as_ref().unwrap().completed_indexes.as_deref(), Some("0-2"));
    assert_eq!(world.ended(), Some("CompletionsReached"));
}

#[test]
fn failures_and_time_have_their_limits() {
    let mut world = World::new(json!({"completions": 2, "parallelism": 2, "backoffLimit": 1}));
    world.step().end(0, "Failed");
    assert_eq!(world.ended(), None);
    world.end(1, "Failed");
    assert_eq!(world.ended(), Some("BackoffLimitExceeded"));
    assert_eq!(world.status().0, 0);

    let mut limited = World::new(json!({"activeDeadlineSeconds": 10}));
    limited.step();
    assert_eq!(due(&limited.job, 60), Some(NOW + 10));
    limited.now += 10;
    limited.step();
    assert_eq!((limited.ended(), limited.pods.len()), (Some("DeadlineExceeded"), 0));
}

#[test]
fn a_suspended_job_has_no_pods_and_a_work_queue_ends_with_its_last() {
    assert_eq!(World::new(json!({"suspend": true})).step().status(), (0, 0, 0));
    let mut queue = World::new(json!({"parallelism": 2}));
    queue.step().end(0, "Succeeded");
    assert_eq!((queue.status(), queue.ended()), ((1, 1, 0), None));
    queue.end(1, "Succeeded");
    assert_eq!(queue.ended(), Some("CompletionsReached"));
}

#[test]
fn indexes_are_written_as_ranges() {
    assert_eq!(ranges(&BTreeSet::from([0, 1, 2, 4, 7, 8])), "0-2,4,7-8");
    assert_eq!(ranges(&BTreeSet::new()), "");
}
