//! Requests for data are answered by the leader: any other inspector forwards them to it.
//!
//! Users are authenticated and authorised where they ask; the leader believes what a replica says of them (see
//! [`crate::access::replica`]), and decides by itself what they may see. Discovery, metrics and health are answered by
//! every inspector. A forwarded request is never forwarded again.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tokio::sync::Semaphore;

use super::app::App;
use super::auth::Asker;
use super::guard::BODY_BYTES;
use super::refusal::Refusal;
use super::standing::Standing;
use super::watch::Streamed;
use crate::access::Credential;
use crate::engine::{EngineHandle, Role};
use crate::health::{Health, Leadership};
use crate::metrics::{Metrics, Outcome};
use crate::tls::replica::ReplicaTls;

mod client;
mod headers;
mod lines;

use client::Pool;
use lines::{SILENT, whole_lines};

/// Maximum number of requests being forwarded.
pub(super) const FORWARDED: usize = 1024;

/// Maximum time until the snapshots of a new leader are those of its term.
const FIRST_SNAPSHOT: Duration = Duration::from_secs(5);

/// How an inspector reaches the leader.
pub struct Forwarding {
    engine: EngineHandle,
    health: Arc<Health>,
    pool: Pool,
    free: Arc<Semaphore>,
    metrics: Arc<Metrics>,
}

/// Who is to answer.
#[derive(Debug, PartialEq, Eq)]
enum Answerer {
    /// We, in the term with this number.
    Us(u64),
    Leader(SocketAddr),
    Nobody(&'static str),
}

impl Answerer {
    fn of(leadership: Option<&Leadership>, forwarded: bool) -> Self {
        let Some(leadership) = leadership else { return Self::Nobody("the leader is not known yet") };
        if let Some(term) = leadership.term() {
            return Self::Us(term.number);
        }
        match (leadership.address, &leadership.holder) {
            _ if forwarded => Self::Nobody("this inspector is not the leader"),
            (Some(address), _) => Self::Leader(address),
            (None, Some(_)) => Self::Nobody("the leader's address is not known"),
            (None, None) => Self::Nobody("there is no leader"),
        }
    }
}

impl Forwarding {
    /// Forwards requests that this API should not answer, and shows the certificate of a replica.
    pub fn new(app: &App, tls: Arc<ReplicaTls>) -> Self {
        Self {
            engine: app.engine.clone(),
            health: Arc::clone(&app.health),
            pool: Pool::new(tls),
            free: Arc::new(Semaphore::new(FORWARDED)),
            metrics: Arc::clone(&app.metrics),
        }
    }

    /// Waits until our snapshots are those of this term: the Lease is acquired first.
    async fn published(&self, term: u64) -> Result<(), Refusal> {
        let mut changes = self.engine.changed();
        let published = async {
            loop {
                let snapshot = self.engine.snapshot();
                if snapshot.role == Role::Leader && snapshot.term == term {
                    return true;
                }
                if changes.changed().await.is_err() {
                    return false;
                }
            }
        };
        match tokio::time::timeout(FIRST_SNAPSHOT, published).await {
            Ok(true) => Ok(()),
            Ok(false) | Err(_) => Err(Refusal::Unavailable("this inspector has just become the leader")),
        }
    }

    fn count(&self, outcome: &'static str) {
        self.metrics.forwarded.get_or_create(&Outcome { outcome }).inc();
    }

