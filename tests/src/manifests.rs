//! Manifests that tests make up: Pods and Jobs, told what to ask for.

use serde_json::{Value, json};

/// A Pod of one container, for `schedulerName: fluxion` unless said otherwise.
#[derive(Clone, Debug)]
pub struct PodManifest(Value);

impl PodManifest {
    /// A Pod in namespace `default` that asks for nothing.
    pub fn new(name: &str) -> Self {
        Self(json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": { "name": name },
            "spec": { "schedulerName": "fluxion", "containers": [{ "name": "c", "image": "pause" }] },
        }))
    }

    /// In a namespace.
    #[must_use]
    pub fn namespace(self, namespace: &str) -> Self {
        self.set(&["metadata", "namespace"], json!(namespace))
    }

    /// Its container requests an amount of a resource.
    #[must_use]
    pub fn request(mut self, resource: &str, amount: &str) -> Self {
        self.0["spec"]["containers"][0]["resources"]["requests"][resource] = json!(amount);
        self
    }

    /// Its container is limited to an amount of a resource, and thereby requests it.
    #[must_use]
    pub fn limit(mut self, resource: &str, amount: &str) -> Self {
        self.0["spec"]["containers"][0]["resources"]["limits"][resource] = json!(amount);
        self
    }

    /// A label.
    #[must_use]
    pub fn label(self, key: &str, value: &str) -> Self {
        self.set(&["metadata", "labels", key], json!(value))
    }

    /// An annotation.
    #[must_use]
    pub fn annotation(self, key: &str, value: &str) -> Self {
        self.set(&["metadata", "annotations", key], json!(value))
    }

    /// A member of a group made by labels.
    #[must_use]
    pub fn group(self, name: &str, size: usize) -> Self {
        self.label("fluxion.flux-framework.org/group", name)
            .label("fluxion.flux-framework.org/group-size", &size.to_string())
    }

    /// A field of its spec.
    #[must_use]
    pub fn spec(self, field: &str, value: Value) -> Self {
        self.set(&["spec", field], value)
    }

    /// `activeDeadlineSeconds`.
    #[must_use]
    pub fn deadline(self, seconds: u32) -> Self {
        self.spec("activeDeadlineSeconds", json!(seconds))
    }

    /// It succeeds by itself after that many seconds.
    #[must_use]
    pub fn runs_for(self, seconds: u32) -> Self {
        self.annotation("fluxion.flux-framework.org/run-time", &format!("{seconds}s"))
    }

    /// For kube-scheduler.
    #[must_use]
    pub fn foreign(self) -> Self {
        self.spec("schedulerName", json!("default-scheduler"))
    }

    /// The manifest.
    pub fn build(self) -> Value {
        self.0
    }

    /// The same under another name.
    #[must_use]
    pub fn named(&self, name: &str) -> Self {
        self.clone().set(&["metadata", "name"], json!(name))
    }

    /// A Job of `size` such Pods, all at once.
    pub fn job(self, name: &str, size: usize) -> Value {
        let Self(mut pod) = self;
        pod["spec"]["restartPolicy"] = json!("Never");
        json!({
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": { "name": name },
            "spec": {
                "parallelism": size,
                "completions": size,
                "template": {
                    "metadata": { "labels": pod["metadata"]["labels"], "annotations": pod["metadata"]["annotations"] },
                    "spec": pod["spec"],
                },
            },
        })
    }

    /// A Job whose Pods are one gang.
    pub fn gang_job(self, name: &str, size: usize) -> Value {
        let mut job = self.job(name, size);
        job["metadata"]["annotations"] = json!({ "fluxion.flux-framework.org/gang": "true" });
        job
    }

    fn set(mut self, path: &[&str], value: Value) -> Self {
        let mut place = &mut self.0;
        for key in path {
            place = &mut place[*key];
        }
        *place = value;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_is_what_it_is_told() {
        let pod =
            PodManifest::new("a").request("cpu", "2").limit("nvidia.com/gpu", "1").group("g", 3).deadline(5);
        let pod = pod.build();
        assert_eq!(pod["spec"]["containers"][0]["resources"]["requests"]["cpu"], "2");
        assert_eq!(pod["metadata"]["labels"]["fluxion.flux-framework.org/group-size"], "3");
        assert_eq!(pod["spec"]["activeDeadlineSeconds"], 5);
    }

    #[test]
    fn a_job_takes_the_pod_as_its_template() {
        let job = PodManifest::new("a").runs_for(3).gang_job("j", 4);
        assert_eq!(job["spec"]["parallelism"], 4);
        let template = &job["spec"]["template"];
        assert_eq!(template["metadata"]["annotations"]["fluxion.flux-framework.org/run-time"], "3s");
        assert_eq!(template["spec"]["restartPolicy"], "Never");
        assert_eq!(job["metadata"]["annotations"]["fluxion.flux-framework.org/gang"], "true");
    }
}
