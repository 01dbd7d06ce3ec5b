//! Members that are placed, but whose claims have no volumes yet: the claims are prepared, and only when all volumes of
//! the members that start together are there, the members are bound. Meanwhile, they hold their nodes.
//!
//! A volume is provisioned for a node that we write to the claim, or an existing one is reserved for the claim. If the
//! provisioner gives up, or takes too long, this is undone, and the members are placed again, elsewhere if possible. What
//! another inspector needs to go on is in the claim: the node, and since when it is selected.

use std::collections::BTreeMap;
use std::sync::Arc;

use fluxion_api::reason::Fact;

use crate::constraint::volumes::{Claim, ClaimKey, accessible, assign};
use crate::event::{BindOutcome, Effect};
use crate::job::{Job, JobId, Losses};
use crate::model::{ObjectRef, PodSpec, SharedStr};
use crate::state::State;
use crate::state::assumed::{Assumed, PendingClaim};
use crate::state::refused::Refused;

/// Seconds until a write that failed is repeated.
const AGAIN: i64 = 2;
/// Seconds after which a node that was written, but was never seen in the claim, was removed again.
const UNSEEN: i64 = 5;
/// Seconds until a gang is placed again, doubled each time, and at most.
const PAUSE: i64 = 1;
const PAUSE_MAX: i64 = 600;
/// Maximum length of a provisioner's message in a reason, in characters.
const ANSWER_MAX: usize = 300;

/// How far a claim is.
enum Progress {
    Ready,
    Waiting,
    Failed(String),
    /// The free volume on which the placement counted is somebody else's.
    Lacking,
}

impl State {
    /// Determines which claims of these members have to be prepared, and emits that. Members at a scheduling gate are left
    /// to kube-scheduler.
    pub(super) fn prepare_claims(
        &mut self,
        placed: &[(Arc<PodSpec>, SharedStr)],
    ) -> BTreeMap<SharedStr, Vec<PendingClaim>> {
        let mut wanted: Vec<(&PodSpec, &SharedStr, Arc<Claim>)> = Vec::new();
        let mut choices = Vec::new();
        let mut first: BTreeMap<ClaimKey, usize> = BTreeMap::new();
        let mut later: Vec<(&PodSpec, usize)> = Vec::new();
        let mut pending: BTreeMap<SharedStr, Vec<PendingClaim>> = BTreeMap::new();
        for (pod, node) in placed {
            if self.at_gate(pod) {
                continue;
            }
            let Some(Ok(resolved)) = self.volumes_of(pod) else { continue };
            let Some(facts) = self.inventory.facts_by_name(node) else { continue };
            for claim in resolved.unbound {
                // Several members may use one claim.
                if let Some(at) = first.get(&claim.key()) {
                    later.push((pod, *at));
                    let storage = self.inventory.storage();
                    let (names, required): &mut (Vec<Arc<str>>, bool) = &mut choices[*at];
                    names.retain(|name| {
                        storage.volume(name).is_some_and(|volume| accessible(volume, &facts.labels))
                    });
                    *required |=
                        storage.unbound(&claim).provisioned_for(&facts.labels, storage) == Err(false);
                    continue;
                }
                if let Some(one) = self.prepared_by_others(&claim) {
                    pending.entry(pod.uid.clone()).or_default().push(one);
                    continue;
                }
                let storage = self.inventory.storage();
                let unbound = storage.unbound(&claim);
                let usable =
                    unbound.candidates(storage).into_iter().filter(|one| accessible(one, &facts.labels));
                let names = usable.map(|volume| volume.name.clone()).collect();
                let created = unbound.provisioned_for(&facts.labels, storage).is_ok();
                choices.push((names, !created));
                first.insert(claim.key(), wanted.len());
                wanted.push((pod, node, claim));
            }
        }
        let (given, all) = assign(&choices);
        for ((pod, node, claim), volume) in wanted.iter().zip(&given) {
            // One that its user has reserved is bound by the controller of PersistentVolumes.
            let known = volume.as_ref().and_then(|name| self.inventory.storage().volume(name));
            let free = known.is_none_or(|volume| volume.claimant.is_none());
            let one = PendingClaim {
                key: claim.key(),
                uid: claim.uid.clone(),
                volume: volume.clone(),
                // Nothing is begun if not all of them can get one.
                writes: all && free && !selected_by_others(claim),
                lacking: !all,
                written: None,
                retry_at: None,
                seen: volume.is_none() && claim.selected.as_ref() == Some(*node),
                removed: false,
                refused: None,
            };
            pending.entry(pod.uid.clone()).or_default().push(one);
        }
        for (pod, at) in later {
            let (_, _, claim) = &wanted[at];
            let one = PendingClaim {
                key: claim.key(),
                uid: claim.uid.clone(),
                volume: given[at].clone(),
                writes: false,
                lacking: !all,
                written: None,
                retry_at: None,
                seen: given[at].is_none() && claim.selected.is_some(),
                removed: false,
                refused: None,
            };
            pending.entry(pod.uid.clone()).or_default().push(one);
        }
        for (pod, node) in placed {
            for one in pending.get(&pod.uid).into_iter().flatten() {
                self.write_claim(one, node);
            }
        }
        pending
    }

