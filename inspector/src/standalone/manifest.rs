//! Reads Kubernetes manifests from files and directories: YAML or JSON, several documents, Lists.
//!
//! Every error contains file, document and field. Kinds not supported by standalone mode are reported and skipped.
//! Does not know how the objects are used.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

use super::object::{NotAnObject, Object};
use super::packed::{Packed, Texts};
use super::store::{NameKey, submission_key};
use super::unknown_fields::{NAMED_MAX, unknown_fields};

/// Maximum size of a file, in bytes (about 10,000 nodes as printed by kubectl).
pub const FILE_SIZE_MAX: u64 = 256 << 20;

/// Position of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file name as given, or `standard input`.
    pub file: Arc<str>,
    /// 1-based.
    pub document: usize,
    /// 1-based position in `items` of a List.
    pub item: Option<usize>,
    /// `Kind/name`, if known.
    pub object: Option<String>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, document {}", self.file, self.document)?;
        if let Some(item) = self.item {
            write!(f, ", item {item}")?;
        }
        if let Some(object) = &self.object {
            write!(f, " ({object})")?;
        }
        Ok(())
    }
}

/// Why manifests could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    #[error("cannot read {}: {source}", path.display())]
    Io { path: PathBuf, source: std::io::Error },
    #[error("{} is larger than {} MiB: split it", path.display(), FILE_SIZE_MAX >> 20)]
    TooLarge { path: PathBuf },
    #[error("{} contains no .yaml, .yml or .json files", path.display())]
    EmptyDirectory { path: PathBuf },
    #[error("{} contains no objects", file)]
    NoObject { file: String },
    #[error("{place}: {message}")]
    Syntax { place: Place, message: String },
    #[error("{place}: field {path}: {message}")]
    Field { place: Place, path: String, message: String },
}

/// One object and its position.
#[derive(Debug)]
pub struct Document {
    pub place: Place,
    pub object: Packed,
}

impl Document {
    /// Whether it is a Node.
    pub fn is_node(&self) -> bool {
        matches!(self.object.whole(), Some(Object::Node(_)))
    }
}

/// The objects read so far.
#[derive(Debug, Default)]
pub struct Manifests {
    /// In the order of the files.
    pub documents: Vec<Document>,
    /// One line each: unsupported kinds, duplicate objects, unknown fields.
    pub warnings: Vec<String>,
    /// First position of each name.
    places: BTreeMap<NameKey, Place>,
    texts: Texts,
}

impl Manifests {
    /// Reads a file, or all `.yaml`, `.yml` and `.json` files of a directory (not recursive) in order of name.
    pub fn read(&mut self, path: &Path) -> Result<(), ManifestError> {
        let io = |source| ManifestError::Io { path: path.to_owned(), source };
        if !fs::metadata(path).map_err(io)?.is_dir() {
            return self.read_file(path);
        }
        let mut files = Vec::new();
        for entry in fs::read_dir(path).map_err(io)? {
            let file = entry.map_err(io)?.path();
            let known = file.extension().is_some_and(|ext| ext == "yaml" || ext == "yml" || ext == "json");
            if known && file.is_file() {
                files.push(file);
            }
        }
        if files.is_empty() {
            return Err(ManifestError::EmptyDirectory { path: path.to_owned() });
        }
        files.sort();
        files.iter().try_for_each(|file| self.read_file(file))
    }

    fn read_file(&mut self, path: &Path) -> Result<(), ManifestError> {
        let io = |source| ManifestError::Io { path: path.to_owned(), source };
        let mut text = String::new();
        let file = fs::File::open(path).map_err(io)?;
        let read = file.take(FILE_SIZE_MAX + 1).read_to_string(&mut text).map_err(io)?;
        if read as u64 > FILE_SIZE_MAX {
            return Err(ManifestError::TooLarge { path: path.to_owned() });
        }
        self.read_text(&path.display().to_string(), &text)
    }

    /// Reads manifests from `text`; `file` is its name in errors.
    pub fn read_text(&mut self, file: &str, text: &str) -> Result<(), ManifestError> {
        let mut any = false;
        let mut each = |index: usize, value: Value| {
            if value.is_null() {
                return Ok(());
            }
            any = true;
            let place = Place { file: file.into(), document: index + 1, item: None, object: None };
            self.document(place, value)
        };
        if looks_like_json(text) { json(file, text, &mut each) } else { yaml(file, text, &mut each) }?;
        if any { Ok(()) } else { Err(ManifestError::NoObject { file: file.to_owned() }) }
    }

