/**
 * The statements about the console's users, with their sessions, links and login codes. Each has the same effect when it is done
 * twice, because its answer was lost.
 */
import { USER_COLUMNS } from '../user-rows.js'
import { statementsOf } from './driver.js'

const USERS = 'users JOIN accounts ON accounts.id = users.account_id'

const SESSIONS = `
    SELECT sessions.id, sessions.hash, sessions.from_link, sessions.address, sessions.user_agent, sessions.created_at,
      sessions.used_at, sessions.expires_at, ${USER_COLUMNS}
    FROM sessions JOIN users ON users.id = sessions.user_id JOIN accounts ON accounts.id = users.account_id`

/** Of several callers one gets it: the others wait for its row, and then see who used it. */
const USABLE = 'hash = $1 AND expires_at > $2 AND coalesce(used_by, $3) = $3'

export const USER_SQL = statementsOf({
  addUser: `
    INSERT INTO users (email, account_id, created_at) VALUES ($1, $2, $3) ON CONFLICT (email) DO NOTHING RETURNING id`,

  findUser: `SELECT ${USER_COLUMNS} FROM ${USERS} WHERE users.email = $1`,

  listUsers: `
    SELECT ${USER_COLUMNS}, users.last_seen_at, coalesce(signed_in.sessions, 0) AS sessions
    FROM ${USERS}
    LEFT JOIN (SELECT user_id, count(*) AS sessions FROM sessions WHERE expires_at > $1 GROUP BY user_id) AS signed_in
      ON signed_in.user_id = users.id
    ORDER BY users.id`,

  removeUser: `DELETE FROM users WHERE email = $1`,

  setPassword: `
    WITH ended AS (DELETE FROM sessions WHERE user_id = $1 AND hash <> $3),
    kept AS (UPDATE sessions SET from_link = false WHERE user_id = $1 AND hash = $3),
    ended_links AS (DELETE FROM links WHERE user_id = $1),
    ended_logins AS (DELETE FROM logins WHERE user_id = $1)
    UPDATE users SET password = $2 WHERE id = $1`,

  // Nothing is added for a user who was removed in the meantime.
  addLink: `
    WITH expired AS (DELETE FROM links WHERE expires_at <= $3)
    INSERT INTO links (hash, user_id, expires_at) SELECT $1, id, $4::bigint FROM users WHERE id = $2
    ON CONFLICT (hash) DO NOTHING`,

  useLink: `
    WITH used AS (UPDATE links SET used_by = $3 WHERE ${USABLE} RETURNING user_id)
    SELECT ${USER_COLUMNS} FROM used JOIN users ON users.id = used.user_id JOIN accounts ON accounts.id = users.account_id`,

  addSession: `
    WITH expired AS (DELETE FROM sessions WHERE expires_at <= $6::bigint),
    seen AS (UPDATE users SET last_seen_at = greatest(last_seen_at, $6::bigint) WHERE id = $2 RETURNING id)
    INSERT INTO sessions (hash, user_id, from_link, address, user_agent, created_at, used_at, expires_at)
    SELECT $1, id, $3::boolean, $4, $5, $6::bigint, $6::bigint, $7::bigint FROM seen
    ON CONFLICT (hash) DO NOTHING`,

  findSession: `${SESSIONS} WHERE sessions.hash = $1 AND sessions.expires_at > $2`,

  extendSession: `
    WITH extended AS (
      UPDATE sessions SET used_at = greatest(used_at, $2::bigint), expires_at = greatest(expires_at, $3::bigint)
      WHERE hash = $1 AND expires_at > $2::bigint RETURNING user_id
    )
    UPDATE users SET last_seen_at = greatest(last_seen_at, $2::bigint) FROM extended WHERE users.id = extended.user_id`,

  endSession: `DELETE FROM sessions WHERE hash = $1`,

  endSessionById: `DELETE FROM sessions WHERE user_id = $1 AND id = $2`,

  endSessions: `
    WITH ended_links AS (DELETE FROM links WHERE user_id = $1),
    ended_logins AS (DELETE FROM logins WHERE user_id = $1)
    DELETE FROM sessions WHERE user_id = $1`,

  listSessions: `
    ${SESSIONS} WHERE sessions.user_id = $1 AND sessions.expires_at > $2 ORDER BY sessions.used_at DESC, sessions.id DESC LIMIT 100`,

  addLogin: `
    WITH expired AS (DELETE FROM logins WHERE expires_at <= $5)
    INSERT INTO logins (hash, user_id, challenge, name, expires_at) SELECT $1, id, $3, $4, $6::bigint FROM users WHERE id = $2
    ON CONFLICT (hash) DO NOTHING`,

  useLogin: `
    WITH used AS (UPDATE logins SET used_by = $3 WHERE ${USABLE} RETURNING user_id, challenge, name)
    SELECT users.id AS user_id, users.account_id, accounts.banned, used.challenge, used.name
    FROM used JOIN users ON users.id = used.user_id JOIN accounts ON accounts.id = users.account_id`,
})
