//! Many quantities in one cell of a table.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::quantity::Amount;

/// Whether a resource is a GPU or a part of one.
pub fn is_gpu(resource: &str) -> bool {
    resource.ends_with("/gpu") || resource.rsplit('.').next() == Some("gpu") || resource.contains("/mig-")
}

/// Quantities in one cell: `cpu=8,mem=16Gi,gpu=4`. Pods are left out: the members tell them.
pub fn summary(quantities: &BTreeMap<String, String>, full_names: bool) -> String {
    let order = |name: &str| match name {
        "cpu" => 0,
        "memory" => 1,
        _ if is_gpu(name) => 2,
        _ => 3,
    };
    let mut names: Vec<&String> = quantities.keys().filter(|name| name.as_str() != "pods").collect();
    names.sort_by_key(|name| (order(name), name.as_str()));
    let mut text = String::new();
    for name in names {
        let raw = &quantities[name];
        let amount = raw.parse::<Amount>().ok();
        if amount == Some(Amount::ZERO) {
            continue;
        }
        let shown = amount.map_or_else(|| raw.clone(), |amount| amount.shown(name));
        let name = match name.as_str() {
            name if full_names => name,
            "memory" => "mem",
            "ephemeral-storage" => "disk",
            name => name.rsplit('/').next().unwrap_or(name),
        };
        _ = write!(text, "{}{name}={shown}", if text.is_empty() { "" } else { "," });
    }
    if text.is_empty() { "-".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_in_one_cell() {
        let request: BTreeMap<String, String> = [
            ("nvidia.com/gpu", "4"),
            ("memory", "17179869184"),
            ("cpu", "2500m"),
            ("pods", "4"),
            ("ephemeral-storage", "0"),
            ("hugepages-1Gi", "2147483648"),
            ("weird", "?"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
        assert_eq!(summary(&request, false), "cpu=2.5,mem=16Gi,gpu=4,hugepages-1Gi=2Gi,weird=?");
        assert_eq!(summary(&BTreeMap::new(), false), "-");
    }
}
