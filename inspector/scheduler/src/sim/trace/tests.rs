use super::*;

#[test]
fn reads_the_standard_workload_format() {
    let text = "; UnixStartTime: 0\n  1 10 -1 60 8 -1 -1 -1 100 -1 1 1 1 1 1 -1 -1 -1\n\
        2 20 5 30 8 -1 -1 16 -1 -1 1 1 1 1 1 -1 -1 -1\n3 30 -1 -1 8 -1 -1 8 60 -1 5 1 1 1 1 -1 -1 -1\n";
    let SwfTrace { jobs, skipped, .. } = read_swf(text).unwrap();
    assert_eq!(skipped, 1);
    assert_eq!(
        jobs[0],
        TraceJob {
            id: 1,
            submit: 10,
            cores: 8,
            limit: 100,
            run: 60,
            priority: 0,
            queue: Some("1".into()),
            user: Some("1".into())
        }
    );
    assert_eq!(
        jobs[1],
        TraceJob {
            id: 2,
            submit: 20,
            cores: 16,
            limit: 30,
            run: 30,
            priority: 0,
            queue: Some("1".into()),
            user: Some("1".into())
        }
    );
}

#[test]
fn says_which_line_of_a_trace_is_wrong() {
    for text in ["1 2 3", "1 x 3 4 5 6 7 8 9", "1 -5 0 4 5 6 7 8 9", "1 5 0 4 5 6 7 8 99999999999999999"] {
        assert_eq!(read_swf(&format!(";\n{text}")).unwrap_err().line, 2, "{text}");
    }
    for text in [
        "",
        "submit,cores",
        "submit,cores,run,colour",
        "submit,cores,run\n1,0,3",
        "submit,cores,run\n1,2",
        "submit,cores,run\n1,2,x",
    ] {
        assert!(read_csv(text).is_err(), "{text}");
    }
    for (line, part) in [
        ("0,1,-7,", "run time -7"),
        ("0,1,7,-9", "time limit -9"),
        ("0,1,,9", "run is empty"),
        (",1,7,9", "submit is empty"),
        ("0,1,1x3,", "run: invalid number `1x3`"),
        ("0,1,1.x,", "run: invalid number `1.x`"),
        ("0,-4,1,", "processors -4"),
    ] {
        let error = read_csv(&format!("submit,cores,run,limit\n{line}")).unwrap_err();
        assert_eq!(error.line, 2);
        assert!(error.what.contains(part), "{error}");
    }
    assert!(read_csv("submit,cores,cores,run\n").unwrap_err().what.contains("duplicate column cores"));
    assert!(read_swf("1 5 0 4 5 x 7 8 9").unwrap_err().what.contains("field 6: invalid number `x`"));
}

#[test]
fn reads_what_spreadsheets_write() {
    let jobs = read_csv("\u{feff}submit,cores,run,limit\r\n\r\n0.5,1,10.25,-1\r\n").unwrap();
    assert_eq!(
        jobs,
        [TraceJob { id: 3, submit: 0, cores: 1, limit: 10, run: 10, priority: 0, ..TraceJob::default() }]
    );
}

/// A job's line: number, submit time, run time, processors, requested time, status, and the last four fields.
fn line(figures: [i64; 6], rest: &str) -> String {
    let [id, submit, run, procs, limit, status] = figures;
    format!("{id} {submit} -1 {run} {procs} -1 -1 {procs} {limit} -1 {status} 3 1 1 {rest}\n")
}

#[test]
fn parts_of_a_job_count_once() {
    let rest = "1 -1 -1 -1";
    let parts = line([1, 10, 100, 4, 200, 2], rest) + &line([1, 300, 50, 4, 200, 3], rest);
    let with_sum = read_swf(&(parts.clone() + &line([1, 10, 150, 4, 200, 1], rest))).unwrap();
    let without = read_swf(&parts).unwrap();
    assert_eq!(with_sum.jobs, without.jobs);
    assert_eq!((with_sum.jobs.len(), with_sum.jobs[0].run, with_sum.jobs[0].submit), (1, 150, 10));
    assert_eq!((with_sum.partial, without.partial, without.skipped), (2, 2, 0));
}

#[test]
fn reads_the_header_and_what_is_ignored() {
    let text = format!(
        "\u{feff}; MaxNodes: 64 (two partitions)\r\n;MaxProcs:128\r\n; MaxProcs: 7\n; Note: MaxNodes: 3\n# x\n{}{}{}",
        line([1, 0, 10, 4, 20, 1], "1 1 -1 -1"),
        line([2, 0, 10, 4, 20, 1], "1 2 1 500"),
        "3 .5 -1 10.9 4 -1 -1 4 20 ; a remark\n",
    );
    let trace = read_swf(&text).unwrap();
    assert_eq!((trace.max_nodes, trace.max_procs), (Some(64), Some(128)));
    assert_eq!((trace.partitions, trace.preceding), (2, 1));
    let last = &trace.jobs[2];
    assert_eq!((last.submit, last.run, &last.queue, &last.user), (0, 10, &None, &None));
    let none = read_swf("; MaxNodes: many\n; MaxProcs: 99999999999\n; MaxNodes: 0").unwrap();
    assert_eq!(none, SwfTrace::default());
}

#[test]
fn fractions_are_dropped_and_no_run_is_shorter_than_a_second() {
    for (word, value) in [
        (".5", Some(0)),
        ("-.5", Some(0)),
        ("-1.0", Some(-1)),
        ("7.", Some(7)),
        (".", None),
        ("-", None),
        ("", None),
        ("1.-2", None),
    ] {
        assert_eq!(number(word), value, "{word}");
    }
    let jobs = read_csv("submit,cores,run,user\n0,1,0,ann\n0,1,.9,").unwrap();
    assert_eq!((jobs[0].run, jobs[0].limit, jobs[1].run), (1, 1, 1));
    assert_eq!((jobs[0].user.as_deref(), &jobs[1].user), (Some("ann"), &None));
}

#[test]
fn numbers_may_have_an_exponent() {
    let numbers = [("1e2", 100), ("1.57E+2", 157), ("-1.5e1", -15), (".5e1", 5), ("2.9e0", 2), ("-.5", 0)];
    for (text, value) in numbers {
        assert_eq!(number(text), Some(value), "{text}");
    }
    for text in ["1e", "e2", "1e-2", "1e99", "1e19", "1e2.5", "1.x", "9e18e1", "--1"] {
        assert_eq!(number(text), None, "{text}");
    }
}