    /// A claim that members of other jobs wait for already, which gets what was chosen for them.
    fn prepared_by_others(&self, claim: &Claim) -> Option<PendingClaim> {
        let others = self.bindings.waiting_for(&claim.uid);
        let other = others.first().and_then(|uid| self.bindings.assumed(uid))?;
        let one = other.claims.iter().find(|one| one.uid == claim.uid)?;
        Some(PendingClaim { writes: false, written: None, retry_at: None, ..one.clone() })
    }

    /// Since when the member is being bound: an earlier inspector may have selected the node of a claim.
    pub(super) fn since_selected(&self, pod: &PodSpec) -> i64 {
        let Some(Ok(resolved)) = self.volumes_of(pod) else { return self.now };
        let earlier = resolved.unbound.iter().filter_map(|claim| claim.selected_at).min();
        earlier.unwrap_or(self.now).min(self.now)
    }

    /// Emits what a claim needs: its node, or that a volume is reserved for it.
    fn write_claim(&mut self, one: &PendingClaim, node: &SharedStr) {
        if !one.writes || one.seen {
            return;
        }
        let claim = claim_object(&one.key, &one.uid);
        let now = self.now;
        let storage = self.inventory.storage_mut();
        let Some(name) = &one.volume else {
            storage.select(&one.key, Some(node.clone()), Some(now));
            self.work.effects.push(Effect::SelectNode { claim, node: node.clone(), at: now });
            return;
        };
        storage.promise(name.clone(), one.key.clone());
        let Some(volume) = storage.volume(name).cloned() else { return };
        let version = volume.version.clone();
        let volume = volume_object(&volume.name, &volume.uid);
        self.work.effects.push(Effect::ReserveVolume { volume, version, claim });
    }

    /// The watch reports a claim: whether the node that we selected is still there.
    pub(super) fn note_claim(&mut self, claim: &Claim) {
        for uid in self.bindings.waiting_for(&claim.uid) {
            let Some(assumed) = self.bindings.assumed_mut(&uid) else { continue };
            let node = assumed.node.clone();
            let provisioned = |one: &&mut PendingClaim| one.uid == claim.uid && one.volume.is_none();
            for one in assumed.claims.iter_mut().filter(provisioned) {
                // Where others selected the node, the Pod may be on another one from which the volume is accessible.
                let there = match &claim.selected {
                    Some(selected) => !one.writes || *selected == node,
                    None => false,
                };
                one.removed |= one.seen && !there && claim.bound().is_none();
                one.seen |= there;
            }
        }
    }

    /// The jobs that wait for this claim, by UID.
    pub(super) fn preparing(&self, claim: &SharedStr) -> Vec<JobId> {
        let pods = self.bindings.waiting_for(claim);
        pods.iter().filter_map(|uid| self.bindings.assumed(uid)).map(|assumed| assumed.job).collect()
    }

    /// The outcome of writing to a claim or a volume.
    pub(super) fn storage_answered(&mut self, object: &SharedStr, outcome: &BindOutcome) {
        let storage = self.inventory.storage();
        let is_it = |one: &PendingClaim| match &one.volume {
            None => one.uid == *object,
            Some(name) => storage.volume(name).is_some_and(|volume| volume.uid == *object),
        };
        let found: Vec<SharedStr> = self.bindings.unsent(|one| one.writes && is_it(one)).collect();
        for uid in found {
            let Some(assumed) = self.bindings.assumed(&uid).cloned() else { continue };
            let claims = assumed.claims.iter().map(|one| {
                let mut one = one.clone();
                if !one.writes || !is_it(&one) {
                    return one;
                }
                match outcome {
                    BindOutcome::Done | BindOutcome::Elsewhere(_) => one.written = Some(self.now),
                    BindOutcome::Transient(_) => one.retry_at = Some(self.now.saturating_add(AGAIN)),
                    BindOutcome::Gone(why) | BindOutcome::Refused(why) => one.refused = Some(why.clone()),
                }
                one
            });
            let claims = claims.collect();
            self.work.dirty.insert(assumed.job);
            self.bindings.assume(uid, Assumed { claims, ..assumed });
        }
    }

