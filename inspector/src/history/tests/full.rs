//! A disk that is really full: a small file system in memory.

use std::process::Command;

use super::*;

/// A mounted tmpfs, unmounted when dropped.
struct Small(tempfile::TempDir);

impl Small {
    fn mount(size: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"])
            .arg(dir.path())
            .output()
            .expect("mount is installed");
        let why = String::from_utf8_lossy(&mounted.stderr).into_owned();
        assert!(mounted.status.success(), "this test mounts a tmpfs, which requires root: {why}");
        Self(dir)
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg("--lazy").arg(self.0.path()).status();
        assert!(unmounted.is_ok_and(|status| status.success()), "umount");
    }
}

#[tokio::test]
async fn a_full_disk_is_said_and_what_waited_is_written_when_there_is_room() {
    let disk = Small::mount("4m");
    let place = || file(disk.0.path(), "https://one");
    let mut inspector = Inspector::start(place()).await;
    inspector.say([transition("before", 0)]).await;
    inspector.written().await;
    // Not quite: the write-ahead log has a few pages.
    let ballast = disk.0.path().join("ballast");
    let mut fill = std::fs::File::create(&ballast).unwrap();
    let error = std::iter::repeat_with(|| std::io::Write::write_all(&mut fill, &[7; 4096]));
    let error = error.take(4096).find_map(Result::err).expect("the disk is full");
    assert_eq!(error.kind(), std::io::ErrorKind::StorageFull);

    inspector.say((0..2_000).map(|number| transition(&format!("u{number}"), 0))).await;
    inspector.wait_for(|problem| problem.is_some()).await;
    let problem = inspector.problem().unwrap();
    assert!(problem.contains("is full") && problem.contains("(2000 entries pending)"), "{problem}");

    drop(fill);
    std::fs::remove_file(&ballast).unwrap();
    inspector.wait_for(|problem| problem.is_none()).await;
    assert_eq!(inspector.end().await, (vec![], None));
    let again = Inspector::start(place()).await;
    assert_eq!(live(&again.remembered).len(), 2_001);
    again.end().await;
}
