//! Queues on the command line: `NAME[:POLICY][,KEY=VALUE...]`.

use fluxion_scheduler::placement::NodePolicy;
use fluxion_scheduler::queue::{Planning, QueueConfig, QueuePolicy};

/// A queue, and whether it has a policy of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Queue {
    /// Everything that is said of it.
    pub(crate) config: QueueConfig,
    /// Its policy; without: whichever is compared.
    pub(crate) policy: Option<QueuePolicy>,
}

/// Reads a queue. The keys are those of the options for all queues, which count for what it does not say:
/// `queue-depth`, `reservation-depth`, `max-reservation-depth`, `planning`, `node-policy`.
pub(crate) fn parse(text: &str, rest: &QueueConfig) -> Result<Queue, String> {
    let mut parts = text.split(',').map(str::trim);
    let head = parts.next().unwrap_or_default();
    let (name, policy) = head.split_once(':').map_or((head, None), |(name, policy)| (name, Some(policy)));
    if name.is_empty() {
        return Err(format!("queue `{text}` has no name: must be NAME[:POLICY][,KEY=VALUE...]"));
    }
    let policy = match policy {
        None => None,
        Some("fcfs") => Some(QueuePolicy::Fcfs),
        Some("easy") => Some(QueuePolicy::Easy),
        Some("conservative") => Some(QueuePolicy::Conservative),
        Some("hybrid") => Some(QueuePolicy::Hybrid),
        Some(other) => {
            return Err(format!(
                "queue {name}: unknown policy `{other}`: must be fcfs, easy, conservative or hybrid"
            ));
        }
    };
    let mut config = QueueConfig { name: name.into(), ..rest.clone() };
    for part in parts {
        let (key, value) = part.split_once('=').unwrap_or((part, ""));
        if key == "planning" {
            config.planning = match value {
                "compress" => Planning::Compress,
                "replan" => Planning::Replan,
                _ => {
                    return Err(format!(
                        "queue {name}: invalid planning `{value}`: must be compress or replan"
                    ));
                }
            };
            continue;
        }
        if key == "node-policy" {
            config.node_policy = match value {
                "low" => NodePolicy::Low,
                "high" => NodePolicy::High,
                "spread" => NodePolicy::Spread,
                _ => {
                    return Err(format!(
                        "queue {name}: invalid node-policy `{value}`: must be low, high or spread"
                    ));
                }
            };
            continue;
        }
        let number = value.parse().ok().filter(|number| *number > 0);
        let number = number
            .ok_or_else(|| format!("queue {name}: invalid {key} `{value}`: must be a positive integer"))?;
        match key {
            "queue-depth" => config.queue_depth = number,
            "reservation-depth" => config.reservation_depth = number,
            "max-reservation-depth" => config.max_reservation_depth = number,
            _ => {
                return Err(format!(
                    "queue {name}: unknown option `{key}`: must be queue-depth, reservation-depth, max-reservation-depth, planning or node-policy"
                ));
            }
        }
    }
    Ok(Queue { config, policy })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_what_it_does_not_understand() {
        let rest = QueueConfig::default();
        let queue = parse("short:hybrid,queue-depth=5, reservation-depth=2", &rest).unwrap();
        assert_eq!((&*queue.config.name, queue.policy), ("short", Some(QueuePolicy::Hybrid)));
        assert_eq!((queue.config.queue_depth, queue.config.reservation_depth), (5, 2));
        assert_eq!(parse("a,planning=replan", &rest).unwrap().config.planning, Planning::Replan);
        assert_eq!(parse("a,node-policy=spread", &rest).unwrap().config.node_policy, NodePolicy::Spread);
        assert_eq!(parse("batch", &rest).unwrap().policy, None);
        for (text, part) in [
            ("", "no name"),
            (":easy", "no name"),
            ("a:fair", "`fair`"),
            ("a,depth=3", "`depth`"),
            ("a,queue-depth=0", "positive"),
            ("a,queue-depth", "positive"),
            ("a,queue-depth=-1", "`-1`"),
            ("a,planning=new", "`new`"),
            ("a,node-policy=first", "`first`"),
        ] {
            let error = parse(text, &rest).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }
}
