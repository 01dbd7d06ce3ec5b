//! Two inspectors of one installation, behind one Service.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use fluxion_api::Role;

use crate::apply::Applier;
use crate::balancer::Balancer;
use crate::cluster::{Access, Cluster};
use crate::inspector::{Inspector, Settings, rights};
use crate::registration::SecurePort;
use crate::wait;

/// Two inspectors, of which one leads.
pub struct Replicas {
    pub all: [Inspector; 2],
    ports: [SecurePort; 2],
    /// The Service that kube-apiserver knows.
    pub service: Balancer,
}

impl Replicas {
    /// Starts both with the rights of the chart, and registers them.
    pub async fn start(cluster: &Cluster, applier: &Applier, config: &str) -> Result<Self> {
        let access = rights(cluster).await?;
        Self::start_as(cluster, applier, config, [access.clone(), access], Default::default()).await
    }

    /// The same, where each reaches the API server in its own way, and has further variables in its environment.
    pub async fn start_as(
        cluster: &Cluster,
        applier: &Applier,
        config: &str,
        [one, other]: [Access; 2],
        [of_one, of_other]: [Vec<(String, String)>; 2],
    ) -> Result<Self> {
        let ports = [SecurePort::reserve()?, SecurePort::reserve()?];
        let settings = |port: &SecurePort, environment| Settings {
            config: Some(config.to_owned()),
            environment,
            ..port.settings()
        };
        let first = settings(&ports[0], of_one);
        let first = Inspector::start_as(cluster, "replica-0", &first, one).await?;
        let second = settings(&ports[1], of_other);
        let second = Inspector::start_as(cluster, "replica-1", &second, other).await?;
        let service = Balancer::start(ports.iter().map(SecurePort::address).collect()).await?;
        ports[0].register_at(applier, service.port()).await?;
        Ok(Self { all: [first, second], ports, service })
    }

    /// The secure port of one of them.
    pub fn port(&self, index: usize) -> &SecurePort {
        &self.ports[index]
    }

    /// Which of those leads that answer at once.
    pub async fn leader(&self) -> Option<usize> {
        for (index, inspector) in self.all.iter().enumerate() {
            let standing = tokio::time::timeout(Duration::from_secs(1), inspector.standing()).await;
            if matches!(standing, Ok(Ok(standing)) if standing.role == Role::Leader) {
                return Some(index);
            }
        }
        None
    }

    /// Waits until one leads; which, and how long it took.
    pub async fn some_leader(&self, limit: Duration) -> Result<(usize, Duration)> {
        let began = Instant::now();
        let leader = wait::until("an inspector leads", limit, || async {
            match self.leader().await {
                Some(leader) => Ok(leader),
                None => bail!("none does"),
            }
        })
        .await?;
        Ok((leader, began.elapsed()))
    }

    /// Waits until this one leads; how long it took.
    pub async fn leads(&self, index: usize, limit: Duration) -> Result<Duration> {
        let began = Instant::now();
        wait::until(&format!("inspector {index} leads"), limit, || async {
            let standing = self.all[index].standing().await?;
            if standing.role == Role::Leader { Ok(()) } else { bail!("{standing:?}") }
        })
        .await?;
        Ok(began.elapsed())
    }

    /// Starts one that was killed, and waits until it is ready.
    pub async fn revive(&mut self, index: usize, cluster: &Cluster) -> Result<()> {
        self.all[index].restart(cluster).await
    }
}
