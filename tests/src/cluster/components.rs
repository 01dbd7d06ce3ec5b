//! How each component is started: its flags, its ports, its log.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::json;

use super::options::{Kubelets, Options, Scheduler};
use super::pki::Pki;
use super::ports::Port;
use super::process::Process;
use super::watchdog::Watchdog;
use crate::tools::{Tool, Tools};

/// What the fake kubelets do: file name and content.
const STAGES: [(&str, &str); 4] = [
    ("node-ready", include_str!("../../stages/node-ready.yaml")),
    ("pod-ready", include_str!("../../stages/pod-ready.yaml")),
    ("pod-complete", include_str!("../../stages/pod-complete.yaml")),
    ("pod-delete", include_str!("../../stages/pod-delete.yaml")),
];
const DEADLINE_STAGE: (&str, &str) = ("pod-deadline", include_str!("../../stages/pod-deadline.yaml"));

/// Everything the components are started with.
pub(super) struct Components {
    dir: PathBuf,
    tools: Tools,
    watchdog: Watchdog,
    gates: String,
    audited: Option<String>,
    ports: Ports,
}

struct Ports {
    etcd: Port,
    peers: Port,
    api_server: Port,
    kwok: Port,
}

impl Components {
    /// Reserves the ports and makes the folders.
    pub(super) fn reserve(dir: &Path, options: &Options, tools: &Tools, watchdog: &Watchdog) -> Result<Self> {
        for folder in ["logs", "stages"] {
            let path = dir.join(folder);
            std::fs::create_dir_all(&path).with_context(|| format!("creating {}", path.display()))?;
        }
        Ok(Self {
            dir: dir.to_owned(),
            tools: tools.clone(),
            watchdog: watchdog.clone(),
            gates: options.gates_flag(),
            audited: options.audited.clone(),
            ports: Ports {
                etcd: Port::reserve()?,
                peers: Port::reserve()?,
                api_server: Port::reserve()?,
                kwok: Port::reserve()?,
            },
        })
    }

    /// The URL of kube-apiserver.
    pub(super) fn server(&self) -> String {
        format!("https://127.0.0.1:{}", self.ports.api_server.number())
    }

    pub(super) fn etcd(&self) -> Result<Process> {
        let client = self.etcd_url();
        let peer = format!("http://127.0.0.1:{}", self.ports.peers.number());
        self.start(Tool::Etcd, |command| {
            command
                .arg(flag("data-dir", self.dir.join("etcd").display()))
                .arg(flag("listen-client-urls", &client))
                .arg(flag("advertise-client-urls", &client))
                .arg(flag("listen-peer-urls", &peer))
                .arg(flag("initial-advertise-peer-urls", &peer))
                .arg(flag("initial-cluster", format!("default={peer}")))
                // Nothing has to survive a power cut.
                .arg("--unsafe-no-fsync");
        })
    }

    pub(super) fn api_server(&self, pki: &Pki) -> Result<Process> {
        let file = |name: &str| pki.file(name).display().to_string();
        let audit = self.audit()?;
        self.start(Tool::ApiServer, |command| {
            command
                .args(audit)
                .arg(flag("etcd-servers", self.etcd_url()))
                .arg(flag("secure-port", self.ports.api_server.number()))
                .args(["--bind-address=127.0.0.1", "--advertise-address=127.0.0.1"])
                .arg("--service-cluster-ip-range=10.0.0.0/24")
                .arg(flag("tls-cert-file", file("apiserver.crt")))
                .arg(flag("tls-private-key-file", file("apiserver.key")))
                .arg(flag("client-ca-file", file("ca.crt")))
                .args([
                    "--service-account-issuer=https://kubernetes.default.svc",
                    "--authorization-mode=RBAC",
                ])
                .arg(flag("service-account-key-file", file("sa.pub")))
                .arg(flag("service-account-signing-key-file", file("sa.key")))
                .arg(flag("requestheader-client-ca-file", file("ca.crt")))
                .arg("--requestheader-allowed-names=front-proxy-client")
                .arg("--requestheader-username-headers=X-Remote-User")
                .arg("--requestheader-group-headers=X-Remote-Group")
                .arg("--requestheader-extra-headers-prefix=X-Remote-Extra-")
                .arg(flag("proxy-client-cert-file", file("proxy.crt")))
                .arg(flag("proxy-client-key-file", file("proxy.key")))
                .arg("--endpoint-reconciler-type=none")
                .arg(&self.gates)
                .arg("--runtime-config=scheduling.k8s.io/v1beta1=true,scheduling.k8s.io/v1alpha3=true");
        })
    }

