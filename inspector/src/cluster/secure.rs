//! The secure port of an inspector in a cluster: its certificate, its users, its server.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Context as _;
use kube::Client;
use tokio::net::TcpListener;

use crate::access::{Access, front_proxy};
use crate::cli::SecureOptions;
use crate::http::{self, Forwarding};
use crate::supervise::Tasks;
use crate::tls::files::Files;
use crate::tls::own::{AuthorityLocation, Keeper};
use crate::tls::replica::{ReplicaKeeper, ReplicaTls, ShownCertificates};
use crate::tls::{ServingCertificate, server_config};

/// What is to be served, once there is something to serve.
pub(super) struct SecurePort {
    listener: TcpListener,
    certificate: Arc<ServingCertificate>,
    replica: Arc<ReplicaTls>,
    advertised: Option<SocketAddr>,
    access: Arc<Access>,
    /// What keeps certificate and trust current.
    pub(super) tasks: Tasks,
}

impl SecurePort {
    /// Binds the port that the options name, if any; `namespace` is that of Service and Secret.
    pub(super) async fn open(
        options: &SecureOptions,
        client: &Client,
        namespace: &str,
    ) -> anyhow::Result<Option<Self>> {
        let Some(address) = options.secure_listen else { return Ok(None) };
        let listener = http::listen_secure(address).await?;
        let certificate = Arc::new(ServingCertificate::default());
        let mut tasks = Tasks::default();
        if let (Some(file), Some(key)) = (&options.tls_cert_file, &options.tls_private_key_file) {
            let files = Files::open(file, key, Arc::clone(&certificate)).context("--tls-cert-file")?;
            tasks.spawn("the serving certificate", files.follow());
        } else {
            let place = AuthorityLocation {
                namespace: namespace.to_owned(),
                secret: options.tls_secret.clone(),
                service: options.service.clone(),
                webhook: options.admission_webhook,
            };
            let keeper = Keeper::new(client.clone(), place, Arc::clone(&certificate));
            tasks.spawn("the serving certificate", keeper.run());
        }
        let replica = Arc::new(ReplicaTls::default());
        let keeper =
            ReplicaKeeper::new(client.clone(), namespace, &options.replica_secret, Arc::clone(&replica));
        tasks.spawn("the certificate for other inspectors", keeper.run());
        let access = Access::new(client.clone(), options.token_audiences.clone());
        let access = Arc::new(access.with_replicas(Arc::clone(&replica)));
        tasks.spawn(
            "the front proxy's settings",
            front_proxy::follow(client.clone(), Arc::clone(access.front_proxy())),
        );
        let advertised = options.advertised(listener.local_addr()?);
        if advertised.is_none() {
            tracing::warn!("other inspectors can't forward requests to this one: pass --advertise-address");
        }
        Ok(Some(Self { listener, certificate, replica, advertised, access, tasks }))
    }

    /// Where other inspectors reach it.
    pub(super) fn advertised(&self) -> Option<SocketAddr> {
        self.advertised
    }

    /// Serves until the app is told to stop. The leader answers requests for data.
    pub(super) fn serve(self, app: http::App) -> anyhow::Result<(impl Future<Output = ()> + Send, Tasks)> {
        let shown = ShownCertificates { serving: self.certificate, replica: Arc::clone(&self.replica) };
        let config = server_config(Arc::new(shown))?;
        let forwarding = Forwarding::new(&app, self.replica);
        let address = self.listener.local_addr()?;
        tracing::info!(%address, "serving the API over TLS");
        Ok((
            http::serve_secure(self.listener, config, app, self.access, Some(Arc::new(forwarding))),
            self.tasks,
        ))
    }
}
