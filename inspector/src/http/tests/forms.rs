//! The forms in which answers come: tables, bare metadata, lines for people.

use super::*;

const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
const METADATA: &str = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";

fn accepting(path: &str, accept: &str) -> Request<Body> {
    let mut request = request(Method::GET, path);
    request.headers_mut().insert("accept", accept.parse().unwrap());
    request
}

async fn get(server: &Server, path: &str, accept: &str) -> Value {
    let (status, body) = read(server.send(accepting(path, accept)).await).await;
    assert_eq!(status, StatusCode::OK, "{path}: {body}");
    body
}

/// A running job, and one that waits for its end.
async fn two() -> Server {
    let server = Server::started(true).await;
    server.tell(gang("team", "first", 2, 4, 600)).await;
    server.tell(gang("team", "second", 1, 4, 60)).await;
    server
}

/// The cells of a row, by the names of their columns.
fn cells(table: &Value, row: usize) -> std::collections::BTreeMap<&str, &Value> {
    let names = table["columnDefinitions"].as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap());
    names.zip(table["rows"][row]["cells"].as_array().unwrap()).collect()
}

#[tokio::test]
async fn lists_are_tables_when_kubectl_asks() {
    let server = two().await;
    let table = get(&server, "fluxionjobs", TABLE).await;
    assert_eq!((&table["kind"], &table["apiVersion"]), (&"Table".into(), &"meta.k8s.io/v1".into()));
    assert!(table["metadata"]["resourceVersion"].is_string());
    let columns = table["columnDefinitions"].as_array().unwrap();
    assert_eq!((&columns[0]["name"], &columns[0]["format"]), (&"Name".into(), &"name".into()));
    assert!(columns.iter().any(|column| column["priority"] == 1));
    for (row, name) in [(0, "group.first"), (1, "group.second")] {
        assert_eq!(table["rows"][row]["cells"].as_array().unwrap().len(), columns.len());
        assert_eq!(cells(&table, row)["Name"], name);
        let object = &table["rows"][row]["object"];
        assert_eq!(
            (&object["kind"], &object["apiVersion"]),
            (&"PartialObjectMetadata".into(), &"meta.k8s.io/v1".into())
        );
        assert_eq!(
            (&object["metadata"]["name"], &object["metadata"]["namespace"]),
            (&name.into(), &"team".into())
        );
        assert!(object.get("status").is_none());
    }
    let waiting = cells(&table, 1);
    assert_eq!((waiting["State"], waiting["Position"]), (&"Reserved".into(), &1.into()));
    assert_eq!((waiting["ETA"], waiting["Age"]), (&"10m".into(), &"0s".into()));
    assert_eq!((waiting["Members"], waiting["Request"]), (&"1/1".into(), &"cpu=4".into()));
    for (path, rows) in [
        ("fluxionjobs/", 0),
        ("fluxionnodes", 2),
        ("fluxionnodes/n1", 1),
        ("fluxionqueues", 1),
        ("namespaces/team/fluxionjobs/group.first", 1),
        ("fluxiongraphs", 1),
        ("fluxiongraphs/live", 1),
        ("fluxiontimelines", 1),
        ("fluxionaudits/live", 1),
    ] {
        if rows == 0 {
            continue;
        }
        let table = get(&server, path, TABLE).await;
        let columns = table["columnDefinitions"].as_array().unwrap().len();
        assert_eq!(table["rows"].as_array().unwrap().len(), rows, "{path}");
        assert_eq!(table["rows"][0]["cells"].as_array().unwrap().len(), columns, "{path}");
        assert!(table["metadata"]["resourceVersion"].is_string(), "{path}");
        assert!(table["rows"][0]["object"]["metadata"]["name"].is_string(), "{path}");
    }
}

