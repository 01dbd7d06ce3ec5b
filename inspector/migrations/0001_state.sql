-- What standalone mode keeps. Times are epoch seconds.

-- Facts about this state as a whole, e.g. its cluster id.
CREATE TABLE facts (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- The objects as an API server would keep them (JSON).
CREATE TABLE objects (
    uid TEXT PRIMARY KEY,
    kind TEXT NOT NULL,
    namespace TEXT NOT NULL,
    name TEXT NOT NULL,
    body TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Manifests that were handed in. A body waits for its time; without one it was taken in, and never is again.
CREATE TABLE submissions (
    resource TEXT NOT NULL,
    namespace TEXT NOT NULL,
    name TEXT NOT NULL,
    due INTEGER NOT NULL,
    body TEXT,
    PRIMARY KEY (resource, namespace, name)
) STRICT, WITHOUT ROWID;

-- Transitions of jobs, oldest first.
CREATE TABLE history (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    time INTEGER NOT NULL,
    job TEXT NOT NULL,
    uid TEXT NOT NULL,
    state TEXT NOT NULL,
    reason TEXT NOT NULL
) STRICT;

CREATE INDEX history_of_job ON history (uid, number);
