//! What a cluster is to be like.

use std::collections::BTreeMap;

/// Settings of a cluster; `Options::default()` fits most tests.
#[derive(Clone, Debug)]
pub struct Options {
    /// Feature gates of kube-apiserver, kube-controller-manager and kube-scheduler.
    pub feature_gates: BTreeMap<String, bool>,
    /// kube-scheduler; `None` leaves Pods of `default-scheduler` pending.
    pub scheduler: Option<Scheduler>,
    /// What the fake kubelets do beyond reporting bound Pods ready and removing terminating ones.
    pub kubelets: Kubelets,
    /// Installs the `PodGroup` of scheduling.x-k8s.io.
    pub pod_group_crd: bool,
    /// The user whose requests kube-apiserver records; see `Cluster::audit_log`.
    pub audited: Option<String>,
}

/// Settings of kube-scheduler.
#[derive(Clone, Copy, Debug)]
pub struct Scheduler {
    /// Its limit on requests a second; its own default is 50.
    pub qps: u32,
    /// Its limit on requests at once; its own default is 100.
    pub burst: u32,
}

/// Settings of the fake kubelets.
///
/// They never touch the status of a Node that has a Ready condition, nor of a Pod that is not Pending: a test
/// may set both itself. A Pod ends by itself only when its annotation
/// `fluxion.flux-framework.org/run-time` says after how long.
#[derive(Clone, Copy, Debug)]
pub struct Kubelets {
    /// How long the Lease of a node lasts (seconds); it is renewed four times as often. Ten seconds after it has ended, the
    /// node becomes `NotReady`.
    pub lease_seconds: u32,
    /// Fails a Pod when its `activeDeadlineSeconds` is over, as kubelet does.
    pub deadlines: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            feature_gates: [
                ("GenericWorkload", true),
                ("TopologyAwareWorkloadScheduling", true),
                ("WorkloadWithJob", false),
            ]
            .map(|(name, on)| (name.to_owned(), on))
            .into(),
            scheduler: None,
            kubelets: Kubelets::default(),
            pod_group_crd: false,
            audited: None,
        }
    }
}

impl Default for Kubelets {
    fn default() -> Self {
        Self { lease_seconds: 40, deadlines: false }
    }
}

impl Default for Scheduler {
    fn default() -> Self {
        Self { qps: 50, burst: 100 }
    }
}

impl Options {
    /// With kube-scheduler, at its own defaults.
    #[must_use]
    pub fn with_scheduler(mut self) -> Self {
        self.scheduler = Some(Scheduler::default());
        self
    }

    /// With one feature gate switched.
    #[must_use]
    pub fn with_gate(mut self, name: &str, on: bool) -> Self {
        self.feature_gates.insert(name.to_owned(), on);
        self
    }

    /// With kubelets that seldom renew their Leases: those of thousands of nodes would keep this machine busy, and nodes would
    /// become `NotReady`.
    #[must_use]
    pub fn with_seldom_renewed_nodes(mut self) -> Self {
        self.kubelets.lease_seconds = 3600;
        self
    }

    /// With kubelets that enforce `activeDeadlineSeconds`.
    #[must_use]
    pub fn with_deadlines(mut self) -> Self {
        self.kubelets.deadlines = true;
        self
    }

    /// With the `PodGroup` of scheduling.x-k8s.io.
    #[must_use]
    pub fn with_pod_group_crd(mut self) -> Self {
        self.pod_group_crd = true;
        self
    }

    /// With a record of this user's requests.
    #[must_use]
    pub fn with_audit_of(mut self, user: &str) -> Self {
        self.audited = Some(user.to_owned());
        self
    }

    /// As `--feature-gates` wants it.
    pub(crate) fn gates_flag(&self) -> String {
        let gates: Vec<String> = self.feature_gates.iter().map(|(name, on)| format!("{name}={on}")).collect();
        format!("--feature-gates={}", gates.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gates_are_written_as_one_flag() {
        let options = Options::default().with_gate("WorkloadWithJob", true);
        assert_eq!(
            options.gates_flag(),
            "--feature-gates=GenericWorkload=true,TopologyAwareWorkloadScheduling=true,WorkloadWithJob=true"
        );
    }
}
