-- Every statement on the organiser's cache of files and on a person's corrections.

-- name: find_hashes
-- CROSS JOIN fixes the order of the loops: each wanted inode is looked up, whatever the planner thinks of the table.
SELECT s.inode, s.size_bytes, s.mtime_ns, s.file_hash
FROM json_each(:inodes) wanted CROSS JOIN file_seen s
WHERE s.device = :device AND s.inode = wanted.value;

-- name: load_excerpts
SELECT file_hash, metadata_json, excerpt FROM file_cache
WHERE file_hash IN (SELECT value FROM json_each(:hashes)) AND excerpt IS NOT NULL;

-- name: load_verdicts
SELECT file_hash, category, confidence, verdict_json FROM file_verdicts
WHERE decider = :decider AND file_hash IN (SELECT value FROM json_each(:hashes));

-- name: save_file
INSERT INTO file_cache (file_hash, file_path, size_bytes, mtime, metadata_json, created_at, excerpt)
VALUES (:file_hash, :file_path, :size_bytes, :mtime, :metadata_json, :created_at, :excerpt)
ON CONFLICT (file_hash) DO UPDATE SET
    file_path = excluded.file_path,
    metadata_json = coalesce(excluded.metadata_json, metadata_json),
    excerpt = coalesce(excluded.excerpt, excerpt);

-- name: save_inode
INSERT INTO file_seen (device, inode, size_bytes, mtime_ns, file_hash)
VALUES (:device, :inode, :size_bytes, :mtime, :file_hash)
ON CONFLICT (device, inode) DO UPDATE SET
    size_bytes = excluded.size_bytes, mtime_ns = excluded.mtime_ns, file_hash = excluded.file_hash;

-- name: save_verdict
INSERT INTO file_verdicts (file_hash, decider, category, confidence, verdict_json)
VALUES (:file_hash, :decider, :category, :confidence, :verdict_json)
ON CONFLICT (file_hash, decider) DO UPDATE SET
    category = excluded.category, confidence = excluded.confidence, verdict_json = excluded.verdict_json;

-- name: count_files
SELECT count(*) FROM file_cache;

-- name: trim_files
DELETE FROM file_cache WHERE rowid IN (SELECT rowid FROM file_cache ORDER BY rowid LIMIT :surplus);

-- name: trim_inodes
DELETE FROM file_seen WHERE file_hash NOT IN (SELECT file_hash FROM file_cache);

-- name: trim_verdicts
DELETE FROM file_verdicts WHERE file_hash NOT IN (SELECT file_hash FROM file_cache);

-- name: save_correction
INSERT INTO file_lessons (root_dir, file_hash, name, category, text, content_type)
VALUES (:root_dir, :file_hash, :name, :category, :text, :content_type)
ON CONFLICT (root_dir, file_hash) DO UPDATE SET
    name = excluded.name, category = excluded.category, text = excluded.text, content_type = excluded.content_type;

-- name: delete_correction
DELETE FROM file_lessons WHERE root_dir = :root_dir AND file_hash = :file_hash;

-- name: load_corrections
SELECT file_hash, name, category, text, content_type FROM file_lessons WHERE root_dir = :root_dir ORDER BY seq;
