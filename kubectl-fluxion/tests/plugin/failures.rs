//! Everything that can be in the way, each with its own text and exit code.

use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::any;

use crate::mock::{Mock, Ran, failure, plugin};

fn serve(code: u16, body: &'static str) -> Mock {
    Mock::serve(
        Router::new().fallback(any(move || async move { (StatusCode::from_u16(code).unwrap(), body) })),
    )
}

fn against(url: &str) -> Ran {
    Ran::of(plugin().args(["queue", "--timeout", "1s", "--server", url]))
}

#[test]
fn nobody_listens() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let ran = against(&url);
    assert_eq!((ran.code, ran.out.as_str()), (5, ""));
    assert_eq!(
        ran.err,
        format!("error: unable to connect to the inspector at {url}: connection refused; is it running?\n")
    );
}

#[test]
fn no_server_is_known() {
    let ran = Ran::of(plugin().arg("queue"));
    assert_eq!(ran.code, 5);
    assert!(ran.err.contains("fluxion-inspector standalone"), "{}", ran.err);
}

#[test]
fn the_token_is_wrong_or_missing() {
    let mock = Mock::sample();
    let ran = against(&mock.url);
    assert_eq!(ran.code, 4);
    assert!(ran.err.contains("--token-file"), "{}", ran.err);
    let ran = Ran::of(plugin().args(["queue", "--server", &mock.url, "--token-file", "/nonexistent/token"]));
    assert_eq!(ran.code, 1);
    assert_eq!(
        ran.err,
        "error: failed to read the token from /nonexistent/token: no such file or directory\n"
    );
}

#[test]
fn the_user_may_not() {
    let mock = Mock::serve(
        Router::new().fallback(any(|| async { failure(403, "Forbidden", "jane may not list fluxionjobs") })),
    );
    let ran = against(&mock.url);
    assert_eq!((ran.code, ran.err.as_str()), (4, "error: jane may not list fluxionjobs\n"));
}

#[test]
fn it_is_not_ready() {
    let mock = Mock::serve(
        Router::new()
            .fallback(any(|| async { failure(503, "ServiceUnavailable", "still reading the cluster") })),
    );
    let ran = against(&mock.url);
    assert_eq!(ran.code, 5);
    assert!(ran.err.contains("is not ready: still reading the cluster"), "{}", ran.err);
}

#[test]
fn it_takes_too_long() {
    let slow = Router::new().fallback(any(|| async { tokio::time::sleep(Duration::from_mins(1)).await }));
    let ran = against(&Mock::serve(slow).url);
    assert_eq!(ran.code, 8);
    assert!(ran.err.contains("within 1s") && ran.err.contains("--timeout"), "{}", ran.err);
}

#[test]
fn something_else_answers() {
    for (code, body) in
        [(404, "<html>not here</html>"), (200, "<html>hello</html>"), (200, "{\"kind\": 1}"), (302, "")]
    {
        let ran = against(&serve(code, body).url);
        assert_eq!(ran.code, 1, "{code} {body}");
        assert!(ran.err.contains("not a Fluxion inspector"), "{code} {body}: {}", ran.err);
    }
}

#[test]
fn addresses_that_are_none() {
    for url in ["127.0.0.1:80", "ftp://x", "", "http://"] {
        let ran = against(url);
        assert_eq!(ran.code, 2, "{url}: {}", ran.err);
        assert!(ran.err.contains("http://127.0.0.1:8181"), "{url}: {}", ran.err);
    }
}

#[test]
fn wrong_command_lines() {
    for arguments in [
        &["quue"][..],
        &["queue", "-o", "xml"],
        &["cancel"],
        &["explain", "a/b/c/d"],
        &["queue", "--timeout", "soon"],
    ] {
        let ran = Ran::of(plugin().args(arguments));
        assert_eq!(ran.code, 2, "{arguments:?}");
        assert!(ran.err.contains("error:"), "{arguments:?}: {}", ran.err);
    }
}

#[test]
fn a_selector_that_is_none_is_a_wrong_command_line() {
    let refuse = any(|| async { failure(400, "BadRequest", "labelSelector: unable to parse '==='") });
    let mock = Mock::serve(Router::new().fallback(refuse));
    for arguments in [&["jobs", "-l", "==="][..], &["queue", "-w", "-l", "==="], &["nodes", "-l", "==="]] {
        let ran = mock.run(arguments);
        assert_eq!(
            (ran.code, ran.err.as_str()),
            (2, "error: labelSelector: unable to parse '==='\n"),
            "{arguments:?}"
        );
    }
}

