-- Every statement on what the organiser remembers of files and was taught about them.

-- name: seen_files
-- CROSS JOIN keeps the order of the loops: each inode asked for is looked up, whatever the planner thinks of the table.
SELECT s.inode, s.size_bytes, s.mtime_ns, s.file_hash
FROM json_each(:inodes) asked CROSS JOIN file_seen s
WHERE s.device = :device AND s.inode = asked.value;

-- name: excerpts
SELECT file_hash, metadata_json, excerpt FROM file_cache
WHERE file_hash IN (SELECT value FROM json_each(:hashes)) AND excerpt IS NOT NULL;

-- name: verdicts
SELECT file_hash, category, confidence, verdict_json FROM file_verdicts
WHERE decider = :decider AND file_hash IN (SELECT value FROM json_each(:hashes));

-- name: remember_file
INSERT INTO file_cache (file_hash, file_path, size_bytes, mtime, metadata_json, created_at, excerpt)
VALUES (:file_hash, :file_path, :size_bytes, :mtime, :metadata_json, :created_at, :excerpt)
ON CONFLICT (file_hash) DO UPDATE SET
    file_path = excluded.file_path,
    metadata_json = coalesce(excluded.metadata_json, metadata_json),
    excerpt = coalesce(excluded.excerpt, excerpt);

-- name: remember_seen
INSERT INTO file_seen (device, inode, size_bytes, mtime_ns, file_hash)
VALUES (:device, :inode, :size_bytes, :mtime, :file_hash)
ON CONFLICT (device, inode) DO UPDATE SET
    size_bytes = excluded.size_bytes, mtime_ns = excluded.mtime_ns, file_hash = excluded.file_hash;

-- name: remember_verdict
INSERT INTO file_verdicts (file_hash, decider, category, confidence, verdict_json)
VALUES (:file_hash, :decider, :category, :confidence, :verdict_json)
ON CONFLICT (file_hash, decider) DO UPDATE SET
    category = excluded.category, confidence = excluded.confidence, verdict_json = excluded.verdict_json;

-- name: count_files
SELECT count(*) FROM file_cache;

-- name: trim_files
DELETE FROM file_cache WHERE rowid IN (SELECT rowid FROM file_cache ORDER BY rowid LIMIT :surplus);

-- name: trim_seen
DELETE FROM file_seen WHERE file_hash NOT IN (SELECT file_hash FROM file_cache);

-- name: trim_verdicts
DELETE FROM file_verdicts WHERE file_hash NOT IN (SELECT file_hash FROM file_cache);

-- name: teach
INSERT INTO file_lessons (root_dir, file_hash, name, category, text, content_type)
VALUES (:root_dir, :file_hash, :name, :category, :text, :content_type)
ON CONFLICT (root_dir, file_hash) DO UPDATE SET
    name = excluded.name, category = excluded.category, text = excluded.text, content_type = excluded.content_type;

-- name: lessons
SELECT file_hash, name, category, text, content_type FROM file_lessons WHERE root_dir = :root_dir ORDER BY seq;