    fn progress(&self, one: &PendingClaim, node: &SharedStr) -> Progress {
        let storage = self.inventory.storage();
        let Some(claim) = storage.claim(&one.key).filter(|claim| claim.uid == one.uid && !claim.deleting)
        else {
            return Progress::Failed("the claim was deleted".to_owned());
        };
        if let Some(name) = claim.bound() {
            let Some(volume) = storage.volume(name) else { return Progress::Waiting };
            let labels = self.inventory.facts_by_name(node).map(|facts| &facts.labels);
            return if labels.is_none_or(|labels| accessible(volume, labels)) {
                Progress::Ready
            } else {
                let name = fluxion_text::shorten(name, NAME_MAX);
                Progress::Failed(format!(
                    "it was bound to PersistentVolume {name}, which is not accessible from there"
                ))
            };
        }
        let message = || {
            let text = storage.failure(&one.key.0, &one.uid)?;
            Some(fluxion_text::shorten(text, ANSWER_MAX).into_owned())
        };
        if let Some(why) = &one.refused {
            return Progress::Failed(fluxion_text::shorten(why, ANSWER_MAX).into_owned());
        }
        let lost = one.written.is_some_and(|at| at.saturating_add(UNSEEN) <= self.now) && !one.seen;
        if one.lacking {
            return Progress::Lacking;
        }
        if one.volume.is_none() && (one.removed || lost) {
            let text = message().unwrap_or_else(|| "the provisioner asks for another node".to_owned());
            return Progress::Failed(text);
        }
        Progress::Waiting
    }

    /// Goes on with the members of a job whose claims are being prepared.
    pub(super) fn advance_claims(&mut self, id: JobId) {
        let Some(job) = self.jobs.get(id).cloned() else { return };
        let unsent: Vec<(SharedStr, Assumed)> = job
            .pods
            .iter()
            .filter_map(|uid| Some((uid.clone(), self.bindings.assumed(uid)?.clone())))
            .filter(|(_, assumed)| !assumed.sent)
            .collect();
        if unsent.is_empty() {
            return;
        }
        let (mut ready, mut claims) = (0, 0);
        let mut first: Option<(ClaimKey, SharedStr, SharedStr)> = None;
        let mut next = i64::MAX;
        for (uid, assumed) in &unsent {
            for one in &assumed.claims {
                claims += 1;
                match self.progress(one, &assumed.node) {
                    Progress::Ready => ready += 1,
                    Progress::Waiting => {
                        first.get_or_insert((one.key.clone(), one.uid.clone(), assumed.node.clone()));
                        let unseen = one.written.filter(|_| !one.seen).map(|at| at.saturating_add(UNSEEN));
                        next = [unseen, one.retry_at, Some(next)].into_iter().flatten().min().unwrap_or(next);
                    }
                    Progress::Failed(text) => {
                        return self.claim_failed(&job, &unsent, uid, &one.key, &assumed.node, text);
                    }
                    Progress::Lacking => {
                        // That says nothing about the node.
                        let (claim, node) = (one.key.1.to_string(), assumed.node.to_string());
                        let answer = "the free volumes were given to others".to_owned();
                        let failed = Fact::VolumeFailed { claim, node, answer };
                        return self.place_again(&job, &unsent, Some(failed));
                    }
                }
            }
        }
        let Some((key, claim, node)) = first else {
            return self.send_prepared(&job, unsent);
        };
        let since = unsent.iter().map(|(_, assumed)| assumed.since).min().unwrap_or(self.now);
        let limit = self.bind_deadline(&job);
        let deadline = self.after_grace(since.saturating_add(limit));
        if deadline <= self.now {
            let message = self.inventory.storage().failure(&key.0, &claim);
            let why = message
                .map_or_else(String::new, |text| format!(": {}", fluxion_text::shorten(text, ANSWER_MAX)));
            let waits =
                |(_, assumed): &&(SharedStr, Assumed)| assumed.claims.iter().any(|one| one.key == key);
            let Some(pod) = unsent.iter().find(waits).map(|(uid, _)| uid.clone()) else { return };
            return self.claim_failed(
                &job,
                &unsent,
                &pod,
                &key,
                &node,
                format!("no volume within {limit} s{why}"),
            );
        }
        self.write_again(&unsent);
        self.waiting.look_at(next.max(self.now.saturating_add(1)).min(deadline), id);
        let message = self.inventory.storage().failure(&key.0, &claim);
        let message = message.map(|text| fluxion_text::shorten(text, ANSWER_MAX).into_owned());
        let waits = Fact::WaitingForVolumes { ready, wanted: claims, claim: key.1.to_string(), message };
        if let Some(job) = self.jobs.get_mut(id) {
            job.binds.volumes = Some(waits);
        }
    }