#[tokio::test]
async fn a_row_has_as_much_of_its_object_as_is_asked_for() {
    let server = two().await;
    for (path, name) in [("fluxionjobs", "group.first"), ("fluxiongraphs/live", "live")] {
        let with = |include: &str| format!("{path}?includeObject={include}");
        let none = get(&server, &with("None"), TABLE).await;
        assert!(none["rows"][0].get("object").is_none());
        let whole = get(&server, &with("Object"), TABLE).await;
        let object = &whole["rows"][0]["object"];
        assert_eq!(object["metadata"]["name"], name);
        assert!(
            object["kind"].as_str().is_some_and(|kind| kind.starts_with("Fluxion"))
                && object["status"].is_object()
        );
    }
    let bad = server.get("fluxionjobs?includeObject=some").await;
    assert_eq!(bad.0, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn pages_of_a_table_go_on() {
    let server = two().await;
    let first = get(&server, "fluxionjobs?limit=1", TABLE).await;
    assert_eq!(
        (first["rows"].as_array().unwrap().len(), &first["metadata"]["remainingItemCount"]),
        (1, &1.into())
    );
    let token: String =
        form_urlencoded::byte_serialize(first["metadata"]["continue"].as_str().unwrap().as_bytes()).collect();
    let second = get(&server, &format!("fluxionjobs?limit=1&continue={token}"), TABLE).await;
    assert_eq!(second["rows"][0]["object"]["metadata"]["name"], "group.second");
    assert!(second["metadata"].get("continue").is_none());
}

#[tokio::test]
async fn metadata_comes_alone_for_who_wants_no_more() {
    let server = two().await;
    let one = get(&server, "namespaces/team/fluxionjobs/group.first", METADATA).await;
    assert_eq!(
        (&one["kind"], &one["apiVersion"]),
        (&"PartialObjectMetadata".into(), &"meta.k8s.io/v1".into())
    );
    let (_, whole) = server.get("namespaces/team/fluxionjobs/group.first").await;
    assert_eq!(one["metadata"], whole["metadata"]);
    assert_eq!(one.as_object().unwrap().len(), 3);
    let list = METADATA.replace("PartialObjectMetadata", "PartialObjectMetadataList");
    for path in ["fluxionjobs", "fluxionaudits"] {
        let many = get(&server, path, &list).await;
        assert_eq!(many["kind"], "PartialObjectMetadataList");
        assert_eq!(many["items"][0]["kind"], "PartialObjectMetadata");
        assert!(many["items"][0].get("status").is_none());
        assert!(many["metadata"]["resourceVersion"].is_string());
    }
}

#[tokio::test]
async fn what_cannot_be_sent_is_not_acceptable() {
    let server = two().await;
    for path in [
        "fluxionjobs",
        "fluxionjobs?watch=true",
        "namespaces/team/fluxionjobs/group.first",
        "namespaces/team/fluxionjobs/group.first/explain",
        "fluxiongraphs/live",
        "fluxiontimelines",
        "/openapi/v3",
    ] {
        for accept in ["text/html", "application/vnd.kubernetes.protobuf", "application/json;q=0"] {
            let (status, body) = read(server.send(accepting(path, accept)).await).await;
            assert_eq!(
                (status, &body["reason"]),
                (StatusCode::NOT_ACCEPTABLE, &"NotAcceptable".into()),
                "{path}"
            );
        }
    }
}

#[tokio::test]
async fn answers_are_broken_into_lines_for_people() {
    let server = two().await;
    for path in ["fluxionjobs", "fluxionnodes/n1", "namespaces/team/fluxionjobs/none", "/apis", "/openapi/v3"]
    {
        let plain = server.get(path).await.1;
        let response = server.send(request(Method::GET, &format!("{path}?pretty=true"))).await;
        let body = to_bytes(response.into_body(), 1 << 24).await.unwrap();
        assert!(body.starts_with(b"{\n  \"") && body.ends_with(b"}\n"), "{path}");
        assert_eq!(serde_json::from_slice::<Value>(&body).unwrap(), plain, "{path}");
    }
    assert_eq!(server.get("fluxionjobs?pretty=perhaps").await.0, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn a_large_list_comes_in_pieces_and_whole() {
    let server = Server::started(true).await;
    server.tell((0..300).map(|index| Event::Pod(Box::new(pod("team", &format!("p{index:03}")))))).await;
    for accept in ["application/json", TABLE] {
        // The second answer is made of what was kept of the first.
        let (first, second) =
            (get(&server, "fluxionjobs", accept).await, get(&server, "fluxionjobs", accept).await);
        assert_eq!(first, second);
        let items = first.get("items").or(first.get("rows")).and_then(Value::as_array).unwrap();
        let name = |item: &Value| {
            item["metadata"]["name"].as_str().or(item["cells"][0].as_str()).unwrap().to_owned()
        };
        let names: Vec<String> = items.iter().map(name).collect();
        assert_eq!(names, (0..300).map(|index| format!("pod.p{index:03}")).collect::<Vec<_>>());
    }
}

#[tokio::test]
async fn lists_of_versions_that_are_not_there() {
    let server = two().await;
    let (_, list) = server.get("fluxionjobs").await;
    let now: u64 = list["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap();
    for (query, code) in [
        (format!("resourceVersion={now}&resourceVersionMatch=Exact"), 200),
        (format!("resourceVersion={now}"), 200),
        (format!("resourceVersion={}&resourceVersionMatch=NotOlderThan", now - 5), 200),
        ("resourceVersion=0".to_owned(), 200),
        (format!("resourceVersion={}&resourceVersionMatch=Exact", now - 5), 410),
        (format!("resourceVersion={}", now + 1_000_000), 504),
        ("resourceVersionMatch=Exact".to_owned(), 422),
    ] {
        let (status, body) = server.get(&format!("fluxionjobs?{query}")).await;
        assert_eq!(status.as_u16(), code, "{query}: {body}");
    }
}
