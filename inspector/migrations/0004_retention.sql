-- Finished jobs by age with their sizes, so that the oldest ones can be found without reading any.
ALTER TABLE ended ADD COLUMN bytes INTEGER GENERATED ALWAYS AS (length(CAST(body AS BLOB))) VIRTUAL;
CREATE INDEX ended_by_age ON ended (ended_at, uid, bytes);
