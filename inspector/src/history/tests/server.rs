//! A real `PostgreSQL` server of its own: in a temporary folder, on a free port of the loopback interface, run by a user
//! without rights, as it refuses to be run by root.

use std::net::TcpListener;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use sqlx::postgres::PgConnectOptions;

/// The user `nobody`, and its group.
const NOBODY: u32 = 65_534;
const PATIENCE: Duration = Duration::from_mins(1);

pub(super) struct Server {
    dir: tempfile::TempDir,
    programs: PathBuf,
    port: u16,
    process: Option<Child>,
}

fn programs() -> PathBuf {
    let installed = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let newest =
        installed.map(|entry| entry.path().join("bin")).filter(|dir| dir.join("initdb").exists()).max();
    newest.expect("PostgreSQL is not installed: run `apt-get install postgresql`, as tests/run does")
}

fn as_nobody(program: &Path) -> Command {
    let mut command = Command::new(program);
    let root =
        std::fs::metadata("/proc/self").is_ok_and(|meta| std::os::unix::fs::MetadataExt::uid(&meta) == 0);
    if root {
        command.uid(NOBODY).gid(NOBODY);
    }
    command.stdin(Stdio::null()).stdout(Stdio::null()).current_dir("/");
    command
}

impl Server {
    /// Creates and starts one; with a password.
    pub(super) fn start() -> Self {
        let (dir, programs) = (tempfile::tempdir().unwrap(), programs());
        // May fail: then we are that user already, or any other.
        let _ = chown(dir.path(), Some(NOBODY), Some(NOBODY));
        let password = dir.path().join("password");
        std::fs::write(&password, "s3cret").unwrap();
        let _ = chown(&password, Some(NOBODY), Some(NOBODY));
        let made = as_nobody(&programs.join("initdb"))
            .args([
                "--no-sync",
                "--username=fluxion",
                "--auth=scram-sha-256",
                "--locale=C",
                "--encoding=UTF8",
            ])
            .arg(format!("--pwfile={}", password.display()))
            .arg("--pgdata")
            .arg(dir.path().join("data"))
            .output()
            .unwrap();
        assert!(made.status.success(), "initdb: {}", String::from_utf8_lossy(&made.stderr));
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut server = Self { dir, programs, port, process: None };
        server.run();
        server
    }

    /// Starts it (again), and waits until it takes connections.
    pub(super) fn run(&mut self) {
        let began = Instant::now();
        loop {
            let mut process = as_nobody(&self.programs.join("postgres"))
                .arg("-D")
                .arg(self.dir.path().join("data"))
                .args(["-c", "listen_addresses=127.0.0.1", "-c", &format!("port={}", self.port)])
                .args(["-c", &format!("unix_socket_directories={}", self.dir.path().display())])
                .args(["-c", "max_connections=20", "-c", "shared_buffers=16MB"])
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            while process.try_wait().unwrap().is_none() {
                if self.takes_connections() {
                    self.process = Some(process);
                    return;
                }
                assert!(began.elapsed() < PATIENCE, "PostgreSQL does not come up");
                std::thread::sleep(Duration::from_millis(50));
            }
            // The processes of a killed server may still be ending.
            assert!(began.elapsed() < PATIENCE, "PostgreSQL does not start");
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    fn takes_connections(&self) -> bool {
        let mut ready = as_nobody(&self.programs.join("pg_isready"));
        let ready = ready.args(["-q", "-h", "127.0.0.1", "-p", &self.port.to_string()]).status();
        ready.unwrap().success()
    }

    /// As `kill -9` does.
    pub(super) fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().unwrap();
            process.wait().unwrap();
        }
    }

    pub(super) fn url(&self) -> String {
        format!("postgres://fluxion:s3cret@127.0.0.1:{}/postgres", self.port)
    }

    pub(super) fn options(&self) -> PgConnectOptions {
        self.url().parse().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Its other processes end with it.
        self.kill();
    }
}