    /// Repeats writes that failed.
    fn write_again(&mut self, unsent: &[(SharedStr, Assumed)]) {
        for (uid, assumed) in unsent {
            let due = |one: &PendingClaim| one.retry_at.is_some_and(|at| at <= self.now);
            if !assumed.claims.iter().any(due) {
                continue;
            }
            let mut claims = assumed.claims.clone();
            for one in &mut claims {
                if one.retry_at.is_some_and(|at| at <= self.now) {
                    one.retry_at = None;
                    self.write_claim(one, &assumed.node);
                }
            }
            self.bindings.assume(uid.clone(), Assumed { claims, ..assumed.clone() });
        }
    }

    /// All volumes are there: the members are bound.
    fn send_prepared(&mut self, job: &Job, unsent: Vec<(SharedStr, Assumed)>) {
        let incomplete = job.members.bound == 0
            && job.binds.size.is_some_and(|size| u32::try_from(unsent.len()).unwrap_or(u32::MAX) < size);
        if incomplete {
            return self.place_again(job, &unsent, None);
        }
        for (uid, assumed) in unsent {
            let Some(pod) = self.delivered.pod(&uid).cloned() else { continue };
            let (node, record) = (assumed.node.clone(), assumed.record.clone());
            self.work.effects.push(Effect::Bind { pod: pod.object(), node, record });
            let (claims, since) = (Vec::new(), self.now);
            self.bindings.assume(uid, Assumed { claims, since, sent: true, ..assumed });
        }
        if let Some(job) = self.jobs.get_mut(job.id) {
            job.binds.volumes = None;
        }
        self.waiting.look_at(self.now.saturating_add(self.bind_deadline(job)), job.id);
    }

    fn claim_failed(
        &mut self,
        job: &Job,
        unsent: &[(SharedStr, Assumed)],
        pod: &SharedStr,
        claim: &ClaimKey,
        node: &SharedStr,
        answer: String,
    ) {
        let class =
            self.inventory.storage().claim(claim).map(|claim| claim.class.clone()).unwrap_or_default();
        let driver = self.inventory.storage().class(&class).map(|class| class.provisioner.clone());
        let nodes = self.inventory.same_place(&driver.unwrap_or_default(), node);
        for node in nodes {
            self.node_refused(&job.key.namespace, &node, job.id, Refused::Volume);
        }
        let claim = claim.1.to_string();
        let failed = Fact::VolumeFailed { claim, node: node.to_string(), answer };
        if let Some(pod) = self.delivered.pod(pod).cloned() {
            self.warn(&pod, "FailedScheduling", failed.text());
        }
        self.place_again(job, unsent, Some(failed));
    }

    /// Undoes the placement of these members, which are then placed again.
    fn place_again(&mut self, job: &Job, unsent: &[(SharedStr, Assumed)], why: Option<Fact>) {
        for (uid, _) in unsent {
            self.drop_assumed(uid);
            self.inventory.release(uid);
        }
        let starts = job.members.bound == 0;
        let given_up = job.binds.given_up.saturating_add(1);
        let pause = PAUSE.checked_shl(given_up - 1).filter(|pause| (PAUSE..PAUSE_MAX).contains(pause));
        let until = self.now.saturating_add(pause.unwrap_or(PAUSE_MAX));
        let failed = why.is_some();
        if let Some(job) = self.jobs.get_mut(job.id) {
            job.binds.volumes = None;
            job.binds.why = why.or_else(|| job.binds.why.take());
            if starts {
                job.started_at = None;
                job.planned_end = None;
                job.losses = Losses::default();
            }
            if failed {
                job.binds.given_up = given_up;
                job.binds.paused_until = starts.then_some(until);
            }
        }
        let members: Vec<_> = unsent.iter().filter_map(|(uid, _)| self.delivered.pod(uid)).cloned().collect();
        self.reconsider_refusals(job, &members);
        self.waiting.look_at(until, job.id);
        self.work.dirty.insert(job.id);
        self.pass.wanted = true;
    }

