//! A door to an inspector for clients that can't present its token: an address on which every request gets it.
//!
//! kubectl sends no credentials without TLS. Each connection carries one request.

use std::net::SocketAddr;

use anyhow::{Context, Result, bail};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// Longer heads of requests are given up.
const HEAD: usize = 64 * 1024;

/// An open door; closed on drop.
#[derive(Debug)]
pub struct Door {
    address: SocketAddr,
    open: JoinHandle<()>,
}

impl Door {
    /// Opens one on a free port, to the server at this URL.
    pub async fn open(url: &str, token: &str) -> Result<Self> {
        let target = url.strip_prefix("http://").context("the server speaks no HTTP")?.to_owned();
        let extra = format!("authorization: Bearer {token}\r\nconnection: close\r\n");
        let listener = TcpListener::bind("127.0.0.1:0").await.context("listening")?;
        let address = listener.local_addr()?;
        let open = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (target, extra) = (target.clone(), extra.clone());
                // Who breaks off notices it by itself.
                tokio::spawn(async move { pass(stream, &target, &extra).await });
            }
        });
        Ok(Self { address, open })
    }

    /// Where it is.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        self.open.abort();
    }
}

async fn pass(mut client: TcpStream, target: &str, extra: &str) -> Result<()> {
    let mut request = Vec::new();
    let line_end = loop {
        if client.read_buf(&mut request).await? == 0 || request.len() > HEAD {
            bail!("no request");
        }
        if request.windows(4).any(|bytes| bytes == b"\r\n\r\n")
            && let Some(end) = request.windows(2).position(|bytes| bytes == b"\r\n")
        {
            break end + 2;
        }
    };
    request.splice(line_end..line_end, extra.bytes());
    let mut server = TcpStream::connect(target).await?;
    server.write_all(&request).await?;
    copy_bidirectional(&mut client, &mut server).await?;
    Ok(())
}
