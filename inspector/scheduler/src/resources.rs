//! Resource lists with integer amounts: cpu in milli-cores, others in bytes or units, including `pods`.
//!
//! [`pod`] determines the requests of a Pod; everything that counts resources uses its result.

pub mod pod;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use pod::{ContainerAsk, InvalidRequest, PodAsk, Requests, pod_requests};

use fluxion_text::quantity::{self, Amount};

/// Amounts by resource name; cpu in milli-cores, others in bytes or units. Missing resources are 0.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ResourceList(BTreeMap<Arc<str>, u64>);

/// A sum or difference that does not fit in a `u64`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("quantity of {resource} is out of range")]
pub struct OutOfRange {
    /// The resource.
    pub resource: Arc<str>,
}

impl ResourceList {
    /// An empty list.
    pub fn new() -> Self {
        Self::default()
    }

    /// The amount of a resource; 0 if it is not in the list.
    pub fn get(&self, resource: &str) -> u64 {
        self.0.get(resource).copied().unwrap_or(0)
    }

    /// Sets the amount of a resource.
    pub fn set(&mut self, resource: impl Into<Arc<str>>, quantity: u64) {
        self.0.insert(resource.into(), quantity);
    }

    /// Adds to the amount of a resource, saturating.
    pub fn add(&mut self, resource: &Arc<str>, quantity: u64) {
        self.set(resource.clone(), self.get(resource).saturating_add(quantity));
    }

    /// Whether the resource is in the list, even with 0.
    pub fn contains(&self, resource: &str) -> bool {
        self.0.contains_key(resource)
    }

    /// Whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Resources and amounts, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&Arc<str>, u64)> {
        self.0.iter().map(|(name, quantity)| (name, *quantity))
    }

    /// The sum of both, resource by resource.
    pub fn checked_add(&self, other: &Self) -> Result<Self, OutOfRange> {
        self.combine(other, u64::checked_add)
    }

    /// The difference; an error if it would be negative.
    pub fn checked_sub(&self, other: &Self) -> Result<Self, OutOfRange> {
        self.combine(other, u64::checked_sub)
    }

    /// The list multiplied by `count`.
    pub fn checked_mul(&self, count: u64) -> Result<Self, OutOfRange> {
        let times = |(name, quantity): (&Arc<str>, u64)| match quantity.checked_mul(count) {
            Some(product) => Ok((name.clone(), product)),
            None => Err(OutOfRange { resource: name.clone() }),
        };
        self.iter().map(times).collect::<Result<_, _>>().map(Self)
    }

    fn combine(&self, other: &Self, with: impl Fn(u64, u64) -> Option<u64>) -> Result<Self, OutOfRange> {
        let mut sum = self.clone();
        for (name, quantity) in other.iter() {
            let slot = sum.0.entry(name.clone()).or_insert(0);
            *slot = with(*slot, quantity).ok_or_else(|| OutOfRange { resource: name.clone() })?;
        }
        Ok(sum)
    }

    /// Rounds up exact amounts; the error contains the resource that is negative or too large.
    pub fn from_amounts<'a>(
        amounts: impl IntoIterator<Item = (&'a Arc<str>, &'a Amount)>,
    ) -> Result<Self, OutOfRange> {
        let mut list = Self::new();
        for (name, amount) in amounts {
            list.0.insert(
                name.clone(),
                whole(name, *amount).ok_or_else(|| OutOfRange { resource: name.clone() })?,
            );
        }
        Ok(list)
    }
}

impl FromIterator<(Arc<str>, u64)> for ResourceList {
    fn from_iter<I: IntoIterator<Item = (Arc<str>, u64)>>(items: I) -> Self {
        Self(items.into_iter().collect())
    }
}

impl fmt::Display for ResourceList {
    /// `cpu 2500m, memory 1024`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (name, quantity)) in self.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}{name} {}", quantity::format(name, quantity))?;
        }
        Ok(())
    }
}

/// An amount in the unit of its resource, rounded up; `None` if negative or too large.
pub fn whole(resource: &str, amount: Amount) -> Option<u64> {
    if resource == "cpu" { amount.milli() } else { amount.units() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(pairs: &[(&str, u64)]) -> ResourceList {
        pairs.iter().map(|(name, quantity)| (Arc::from(*name), *quantity)).collect()
    }

    #[test]
    fn sums_are_checked() {
        let most = list(&[("memory", u64::MAX)]);
        assert_eq!(most.checked_add(&list(&[("memory", 1)])).unwrap_err().resource.as_ref(), "memory");
        assert_eq!(most.checked_mul(2).unwrap_err().to_string(), "quantity of memory is out of range");
        assert_eq!(list(&[]).checked_sub(&list(&[("cpu", 1)])).unwrap_err().resource.as_ref(), "cpu");
        assert_eq!(
            list(&[("cpu", 1)]).checked_add(&list(&[("cpu", 2), ("pods", 1)])),
            Ok(list(&[("cpu", 3), ("pods", 1)]))
        );
        assert_eq!(list(&[("cpu", 2500), ("pods", 1)]).to_string(), "cpu 2500m, pods 1");
    }
}
