//! kube-apiserver as front proxy: who proves with its certificate to be that may say in headers who asks.
//!
//! Which certificates those are, and which headers, stands in the `ConfigMap` `extension-apiserver-authentication`
//! ([`follow`]). On all other connections these headers are worth nothing.

mod follow;
mod known;
mod trust;

pub use follow::follow;
pub use known::FrontProxy;
pub use trust::{Trust, TrustError};

#[cfg(test)]
mod tests;
