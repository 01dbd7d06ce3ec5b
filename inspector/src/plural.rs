//! Plural names of kinds, as used in paths.

/// The plural name of a kind: Kubernetes' default, unless it is an exception.
pub(crate) fn plural(kind: &str) -> String {
    let kind = kind.to_lowercase();
    if let Some(stem) = kind.strip_suffix('y')
        && !stem.ends_with(['a', 'e', 'i', 'o', 'u'])
    {
        return format!("{stem}ies");
    }
    if kind.ends_with(['s', 'x', 'z']) || kind.ends_with("ch") || kind.ends_with("sh") {
        return format!("{kind}es");
    }
    format!("{kind}s")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plurals_of_kinds_that_own_pods() {
        for (kind, expected) in [
            ("Pod", "pods"),
            ("Job", "jobs"),
            ("LeaderWorkerSet", "leaderworkersets"),
            ("JobSet", "jobsets"),
            ("Policy", "policies"),
            ("Gateway", "gateways"),
            ("Ingress", "ingresses"),
        ] {
            assert_eq!(plural(kind), expected);
        }
    }
}
