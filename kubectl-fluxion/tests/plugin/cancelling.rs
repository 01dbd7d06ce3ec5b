//! `cancel` with a server that does it itself.

use crate::mock::{Mock, Ran};

#[test]
fn nothing_is_done_where_nobody_can_be_asked() {
    let mock = Mock::sample();
    let Ran { code, out, err } = mock.run(&["cancel", "job/lammps"]);
    assert_eq!(code, 7);
    assert_eq!(out, "job/lammps refused: not a terminal, so nothing can be confirmed: pass -y\n");
    assert_eq!(err, "job/lammps: 4 Pods; frees cpu=8,mem=16Gi\n  would start next: podgroup/train\n");
    assert!(
        mock.requests
            .lock()
            .unwrap()
            .iter()
            .filter(|it| it.starts_with("POST"))
            .all(|it| it.ends_with("?dryRun=All"))
    );
}

#[test]
fn each_job_has_its_outcome() {
    for (job, code, text) in [
        ("job/lammps", 0, "cancelled"),
        ("group/sim", 0, "already terminating"),
        ("job/done", 0, "already finished"),
        ("podgroup/train", 4, "forbidden: you may not cancel podgroup/train"),
        (
            "job/sweep",
            7,
            "refused: this would also delete Pods of other jobs (job/other); pass --with-others to proceed",
        ),
        (
            "job/nothing-like-it",
            3,
            "not found: no job named job/nothing-like-it in namespace default; run `kubectl fluxion jobs -A` to list jobs",
        ),
    ] {
        let ran = Mock::sample().run(&["cancel", "-y", job]);
        assert_eq!((ran.code, ran.out), (code, format!("{job} {text}\n")));
    }
}

#[test]
fn several_jobs_at_once() {
    let ran = Mock::sample().run(&["cancel", "-y", "lammps", "done", "lammps"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "job/lammps cancelled\njob/done already finished\n"));
    let ran = Mock::sample().run(&["cancel", "-y", "lammps", "podgroup/train"]);
    assert_eq!(ran.code, 6);
    let ran = Mock::sample().run(&["cancel", "-y", "team-b/job/lammps", "--with-others", "job/sweep"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "team-b/job/lammps cancelled\njob/sweep cancelled\n"));
}

#[test]
fn a_dry_run_changes_nothing() {
    let mock = Mock::sample();
    let ran = mock.run(&["cancel", "--dry-run", "lammps"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "job/lammps would be cancelled (dry run)\n"));
    assert!(
        mock.requests
            .lock()
            .unwrap()
            .iter()
            .filter(|it| it.starts_with("POST"))
            .all(|it| it.ends_with("?dryRun=All"))
    );
}
