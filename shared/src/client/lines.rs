//! Splits a byte stream into lines, with a limit on the line length.

use bytes::{Bytes, BytesMut};
use futures::stream::BoxStream;
use futures::{Stream, StreamExt, stream};

use super::error::Error;

/// Lines of a body without line endings; empty lines are skipped. A line longer than `limit` bytes ends the
/// stream with [`Error::TooLarge`].
pub(super) fn lines(
    body: BoxStream<'static, Result<Bytes, Error>>,
    server: String,
    limit: usize,
) -> impl Stream<Item = Result<Bytes, Error>> + Send {
    let start = Splitter { body, buffer: BytesMut::new(), searched: 0, ended: false };
    stream::unfold((start, server), move |(mut splitter, server)| async move {
        let item = splitter.next_line(&server, limit).await?;
        Some((item, (splitter, server)))
    })
}

struct Splitter {
    body: BoxStream<'static, Result<Bytes, Error>>,
    buffer: BytesMut,
    /// Bytes of `buffer` that are known to hold no line end.
    searched: usize,
    ended: bool,
}

impl Splitter {
    async fn next_line(&mut self, server: &str, limit: usize) -> Option<Result<Bytes, Error>> {
        loop {
            if let Some(end) = self.buffer[self.searched..].iter().position(|byte| *byte == b'\n') {
                let line = self.buffer.split_to(self.searched + end + 1).freeze();
                self.searched = 0;
                let line = trim(&line);
                if line.is_empty() {
                    continue;
                }
                return Some(Ok(line));
            }
            self.searched = self.buffer.len();
            if self.buffer.len() > limit {
                self.ended = true;
                self.buffer.clear();
                self.searched = 0;
                return Some(Err(Error::TooLarge { server: server.to_owned(), limit }));
            }
            if self.ended {
                let rest = trim(&self.buffer.split().freeze());
                self.searched = 0;
                return if rest.is_empty() { None } else { Some(Ok(rest)) };
            }
            match self.body.next().await {
                Some(Ok(bytes)) => self.buffer.extend_from_slice(&bytes),
                Some(Err(error)) => {
                    self.ended = true;
                    self.buffer.clear();
                    self.searched = 0;
                    return Some(Err(error));
                }
                None => self.ended = true,
            }
        }
    }
}

fn trim(line: &Bytes) -> Bytes {
    line.slice_ref(line.trim_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn split(chunks: &[&'static str], limit: usize) -> Vec<Result<String, Error>> {
        let chunks: Vec<_> = chunks.iter().map(|chunk| Ok(Bytes::from_static(chunk.as_bytes()))).collect();
        lines(stream::iter(chunks).boxed(), "s".to_owned(), limit)
            .map(|line| line.map(|line| String::from_utf8_lossy(&line).into_owned()))
            .collect()
            .await
    }

    #[tokio::test]
    async fn lines_are_found_across_chunks() {
        let found = split(&["a", "b\n\r\nc", "d\ne"], 100).await;
        assert_eq!(found, vec![Ok("ab".to_owned()), Ok("cd".to_owned()), Ok("e".to_owned())]);
    }

    #[tokio::test]
    async fn a_line_without_end_is_cut_off() {
        let found = split(&["aaaa", "aaaa", "aaaa\nb\n"], 6).await;
        assert_eq!(found, vec![Err(Error::TooLarge { server: "s".to_owned(), limit: 6 })]);
    }
}
