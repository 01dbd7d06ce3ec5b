//! Match policies: the order of candidates.

/// Order of scores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Highest first.
    Descending,
    /// Lowest first.
    Ascending,
}

/// How scores are calculated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scoring {
    /// By the id of a vertex.
    Id(Order),
    /// By consecutive ids.
    Locality,
    /// By the property `perf_class`.
    Variation,
}

/// A match policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// How scores are calculated.
    pub scoring: Scoring,
    /// Whether resources below a node are ordered by their node first.
    pub node_centric: bool,
    /// Whether nodes are allocated whole.
    pub node_exclusive: bool,
    /// Whether the search stops at the first sufficient candidates.
    pub stop_on_first: bool,
}

impl Policy {
    /// Lowest ids first.
    pub const LOW: Self = Self::by_id(Order::Ascending, false, false, false);

    const fn by_id(order: Order, node_centric: bool, node_exclusive: bool, stop_on_first: bool) -> Self {
        Self { scoring: Scoring::Id(order), node_centric, node_exclusive, stop_on_first }
    }

    /// Parses a policy name, or options such as `policy=high node_centric=true`. Options after the first
    /// invalid one are ignored; returns none if `policy` is missing or an option has no value.
    pub fn parse(text: &str) -> Option<Self> {
        use Order::{Ascending, Descending};
        let special = |scoring| Self { scoring, ..Self::by_id(Descending, false, false, false) };
        Some(match text {
            "high" => Self::by_id(Descending, false, false, false),
            "low" => Self::LOW,
            "hinode" => Self::by_id(Descending, true, false, false),
            "lonode" => Self::by_id(Ascending, true, false, false),
            "hinodex" => Self::by_id(Descending, true, true, false),
            "lonodex" => Self::by_id(Ascending, true, true, false),
            "first" => Self::by_id(Descending, true, false, true),
            "firstnodex" => Self::by_id(Descending, true, true, true),
            "locality" => special(Scoring::Locality),
            "variation" => special(Scoring::Variation),
            _ => return Self::parse_options(text),
        })
    }

    fn parse_options(text: &str) -> Option<Self> {
        let (mut high, mut low) = (false, false);
        // Per switch: its value once given; the first value counts, and a repeated "false" ends it all.
        let names = ["node_centric", "node_exclusive", "stop_on_1_matches"];
        let mut switches = [None; 3];
        for option in text.split(' ') {
            let Some((key, value)) = option.split_once('=') else {
                if option == "policy" || names.contains(&option) {
                    return None;
                }
                break;
            };
            if key == "policy" {
                match value {
                    "high" => high = true,
                    "low" => low = true,
                    _ => break,
                }
                continue;
            }
            let Some(at) = names.iter().position(|name| *name == key) else { break };
            let value = match value {
                "true" => true,
                "false" => false,
                _ => break,
            };
            match switches[at] {
                None => switches[at] = Some(value),
                Some(_) if !value => break,
                Some(_) => {}
            }
        }
        let order = match (high, low) {
            (true, _) => Order::Descending,
            (false, true) => Order::Ascending,
            _ => return None,
        };
        let [centric, exclusive, stop] = switches.map(|value| value.unwrap_or(false));
        Some(Self::by_id(order, centric, exclusive, stop))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_for_options() {
        let options = "policy=high node_centric=true stop_on_1_matches=true";
        assert_eq!(Policy::parse("first"), Policy::parse(options));
        assert_eq!(
            Policy::parse("lonodex"),
            Policy::parse("policy=low node_centric=true node_exclusive=true")
        );
        assert_eq!(Policy::parse("high"), Policy::parse("policy=low policy=high"));
        assert_eq!(Policy::parse("low"), Policy::parse("policy=low  node_centric=true"));
        assert_eq!(Policy::parse("low"), Policy::parse("policy=low node_centric=maybe"));
        assert_eq!(Policy::parse("low"), Policy::parse("policy=low node"));
        for nothing in [
            "policy=low node_centric",
            "policy=low policy",
            "node_centric=true",
            "lowest",
            "policy",
            "",
            "policy=middle policy=low",
        ] {
            assert_eq!(Policy::parse(nothing), None, "{nothing}");
        }
    }
}
