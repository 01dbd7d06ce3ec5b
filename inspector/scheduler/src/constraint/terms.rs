//! What constraints are made of: labels, expressions over them, taints and tolerations.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Labels of an object.
pub type Labels = BTreeMap<Arc<str>, Arc<str>>;

/// What a taint does to Pods that do not tolerate it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum TaintEffect {
    /// No new Pods.
    NoSchedule,
    /// Rather no new Pods.
    PreferNoSchedule,
    /// No new Pods, and existing ones are evicted.
    NoExecute,
}

/// A taint of a node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Taint {
    /// Its key.
    pub key: Arc<str>,
    /// Its value, empty if it has none.
    pub value: Arc<str>,
    /// Its effect.
    pub effect: TaintEffect,
}

impl fmt::Display for TaintEffect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoSchedule => "NoSchedule",
            Self::PreferNoSchedule => "PreferNoSchedule",
            Self::NoExecute => "NoExecute",
        })
    }
}

impl fmt::Display for Taint {
    /// `key=value:TaintEffect`, as printed by kubectl.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let equals = if self.value.is_empty() { "" } else { "=" };
        write!(f, "{}{equals}{}:{}", self.key, self.value, self.effect)
    }
}

/// The operator of a toleration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum TolerationOperator {
    /// Key and value are equal.
    Equal,
    /// The key is equal, with any value; without a key, any taint.
    Exists,
}

/// A toleration of a Pod.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Toleration {
    /// The taint's key; none means any key, which requires `Exists`.
    pub key: Option<Arc<str>>,
    /// Its operator.
    pub operator: TolerationOperator,
    /// The value for `Equal`.
    pub value: Arc<str>,
    /// The effect; none means any effect.
    pub effect: Option<TaintEffect>,
}

/// The operator of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Operator {
    /// One of the values.
    In,
    /// None of the values; a missing label matches.
    NotIn,
    /// The label exists.
    Exists,
    /// The label does not exist.
    DoesNotExist,
    /// An integer greater than the value.
    Gt,
    /// An integer less than the value.
    Lt,
}

/// A requirement on a label or field.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Expression {
    /// Label key or field name.
    pub key: Arc<str>,
    /// The operator.
    pub operator: Operator,
    /// The values.
    pub values: Vec<Arc<str>>,
}

/// Expressions that must all match; a term without any matches nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Term {
    /// Expressions over labels.
    pub labels: Vec<Expression>,
    /// Expressions over fields; only `metadata.name` is supported.
    pub fields: Vec<Expression>,
}
