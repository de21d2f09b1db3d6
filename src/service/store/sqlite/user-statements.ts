/** The statements about the console's users, with their sessions, links and login codes. */
import { USER_COLUMNS } from '../user-rows.js'

const USERS = 'users JOIN accounts ON accounts.id = users.account_id'

const SESSIONS = `
    SELECT sessions.*, ${USER_COLUMNS}
    FROM sessions JOIN users ON users.id = sessions.user_id JOIN accounts ON accounts.id = users.account_id`

export const USER_SQL = {
  addUser: `
    INSERT INTO users (email, account_id, created_at) VALUES (?1, ?2, ?3) ON CONFLICT (email) DO NOTHING RETURNING id`,

  findUser: `SELECT ${USER_COLUMNS} FROM ${USERS} WHERE users.email = ?1`,

  findUserById: `SELECT ${USER_COLUMNS} FROM ${USERS} WHERE users.id = ?1`,

  listUsers: `
    SELECT ${USER_COLUMNS}, users.last_seen_at,
      (SELECT count(*) FROM sessions WHERE user_id = users.id AND expires_at > ?1) AS sessions
    FROM ${USERS} ORDER BY users.id`,

  removeUser: `DELETE FROM users WHERE email = ?1`,

  setPassword: `UPDATE users SET password = ?2 WHERE id = ?1`,

  // Nothing is added for a user who was removed in the meantime.
  addLink: `INSERT INTO links (hash, user_id, expires_at) SELECT ?1, id, ?3 FROM users WHERE id = ?2`,

  useLink: `DELETE FROM links WHERE hash = ?1 AND expires_at > ?2 RETURNING user_id`,

  endLinks: `DELETE FROM links WHERE user_id = ?1`,

  endExpiredLinks: `DELETE FROM links WHERE expires_at <= ?1`,

  addSession: `
    INSERT INTO sessions (hash, user_id, from_link, address, user_agent, created_at, used_at, expires_at)
    SELECT ?1, id, ?3, ?4, ?5, ?6, ?6, ?7 FROM users WHERE id = ?2`,

  findSession: `${SESSIONS} WHERE sessions.hash = ?1 AND sessions.expires_at > ?2`,

  extendSession: `
    UPDATE sessions SET used_at = max(used_at, ?2), expires_at = max(expires_at, ?3)
    WHERE hash = ?1 AND expires_at > ?2 RETURNING user_id`,

  recordSeen: `UPDATE users SET last_seen_at = max(coalesce(last_seen_at, ?2), ?2) WHERE id = ?1`,

  endSession: `DELETE FROM sessions WHERE hash = ?1`,

  endSessionById: `DELETE FROM sessions WHERE user_id = ?1 AND id = ?2`,

  endSessions: `DELETE FROM sessions WHERE user_id = ?1`,

  endOtherSessions: `DELETE FROM sessions WHERE user_id = ?1 AND hash <> ?2`,

  endExpiredSessions: `DELETE FROM sessions WHERE expires_at <= ?1`,

  keepSession: `UPDATE sessions SET from_link = 0 WHERE user_id = ?1 AND hash = ?2`,

  listSessions: `
    ${SESSIONS} WHERE sessions.user_id = ?1 AND sessions.expires_at > ?2 ORDER BY sessions.used_at DESC, sessions.id DESC LIMIT 100`,

  addLogin: `
    INSERT INTO logins (hash, user_id, challenge, name, expires_at)
    SELECT ?1, id, ?3, ?4, ?5 FROM users WHERE id = ?2`,

  useLogin: `DELETE FROM logins WHERE hash = ?1 AND expires_at > ?2 RETURNING user_id, challenge, name`,

  endLogins: `DELETE FROM logins WHERE user_id = ?1`,

  endExpiredLogins: `DELETE FROM logins WHERE expires_at <= ?1`,
} as const