    /// Flags with which kube-apiserver records who asked what, and what the authoriser said.
    fn audit(&self) -> Result<Vec<String>> {
        let Some(user) = &self.audited else { return Ok(Vec::new()) };
        let policy = json!({
            "apiVersion": "audit.k8s.io/v1",
            "kind": "Policy",
            "omitStages": ["RequestReceived"],
            "rules": [{ "level": "Metadata", "users": [user] }, { "level": "None" }],
        });
        let path = self.dir.join("audit-policy.yaml");
        std::fs::write(&path, policy.to_string()).with_context(|| format!("writing {}", path.display()))?;
        let log = audit_log(&self.dir);
        // At once: a reader wants to see what has been answered.
        Ok(vec![
            flag("audit-policy-file", path.display()),
            flag("audit-log-path", log.display()),
            flag("audit-log-mode", "blocking"),
        ])
    }

    pub(super) fn controller_manager(
        &self,
        kubeconfig: &Path,
        pki: &Pki,
        kubelets: Kubelets,
    ) -> Result<Process> {
        self.start(Tool::ControllerManager, |command| {
            command
                .arg(flag("kubeconfig", kubeconfig.display()))
                .arg(flag("service-account-private-key-file", pki.file("sa.key").display()))
                .arg(flag("root-ca-file", pki.file("ca.crt").display()))
                .args(["--use-service-account-credentials", "--leader-elect=false", "--secure-port=0"])
                .args(["--kube-api-qps=500", "--kube-api-burst=1000"])
                .arg(flag("node-monitor-grace-period", format!("{}s", kubelets.lease_seconds + 10)))
                .arg(&self.gates);
        })
    }

    pub(super) fn scheduler(&self, kubeconfig: &Path, scheduler: Scheduler) -> Result<Process> {
        self.start(Tool::Scheduler, |command| {
            command
                .arg(flag("kubeconfig", kubeconfig.display()))
                .args(["--leader-elect=false", "--secure-port=0"])
                .arg(flag("kube-api-qps", scheduler.qps))
                .arg(flag("kube-api-burst", scheduler.burst))
                .arg(&self.gates);
        })
    }

    pub(super) fn kwok(&self, kubeconfig: &Path, kubelets: Kubelets) -> Result<Process> {
        let deadline = kubelets.deadlines.then_some(DEADLINE_STAGE);
        let mut files = Vec::new();
        for (name, content) in STAGES.into_iter().chain(deadline) {
            let path = self.dir.join("stages").join(format!("{name}.yaml"));
            std::fs::write(&path, content).with_context(|| format!("writing {}", path.display()))?;
            files.push(path);
        }
        self.start(Tool::Kwok, |command| {
            command
                .arg(flag("kubeconfig", kubeconfig.display()))
                .arg("--manage-all-nodes=true")
                .arg(flag("server-address", format!("127.0.0.1:{}", self.ports.kwok.number())))
                .arg(flag("node-lease-duration-seconds", kubelets.lease_seconds));
            for file in &files {
                command.arg(flag("config", file.display()));
            }
        })
    }

    fn etcd_url(&self) -> String {
        format!("http://127.0.0.1:{}", self.ports.etcd.number())
    }

    fn start(&self, tool: Tool, arguments: impl FnOnce(&mut Command)) -> Result<Process> {
        let mut command = Command::new(self.tools.path(tool));
        command.current_dir(&self.dir);
        arguments(&mut command);
        let log = self.dir.join("logs").join(format!("{}.log", tool.program()));
        Process::start(tool.program(), command, log, &self.watchdog)
    }
}

/// Where the record of requests is.
pub(super) fn audit_log(dir: &Path) -> PathBuf {
    dir.join("logs").join("audit.log")
}

fn flag(name: &str, value: impl std::fmt::Display) -> String {
    format!("--{name}={value}")
}
