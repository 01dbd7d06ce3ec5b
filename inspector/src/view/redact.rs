//! What a viewer may not know is taken out of facts before they become words.

use fluxion_api::reason::{Fact, JobNames};

use super::Viewer;

/// The facts as the viewer may know them.
pub fn facts(facts: impl IntoIterator<Item = Fact>, viewer: &Viewer) -> Vec<Fact> {
    facts.into_iter().map(|fact| redacted(fact, viewer)).collect()
}

fn redacted(mut fact: Fact, viewer: &Viewer) -> Fact {
    match &mut fact {
        Fact::WouldDelay { jobs }
        | Fact::RoomReserved { jobs }
        | Fact::NoEstimate { jobs, .. }
        | Fact::StartAssumed { jobs, .. } => names(jobs, viewer),
        Fact::Nodes(shape) => {
            shape.left_out.iter_mut().for_each(|left_out| names(&mut left_out.jobs, viewer));
        }
        // The domain is the value of a label of nodes.
        Fact::Together(together) if !viewer.sees_nodes() => {
            if let Some(domain) = &mut together.domain {
                domain.clear();
            }
        }
        _ => {}
    }
    fact
}

/// Leaves the names of jobs in namespaces that the viewer sees, and of those in the namespace that is not written.
fn names(jobs: &mut JobNames, viewer: &Viewer) {
    let all = jobs.names.len();
    jobs.names.retain(|name| match name.split('/').collect::<Vec<_>>().as_slice() {
        [namespace, _, _] => viewer.sees(namespace),
        _ => true,
    });
    jobs.others |= jobs.names.len() < all;
}

#[cfg(test)]
mod tests {
    use fluxion_api::reason::{NodesLeftOut, ShapeNodes, Together, line};
    use fluxion_scheduler::model::SharedStr;

    use super::*;

    fn jobs() -> JobNames {
        JobNames { names: vec!["hidden/job/canary".to_owned(), "job/own".to_owned()], others: false }
    }

    #[test]
    fn names_of_other_namespaces_and_labels_of_nodes_are_left_out() {
        let left_out =
            NodesLeftOut { count: 1, class: "Reserved".into(), jobs: jobs(), ..NodesLeftOut::default() };
        let together = Together {
            wanted: 4,
            of: 4,
            topology: Some("zone".to_owned()),
            domain: Some("canary".to_owned()),
            ..Together::default()
        };
        let told = vec![
            Fact::WouldDelay { jobs: jobs() },
            Fact::RoomReserved { jobs: jobs() },
            Fact::StartAssumed { jobs: jobs(), limited: true },
            Fact::Nodes(Box::new(ShapeNodes {
                members: 1,
                left_out: vec![left_out],
                ..ShapeNodes::default()
            })),
            Fact::Together(Box::new(together)),
        ];
        let ours = Viewer::namespaces([SharedStr::from("ours")]);
        for fact in told {
            let text = line(&facts([fact.clone()], &ours));
            assert!(!text.contains("canary"), "{text}");
            assert!(!text.contains("no node has that label"), "{text}");
            assert_eq!(facts([fact.clone()], &Viewer::everything()), [fact]);
        }
        let told = line(&facts([Fact::WouldDelay { jobs: jobs() }], &ours));
        assert!(told.ends_with("job/own and others"), "{told}");
    }
}
