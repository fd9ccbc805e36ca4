-- Every statement that the journal runs, by name. Order is always by seq, never by time.

-- name: insert_plan
INSERT INTO plans (id, kind, root_dir, other_root, temp_name, undoes, status, created_at)
VALUES (:id, :kind, :root_dir, :other_root, :temp_name, :undoes, :status, :created_at);

-- name: insert_item
INSERT INTO plan_items (plan_id, position, op, src_path, dest_path, node, before_hash, after_hash, size_bytes,
                        mode, uid, gid, mtime_ns, identity, status, error_msg)
VALUES (:plan_id, :position, :op, :src_path, :dest_path, :node, :before_hash, :after_hash, :size_bytes,
        :mode, :uid, :gid, :mtime_ns, :identity, :status, :error_msg);

-- name: insert_image
INSERT INTO images (hash, size_bytes, data_id, file, kept_at, used_seq)
VALUES (:hash, :size_bytes, :data_id, :file, :kept_at, :used_seq);

-- name: insert_image_data
INSERT INTO image_data (data) VALUES (:data);

-- name: touch_image
UPDATE images SET used_seq = :used_seq, kept_at = :kept_at WHERE hash = :hash;

-- name: last_seq
SELECT coalesce(max(seq), 0) FROM plans;

-- name: finish_plan
UPDATE plans SET status = :status, executed_at = :executed_at, error_msg = :error_msg WHERE id = :id;

-- name: finish_items
UPDATE plan_items SET status = :status, error_msg = :error_msg, identity = coalesce(:identity, identity)
WHERE plan_id = :plan_id AND status = 'PENDING';

-- name: finish_item
UPDATE plan_items SET status = :status, error_msg = :error_msg WHERE plan_id = :plan_id AND position = :position;

-- name: next_position
SELECT coalesce(max(position), -1) + 1 FROM plan_items WHERE plan_id = :plan_id;

-- name: undone_by_plan
SELECT undoes FROM plans WHERE id = :id;

-- name: set_plan_status
UPDATE plans SET status = :status WHERE id = :id;

-- name: set_items_status
UPDATE plan_items SET status = :status WHERE plan_id = :plan_id AND status = :present;

-- name: find_plan
SELECT seq, id, kind, root_dir, other_root, temp_name, undoes, status, created_at, executed_at
FROM plans WHERE id = :id;

-- name: find_items
SELECT op, src_path, dest_path, node, before_hash, after_hash, size_bytes, mode, uid, gid, mtime_ns, identity,
       status, error_msg
FROM plan_items WHERE plan_id = :plan_id ORDER BY position;

-- name: unfinished_plans
SELECT id, seq FROM plans
WHERE status = 'APPROVED' AND kind IN ('write', 'edit', 'append', 'move', 'delete', 'mkdir', 'undo')
ORDER BY seq;

-- name: list_changes
SELECT p.seq, p.id, p.kind, p.status, i.src_path, i.dest_path,
       (SELECT count(*) FROM plan_items n WHERE n.plan_id = p.id) AS items,
       p.created_at, p.undoes,
       (SELECT count(*) FROM plan_items n
        WHERE n.plan_id = p.id AND n.status = 'DONE' AND n.op IN ('replace', 'remove') AND n.before_hash IS NOT NULL
          AND NOT EXISTS (SELECT 1 FROM images m WHERE m.hash = n.before_hash)) AS images_missing
FROM plans p JOIN plan_items i ON i.plan_id = p.id AND i.position = 0
WHERE p.seq < :before_seq
  AND p.status IN ('EXECUTED', 'FAILED', 'UNDONE')
  AND p.kind IN ('write', 'edit', 'append', 'move', 'delete', 'mkdir', 'undo')
  AND EXISTS (SELECT 1 FROM json_each(:roots) r
              WHERE p.root_dir = r.value OR substr(p.root_dir, 1, length(r.value) + 1) = rtrim(r.value, '/') || '/'
                 OR r.value = '/')
  AND (p.other_root IS NULL OR EXISTS (
        SELECT 1 FROM json_each(:roots) r
        WHERE p.other_root = r.value OR substr(p.other_root, 1, length(r.value) + 1) = rtrim(r.value, '/') || '/'
           OR r.value = '/'))
ORDER BY p.seq DESC LIMIT :limit;

-- name: latest_on_path
SELECT p.id FROM plan_items i JOIN plans p ON p.id = i.plan_id
WHERE (i.src_path = :path OR i.dest_path = :path) AND i.status = 'DONE' AND p.status = 'EXECUTED' AND p.seq > :after_seq
ORDER BY p.seq DESC LIMIT 1;

-- name: find_image
SELECT m.hash, m.size_bytes, d.data, m.file
FROM images m LEFT JOIN image_data d ON d.id = m.data_id WHERE m.hash = :hash;

-- name: image_files
SELECT file FROM images WHERE file IS NOT NULL;

-- name: images_bytes
SELECT coalesce(sum(size_bytes), 0) FROM images;

-- name: oldest_images
SELECT hash, size_bytes, file, data_id, kept_at FROM images WHERE used_seq < :before_seq
ORDER BY used_seq, hash LIMIT :limit;

-- name: delete_image
DELETE FROM images WHERE hash = :hash;

-- name: delete_image_data
DELETE FROM image_data WHERE id = :id;
