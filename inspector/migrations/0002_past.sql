-- What is kept of jobs: the past that users are told of. Of a job that has not ended its transitions, of one that has
-- all that it was. The engine says what may go.

DROP TABLE history;

CREATE TABLE transitions (
    uid TEXT NOT NULL,
    number INTEGER NOT NULL,
    job TEXT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (uid, number)
) STRICT, WITHOUT ROWID;

-- Who asked for the end of a job.
CREATE TABLE cancels (
    uid TEXT PRIMARY KEY,
    name TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE ended (
    uid TEXT NOT NULL,
    ended_at INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (uid, ended_at)
) STRICT, WITHOUT ROWID;
