//! A certificate authority of our own: pure functions of keys and times.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, PublicKeyData as _,
};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use x509_parser::prelude::{FromDer as _, X509Certificate};

use super::certificate::TlsError;

const DAY: Duration = Duration::from_hours(24);
/// How long an authority lasts.
const AUTHORITY: Duration = DAY.saturating_mul(1095);
/// How long a serving certificate lasts.
const SERVING: Duration = DAY.saturating_mul(30);
/// Clocks may differ by this much.
const SKEW: Duration = Duration::from_hours(1);
/// Authorities that are trusted at once.
const BUNDLED: usize = 4;

/// An authority: whom clients are to trust, and the key of the first of these.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authority {
    /// Certificates in PEM: the one that signs, and earlier ones that signed what may still be shown.
    pub bundle: String,
    /// Its private key in PEM.
    pub key: String,
}

/// A certificate that an authority has issued, in PEM.
#[derive(Debug)]
pub struct Issued {
    pub certificate: String,
    pub key: String,
    /// When another one is to replace it.
    pub renew_at: SystemTime,
}

impl Authority {
    /// A new one.
    pub fn create(now: SystemTime) -> Result<Self, TlsError> {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        // Two of them must not be taken for one.
        let seconds = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        params.distinguished_name = name(&format!("fluxion-inspector-ca@{seconds}"));
        (params.not_before, params.not_after) = ((now - SKEW).into(), (now + AUTHORITY).into());
        let key = KeyPair::generate()?;
        let bundle = params.self_signed(&key)?.pem();
        Ok(Self { bundle, key: key.serialize_pem() })
    }

    /// One that was kept; fails where it can't issue anything.
    pub fn read(bundle: String, key: String) -> Result<Self, TlsError> {
        let kept = Self { bundle, key };
        let pair = KeyPair::from_pem(&kept.key)?;
        let first = kept.certificates()?.into_iter().next();
        let first = first.ok_or_else(|| TlsError::Certificate("there is none".to_owned()))?;
        let (_, first) =
            X509Certificate::from_der(&first).map_err(|error| TlsError::Certificate(error.to_string()))?;
        if first.public_key().raw != pair.subject_public_key_info() {
            return Err(TlsError::Key("the private key does not match the first certificate".to_owned()));
        }
        Ok(kept)
    }

    /// Whether it is time for a new one: a third of its time is left.
    pub fn is_due(&self, now: SystemTime) -> bool {
        self.ends().is_none_or(|end| now + AUTHORITY / 3 >= end)
    }

    /// A new one that those are trusted beside which are still valid.
    pub fn renewed(&self, now: SystemTime) -> Result<Self, TlsError> {
        let mut new = Self::create(now)?;
        let old = pem_texts(&self.bundle);
        for text in old.into_iter().take(BUNDLED - 1) {
            let valid = CertificateDer::from_pem_slice(text.as_bytes())
                .ok()
                .and_then(|certificate| end_of(&certificate))
                .is_some_and(|end| end > now);
            if valid {
                new.bundle.push_str(&text);
            }
        }
        Ok(new)
    }

    /// A serving certificate for these DNS names or addresses, signed by the first of the bundle.
    pub fn issue(&self, names: &[String], now: SystemTime) -> Result<Issued, TlsError> {
        self.issue_for("fluxion-inspector", names, vec![ExtendedKeyUsagePurpose::ServerAuth], now)
    }

    /// A certificate that its holder shows both as a server and as a client, under this name only.
    pub fn issue_peer(&self, name: &str, now: SystemTime) -> Result<Issued, TlsError> {
        let usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        self.issue_for(name, &[name.to_owned()], usages, now)
    }

    fn issue_for(
        &self,
        common_name: &str,
        names: &[String],
        usages: Vec<ExtendedKeyUsagePurpose>,
        now: SystemTime,
    ) -> Result<Issued, TlsError> {
        let first = pem_texts(&self.bundle).into_iter().next().unwrap_or_default();
        let issuer = Issuer::from_ca_cert_pem(&first, KeyPair::from_pem(&self.key)?)?;
        let mut params = CertificateParams::new(names.to_vec())?;
        params.distinguished_name = name(common_name);
        params.extended_key_usages = usages;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.use_authority_key_identifier_extension = true;
        let end = self.ends().map_or(now + SERVING, |end| end.min(now + SERVING));
        (params.not_before, params.not_after) = ((now - SKEW).into(), end.into());
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &issuer)?.pem();
        let lasts = end.duration_since(now).unwrap_or_default();
        Ok(Issued { certificate, key: key.serialize_pem(), renew_at: now + lasts / 3 * 2 })
    }

    /// Whether certificates of the authority with this fingerprint (see [`Self::fingerprint`]) are trusted.
    pub fn trusts(&self, fingerprint: &str) -> bool {
        pem_texts(&self.bundle).iter().any(|text| text == fingerprint)
    }

    /// Identifies the authority that signs now.
    pub fn fingerprint(&self) -> String {
        pem_texts(&self.bundle).into_iter().next().unwrap_or_default()
    }

    fn ends(&self) -> Option<SystemTime> {
        end_of(self.certificates().ok()?.first()?)
    }

    fn certificates(&self) -> Result<Vec<CertificateDer<'static>>, TlsError> {
        CertificateDer::pem_slice_iter(self.bundle.as_bytes())
            .collect::<Result<_, _>>()
            .map_err(|error| TlsError::Certificate(error.to_string()))
    }
}

