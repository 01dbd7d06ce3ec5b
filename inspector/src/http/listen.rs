//! The API's listener on loopback. Every user of this machine may connect, and only one has the token: where there are too
//! many connections, the oldest over which no token came makes way for the next.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use fluxion_api::server_file;
use tokio::net::TcpListener;
use tokio_util::task::TaskTracker;

use super::connection::Answering;
use super::tickets::Tickets;
use super::timeout_stream::TimeoutStream;
use super::{App, router};
use crate::open_files;

/// Maximum number of concurrent connections.
const CONNECTIONS: usize = 2048;

/// Why the listener could not be created.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    #[error("{0} is reachable from other machines: listen on 127.0.0.1 or [::1]")]
    NotLoopback(SocketAddr),
    #[error(
        "{address} is already in use{}: stop that process, or choose another address with --listen (port 0 picks a free port)",
        holder(address, *.pid)
    )]
    InUse { address: SocketAddr, pid: Option<u32> },
    #[error(
        "can't listen on {address}: {source}; choose another address with --listen (port 0 picks a free port)"
    )]
    Io { address: SocketAddr, source: io::Error },
    #[error("can't listen on {address}: {source}; choose another address with --secure-listen")]
    Secure { address: SocketAddr, source: io::Error },
}

/// The process using the address, or how to find it.
fn holder(address: &SocketAddr, pid: Option<u32>) -> String {
    pid.map_or_else(
        || format!(" by another process (see `ss -ltnp 'sport = :{}'`)", address.port()),
        |pid| format!(" by another inspector (process {pid})"),
    )
}

/// PID of the inspector that, according to the default state directory, listens there.
fn inspector_at(address: SocketAddr) -> Option<u32> {
    let found = server_file::read(&server_file::state_dir()?)?;
    (found.url == format!("http://{address}")).then_some(found.pid)
}

/// Binds a loopback address; port 0 picks a free port.
pub async fn listen(address: SocketAddr) -> Result<TcpListener, ListenError> {
    if !address.ip().is_loopback() {
        return Err(ListenError::NotLoopback(address));
    }
    TcpListener::bind(address).await.map_err(|source| match source.kind() {
        io::ErrorKind::AddrInUse => ListenError::InUse { address, pid: inspector_at(address) },
        _ => ListenError::Io { address, source },
    })
}

/// Serves until the app is stopped, then ends watches and waits for running requests.
pub async fn serve(listener: TcpListener, app: App) -> io::Result<()> {
    let tickets = Tickets::new(open_files::share(CONNECTIONS), open_files::share(CONNECTIONS));
    let serving = accepted(listener, app.clone(), tickets);
    tokio::select! {
        () = serving => Ok(()),
        never = app.tidy() => match never {},
    }
}

async fn accepted(listener: TcpListener, app: App, tickets: Arc<Tickets<IpAddr>>) {
    let (stopping, metrics) = (app.stopping.clone(), Arc::clone(&app.metrics));
    let answering = Answering { router: router(app), metrics, stopping };
    let connections = TaskTracker::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = answering.stopping.cancelled() => break,
        };
        match accepted {
            Ok((stream, address)) => {
                let _ = stream.set_nodelay(true);
                if let Some(ticket) = tickets.take(address.ip()) {
                    let stream = TimeoutStream::new(stream, Arc::clone(&answering.metrics));
                    connections.spawn(answering.clone().serve(stream, ticket, |_| {}));
                } else {
                    answering.metrics.connection_dropped("limit");
                    tracing::info!(limit = tickets.most(), "closed a connection: too many connections");
                }
            }
            Err(error) => {
                tracing::warn!(%error, "failed to accept a connection");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
    connections.close();
    connections.wait().await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn other_machines_are_not_listened_to() {
        for bad in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"] {
            assert!(matches!(listen(bad.parse().unwrap()).await, Err(ListenError::NotLoopback(_))), "{bad}");
        }
        let listener = listen("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let taken = listener.local_addr().unwrap();
        let told = listen(taken).await.unwrap_err().to_string();
        for part in [
            &format!("{taken} is already in use"),
            &format!("`ss -ltnp 'sport = :{}'`", taken.port()),
            "--listen",
        ] {
            assert!(told.contains(part), "{told}");
        }
        let told = ListenError::InUse { address: taken, pid: Some(7) }.to_string();
        assert!(told.contains("by another inspector (process 7): stop that process"), "{told}");
    }

    #[tokio::test]
    async fn who_has_no_token_makes_way() {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        use tokio::net::TcpStream;
        let server = crate::http::tests::Server::started(true).await;
        let listener = listen("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let address = listener.local_addr().unwrap();
        let serving = tokio::spawn(accepted(listener, server.app.clone(), Tickets::new(4, 4)));
        let ask = async |stream: &mut TcpStream, token: &str| {
            let request =
                format!("GET /version HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\n\r\n");
            stream.write_all(request.as_bytes()).await.unwrap();
            let mut answer = [0; 1024];
            let read = tokio::time::timeout(Duration::from_secs(10), stream.read(&mut answer)).await;
            String::from_utf8_lossy(&answer[..read.unwrap().unwrap()]).into_owned()
        };
        let mut first = TcpStream::connect(address).await.unwrap();
        assert!(ask(&mut first, "secret").await.starts_with("HTTP/1.1 200"));
        let mut others = Vec::new();
        for _ in 0..20 {
            let mut other = TcpStream::connect(address).await.unwrap();
            assert!(ask(&mut other, "guessed").await.starts_with("HTTP/1.1 401"));
            others.push(other);
        }
        assert!(ask(&mut first, "secret").await.starts_with("HTTP/1.1 200"), "it is not closed");
        let mut ended = 0;
        for other in &mut others {
            let read = tokio::time::timeout(Duration::from_millis(20), other.read(&mut [0])).await;
            ended += usize::from(matches!(read, Ok(Ok(0) | Err(_))));
        }
        assert_eq!(ended, 17);
        let mut second = TcpStream::connect(address).await.unwrap();
        assert!(ask(&mut second, "secret").await.starts_with("HTTP/1.1 200"));
        server.stopping.cancel();
        tokio::time::timeout(Duration::from_secs(5), serving).await.expect("it ends").unwrap();
    }
}