    /// The Pod is no longer being bound; what was written to its claims is undone, unless they are bound.
    pub(super) fn drop_assumed(&mut self, pod: &SharedStr) -> Option<Assumed> {
        let assumed = self.bindings.take_assumed(pod)?;
        for one in &assumed.claims {
            let bound = self.inventory.storage().claim(&one.key).is_none_or(|claim| claim.bound().is_some());
            if bound || !one.writes || self.hand_over(one, &assumed.node) {
                continue;
            }
            let claim = claim_object(&one.key, &one.uid);
            match &one.volume {
                None => self.deselect(claim, &one.key, &assumed.node),
                Some(name) => {
                    let storage = self.inventory.storage_mut();
                    storage.take_back(name);
                    if let Some(volume) = storage.volume(name) {
                        let volume = volume_object(&volume.name, &volume.uid);
                        self.work.effects.push(Effect::FreeVolume { volume, claim });
                    }
                }
            }
        }
        Some(assumed)
    }

    /// Leaves the preparation of a claim to another Pod that waits for the same; returns whether there is one.
    fn hand_over(&mut self, one: &PendingClaim, node: &SharedStr) -> bool {
        let others = self.bindings.waiting_for(&one.uid);
        let assumed = |uid: &&SharedStr| self.bindings.assumed(uid);
        // Only the node of the Pod that does it may be selected.
        let fits = |other: &Assumed| one.volume.is_some() || other.node == *node;
        let heir = others.iter().find(|uid| assumed(uid).is_some_and(fits));
        let Some(assumed) = heir.and_then(|uid| self.bindings.assumed_mut(uid)) else { return false };
        for other in assumed.claims.iter_mut().filter(|other| other.uid == one.uid) {
            *other = one.clone();
        }
        true
    }

    fn deselect(&mut self, claim: ObjectRef, key: &ClaimKey, node: &SharedStr) {
        self.inventory.storage_mut().select(key, None, None);
        self.work.effects.push(Effect::DeselectNode { claim, node: node.clone() });
    }

    /// Nodes that we selected for claims of a job that is not being bound (any more), e.g. before a restart: after the
    /// deadline, another node may be selected.
    pub(super) fn expire_selected(&mut self, id: JobId) {
        let Some(job) = self.jobs.get(id).cloned() else { return };
        let limit = self.bind_deadline(&job);
        let pods: Vec<_> = job.pods.iter().filter_map(|uid| self.delivered.pod(uid)).cloned().collect();
        for pod in pods {
            if pod.volumes.is_none() || self.bindings.is_assumed(&pod.uid) {
                continue;
            }
            let Some(Ok(resolved)) = self.volumes_of(&pod) else { continue };
            for claim in resolved.unbound {
                let (Some(node), Some(at)) = (&claim.selected, claim.selected_at) else { continue };
                if !self.bindings.waiting_for(&claim.uid).is_empty() {
                    continue;
                }
                let deadline = self.after_grace(at.saturating_add(limit));
                if deadline > self.now {
                    self.waiting.look_at(deadline, id);
                    continue;
                }
                self.node_refused(&job.key.namespace, node, id, Refused::Volume);
                self.deselect(claim_object(&claim.key(), &claim.uid), &claim.key(), node);
                self.work.dirty.insert(id);
            }
        }
    }
}

/// Whether the claim's node was selected by another scheduler.
fn selected_by_others(claim: &Claim) -> bool {
    claim.selected.is_some() && claim.selected_at.is_none()
}

/// Maximum length of a name in a text, in characters.
const NAME_MAX: usize = 64;

fn claim_object(key: &ClaimKey, uid: &SharedStr) -> ObjectRef {
    let (kind, api_version) = ("PersistentVolumeClaim".into(), "v1".into());
    ObjectRef { namespace: key.0.clone(), kind, api_version, name: key.1.clone(), uid: uid.clone() }
}

fn volume_object(name: &SharedStr, uid: &SharedStr) -> ObjectRef {
    let (kind, api_version) = ("PersistentVolume".into(), "v1".into());
    ObjectRef { namespace: "".into(), kind, api_version, name: name.clone(), uid: uid.clone() }
}
