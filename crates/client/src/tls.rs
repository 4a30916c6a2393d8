//! TLS to a node: versions 1.2 and 1.3 over ring, no client certificates, and a certificate that must hold.
//!
//! Owns who is trusted and what a refusal says. There is no way to skip a check.

use std::io;
use std::sync::Arc;

use rustls::client::WantsClientCert;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{CertificateError, ClientConfig, ConfigBuilder, RootCertStore, WantsVerifier};
use rustls_platform_verifier::Verifier;

use crate::ClientError;
use crate::error::Distrust;

/// Trusts whom the system trusts.
pub(crate) fn system_roots() -> Result<Arc<ClientConfig>, ClientError> {
    let provider = Arc::new(ring::default_provider());
    let verifier = Verifier::new(Arc::clone(&provider)).map_err(|_| ClientError::NoRootCertificates)?;
    let builder = builder(provider)?.dangerous().with_custom_certificate_verifier(Arc::new(verifier));
    Ok(finished(builder))
}

/// Trusts whoever the certificates of `pem` sign.
pub(crate) fn only_roots(pem: &[u8]) -> Result<Arc<ClientConfig>, ClientError> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        roots.add(certificate.map_err(|_| ClientError::BadCa)?).map_err(|_| ClientError::BadCa)?;
    }
    if roots.is_empty() {
        return Err(ClientError::BadCa);
    }
    Ok(finished(builder(Arc::new(ring::default_provider()))?.with_root_certificates(roots)))
}

fn builder(provider: Arc<CryptoProvider>) -> Result<ConfigBuilder<ClientConfig, WantsVerifier>, ClientError> {
    // ring has both versions; with none of them nobody could be trusted.
    ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|_| ClientError::NoRootCertificates)
}

fn finished(builder: ConfigBuilder<ClientConfig, WantsClientCert>) -> Arc<ClientConfig> {
    let mut config = builder.with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Arc::new(config)
}

/// What a handshake that came to nothing says. A connection that merely ended is none to distrust: the node may be
/// stopping, and may be back in a moment.
pub(crate) fn handshake_failed(error: io::Error) -> ClientError {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match inner {
        Some(rustls::Error::InvalidCertificate(why)) => ClientError::NotTrusted(distrust(why)),
        Some(_) => ClientError::NoTls(error),
        None => ClientError::Connect(error),
    }
}

fn distrust(why: &CertificateError) -> Distrust {
    match why {
        // The others: somebody of a trusted one's name signed it, with another key, or one of another kind.
        CertificateError::UnknownIssuer
        | CertificateError::BadSignature
        | CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => {
            Distrust::UnknownIssuer
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => Distrust::Expired,
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => Distrust::NotYetValid,
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            Distrust::OtherName
        }
        CertificateError::Other(other)
            if other.0.downcast_ref::<webpki::Error>() == Some(&webpki::Error::CaUsedAsEndEntity) =>
        {
            Distrust::Authority
        }
        // Theirs, and open to additions.
        _ => Distrust::NotInOrder,
    }
}
