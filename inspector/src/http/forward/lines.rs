//! A watch on its way through this server: whole lines, and an `ERROR` event at the end if it does not end by itself.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, BodyDataStream, Bytes};
use futures::{StreamExt as _, stream};

use super::super::answer;
use super::super::refusal::Refusal;
use super::super::watch::error_line;
use crate::metrics::Metrics;

/// Maximum size of one event (bytes).
const LINE_MOST: usize = 16 << 20;
/// A watch of the leader is silent for less than this, even if nothing happens.
pub(super) const SILENT: Duration = Duration::from_secs(45);

/// Why watches end when the leader changes.
pub(super) fn leader_changed() -> Refusal {
    Refusal::Expired("the leader has changed: list again and restart the watch".to_owned())
}

/// How an event begins that is the last one of a watch.
const ERROR: &[u8] = br#"{"type":"ERROR""#;

struct Lines {
    stream: BodyDataStream,
    ends: Pin<Box<dyn Future<Output = Refusal> + Send>>,
    silent: Option<Duration>,
    /// The beginning of a line.
    rest: Vec<u8>,
    done: bool,
    metrics: Arc<Metrics>,
}

/// The lines of a watch until its end, or until `ends` says why it has to end. When it breaks off, or is silent for too long
/// where that is limited, the leader is gone.
pub(super) fn whole_lines(
    body: Body,
    ends: impl Future<Output = Refusal> + Send + 'static,
    silent: Option<Duration>,
    metrics: Arc<Metrics>,
) -> Body {
    let stream = body.into_data_stream();
    let lines = Lines { stream, ends: Box::pin(ends), silent, rest: Vec::new(), done: false, metrics };
    answer::streamed(stream::unfold(lines, |mut lines| async {
        let next = lines.next().await?;
        Some((Ok::<_, Infallible>(next), lines))
    }))
}

impl Lines {
    async fn next(&mut self) -> Option<Bytes> {
        while !self.done {
            let silent = async {
                match self.silent {
                    Some(silent) => tokio::time::sleep(silent).await,
                    None => std::future::pending().await,
                }
            };
            let chunk = tokio::select! {
                biased;
                refusal = &mut self.ends => return Some(self.end_with(&refusal)),
                chunk = self.stream.next() => chunk,
                () = silent => return Some(self.end_with(&leader_changed())),
            };
            match chunk {
                None => self.done = true,
                Some(Err(error)) => {
                    tracing::debug!(%error, "a watch broke off");
                    return Some(self.end_with(&leader_changed()));
                }
                Some(Ok(chunk)) => {
                    if let Some(lines) = self.take(chunk) {
                        // The server has said already why it ends.
                        self.done = is_last(&lines);
                        return Some(lines);
                    }
                    if self.rest.len() > LINE_MOST {
                        return Some(self.end_with(&Refusal::Internal));
                    }
                }
            }
        }
        None
    }

    /// The whole lines up to the end of this chunk.
    fn take(&mut self, mut chunk: Bytes) -> Option<Bytes> {
        let Some(last) = chunk.iter().rposition(|byte| *byte == b'\n') else {
            self.rest.extend_from_slice(&chunk);
            return None;
        };
        let rest = chunk.split_off(last + 1);
        let begun = std::mem::replace(&mut self.rest, rest.to_vec());
        Some(if begun.is_empty() { chunk } else { [begun.as_slice(), &chunk].concat().into() })
    }

    fn end_with(&mut self, refusal: &Refusal) -> Bytes {
        self.done = true;
        self.metrics.watch_dropped(refusal.code().1);
        error_line(refusal)
    }
}

/// Whether the last of these lines ends a watch.
fn is_last(lines: &[u8]) -> bool {
    let lines = lines.strip_suffix(b"\n").unwrap_or(lines);
    lines.rsplit(|byte| *byte == b'\n').next().is_some_and(|line| line.starts_with(ERROR))
}

#[cfg(test)]
mod tests {
    use axum::body::to_bytes;

    use super::*;

    async fn text(body: Body) -> String {
        String::from_utf8(to_bytes(body, 1 << 20).await.unwrap().to_vec()).unwrap()
    }

    fn body(chunks: &[Result<&'static str, ()>]) -> Body {
        let chunks: Vec<_> =
            chunks.iter().map(|chunk| chunk.map_err(|()| std::io::Error::other("reset"))).collect();
        Body::from_stream(stream::iter(chunks))
    }

    #[tokio::test]
    async fn a_line_is_written_as_a_whole_or_not_at_all() {
        let never = || std::future::pending();
        let chunks = [Ok("{\"a\""), Ok(":1}\n{\"b\":2}\n{"), Ok("\"c\":3}\n"), Ok("{\"d\"")];
        let whole = "{\"a\":1}\n{\"b\":2}\n{\"c\":3}\n";
        for silent in [None, Some(SILENT)] {
            assert_eq!(text(whole_lines(body(&chunks), never(), silent, Arc::default())).await, whole);
        }
        // The leader is killed in the middle of a line.
        let broken = [&chunks[..], &[Err(())]].concat();
        let told = text(whole_lines(body(&broken), never(), Some(SILENT), Arc::default())).await;
        let error = told.strip_prefix(whole).unwrap();
        assert!(error.starts_with("{\"type\":\"ERROR\"") && error.contains("\"code\":410"), "{error}");
        assert!(error.ends_with("}\n") && error.matches('\n').count() == 1);
    }

    #[tokio::test]
    async fn nothing_follows_an_error_of_the_server() {
        let error = "{\"type\":\"ERROR\",\"object\":{}}\n";
        let told = whole_lines(
            body(&[Ok("{}\n"), Ok(error), Err(())]),
            std::future::pending(),
            None,
            Arc::default(),
        );
        assert_eq!(text(told).await, format!("{{}}\n{error}"));
    }

    #[tokio::test]
    async fn it_ends_with_the_reason_when_it_has_to_and_before_anything_else_is_written() {
        let ends = std::future::ready(Refusal::Forbidden("no more".to_owned()));
        let told = text(whole_lines(body(&[Ok("{}\n")]), ends, Some(SILENT), Arc::default())).await;
        assert!(told.contains("\"code\":403") && !told.contains("{}\n"), "{told}");
    }

    #[tokio::test]
    async fn a_leader_that_says_nothing_is_gone() {
        let silent = || Body::from_stream(stream::pending::<Result<Bytes, Infallible>>());
        let never = || std::future::pending();
        let told = whole_lines(silent(), never(), Some(Duration::from_millis(50)), Arc::default());
        let told = text(told).await;
        assert!(told.contains("\"code\":410"), "{told}");
        let own = text(whole_lines(silent(), never(), None, Arc::default()));
        assert!(tokio::time::timeout(Duration::from_millis(100), own).await.is_err());
    }
}
