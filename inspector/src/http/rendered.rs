//! Objects as they are sent: written once after each change, kept, and put together for every answer.
//!
//! Kept are the parts that all forms (object, bare metadata, row of a table) and all who ask have in common. How
//! many bytes are kept in all is limited; what finds no room is written anew for each answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use fluxion_api::API_VERSION;

use super::accept::{Form, Include};
use super::columns;
use super::resource::{Resource, Source};
use super::template::Template;

/// Bytes that are kept at most: some 25,000 jobs as they usually are.
const ROOM: usize = 64 << 20;

/// How many bytes more may be kept.
#[derive(Debug)]
pub(super) struct Room(AtomicUsize);

impl Default for Room {
    fn default() -> Self {
        Self(AtomicUsize::new(ROOM))
    }
}

impl Room {
    #[cfg(test)]
    pub(super) fn of(bytes: usize) -> Self {
        Self(AtomicUsize::new(bytes))
    }

    /// Bytes that are left.
    #[cfg(test)]
    pub(super) fn left(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    fn take(self: &Arc<Self>, bytes: usize) -> Option<Taken> {
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes)).ok()?;
        Some(Taken { room: Arc::clone(self), bytes })
    }
}

/// Room that is given back with what takes it.
#[derive(Debug)]
struct Taken {
    room: Arc<Room>,
    bytes: usize,
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.room.0.fetch_add(self.bytes, Ordering::Relaxed);
    }
}

/// How objects are written in one answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Style {
    pub form: Form,
    pub include: Include,
    /// What ages are reckoned from; epoch seconds.
    pub now: i64,
}

/// One object, without its resource version.
#[derive(Debug)]
pub(super) struct Rendered {
    /// As JSON, without the brace at its beginning.
    metadata: Vec<u8>,
    /// What comes behind the metadata.
    rest: Template,
    cells: Template,
    _taken: Option<Taken>,
}

impl Rendered {
    /// Writes an object down; none where that fails, which only a bug makes happen.
    pub(super) fn of<R: Resource>(mut object: R::Object) -> Option<Self> {
        let mut written = || -> Result<Self, serde_json::Error> {
            let cells = Template::of_cells(&R::cells(&object))?;
            R::meta_mut(&mut object).resource_version.clear();
            let mut metadata = serde_json::to_vec(R::meta(&object))?;
            metadata.remove(0);
            let mut rest = Template::default();
            R::rest(&mut object, &mut rest)?;
            Ok(Self { metadata, rest, cells, _taken: None })
        };
        written()
            .inspect_err(|error| tracing::error!(%error, kind = R::KIND, "failed to serialize an object"))
            .ok()
    }

    /// The same, to be kept; as it is where there is no room.
    pub(super) fn kept(mut self, room: &Arc<Room>) -> Result<Arc<Self>, Arc<Self>> {
        self.metadata.shrink_to_fit();
        self.rest.shrink();
        self.cells.shrink();
        match room.take(self.bytes()) {
            Some(taken) => Ok(Arc::new(Self { _taken: Some(taken), ..self })),
            None => Err(Arc::new(self)),
        }
    }

    /// Bytes in memory.
    fn bytes(&self) -> usize {
        size_of::<Self>() + self.metadata.capacity() + self.rest.bytes() + self.cells.bytes()
    }

    /// Writes an object of a list or a watch, or, for a table, its row.
    pub(super) fn write<R: Resource>(
        &self,
        out: &mut Vec<u8>,
        style: Style,
        version: u64,
        source: Source<'_, R>,
    ) {
        match style.form {
            Form::Object => self.write_object(out, style.now, version, source),
            Form::Metadata(api_version) => self.write_metadata(out, api_version, version),
            Form::Table(api_version) => {
                out.extend_from_slice(b"{\"cells\":");
                self.cells.write(out, style.now, |hole, out| R::fill(source, hole, out));
                match style.include {
                    Include::Nothing => {}
                    Include::Metadata => {
                        out.extend_from_slice(b",\"object\":");
                        self.write_metadata(out, api_version, version);
                    }
                    Include::Object => {
                        out.extend_from_slice(b",\"object\":");
                        self.write_object(out, style.now, version, source);
                    }
                }
                out.push(b'}');
            }
        }
    }

    /// Writes an answer with one object, or one event's object: a table has one row then. Of a watch only the first
    /// event has the definitions of the columns.
    pub(super) fn write_alone<R: Resource>(
        &self,
        out: &mut Vec<u8>,
        style: Style,
        version: u64,
        source: Source<'_, R>,
        columns: bool,
    ) {
        let Form::Table(api_version) = style.form else { return self.write(out, style, version, source) };
        let metadata = serde_json::json!({ "resourceVersion": version.to_string() });
        // Strings and numbers of our own, which can be written.
        let head = columns::table(api_version, &metadata, columns.then_some(R::COLUMNS)).unwrap_or_default();
        out.extend_from_slice(head.as_bytes());
        self.write(out, style, version, source);
        out.extend_from_slice(b"]}");
    }

    fn write_object<R: Resource>(&self, out: &mut Vec<u8>, now: i64, version: u64, source: Source<'_, R>) {
        let head = format!(r#"{{"apiVersion":"{API_VERSION}","kind":"{}","metadata":"#, R::KIND);
        out.extend_from_slice(head.as_bytes());
        self.write_meta(out, version);
        out.push(b',');
        self.rest.write(out, now, |hole, out| R::fill(source, hole, out));
        out.push(b'}');
    }

    fn write_metadata(&self, out: &mut Vec<u8>, api_version: &str, version: u64) {
        let head = format!(r#"{{"kind":"PartialObjectMetadata","apiVersion":"{api_version}","metadata":"#);
        out.extend_from_slice(head.as_bytes());
        self.write_meta(out, version);
        out.push(b'}');
    }

    fn write_meta(&self, out: &mut Vec<u8>, version: u64) {
        out.extend_from_slice(format!("{{\"resourceVersion\":\"{version}\",").as_bytes());
        out.extend_from_slice(&self.metadata);
    }
}
