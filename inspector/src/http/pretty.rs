//! Answers for people: `?pretty=true` breaks JSON into lines.

use axum::body::Bytes;
use axum::extract::Request;
use axum::http::header;
use axum::middleware::Next;
use axum::response::Response;
use futures::StreamExt;

use super::answer;
use super::guard::Large;
use super::query::Query;
use super::refusal::Refusal;
use super::watch::Streamed;

/// Breaks the answer into lines where that is asked for. Watches have one line for each event all the same.
pub(super) async fn pretty(query: Query, request: Request, next: Next) -> Result<Response, Refusal> {
    if !query.flag("pretty")? {
        return Ok(next.run(request).await);
    }
    let (mut parts, body) = next.run(request).await.into_parts();
    let content_type = parts.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    if parts.extensions.get::<Streamed>().is_some()
        || !content_type
            .is_some_and(|text| text.split(';').next().is_some_and(|media| media.ends_with("json")))
    {
        return Ok(Response::from_parts(parts, body));
    }
    parts.headers.remove(header::CONTENT_LENGTH);
    parts.extensions.insert(Large);
    let mut lines = Lines::default();
    let whole = body.into_data_stream().map(move |chunk| chunk.map(|chunk| lines.broken(&chunk)));
    let end = futures::stream::iter([Ok(Bytes::from_static(b"\n"))]);
    Ok(Response::from_parts(parts, answer::streamed(whole.chain(end))))
}

/// Breaks compact JSON into lines, whatever pieces it comes in.
#[derive(Debug, Default)]
struct Lines {
    depth: usize,
    in_text: bool,
    escaped: bool,
    /// A list or object has just been opened, and may be empty.
    opened: bool,
}

impl Lines {
    fn broken(&mut self, json: &[u8]) -> Bytes {
        let mut out = Vec::with_capacity(json.len() * 2);
        for &byte in json {
            if self.in_text {
                out.push(byte);
                self.in_text = self.escaped || byte != b'"';
                self.escaped = !self.escaped && byte == b'\\';
                continue;
            }
            let closes = matches!(byte, b'}' | b']');
            if closes {
                self.depth = self.depth.saturating_sub(1);
            }
            if self.opened != closes && (self.opened || closes) {
                self.new_line(&mut out);
            }
            self.opened = matches!(byte, b'{' | b'[');
            self.in_text = byte == b'"';
            out.push(byte);
            match byte {
                b'{' | b'[' => self.depth += 1,
                b',' => self.new_line(&mut out),
                b':' => out.push(b' '),
                _ => {}
            }
        }
        out.into()
    }

    fn new_line(&self, out: &mut Vec<u8>) {
        out.push(b'\n');
        out.resize(out.len() + 2 * self.depth, b' ');
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn json_is_broken_into_lines_as_others_do_it() {
        for value in [
            json!({}),
            json!([]),
            json!("a{[,:\"\\"),
            json!({"a": [], "b": {}, "c": [1, [2, {}], "x,y: {z}"], "d": {"e": null, "f": "\\"}}),
            json!([[[]], {"\"": "\\\""}]),
        ] {
            let compact = value.to_string();
            for size in [1, 3, 1000] {
                let mut lines = Lines::default();
                let pieces = compact.as_bytes().chunks(size).map(|piece| lines.broken(piece));
                let text = String::from_utf8(pieces.collect::<Vec<_>>().concat()).unwrap();
                assert_eq!(text, serde_json::to_string_pretty(&value).unwrap());
                assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
            }
        }
    }
}
