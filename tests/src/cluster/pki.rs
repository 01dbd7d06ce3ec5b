//! The certificates of one cluster: one authority signs the API server, the components, the front proxy and
//! every user.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, ExtendedKeyUsagePurpose,
    IsCa, KeyPair, KeyUsagePurpose,
};

/// The authority, and the folder with the files that the components read.
pub(crate) struct Pki {
    dir: PathBuf,
    authority: CertifiedIssuer<'static, KeyPair>,
}

/// A certificate and its key, in PEM.
pub(crate) struct Pair {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

impl Pki {
    /// Makes the authority, and in `dir`: ca.crt, the API server's and the front proxy's pairs, and the keys of the
    /// tokens of service accounts.
    pub(crate) fn create(dir: PathBuf) -> Result<Self> {
        fs::create_dir_all(&dir).with_context(|| format!("creating {}", dir.display()))?;
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        params.distinguished_name = name("fluxion-tests-ca", None);
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;
        let pki = Self { dir, authority };
        pki.write("ca.crt", &pki.authority.pem())?;
        pki.write_pair("apiserver", &pki.server(&["localhost", "kubernetes", "127.0.0.1", "10.0.0.1"])?)?;
        pki.write_pair("proxy", &pki.user("front-proxy-client", None)?)?;
        let tokens = KeyPair::generate()?;
        pki.write("sa.key", &tokens.serialize_pem())?;
        pki.write("sa.pub", &tokens.public_key_pem())?;
        Ok(pki)
    }

    /// A file of the folder, e.g. `apiserver.crt`.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// A client certificate: who holds it is `user`, and member of `group`.
    pub(crate) fn user(&self, user: &str, group: Option<&str>) -> Result<Pair> {
        let mut params = CertificateParams::default();
        params.distinguished_name = name(user, group);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.sign(params)
    }

    /// The same, but it has expired.
    pub(crate) fn expired_user(&self, user: &str) -> Result<Pair> {
        let mut params = CertificateParams::default();
        params.distinguished_name = name(user, None);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        params.not_before = rcgen::date_time_ymd(2020, 1, 1);
        params.not_after = rcgen::date_time_ymd(2021, 1, 1);
        self.sign(params)
    }

    fn server(&self, names: &[&str]) -> Result<Pair> {
        let mut params =
            CertificateParams::new(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())?;
        params.distinguished_name = name("kube-apiserver", None);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        self.sign(params)
    }

    fn sign(&self, mut params: CertificateParams) -> Result<Pair> {
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.authority)?;
        Ok(Pair { certificate: certificate.pem(), key: key.serialize_pem() })
    }

    /// Writes NAME.crt and NAME.key.
    pub(crate) fn write_pair(&self, name: &str, pair: &Pair) -> Result<()> {
        self.write(&format!("{name}.crt"), &pair.certificate)?;
        self.write(&format!("{name}.key"), &pair.key)
    }

    fn write(&self, name: &str, content: &str) -> Result<()> {
        let path = self.file(name);
        fs::write(&path, content).with_context(|| format!("writing {}", path.display()))
    }
}

/// Kubernetes reads the user from the common name, the group from the organisation.
fn name(user: &str, group: Option<&str>) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, user);
    if let Some(group) = group {
        name.push(DnType::OrganizationName, group);
    }
    name
}