    fn document(&mut self, mut place: Place, mut value: Value) -> Result<(), ManifestError> {
        let kind = value.get("kind").and_then(Value::as_str).unwrap_or_default();
        let is_list = kind.ends_with("List") && value.get("items").is_some();
        if !is_list {
            place.object = Some(called(&value)).filter(|called| !called.is_empty());
            return self.object(place, value);
        }
        let item_kind = kind.strip_suffix("List").filter(|kind| !kind.is_empty()).map(str::to_owned);
        let api_version = value.get("apiVersion").cloned();
        let Some(Value::Array(items)) = value.get_mut("items").map(Value::take) else {
            return Err(ManifestError::Field {
                place,
                path: "items".to_owned(),
                message: "must be a list of objects".to_owned(),
            });
        };
        for (index, mut item) in items.into_iter().enumerate() {
            // Items of a typed list (NodeList) from the API server have no kind.
            if let (Some(kind), Value::Object(fields)) = (&item_kind, &mut item) {
                fields.entry("kind").or_insert_with(|| Value::String(kind.clone()));
                fields.entry("apiVersion").or_insert_with(|| api_version.clone().unwrap_or(Value::Null));
            }
            let object = Some(called(&item)).filter(|called| !called.is_empty());
            self.object(Place { item: Some(index + 1), object, ..place.clone() }, item)?;
        }
        Ok(())
    }

    fn object(&mut self, place: Place, value: Value) -> Result<(), ManifestError> {
        if !value.is_object() {
            let message =
                "is not a Kubernetes object (a mapping with apiVersion, kind and metadata)".to_owned();
            return Err(ManifestError::Syntax { place, message });
        }
        match Object::from_value(value.clone()) {
            Ok(object) => {
                let meta = object.meta();
                if meta.name.as_deref().unwrap_or_default().is_empty() && meta.generate_name.is_none() {
                    let path = "metadata.name".to_owned();
                    return Err(ManifestError::Field { place, path, message: "missing".to_owned() });
                }
                if meta.name.is_some() {
                    match self.places.entry(submission_key(&object)) {
                        Entry::Vacant(free) => drop(free.insert(place.clone())),
                        Entry::Occupied(first) => {
                            let first = first.get();
                            self.warnings.push(format!("{place}: skipped: duplicate of {first}"));
                            return Ok(());
                        }
                    }
                }
                for (count, path) in unknown_fields(&value, &object.to_value()).into_iter().enumerate() {
                    self.warnings.push(if count < NAMED_MAX {
                        format!("{place}: ignoring unknown field {path}")
                    } else {
                        format!("{place}: ignoring more unknown fields")
                    });
                }
                let object = Packed::of(object, &mut self.texts);
                self.documents.push(Document { place, object });
                Ok(())
            }
            Err(NotAnObject::UnknownKind(kind)) => {
                self.warnings.push(format!("{place}: skipped: standalone mode does not support kind {kind}"));
                Ok(())
            }
            Err(NotAnObject::Field { path, message }) => Err(ManifestError::Field { place, path, message }),
        }
    }
}

/// `Kind/name`, if the document contains them.
fn called(value: &Value) -> String {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
    let (kind, name) = (text(value.get("kind")), text(value.pointer("/metadata/name")));
    if name.is_empty() { kind } else { format!("{kind}/{name}") }
}

fn syntax(file: &str, document: usize, message: String) -> ManifestError {
    ManifestError::Syntax { place: Place { file: file.into(), document, item: None, object: None }, message }
}

/// JSON has quoted keys; a YAML file may also start with a brace.
fn looks_like_json(text: &str) -> bool {
    text.trim_start().strip_prefix('{').is_some_and(|rest| rest.trim_start().starts_with(['"', '}']))
}

/// A callback for each document and its index.
type Each<'a> = &'a mut dyn FnMut(usize, Value) -> Result<(), ManifestError>;

fn json(file: &str, text: &str, each: Each<'_>) -> Result<(), ManifestError> {
    for (index, value) in serde_json::Deserializer::from_str(text).into_iter::<Value>().enumerate() {
        each(index, value.map_err(|error| syntax(file, index + 1, format!("not JSON: {error}")))?)?;
    }
    Ok(())
}

