//! A real `PostgreSQL` server of its own: in a temporary folder, on a free port of the loopback interface, run by a user
//! without rights, as it refuses to be run by root.

use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;

/// The user `nobody`, and its group.
const NOBODY: u32 = 65_534;
const PATIENCE: Duration = Duration::from_mins(1);
const PASSWORD: &str = "s3cret";

/// A server with a user `fluxion`, who has a password; ended on drop.
#[derive(Debug)]
pub struct PostgresServer {
    dir: TempDir,
    programs: PathBuf,
    port: u16,
    tls: bool,
    process: Option<Child>,
}

fn programs() -> Result<PathBuf> {
    let installed = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let newest =
        installed.map(|entry| entry.path().join("bin")).filter(|dir| dir.join("initdb").exists()).max();
    newest.context("PostgreSQL is not installed: run `apt-get install postgresql`, as tests/run does")
}

fn as_nobody(program: &Path) -> Command {
    let mut command = Command::new(program);
    if std::fs::metadata("/proc/self").is_ok_and(|meta| meta.uid() == 0) {
        command.uid(NOBODY).gid(NOBODY);
    }
    command.stdin(Stdio::null()).stdout(Stdio::null()).current_dir("/");
    command
}

impl PostgresServer {
    /// Creates and starts one that does not support TLS.
    pub fn start() -> Result<Self> {
        let mut server = Self::create()?;
        server.run()?;
        Ok(server)
    }

    /// Creates and starts one that shows this certificate (PEM, with its key) to who asks for TLS.
    pub fn start_with_tls(certificate: &str, key: &str) -> Result<Self> {
        let mut server = Self::create()?;
        server.write("server.crt", certificate)?;
        server.write("server.key", key)?;
        server.tls = true;
        server.run()?;
        Ok(server)
    }

    fn create() -> Result<Self> {
        let dir = TempDir::with_prefix("fluxion-postgres-").context("making a temporary folder")?;
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let server = Self { dir, programs: programs()?, port, tls: false, process: None };
        // May fail: then we are that user already, or any other.
        let _ = chown(server.dir.path(), Some(NOBODY), Some(NOBODY));
        server.write("password", PASSWORD)?;
        let made = as_nobody(&server.programs.join("initdb"))
            .args([
                "--no-sync",
                "--username=fluxion",
                "--auth=scram-sha-256",
                "--locale=C",
                "--encoding=UTF8",
            ])
            .arg(format!("--pwfile={}", server.file("password").display()))
            .arg("--pgdata")
            .arg(server.file("data"))
            .output()
            .context("starting initdb")?;
        ensure!(made.status.success(), "initdb: {}", String::from_utf8_lossy(&made.stderr));
        Ok(server)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A file that only the server may read.
    fn write(&self, name: &str, content: &str) -> Result<()> {
        let path = self.file(name);
        std::fs::write(&path, content).with_context(|| format!("writing {}", path.display()))?;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?;
        let _ = chown(&path, Some(NOBODY), Some(NOBODY));
        Ok(())
    }

    /// Starts it (again), and waits until it takes connections.
    pub fn run(&mut self) -> Result<()> {
        let began = Instant::now();
        loop {
            let mut command = as_nobody(&self.programs.join("postgres"));
            command
                .arg("-D")
                .arg(self.file("data"))
                .args(["-c", "listen_addresses=127.0.0.1", "-c", &format!("port={}", self.port)])
                .args(["-c", &format!("unix_socket_directories={}", self.dir.path().display())])
                .args(["-c", "max_connections=20", "-c", "shared_buffers=16MB"]);
            if self.tls {
                command.args(["-c", "ssl=on"]);
                command.args(["-c", &format!("ssl_cert_file={}", self.file("server.crt").display())]);
                command.args(["-c", &format!("ssl_key_file={}", self.file("server.key").display())]);
            }
            let mut process = command.stderr(Stdio::null()).spawn().context("starting postgres")?;
            while process.try_wait()?.is_none() {
                if self.takes_connections()? {
                    self.process = Some(process);
                    return Ok(());
                }
                ensure!(began.elapsed() < PATIENCE, "PostgreSQL does not come up");
                std::thread::sleep(Duration::from_millis(50));
            }
            // The processes of a killed server may still be ending.
            ensure!(began.elapsed() < PATIENCE, "PostgreSQL does not start");
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    fn takes_connections(&self) -> Result<bool> {
        let mut ready = as_nobody(&self.programs.join("pg_isready"));
        let ready = ready.args(["-q", "-h", "127.0.0.1", "-p", &self.port.to_string()]).status();
        Ok(ready.context("starting pg_isready")?.success())
    }

    /// As `kill -9` does.
    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            // It may have ended by itself.
            let _ = process.kill();
            let _ = process.wait();
        }
    }

    /// The URL of its database, with the password.
    pub fn url(&self) -> String {
        format!("postgres://fluxion:{PASSWORD}@127.0.0.1:{}/postgres", self.port)
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        // Its other processes end with it.
        self.kill();
    }
}
