//! The Pod of a gang's slot and its constraints on other Pods, in Kubernetes' terms: inter-Pod affinity, topology spread.
//! As in a resolved selector, namespaces are always listed, and labels are expressions.

use std::collections::BTreeMap;
use std::sync::Arc;

use fluxion::jobspec::yaml::Value;
use fluxion::jobspec::{JobspecError, number};
use serde_json::{Map, Value as Json, json};

use super::constraint::{expression, expression_json, list};
use super::yaml::{only, refuse, text};
use crate::constraint::{Expression, Peer, PodSelector, PodTerm, PodTerms, TopologySpread};

/// Keys of a selector.
const SELECTOR: [&str; 4] = ["topologyKey", "namespaces", "namespaceSelector", "labelSelector"];
/// Maximum number of terms and constraints of a Pod.
const MOST_TERMS: usize = 64;

/// Parses the Pod of a slot.
pub(super) fn peer(value: &Value) -> Result<Peer, JobspecError> {
    only(value, "pod", &["namespace", "labels", "podAffinity", "podAntiAffinity", "topologySpread"])?;
    let mut labels = BTreeMap::new();
    if let Some(pairs) = value.get("labels") {
        let Some(pairs) = pairs.mapping() else { return refuse("\"labels\" is not a mapping") };
        for (key, value) in pairs {
            let (Some(key), Some(value)) = (key.scalar(), value.scalar()) else {
                return refuse("\"labels\" must map labels to values");
            };
            if labels.insert(Arc::from(key), Arc::from(value)).is_some() {
                return refuse(format!("duplicate \"{key}\" in labels"));
            }
        }
    }
    let items = |key: &'static str| match value.get(key) {
        Some(items) => list(items, key),
        None => Ok(&[][..]),
    };
    let terms = PodTerms {
        affinity: items("podAffinity")?.iter().map(|one| term(one)).collect::<Result<_, _>>()?,
        anti_affinity: items("podAntiAffinity")?
            .iter()
            .map(|one| term(one).map(Arc::new))
            .collect::<Result<_, _>>()?,
        spread: items("topologySpread")?.iter().map(|one| spread(one)).collect::<Result<_, _>>()?,
    };
    if terms.len() > MOST_TERMS {
        return refuse(format!("a pod must not have more than {MOST_TERMS} terms and constraints"));
    }
    Ok(Peer {
        mounts: None,
        preferences: None,
        volumes: None,
        namespace: text(value, "namespace")?.unwrap_or_default(),
        labels: Arc::new(labels),
        terms: (!terms.is_empty()).then(|| Arc::new(terms)),
        deleting: false,
    })
}

fn term(value: &Value) -> Result<PodTerm, JobspecError> {
    only(value, "term", &SELECTOR)?;
    Ok(PodTerm { selector: selector(value)?, topology: topology(value)? })
}

fn spread(value: &Value) -> Result<TopologySpread, JobspecError> {
    let own = ["maxSkew", "minDomains", "nodeAffinityPolicy", "nodeTaintsPolicy"];
    let keys: Vec<&str> = SELECTOR.into_iter().chain(own).collect();
    only(value, "constraint", &keys)?;
    let count = |key: &str, default| match value.get(key) {
        None => Ok(default),
        Some(count) => match count.scalar().and_then(number::unsigned) {
            Some(count) if count > 0 => Ok(count),
            _ => refuse(format!("\"{key}\" must be a number greater than 0")),
        },
    };
    let honors = |key: &str, default| match text(value, key)?.as_deref() {
        None => Ok(default),
        Some("Honor") => Ok(true),
        Some("Ignore") => Ok(false),
        Some(other) => refuse(format!("\"{key}\" must be Honor or Ignore, not \"{other}\"")),
    };
    Ok(TopologySpread {
        selector: selector(value)?,
        topology: topology(value)?,
        max_skew: count("maxSkew", 1)?,
        min_domains: count("minDomains", 1)?,
        honor_affinity: honors("nodeAffinityPolicy", true)?,
        honor_taints: honors("nodeTaintsPolicy", false)?,
    })
}

fn topology(value: &Value) -> Result<Arc<str>, JobspecError> {
    match text(value, "topologyKey")? {
        Some(key) if !key.is_empty() => Ok(key),
        _ => refuse("\"topologyKey\" is missing"),
    }
}

fn selector(value: &Value) -> Result<PodSelector, JobspecError> {
    let expressions = |key: &str| -> Result<Option<Vec<Expression>>, JobspecError> {
        let Some(items) = value.get(key) else { return Ok(None) };
        list(items, key)?.iter().map(|one| expression(one)).collect::<Result<_, _>>().map(Some)
    };
    let mut selector = PodSelector {
        namespace_selector: expressions("namespaceSelector")?,
        labels: expressions("labelSelector")?,
        ..PodSelector::default()
    };
    if let Some(names) = value.get("namespaces") {
        for name in list(names, "namespaces")? {
            let Some(name) = name.scalar() else {
                return refuse("\"namespaces\" must be a sequence of scalars");
            };
            selector.namespaces.insert(Arc::from(name));
        }
    }
    Ok(selector)
}

/// The Pod as JSON.
pub(super) fn peer_json(peer: &Peer) -> Json {
    let labels = peer.labels.iter().map(|(key, value)| (key.to_string(), json!(**value)));
    let mut all = json!({"namespace": *peer.namespace, "labels": Json::Object(labels.collect())});
    let Some(terms) = &peer.terms else { return all };
    if !terms.affinity.is_empty() {
        all["podAffinity"] = terms.affinity.iter().map(term_json).collect();
    }
    if !terms.anti_affinity.is_empty() {
        all["podAntiAffinity"] = terms.anti_affinity.iter().map(|term| term_json(term)).collect();
    }
    if !terms.spread.is_empty() {
        all["topologySpread"] = terms.spread.iter().map(spread_json).collect();
    }
    all
}

fn term_json(term: &PodTerm) -> Json {
    Json::Object(selector_json(&term.selector, &term.topology))
}

fn spread_json(spread: &TopologySpread) -> Json {
    let policy = |honor: bool| if honor { "Honor" } else { "Ignore" };
    let mut all = selector_json(&spread.selector, &spread.topology);
    all.insert("maxSkew".to_owned(), json!(spread.max_skew));
    all.insert("minDomains".to_owned(), json!(spread.min_domains));
    all.insert("nodeAffinityPolicy".to_owned(), json!(policy(spread.honor_affinity)));
    all.insert("nodeTaintsPolicy".to_owned(), json!(policy(spread.honor_taints)));
    Json::Object(all)
}

fn selector_json(selector: &PodSelector, topology: &str) -> Map<String, Json> {
    let mut all = Map::new();
    all.insert("topologyKey".to_owned(), json!(topology));
    if !selector.namespaces.is_empty() {
        let names: Vec<&str> = selector.namespaces.iter().map(AsRef::as_ref).collect();
        all.insert("namespaces".to_owned(), json!(names));
    }
    for (key, expressions) in
        [("namespaceSelector", &selector.namespace_selector), ("labelSelector", &selector.labels)]
    {
        if let Some(expressions) = expressions {
            all.insert(key.to_owned(), expressions.iter().map(expression_json).collect());
        }
    }
    all
}