    /// Returns when somebody else is to answer.
    async fn changed_from(health: Arc<Health>, now: Answerer) {
        let mut leadership = health.follow_leadership();
        loop {
            let term = {
                let leadership = leadership.borrow_and_update();
                if Answerer::of(leadership.as_ref(), false) != now {
                    return;
                }
                leadership.as_ref().and_then(Leadership::term)
            };
            let ended = async {
                match term {
                    Some(term) => tokio::time::sleep_until(term.until).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                changed = leadership.changed() => if changed.is_err() { return },
                () = ended => {}
            }
        }
    }

    async fn forward(
        &self,
        leader: SocketAddr,
        standing: &Arc<Standing>,
        request: Request,
    ) -> Result<Response, Refusal> {
        let Ok(permit) = Arc::clone(&self.free).try_acquire_owned() else {
            self.count("too_many");
            return Err(Refusal::Unavailable("too many requests are being forwarded to the leader"));
        };
        let (mut parts, body) = request.into_parts();
        let body = to_bytes(body, BODY_BYTES).await.map_err(|_| Refusal::TooLarge)?;
        let headers = headers::of_request(&parts.headers, &standing.user)?;
        parts.headers = headers;
        let sent = self.pool.send(leader, parts, body);
        let changed = Self::changed_from(Arc::clone(&self.health), Answerer::Leader(leader));
        let answer = tokio::select! {
            answer = sent => answer,
            () = changed => Err("the leader has changed"),
        };
        let answer = answer.inspect_err(|_| self.count("unreachable")).map_err(Refusal::Unavailable)?;
        self.count("answered");
        let (mut parts, body) = answer.into_parts();
        headers::keep_end_to_end(&mut parts.headers);
        // The leader has already compressed it, or broken it into lines.
        parts.extensions.insert(Streamed);
        let body = client::Answer::new(body, permit);
        if standing.attributes.verb != "watch" || !parts.status.is_success() {
            return Ok(Response::from_parts(parts, Body::new(body)));
        }
        let (health, standing) = (Arc::clone(&self.health), Arc::clone(standing));
        let ends = async move {
            tokio::select! {
                () = Self::changed_from(health, Answerer::Leader(leader)) => {}
                refusal = standing.lost() => return refusal,
            }
            lines::leader_changed()
        };
        let metrics = Arc::clone(&self.metrics);
        Ok(Response::from_parts(parts, whole_lines(Body::new(body), ends, Some(SILENT), metrics)))
    }
}

/// Answers a request, or lets the leader answer it.
pub(super) async fn to_leader(
    State(forwarding): State<Arc<Forwarding>>,
    request: Request,
    next: Next,
) -> Result<Response, Refusal> {
    let standing = request.extensions().get::<Asker>().and_then(|asker| asker.standing.clone());
    let Some(standing) = standing.filter(|standing| standing.attributes.is_resource()) else {
        return Ok(next.run(request).await);
    };
    let forwarded = matches!(standing.credential, Credential::Replica);
    let leadership = forwarding.health.leadership();
    match Answerer::of(leadership.as_ref(), forwarded) {
        Answerer::Us(term) => {
            forwarding.published(term).await?;
            let response = next.run(request).await;
            if response.extensions().get::<Streamed>().is_none() {
                return Ok(response);
            }
            let changed = Forwarding::changed_from(Arc::clone(&forwarding.health), Answerer::Us(term));
            let ends = async move {
                changed.await;
                lines::leader_changed()
            };
            let metrics = Arc::clone(&forwarding.metrics);
            Ok(response.map(|body| whole_lines(body, ends, None, metrics)))
        }
        Answerer::Leader(leader) => Ok(forwarding.forward(leader, &standing, request).await.into_response()),
        Answerer::Nobody(why) => {
            forwarding.count("no_leader");
            Err(Refusal::Unavailable(why))
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;
    use crate::health::Term;

    #[test]
    fn a_forwarded_request_is_not_forwarded_again() {
        let address = "192.0.2.1:8443".parse().unwrap();
        let term = |ends_in: i64| {
            let (now, seconds) = (Instant::now(), Duration::from_secs(ends_in.unsigned_abs()));
            Some(Term { number: 1, until: if ends_in > 0 { now + seconds } else { now } })
        };
        let other =
            |address| Leadership { held: None, holder: Some("other".to_owned()), address, trouble: None };
        let ours = |ends_in| Leadership { held: term(ends_in), ..Leadership::default() };
        for (leadership, direct, forwarded) in [
            (
                other(Some(address)),
                Answerer::Leader(address),
                Answerer::Nobody("this inspector is not the leader"),
            ),
            (
                other(None),
                Answerer::Nobody("the leader's address is not known"),
                Answerer::Nobody("this inspector is not the leader"),
            ),
            (ours(60), Answerer::Us(1), Answerer::Us(1)),
            (
                ours(-60),
                Answerer::Nobody("there is no leader"),
                Answerer::Nobody("this inspector is not the leader"),
            ),
        ] {
            assert_eq!(Answerer::of(Some(&leadership), false), direct, "{leadership:?}");
            assert_eq!(Answerer::of(Some(&leadership), true), forwarded, "{leadership:?}");
        }
    }
}