fn yaml(file: &str, text: &str, each: Each<'_>) -> Result<(), ManifestError> {
    // Without aliases, a text has fewer nodes than bytes; with them, it may only grow a little.
    let most = 4 * text.len() + 10_000;
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_events: most,
            max_nodes: most,
            max_total_scalar_bytes: most,
            max_documents: 200_000,
            max_aliases: 1_000,
        },
        with_snippet: false,
    };
    let mut reader = text.as_bytes();
    let documents = serde_saphyr::read_with_options::<_, Value>(&mut reader, options);
    for (index, value) in documents.enumerate() {
        let value = value.map_err(|error| {
            let told = error.to_string();
            let why = if told.contains("budget breached") {
                "its aliases (*NAME) expand to a much larger document: write them out".to_owned()
            } else {
                format!("not YAML: {told}")
            };
            syntax(file, index + 1, why)
        })?;
        each(index, value)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Manifests, ManifestError> {
        let mut manifests = Manifests::default();
        manifests.read_text("cluster.yaml", text).map(|()| manifests)
    }

    #[test]
    fn aliases_can_not_make_a_small_text_a_large_one() {
        let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..9 {
            let below = vec![format!("*a{}", level - 1); 10].join(", ");
            text = format!("{text}a{level}: &a{level} [{below}]\n");
        }
        let error = read(&text).unwrap_err().to_string();
        assert!(error.contains("aliases"), "{error}");
    }

    #[test]
    fn a_list_and_documents_in_order() {
        let got = read(
            "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Node, metadata: {name: n1}}\n\
             - {apiVersion: v1, kind: Node, metadata: {name: n2}}\n---\n# nothing here\n---\n\
             apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c}]}\n",
        )
        .unwrap();
        let names: Vec<String> = got.documents.iter().map(|document| document.object.called().2).collect();
        assert_eq!(names, ["n1", "n2", "p"]);
        assert_eq!(got.documents[1].place.to_string(), "cluster.yaml, document 1, item 2 (Node/n2)");
    }

    #[test]
    fn items_of_a_typed_list_take_its_kind() {
        let got =
            read(r#"{"kind": "NodeList", "apiVersion": "v1", "items": [{"metadata": {"name": "n1"}}]}"#)
                .unwrap();
        assert_eq!(got.documents[0].object.called(), ("Node", String::new(), "n1".to_owned()));
    }

    #[test]
    fn other_kinds_and_fields_are_reported() {
        let got = read(
            "{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}\n---\n\
             {apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: c, resoures: {limits: {cpu: 1}}}]}}\n",
        )
        .unwrap();
        assert_eq!(
            got.warnings,
            [
                "cluster.yaml, document 1 (ConfigMap/c): skipped: standalone mode does not support kind ConfigMap (v1)",
                "cluster.yaml, document 2 (Pod/p): ignoring unknown field spec.containers[0].resoures",
            ]
        );
    }

    #[test]
    fn a_second_object_of_a_name_is_passed_over_and_told() {
        let pod = |meta: &str| {
            format!(
                "{{apiVersion: v1, kind: Pod, metadata: {{{meta}}}, spec: {{containers: [{{name: c}}]}}}}"
            )
        };
        let names =
            ["name: p", "name: p, namespace: default", "name: p, namespace: other", "generateName: p-"];
        let text: Vec<String> = names.into_iter().chain(["generateName: p-"]).map(pod).collect();
        let got = read(&text.join("\n---\n")).unwrap();
        assert_eq!(got.documents.len(), 4);
        assert_eq!(
            got.warnings,
            ["cluster.yaml, document 2 (Pod/p): skipped: duplicate of cluster.yaml, document 1 (Pod/p)"]
        );
    }

    #[test]
    fn errors_say_where() {
        let cases = [
            ("a: [1", "cluster.yaml, document 1: not YAML"),
            ("{\"a\": ", "cluster.yaml, document 1: not JSON"),
            ("- 1\n", "cluster.yaml, document 1: is not a Kubernetes object"),
            ("kind: Pod\n", "cluster.yaml, document 1 (Pod): field apiVersion: missing"),
            ("{apiVersion: v1, kind: Pod}", "cluster.yaml, document 1 (Pod): field metadata"),
            ("{apiVersion: v1, kind: Node, metadata: {labels: {}}}", "field metadata.name: missing"),
            ("", "cluster.yaml contains no objects"),
            (
                "{apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {parallelism: two, template: {}}}",
                "cluster.yaml, document 1 (Job/j): field spec.parallelism: ",
            ),
        ];
        for (text, expected) in cases {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text:?} gives {error:?}, not {expected:?}");
        }
    }
}
