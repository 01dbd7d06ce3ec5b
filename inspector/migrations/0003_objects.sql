-- Objects in a table with row numbers: without them a body that is larger than a quarter of a page takes a page of its
-- own for its end, and the file was three times as large.
CREATE TABLE objects_by_number (
    number INTEGER PRIMARY KEY,
    uid TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL,
    namespace TEXT NOT NULL,
    name TEXT NOT NULL,
    body TEXT NOT NULL
) STRICT;

INSERT INTO objects_by_number (uid, kind, namespace, name, body) SELECT uid, kind, namespace, name, body FROM objects;
DROP TABLE objects;
ALTER TABLE objects_by_number RENAME TO objects;
