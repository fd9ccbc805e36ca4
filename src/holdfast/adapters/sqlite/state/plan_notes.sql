-- Every statement on the notes of plans.

-- name: save_notes
INSERT INTO plan_notes (plan_id, notes_json) VALUES (:plan_id, :notes)
ON CONFLICT (plan_id) DO UPDATE SET notes_json = excluded.notes_json;

-- name: load_notes
SELECT notes_json FROM plan_notes WHERE plan_id = :plan_id;

-- name: find_moves
SELECT p.id, p.seq, p.kind, coalesce(p.executed_at, p.created_at) AS at, p.root_dir, p.other_root,
    i.src_path, i.dest_path, iif(p.status = 'CANCELLED', p.status, i.status) AS status, i.reasoning, i.confidence,
    i.composite_hash
FROM plan_items i JOIN plans p ON p.id = i.plan_id
WHERE i.op = 'move'
    AND (i.src_path IN (SELECT value FROM json_each(:paths)) OR i.dest_path IN (SELECT value FROM json_each(:paths)))
ORDER BY p.seq DESC, i.position LIMIT :max_moves;
