//! Which claim gets which of the volumes that it can have.

use std::collections::BTreeMap;
use std::sync::Arc;

/// A volume for each claim, from its own list, none of them twice. Claims that have to get one are served first; they all
/// get one if that is possible, which is the result's second part. Earlier entries of a list are preferred.
pub(crate) fn assign(claims: &[(Vec<Arc<str>>, bool)]) -> (Vec<Option<Arc<str>>>, bool) {
    let mut owner: BTreeMap<Arc<str>, usize> = BTreeMap::new();
    let mut all = true;
    for required in [true, false] {
        for (at, _) in claims.iter().enumerate().filter(|(_, claim)| claim.1 == required) {
            let mut tried = BTreeMap::new();
            let found = place(claims, at, &mut owner, &mut tried);
            all &= found || !required;
        }
    }
    let mut given = vec![None; claims.len()];
    for (volume, at) in owner {
        given[at] = Some(volume);
    }
    (given, all)
}

/// Finds a volume for a claim, others may have to take another one for that; without recursion, since there may be many.
fn place(
    claims: &[(Vec<Arc<str>>, bool)],
    first: usize,
    owner: &mut BTreeMap<Arc<str>, usize>,
    tried: &mut BTreeMap<Arc<str>, usize>,
) -> bool {
    // Breadth first: each volume with the claim that would take it.
    let mut open = std::collections::VecDeque::from([first]);
    while let Some(at) = open.pop_front() {
        for volume in &claims[at].0 {
            if tried.contains_key(volume) {
                continue;
            }
            tried.insert(volume.clone(), at);
            let Some(other) = owner.get(volume) else {
                return take(volume.clone(), first, owner, tried);
            };
            open.push_back(*other);
        }
    }
    false
}

/// Along the way back, each claim takes the volume that was found for it.
fn take(
    mut volume: Arc<str>,
    first: usize,
    owner: &mut BTreeMap<Arc<str>, usize>,
    tried: &BTreeMap<Arc<str>, usize>,
) -> bool {
    loop {
        let Some(at) = tried.get(&volume).copied() else { return false };
        let before = owner.iter().find(|(_, by)| **by == at).map(|(volume, _)| volume.clone());
        owner.insert(volume, at);
        if at == first {
            return true;
        }
        let Some(before) = before else { return false };
        volume = before;
    }
}
