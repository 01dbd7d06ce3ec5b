-- The history of jobs, of any number of clusters.

-- Clusters by the UID of their namespace kube-system. Only the leader of this term or a later one may write.
CREATE TABLE fluxion_clusters (
    cluster text PRIMARY KEY,
    term bigint NOT NULL
);

-- Transitions of jobs that have not finished. The body is JSON.
CREATE TABLE fluxion_transitions (
    cluster text NOT NULL REFERENCES fluxion_clusters,
    uid text NOT NULL,
    number integer NOT NULL,
    job text NOT NULL,
    body text NOT NULL,
    PRIMARY KEY (cluster, uid, number)
);

-- Who cancelled such a job.
CREATE TABLE fluxion_cancels (
    cluster text NOT NULL REFERENCES fluxion_clusters,
    uid text NOT NULL,
    name text NOT NULL,
    PRIMARY KEY (cluster, uid)
);

-- Finished jobs. The body (JSON) has all details; text, since jsonb can't hold every string.
CREATE TABLE fluxion_ended (
    cluster text NOT NULL REFERENCES fluxion_clusters,
    uid text NOT NULL,
    ended_at timestamptz NOT NULL,
    namespace text NOT NULL,
    job text NOT NULL,
    queue text NOT NULL,
    state text NOT NULL,
    created_at timestamptz NOT NULL,
    started_at timestamptz,
    cancelled_by text,
    bytes bigint NOT NULL,
    body text NOT NULL,
    PRIMARY KEY (cluster, uid, ended_at)
);

CREATE INDEX fluxion_ended_by_age ON fluxion_ended (cluster, ended_at, uid) INCLUDE (bytes);
