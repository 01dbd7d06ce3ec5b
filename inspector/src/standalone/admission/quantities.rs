//! Resource quantities: of containers and of nodes.

use std::collections::BTreeMap;

use fluxion_text::quantity::Amount;
use k8s_openapi::api::core::v1::ResourceRequirements;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use super::problems::{NEGATIVE, Path, Problems};
use super::syntax::qualified_name;

/// Quantities by resource.
pub(super) type Quantities = BTreeMap<String, Quantity>;

const NOT_INTEGER: &str = "must be an integer";
const HUGE_PAGES: &str = "hugepages-";
const NANO: i128 = 1_000_000_000;

/// The owner, which determines the supported resources.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ResourceOwner {
    Container,
    Pod,
}

/// Requests and limits: known names, whole devices, and no request without a limit for resources that can't be
/// overcommitted.
pub(super) fn requirements(
    resources: &ResourceRequirements,
    asker: ResourceOwner,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    let none = Quantities::new();
    let (limits, requests) =
        (resources.limits.as_ref().unwrap_or(&none), resources.requests.as_ref().unwrap_or(&none));
    let (limits_path, requests_path) = (path.field("limits"), path.field("requests"));
    let limits = amounts(limits, asker, &limits_path, problems);
    let requests = amounts(requests, asker, &requests_path, problems);
    for (name, request) in &requests {
        let over = match limits.get(name) {
            None if !may_overcommit(name) => {
                problems.required(&limits_path, "Limit must be set for non overcommitable resources");
                continue;
            }
            Some(limit) if request.amount != limit.amount && !may_overcommit(name) => {
                format!("must be equal to {name} limit of {}", limit.text)
            }
            Some(limit) if request.amount > limit.amount => {
                format!("must be less than or equal to {name} limit of {}", limit.text)
            }
            None | Some(_) => continue,
        };
        problems.invalid(&requests_path, &request.text, &over);
    }
    let names = || limits.keys().chain(requests.keys());
    let pages = names().any(|name| name.starts_with(HUGE_PAGES));
    if asker == ResourceOwner::Container && pages && !names().any(|name| ["cpu", "memory"].contains(name)) {
        problems.forbidden(path, "HugePages require cpu or memory");
    }
}

/// Resources of a node: quantities, and whole devices.
pub(super) fn offered(list: Option<&Quantities>, path: &Path<'_>, problems: &mut Problems) {
    for (name, quantity) in list.into_iter().flatten() {
        value(name, quantity, &path.field(name), problems);
    }
}

/// A parsed quantity, and its canonical form.
pub(super) struct Understood {
    pub(super) amount: Amount,
    pub(super) text: String,
}

fn amounts<'a>(
    list: &'a Quantities,
    asker: ResourceOwner,
    path: &Path<'_>,
    problems: &mut Problems,
) -> BTreeMap<&'a str, Understood> {
    let mut understood = BTreeMap::new();
    for (name, quantity) in list {
        let path = path.key(name);
        resource_name(name, asker, &path, problems);
        let Some(found) = value(name, quantity, &path, problems) else { continue };
        if let Some(size) = name.strip_prefix(HUGE_PAGES)
            && !divisible(size, found.amount)
        {
            let why = format!("{} is not positive integer multiple of {name}", found.text);
            problems.invalid(&path, &found.text, &why);
        }
        understood.insert(name.as_str(), found);
    }
    understood
}

fn resource_name(name: &str, asker: ResourceOwner, path: &Path<'_>, problems: &mut Problems) {
    let standard = ["cpu", "memory"].contains(&name) || name.starts_with(HUGE_PAGES);
    if asker == ResourceOwner::Pod {
        if !standard {
            problems.unsupported(path, name, &["cpu", "memory", "hugepages-*"]);
        }
        return;
    }
    let broken = qualified_name(name);
    if !broken.is_empty() {
        problems.names(path, name, broken);
    } else if !name.contains('/') {
        if !standard && name != "ephemeral-storage" {
            problems.invalid(path, name, "must be a standard resource for containers");
        }
    } else if !is_native(name) && !is_extended(name) {
        problems.invalid(path, name, "doesn't follow extended resource name standard");
    }
}

/// A valid quantity: not negative, and an integer for countable resources.
pub(super) fn value(
    name: &str,
    Quantity(text): &Quantity,
    path: &Path<'_>,
    problems: &mut Problems,
) -> Option<Understood> {
    let amount = match text.parse::<Amount>() {
        Ok(amount) => amount,
        Err(error) => {
            problems.invalid(path, text, &error.to_string());
            return None;
        }
    };
    let understood = Understood { amount, text: canonical(text, amount) };
    if amount.is_negative() {
        problems.invalid(path, &understood.text, NEGATIVE);
    }
    if (name == "pods" || is_extended(name)) && amount.nanos() % NANO != 0 {
        problems.invalid(path, &understood.text, NOT_INTEGER);
    }
    Some(understood)
}

/// Without a domain, or in kubernetes.io.
fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

fn is_extended(name: &str) -> bool {
    !is_native(name)
        && !name.starts_with("requests.")
        && qualified_name(&format!("requests.{name}")).is_empty()
}

/// Whether the resource can be overcommitted.
fn may_overcommit(name: &str) -> bool {
    is_native(name) && !name.starts_with(HUGE_PAGES)
}

fn divisible(page: &str, amount: Amount) -> bool {
    let page = page.parse::<Amount>().map_or(0, Amount::nanos);
    page > 0 && page % NANO == 0 && amount.nanos() % page == 0
}

/// The canonical form in Kubernetes: `0.5` is `500m`, `1000` is `1k`, `1.5Gi` is `1536Mi`.
fn canonical(text: &str, amount: Amount) -> String {
    const DECIMAL: [&str; 10] = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
    const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    let nanos = amount.nanos();
    let shrink = |mut number: i128, by: i128, suffixes: &[&str]| {
        let mut suffix = 0;
        while number != 0 && number % by == 0 && suffix + 1 < suffixes.len() {
            number /= by;
            suffix += 1;
        }
        (number, suffix)
    };
    if nanos == 0 {
        return "0".to_owned();
    }
    if text.ends_with('i') && nanos % NANO == 0 {
        let (number, suffix) = shrink(nanos / NANO, 1024, &BINARY);
        return format!("{number}{}", BINARY[suffix]);
    }
    let (number, suffix) = shrink(nanos, 1000, &DECIMAL);
    let exponent = text.trim_start_matches(['+', '-']).contains(['e', 'E']) && !text.ends_with(['E', 'i']);
    match i64::try_from(suffix).unwrap_or(0) * 3 - 9 {
        power if exponent && power != 0 => format!("{number}e{power}"),
        _ => format!("{number}{}", DECIMAL[suffix]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_written_back_as_kubernetes_does() {
        for (text, want) in [
            ("0.5", "500m"),
            ("2000m", "2"),
            ("2.0", "2"),
            ("1000", "1k"),
            ("1024", "1024"),
            ("2Gi", "2Gi"),
            ("1.5Gi", "1536Mi"),
            ("1024Mi", "1Gi"),
            ("0.5Ki", "512"),
            ("0.1Ki", "102400m"),
            ("1e3", "1e3"),
            ("1500e0", "1500"),
            ("2E", "2E"),
            ("-1", "-1"),
            ("0Gi", "0"),
            ("1n", "1n"),
        ] {
            assert_eq!(canonical(text, text.parse().unwrap()), want, "{text}");
        }
    }
}