#[test]
fn certificates_without_a_server_to_check_say_so() {
    for more in [&[][..], &["--context", "c"], &["--server", "http://127.0.0.1:1"]] {
        let ran = Ran::of(plugin().args(["queue", "--certificate-authority", "/ca.crt"]).args(more));
        assert_eq!(ran.code, 2, "{more:?}: {}", ran.err);
        assert!(ran.err.contains("--certificate-authority /ca.crt"), "{more:?}: {}", ran.err);
    }
}

#[test]
fn an_unknown_job_and_an_ambiguous_one() {
    let mock = Mock::sample();
    let ran = mock.run(&["explain", "job/lamps"]);
    assert_eq!(ran.code, 3);
    assert_eq!(ran.err, "error: no job named job/lamps in namespace default; did you mean job/lammps?\n");
    let ran = mock.run(&["explain", "-A", "lammps"]);
    assert_eq!(ran.code, 3);
    assert!(ran.err.contains("default/job/lammps, team-b/job/lammps"), "{}", ran.err);
}

#[test]
fn a_broken_server_file() {
    let state = tempfile::tempdir().unwrap();
    std::fs::create_dir(state.path().join("fluxion")).unwrap();
    let file = state.path().join("fluxion/server.json");
    let content = |url: &str, token: &str| {
        format!(r#"{{"url": "{url}", "pid": 1, "clusterId": "c", "token": "{token}"}}"#)
    };
    for text in
        ["{".to_owned(), "[]".to_owned(), content("nowhere", "t"), content("http://127.0.0.1:1", "a b")]
    {
        std::fs::write(&file, &text).unwrap();
        let ran = Ran::of(plugin().env("XDG_STATE_HOME", state.path()).arg("queue"));
        assert_eq!(ran.code, 1, "{text}");
        let named = ran.err.contains(file.to_str().unwrap());
        assert!(named && ran.err.contains("delete it"), "{text}: {}", ran.err);
    }
}

#[test]
fn a_kubeconfig_that_is_not_there_is_named_once() {
    let ran = Ran::of(plugin().args(["queue", "--kubeconfig", "/nonexistent/config"]));
    assert_eq!(ran.code, 1);
    assert_eq!(
        ran.err,
        "error: failed to read the kubeconfig from /nonexistent/config: no such file or directory\n"
    );
}

#[test]
fn a_context_that_does_not_exist() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "apiVersion: v1\nkind: Config\nclusters: []\ncontexts: []\nusers: []\n")
        .unwrap();
    let ran =
        Ran::of(plugin().arg("queue").arg("--kubeconfig").arg(file.path()).args(["--context", "nowhere"]));
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("nowhere") && ran.err.contains("get-contexts"), "{}", ran.err);
}

#[test]
fn the_live_screen_needs_a_terminal() {
    let ran = Ran::of(plugin().arg("tui"));
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("requires a terminal"), "{}", ran.err);
}

#[test]
fn that_no_server_file_was_found_is_said_before_a_cluster_fails() {
    let state = tempfile::tempdir().unwrap();
    let config = state.path().join("config");
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    std::fs::write(
        &config,
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{{name: c, cluster: {{server: 'http://{address}'}}}}]\n\
             contexts: [{{name: c, context: {{cluster: c, user: u}}}}]\nusers: [{{name: u, user: {{}}}}]\n"
        ),
    )
    .unwrap();
    let file = state.path().join("fluxion/server.json");
    let start = format!("error: {} does not exist, so the cluster ", file.display());
    let ask = |more: &[&str]| {
        let mut plugin = plugin();
        plugin.env("XDG_STATE_HOME", state.path()).env("KUBECONFIG", &config).arg("queue").args(more);
        Ran::of(&mut plugin)
    };
    let ran = ask(&[]);
    assert_eq!(ran.code, 5, "{}", ran.err);
    assert!(ran.err.starts_with(&start) && ran.err.contains("connection refused"), "{}", ran.err);
    // Who names the cluster has not looked for the file.
    let named = ask(&["--context", "c"]);
    assert!(named.code == 5 && !named.err.contains("server.json"), "{}", named.err);
    std::fs::write(&config, "clusters: 5").unwrap();
    let broken = ask(&[]);
    assert!(broken.err.starts_with(&start), "{}", broken.err);
}
