/** Rows of a database of format 1, with what later formats do not have. */
export const OLD_ROWS = [
  "INSERT INTO accounts (id, name, created_at) VALUES (1, 'acme', 1)",
  "INSERT INTO users (id, email, account_id, role, created_at) VALUES (1, 'ann@example.com', 1, 'member', 1)",
  `INSERT INTO keys (id, account_id, name, hash, disabled, created_at, archived_at, user_id)
   VALUES (1, 1, 'old', 'x', true, 1, 2, 1)`,
  `INSERT INTO key_log (account_id, key_id, key_name, action, fields, actor, created_at)
   VALUES (1, 1, 'old', 'archived', '', 'ann@example.com', 2)`,
  `INSERT INTO runs (id, account_id, model, kind, price, status, created_at, input)
   VALUES ('run_old', 1, 'rushes/preview-image', 'image', 0, 'queued', 2, '{"prompt":"a fox"}')`,
]