fn name(common: &str) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, common);
    name
}

fn end_of(certificate: &CertificateDer<'_>) -> Option<SystemTime> {
    let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
    let seconds = u64::try_from(certificate.validity().not_after.timestamp()).ok()?;
    Some(UNIX_EPOCH + Duration::from_secs(seconds))
}

/// Each certificate of a bundle as a text of its own.
fn pem_texts(bundle: &str) -> Vec<String> {
    const END: &str = "-----END CERTIFICATE-----";
    let parts = bundle.split_inclusive(END).filter(|part| part.ends_with(END));
    parts.map(|part| format!("{}\n", part.trim())).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rustls::RootCertStore;
    use rustls::client::WebPkiServerVerifier;
    use rustls::client::danger::ServerCertVerifier as _;
    use rustls::pki_types::{ServerName, UnixTime};

    use super::*;

    fn verifies(bundle: &str, shown: &Issued, name: &str, at: SystemTime) -> bool {
        let mut roots = RootCertStore::empty();
        for root in CertificateDer::pem_slice_iter(bundle.as_bytes()) {
            roots.add(root.unwrap()).unwrap();
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier =
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build().unwrap();
        let certificate = CertificateDer::from_pem_slice(shown.certificate.as_bytes()).unwrap();
        let at = UnixTime::since_unix_epoch(at.duration_since(UNIX_EPOCH).unwrap());
        let name = ServerName::try_from(name.to_owned()).unwrap();
        verifier.verify_server_cert(&certificate, &[], &name, &[], at).is_ok()
    }

    #[test]
    fn a_certificate_is_good_for_its_names_and_time() {
        let now = SystemTime::now();
        let authority = Authority::create(now).unwrap();
        let names = ["fluxion-inspector.fluxion-system.svc".to_owned()];
        let issued = authority.issue(&names, now).unwrap();
        assert!(verifies(&authority.bundle, &issued, &names[0], now));
        assert!(verifies(&authority.bundle, &issued, &names[0], issued.renew_at));
        assert!(!verifies(&authority.bundle, &issued, &names[0], now + 31 * DAY));
        assert!(!verifies(&authority.bundle, &issued, "evil.example", now));
        assert!(!verifies(&Authority::create(now).unwrap().bundle, &issued, &names[0], now));
        assert!(issued.renew_at > now + 19 * DAY && issued.renew_at < now + 21 * DAY);
    }

    #[test]
    fn over_a_renewal_both_certificates_are_trusted() {
        let now = SystemTime::now();
        let names = ["a.b.svc".to_owned()];
        let old = Authority::create(now).unwrap();
        assert!(!old.is_due(now) && old.is_due(now + 2 * AUTHORITY / 3 + DAY));
        let later = now + 2 * AUTHORITY / 3 + DAY;
        let new = old.renewed(later).unwrap();
        assert!(!new.is_due(later));
        for issued in [old.issue(&names, later).unwrap(), new.issue(&names, later).unwrap()] {
            assert!(verifies(&new.bundle, &issued, &names[0], later));
        }
        assert!(!verifies(&old.bundle, &new.issue(&names, later).unwrap(), &names[0], later));
        let mut last = new;
        for year in 1..20 {
            last = last.renewed(later + year * 365 * DAY).unwrap();
        }
        assert!(
            pem_texts(&last.bundle).len() <= BUNDLED,
            "what has expired is dropped, and it stays bounded"
        );
        assert_eq!(Authority::read(last.bundle.clone(), last.key.clone()).unwrap(), last);
    }

    #[test]
    fn what_can_issue_nothing_is_not_read() {
        let now = SystemTime::now();
        let (one, other) = (Authority::create(now).unwrap(), Authority::create(now).unwrap());
        assert!(Authority::read(one.bundle.clone(), other.key).is_err());
        assert!(Authority::read(String::new(), one.key.clone()).is_err());
        assert!(Authority::read(one.bundle, String::new()).is_err());
    }
}
