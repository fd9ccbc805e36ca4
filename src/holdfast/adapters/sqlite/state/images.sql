-- Every statement on before-images, by name. `images` holds each content once; `image_uses` says which change of which path
-- began with it. The oldest use of a path is marked, and later changes never remove it.

-- name: has_image
SELECT 1 FROM images WHERE hash = :hash;

-- name: insert_image
INSERT INTO images (hash, size_bytes, stored_bytes, data_id, file, packing)
VALUES (:hash, :size_bytes, :size_bytes, :data_id, :file, :packing);

-- name: insert_image_data
INSERT INTO image_data (data) VALUES (:data);

-- name: find_image
SELECT m.hash, m.size_bytes, d.data, m.file, m.stored_bytes, m.base_hash, m.prefix_bytes, m.suffix_bytes,
       m.packing = 'packed' AS is_packed
FROM images m LEFT JOIN image_data d ON d.id = m.data_id WHERE m.hash = :hash;

-- name: image_files
SELECT file FROM images WHERE file IS NOT NULL;

-- name: add_image_use
INSERT INTO image_uses (path, seq, hash, root_dir, kept_at, is_oldest)
SELECT :path, :seq, :hash, :root_dir, :kept_at, NOT EXISTS (SELECT 1 FROM image_uses u WHERE u.path = :path)
WHERE EXISTS (SELECT 1 FROM images m WHERE m.hash = :hash)
ON CONFLICT DO NOTHING
RETURNING is_oldest;

-- name: uses_in_root
-- At most two are counted: an empty file may have been deleted a thousand times.
SELECT (SELECT count(*) FROM (SELECT 1 FROM image_uses WHERE hash = :hash AND root_dir = :root_dir LIMIT 2)) AS uses,
       (SELECT count(*) FROM (SELECT 1 FROM image_uses
                              WHERE hash = :hash AND root_dir = :root_dir AND is_oldest LIMIT 2)) AS oldest,
       (SELECT stored_bytes FROM images WHERE hash = :hash) AS stored_bytes;

-- name: has_oldest_use
SELECT 1 FROM image_uses WHERE path = :path LIMIT 1;

-- name: root_usage
SELECT root_dir, sum(stored_bytes) AS used_bytes, sum(CASE WHEN is_oldest THEN stored_bytes ELSE 0 END) AS oldest_bytes
FROM (SELECT u.root_dir, max(u.is_oldest) AS is_oldest, m.stored_bytes
      FROM image_uses u JOIN images m ON m.hash = u.hash
      GROUP BY u.root_dir, u.hash)
GROUP BY root_dir;

-- name: first_uses
-- In the order of changes, those of one root that are marked as the oldest of their path, or those that are not.
SELECT path, seq, hash, root_dir, kept_at, is_oldest FROM image_uses
WHERE root_dir = :root_dir AND is_oldest = :is_oldest AND seq < :before_seq
ORDER BY seq LIMIT :limit;

-- name: delete_image_use
DELETE FROM image_uses WHERE path = :path AND seq = :seq AND hash = :hash;

-- name: mark_oldest_use
-- The next oldest of a path takes the mark of one that is past its days.
UPDATE image_uses SET is_oldest = 1
WHERE path = :path AND (seq, hash) = (SELECT u.seq, u.hash FROM image_uses u WHERE u.path = :path ORDER BY u.seq, u.hash LIMIT 1)
RETURNING hash, root_dir;

-- name: forget_image
-- An image goes when no change uses it and no other image is kept as a difference from it.
DELETE FROM images
WHERE hash = :hash
  AND NOT EXISTS (SELECT 1 FROM image_uses u WHERE u.hash = :hash)
  AND NOT EXISTS (SELECT 1 FROM images other WHERE other.base_hash = :hash)
RETURNING data_id, file, base_hash;

-- name: delete_image_data
DELETE FROM image_data WHERE id = :id;

-- name: unused_images
SELECT m.hash FROM images m
WHERE NOT EXISTS (SELECT 1 FROM image_uses u WHERE u.hash = m.hash)
  AND NOT EXISTS (SELECT 1 FROM images other WHERE other.base_hash = m.hash);

-- name: unpacked_images
SELECT hash FROM images WHERE packing IS NULL ORDER BY size_bytes DESC LIMIT :limit;

-- name: base_of_image
-- The oldest content of the same path, which stays as long as any other; never one that is a difference itself.
SELECT m.hash FROM image_uses u
JOIN image_uses o ON o.path = u.path AND o.is_oldest AND o.hash <> u.hash
JOIN images m ON m.hash = o.hash AND m.base_hash IS NULL
WHERE u.hash = :hash
  AND NOT EXISTS (SELECT 1 FROM images other WHERE other.base_hash = :hash)
LIMIT 1;

-- name: stored_image
SELECT data_id, file FROM images WHERE hash = :hash;

-- name: pack_image
UPDATE images
SET packing = 'packed', stored_bytes = :stored_bytes, data_id = :data_id, file = :file, base_hash = :base_hash,
    prefix_bytes = :prefix_bytes, suffix_bytes = :suffix_bytes
WHERE hash = :hash AND packing IS NULL
  AND (:base_hash IS NULL OR EXISTS (SELECT 1 FROM images b WHERE b.hash = :base_hash AND b.base_hash IS NULL))
  AND (:base_hash IS NULL OR NOT EXISTS (SELECT 1 FROM images other WHERE other.base_hash = :hash));

-- name: leave_image_plain
UPDATE images SET packing = 'plain' WHERE hash = :hash AND packing IS NULL;

-- name: prunable_images
-- Least recently used first. With roots, an image that a change outside them uses too stays.
SELECT m.hash, m.stored_bytes, max(u.seq) AS last_seq, max(u.kept_at) AS kept_at
FROM images m JOIN image_uses u ON u.hash = m.hash
GROUP BY m.hash
HAVING last_seq < :before_seq AND min(is_beneath(u.root_dir, coalesce(:roots, '["/"]')))
ORDER BY last_seq, m.hash;

-- name: uses_of_image
SELECT path, seq, hash, root_dir, is_oldest FROM image_uses WHERE hash = :hash;
