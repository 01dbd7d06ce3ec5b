//! The secure port as a server: certificates of both sides, and who takes up connections.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::SystemTime;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::*;
use crate::access::Access;
use crate::access::front_proxy::Trust;
use crate::access::tests::Reviewer;
use crate::http::{listen_secure, serve_secure};
use crate::tls::authority::Authority;
use crate::tls::{ServingCertificate, server_config};

type FrontProxy = CertifiedIssuer<'static, KeyPair>;

/// A certificate and its key.
type Identity = (CertificateDer<'static>, PrivateKeyDer<'static>);

struct Port {
    server: Server,
    reviewer: Reviewer,
    address: SocketAddr,
    authority: Authority,
    certificate: Arc<ServingCertificate>,
    front_proxy: FrontProxy,
    serving: tokio::task::JoinHandle<()>,
}

fn signer() -> FrontProxy {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

fn identity(by: &FrontProxy, name: &str) -> Identity {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let key = KeyPair::generate().unwrap();
    let certificate = params.signed_by(&key, by).unwrap().der().clone();
    (certificate, PrivateKeyDer::from_pem_slice(key.serialize_pem().as_bytes()).unwrap())
}

impl Port {
    async fn open() -> Self {
        let (server, reviewer, front_proxy) = (Server::started(false).await, Reviewer::default(), signer());
        let access = Arc::new(Access::new(reviewer.client(), Vec::new()));
        let data: BTreeMap<String, String> = [
            ("requestheader-client-ca-file", front_proxy.pem().as_str()),
            ("requestheader-allowed-names", r#"["front-proxy-client"]"#),
            ("requestheader-username-headers", r#"["X-Remote-User"]"#),
            ("requestheader-group-headers", r#"["X-Remote-Group"]"#),
        ]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into();
        access.front_proxy().set(Some(Trust::read(&data).unwrap()));
        let (authority, certificate) = (Authority::create(SystemTime::now()).unwrap(), Arc::default());
        let listener = listen_secure("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let address = listener.local_addr().unwrap();
        let shown: Arc<ServingCertificate> = Arc::clone(&certificate);
        let config = server_config(shown).unwrap();
        let serving = tokio::spawn(serve_secure(listener, config, server.app.clone(), access, None));
        let port = Self { server, reviewer, address, authority, certificate, front_proxy, serving };
        port.show();
        port
    }

    /// Shows a new certificate of the authority.
    fn show(&self) {
        let issued = self.authority.issue(&["localhost".to_owned()], SystemTime::now()).unwrap();
        self.certificate.set(&issued.certificate, &issued.key).unwrap();
    }

    /// Sends a request over a connection of its own; status and body. The certificate shown comes back.
    async fn ask(&self, identity: Option<&Identity>, headers: &str) -> (String, Vec<u8>) {
        let mut roots = RootCertStore::empty();
        for root in CertificateDer::pem_slice_iter(self.authority.bundle.as_bytes()) {
            roots.add(root.unwrap()).unwrap();
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        let config = match identity {
            Some((certificate, key)) => {
                builder.with_client_auth_cert(vec![certificate.clone()], key.clone_key()).unwrap()
            }
            None => builder.with_no_client_auth(),
        };
        let stream = TcpStream::connect(self.address).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        let mut stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap();
        let shown = stream.get_ref().1.peer_certificates().unwrap()[0].to_vec();
        let request =
            format!("GET {BASE}/fluxionjobs HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{headers}\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer).await;
        (answer, shown)
    }
}

fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or(answer)
}

#[tokio::test]
async fn headers_count_over_the_front_proxys_connection_only() {
    let port = Port::open().await;
    port.reviewer.allow(&["jane list - fluxionjobs"]);
    let forged = "x-remote-user: jane\r\nx-remote-group: a\r\nx-remote-group: b\r\n";
    let proxy = identity(&port.front_proxy, "front-proxy-client");
    let (answer, _) = port.ask(Some(&proxy), forged).await;
    assert_eq!(status(&answer), "200", "{answer}");
    let asked = port.reviewer.asked.lock().unwrap()[0]["spec"]["groups"].clone();
    assert_eq!(asked, serde_json::json!(["a", "b"]));
    for (what, other) in [
        ("no certificate", None),
        ("another name", Some(identity(&port.front_proxy, "jane"))),
        ("another signer", Some(identity(&signer(), "front-proxy-client"))),
    ] {
        let (answer, _) = port.ask(other.as_ref(), forged).await;
        assert_eq!(status(&answer), "401", "{what}: {answer}");
        let with_token = format!("{forged}authorization: Bearer token-of-joe\r\n");
        let (answer, _) = port.ask(other.as_ref(), &with_token).await;
        assert_eq!(status(&answer), "403", "{what}: {answer}");
        assert!(answer.contains(r#"User \"joe\" cannot list"#), "{answer}");
    }
    // Many groups are many headers.
    let groups = "x-remote-group: one-of-many\r\n".repeat(500);
    let (answer, _) = port.ask(Some(&proxy), &format!("x-remote-user: jane\r\n{groups}")).await;
    assert_eq!(status(&answer), "200", "{answer}");
}

#[tokio::test]
async fn a_new_certificate_is_shown_to_new_connections_and_the_end_is_in_order() {
    let port = Port::open().await;
    let (_, first) = port.ask(None, "").await;
    assert_eq!(port.ask(None, "").await.1, first);
    port.show();
    assert_ne!(port.ask(None, "").await.1, first);
    port.server.stopping.cancel();
    tokio::time::timeout(Duration::from_secs(5), port.serving).await.expect("it ends").unwrap();
}

#[tokio::test]
async fn who_connects_and_says_nothing_holds_up_nobody_for_long() {
    let port = Port::open().await;
    let mut silent = Vec::new();
    for _ in 0..80 {
        silent.push(TcpStream::connect(port.address).await.unwrap());
    }
    // Who speaks is answered all the same.
    let (answer, _) = port.ask(None, "").await;
    assert_eq!(status(&answer), "401", "{answer}");
    // Of one sender no more than so many are waited for: who has waited longest makes way.
    let mut closed = 0;
    for stream in &mut silent {
        let read = tokio::time::timeout(Duration::from_millis(20), stream.read(&mut [0])).await;
        closed += usize::from(matches!(read, Ok(Ok(0) | Err(_))));
    }
    assert_eq!(closed, 17);
}
