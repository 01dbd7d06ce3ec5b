//! Whom headers are believed of, and what they say.

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
};

use std::collections::BTreeMap;

use http::HeaderMap;
use rustls::pki_types::CertificateDer;

use super::*;
use crate::access::peer::Peer;

type Authority = CertifiedIssuer<'static, KeyPair>;

fn authority(name: &str) -> Authority {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, name);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

fn certificate(
    by: &Authority,
    name: &str,
    change: impl FnOnce(&mut CertificateParams),
) -> CertificateDer<'static> {
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    change(&mut params);
    params.signed_by(&KeyPair::generate().unwrap(), by).unwrap().der().clone()
}

fn data(by: &Authority, names: &str) -> BTreeMap<String, String> {
    [
        ("requestheader-client-ca-file", by.pem().as_str()),
        ("requestheader-allowed-names", names),
        ("requestheader-username-headers", r#"["X-Remote-User"]"#),
        ("requestheader-group-headers", r#"["X-Remote-Group"]"#),
        ("requestheader-extra-headers-prefix", r#"["X-Remote-Extra-"]"#),
    ]
    .map(|(key, value)| (key.to_owned(), value.to_owned()))
    .into()
}

fn peer(certificates: Vec<CertificateDer<'static>>) -> Peer {
    Peer::new("192.0.2.1:1".parse().unwrap(), certificates)
}

fn trusting(by: &Authority, names: &str) -> FrontProxy {
    let proxy = FrontProxy::default();
    proxy.set(Some(Trust::read(&data(by, names)).unwrap()));
    proxy
}

#[test]
fn only_a_certificate_of_the_right_authority_and_name_counts() {
    let (ours, other) = (authority("front"), authority("front"));
    let proxy = trusting(&ours, r#"["front-proxy-client"]"#);
    let good = || certificate(&ours, "front-proxy-client", |_| {});
    assert!(proxy.is(&peer(vec![good()])));
    let past = rcgen::date_time_ymd(2020, 1, 1);
    for (what, certificates) in [
        ("none", vec![]),
        ("another authority's", vec![certificate(&other, "front-proxy-client", |_| {})]),
        ("another name", vec![certificate(&ours, "jane", |_| {})]),
        (
            "the name as a group only",
            vec![certificate(&ours, "", |params| {
                params.distinguished_name = rcgen::DistinguishedName::new();
                params.distinguished_name.push(DnType::OrganizationName, "front-proxy-client");
            })],
        ),
        (
            "a server's",
            vec![certificate(&ours, "front-proxy-client", |params| {
                params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
            })],
        ),
        (
            "an expired one",
            vec![certificate(&ours, "front-proxy-client", |params| {
                params.not_before = rcgen::date_time_ymd(2019, 1, 1);
                params.not_after = past;
            })],
        ),
        ("behind another one", vec![certificate(&other, "front-proxy-client", |_| {}), good()]),
        ("no certificate", vec![CertificateDer::from(vec![1, 2, 3])]),
    ] {
        assert!(!proxy.is(&peer(certificates)), "{what}");
    }
    assert!(trusting(&ours, "[]").is(&peer(vec![certificate(&ours, "jane", |_| {})])), "any name");
    assert!(!FrontProxy::default().is(&peer(vec![good()])), "not read yet");
}

#[test]
fn changed_settings_count_at_once() {
    let (old, new) = (authority("old"), authority("new"));
    let proxy = trusting(&old, "[]");
    let (by_old, by_new) =
        (peer(vec![certificate(&old, "x", |_| {})]), peer(vec![certificate(&new, "x", |_| {})]));
    assert!(proxy.is(&by_old) && !proxy.is(&by_new));
    proxy.set(Some(Trust::read(&data(&new, "[]")).unwrap()));
    assert!(!proxy.is(&by_old) && proxy.is(&by_new));
    proxy.set(None);
    assert!(!proxy.is(&by_new));
}

#[test]
fn headers_name_a_user_with_all_groups() {
    let ours = authority("front");
    let proxy = trusting(&ours, "[]");
    let mut headers = HeaderMap::new();
    for (name, value) in [
        ("X-Remote-User", "jane"),
        ("X-Remote-Group", "team-a"),
        ("X-Remote-Group", "system:authenticated"),
        ("X-Remote-Uid", "u-1"),
        ("X-Remote-Extra-Authentication.kubernetes.io%2fcredential-Id", "JTI=1"),
        ("X-Remote-Extra-Scopes", "a"),
        ("X-Remote-Extra-Scopes", "b"),
        ("X-Remote-Extra-%zz", "raw"),
    ] {
        headers.append(
            http::HeaderName::from_bytes(name.to_ascii_lowercase().as_bytes()).unwrap(),
            value.parse().unwrap(),
        );
    }
    let user = proxy.user(&peer(vec![certificate(&ours, "x", |_| {})]), &headers).unwrap();
    assert_eq!((&*user.name, &*user.uid), ("jane", "u-1"));
    assert_eq!(user.groups, ["team-a", "system:authenticated"]);
    let extra: Vec<_> = user.extra.iter().map(|(key, values)| (key.as_str(), values.join(","))).collect();
    assert_eq!(
        extra,
        [
            ("%zz", "raw".to_owned()),
            ("authentication.kubernetes.io/credential-id", "JTI=1".to_owned()),
            ("scopes", "a,b".to_owned())
        ]
    );
    assert_eq!(proxy.user(&peer(Vec::new()), &headers), None, "nobody else is believed");
    headers.insert("x-remote-user", "".parse().unwrap());
    assert_eq!(proxy.user(&peer(vec![certificate(&ours, "x", |_| {})]), &headers), None);
}

#[test]
fn settings_that_trust_nobody_are_refused() {
    let ours = authority("front");
    let with = |key: &str, value: &str| {
        let mut data = data(&ours, "[]");
        data.insert(key.to_owned(), value.to_owned());
        Trust::read(&data).unwrap_err().to_string()
    };
    assert_eq!(with("requestheader-client-ca-file", ""), "requestheader-client-ca-file is not set");
    assert!(with("requestheader-client-ca-file", "no PEM").starts_with("requestheader-client-ca-file: "));
    assert!(with("requestheader-allowed-names", "front").starts_with("requestheader-allowed-names: "));
    assert_eq!(with("requestheader-username-headers", "[]"), "requestheader-username-headers is not set");
}
