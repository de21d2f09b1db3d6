/** Which statement of the journal uses which index, and that no index is there for nothing. */

import { join } from 'node:path'
import Database from 'libsql'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { openJournal } from '../../src/journal/index.js'
import { listStatement } from '../../src/journal/queries.js'
import { readLabels, readRecentRuns } from '../../src/journal/readonly-queries.js'
import { temporaryFolder } from '../support/service.js'

const ADDRESS = 'https://api.example.com'

/** Calls every method of the journal and both read-only queries, so that each statement is prepared once. */
function callEverything(): string {
  const path = join(temporaryFolder(), 'journal.db')
  const journal = openJournal({ path, now: () => 1, onQuarantine: () => expect.unreachable() })
  const intent = { address: ADDRESS, profile: 'default', kind: 'image', model: 'acme/still-1', input: {} }
  const state = { urls: ['https://cdn.example.com/1.png'], failure: undefined, createdAt: undefined }
  const more = { finishedAt: undefined, service: {} }
  const update = (id: string, status: string, phase: 'running' | 'succeeded') =>
    journal.recordStatus(ADDRESS, { state: { ...state, ...more, id, status, phase }, tookMs: 5 })
  const outcome = { code: 'submission_unknown', message: 'lost' }
  const calls = {
    prepare: () => journal.prepare(ADDRESS, ['request', 'other']),
    unprepare: () => journal.unprepare(ADDRESS, 'other'),
    createOf: () => journal.createOf(ADDRESS, 'request'),
    intend: () => journal.intend(intent),
    retract: () => journal.retract(journal.intend(intent)),
    accept: () => journal.accept(journal.intend(intent), 'a'),
    markUnconfirmed: () => journal.markUnconfirmed(journal.intend(intent), outcome),
    recordStatus: () => [update('a', 'processing', 'running'), update('a', 'succeeded', 'succeeded')],
    recordNotFound: () => journal.recordNotFound(ADDRESS, 'a', outcome),
    recordQueued: () => journal.recordQueued(ADDRESS, ['a']),
    recordFiles: () =>
      journal.recordFiles(ADDRESS, 'a', [{ path: '/a', bytes: 1, sha256: '', url: '', content_type: '' }]),
    find: () => journal.find(ADDRESS, 'a'),
    findByKey: () => journal.findByKey('~0000'),
    findByRequest: () => journal.findByRequest(ADDRESS, 'request'),
    filesOf: () => journal.filesOf(journal.find(ADDRESS, 'a') ?? expect.unreachable()),
    everyFile: () => journal.everyFile(),
    last: () => journal.last(ADDRESS),
    unfinished: () => journal.unfinished(ADDRESS),
    unconfirmed: () => journal.unconfirmed(ADDRESS),
    list: () => [
      journal.list({}),
      journal.list({ address: ADDRESS, status: 'x' }),
      journal.list({ sinceMs: 1 }),
    ],
    spend: () => [journal.spend({}, 'model'), journal.spend({}, 'day')],
    findAtEveryAddress: () => journal.findAtEveryAddress('a'),
    remove: () => journal.remove(journal.unconfirmed(ADDRESS)),
    durations: () => journal.durations(ADDRESS, 'acme/still-1'),
    isCurrent: () => journal.isCurrent(),
    wasRemoved: undefined,
    ownRows: () => journal.ownRows(),
    restore: () => {
      const { runs, prepared } = journal.ownRows()
      journal.restore({
        runs: runs.map(({ run, files }) => ({ run: { ...run, id: `${run.id}2` }, files })),
        prepared,
      })
    },
    setLockTimeout: undefined,
    quarantine: undefined,
    close: undefined,
  } satisfies Record<keyof typeof journal, (() => unknown) | undefined>
  for (const call of Object.values(calls)) call?.()
  journal.close()
  readRecentRuns(path, 5)
  readLabels(path, 5)
  return path
}

const shortened = (sql: string): string => sql.replace(/\s+/g, ' ').trim()

/** Each statement with the indexes by which it finds rows, and all indexes of the schema. */
function queryPlans() {
  const prepare = vi.spyOn(Database.prototype, 'prepare')
  onTestFinished(() => void prepare.mockRestore())
  const path = callEverything()
  const statements = [...new Set(prepare.mock.calls.map(([sql]) => sql))].filter(
    (sql) => !/^PRAGMA/.test(sql),
  )
  prepare.mockRestore()
  const database = new Database(path)
  const plans = statements.map((sql) => {
    const rows = database.prepare(`EXPLAIN QUERY PLAN ${sql}`).all([]) as { detail: string }[]
    return { sql: shortened(sql), plan: rows.map(({ detail }) => detail).join('; ') }
  })
  const indexes = database
    .prepare("SELECT name FROM sqlite_schema WHERE type = 'index' ORDER BY name")
    .all([]) as { name: string }[]
  database.close()
  return { plans, indexes: indexes.map(({ name }) => name) }
}

const indexesIn = (plan: string): readonly string[] =>
  [...plan.matchAll(/(?<!VIRTUAL TABLE )INDEX (\w+)/g)].map(([, name = '']) => name)

describe('the indexes of the journal', () => {
  it('serve a statement each', () => {
    const { plans, indexes } = queryPlans()
    const used = new Set(plans.flatMap(({ plan }) => indexesIn(plan)))
    // `ON CONFLICT (row, path)`, which EXPLAIN does not show.
    const byConflict = 'sqlite_autoindex_files_1'
    expect(indexes.filter((name) => name !== byConflict && !used.has(name))).toEqual([])
  })

  it('serve exactly these statements', () => {
    const { plans } = queryPlans()
    const found = plans.filter(({ plan }) => indexesIn(plan).length > 0)
    expect(
      found.map(({ sql, plan }) => `${indexesIn(plan).join(', ')} ← ${sql.slice(0, 110)}`).sort(),
    ).toMatchInlineSnapshot(`
      [
        "prepared_by_time ← DELETE FROM prepared WHERE prepared_at < ?",
        "runs_by_address ← SELECT * FROM runs WHERE address = ? ORDER BY row DESC LIMIT 1",
        "runs_by_address, runs_by_address ← WITH RECURSIVE places (address) AS ( SELECT min(address) FROM runs UNION ALL SELECT (SELECT min(address) FROM ",
        "runs_by_id ← SELECT * FROM runs WHERE address = ? AND id = ? ORDER BY row DESC LIMIT 1",
        "runs_by_id ← UPDATE runs SET error_code = ?, error_message = ?, answer_status = ? WHERE address = ? AND id = ? AND phase = ",
        "runs_by_id ← UPDATE runs SET phase = 'going', status = ?, finished_at = NULL, elapsed_ms = NULL, error_code = NULL, error_m",
        "runs_by_id ← UPDATE runs SET phase = ?, status = ?, finished_at = ?, elapsed_ms = coalesce(?, ? - created_at), took_ms = ?,",
        "runs_by_id ← UPDATE runs SET status = 'queued', error_code = NULL, error_message = NULL WHERE address = ? AND id = ? AND ph",
        "runs_by_id ← UPDATE runs SET urls = ?, error_code = NULL, error_message = NULL, answer = NULL WHERE address = ? AND id = ?",
        "runs_by_key ← SELECT * FROM runs WHERE key = ?",
        "runs_by_key ← SELECT 1 FROM runs WHERE key = ?",
        "runs_by_request ← INSERT OR IGNORE INTO prepared (address, request_id, prepared_at) SELECT ?1, ?2, ?3 WHERE NOT EXISTS (SELECT 1",
        "runs_by_request ← SELECT * FROM runs WHERE address = ? AND request_id = ? ORDER BY row DESC LIMIT 1",
        "runs_by_time ← SELECT * FROM runs INDEXED BY runs_by_time ORDER BY created_at DESC, row DESC LIMIT ?",
        "runs_by_time ← SELECT * FROM runs INDEXED BY runs_by_time WHERE address = ? AND status = ? COLLATE NOCASE ORDER BY created_at",
        "runs_by_time ← SELECT * FROM runs INDEXED BY runs_by_time WHERE created_at >= ? ORDER BY created_at DESC, row DESC LIMIT ?",
        "runs_by_time ← SELECT coalesce(id, key) AS name, id IS NOT NULL AS confirmed, address, phase, status, kind, model, substr(jso",
        "runs_by_time ← SELECT midnight AS name, currency, count(*) AS runs, CASE WHEN phase IN ('sending', 'going') THEN 'unfinished'",
        "runs_by_time ← SELECT min(created_at) AS first, max(created_at) AS last FROM runs",
        "runs_by_time ← SELECT model AS name, currency, count(*) AS runs, CASE WHEN phase IN ('sending', 'going') THEN 'unfinished' EL",
        "runs_by_time ← SELECT value FROM ( SELECT labels, created_at, row FROM runs WHERE labels IS NOT NULL ORDER BY created_at DESC",
        "runs_going ← SELECT * FROM runs INDEXED BY runs_going WHERE phase = 'going' AND address = coalesce(?, address) ORDER BY row",
        "runs_sending ← SELECT row, started_at, created_at FROM runs INDEXED BY runs_sending WHERE phase = 'sending'",
        "runs_took ← SELECT took_ms FROM runs WHERE took_ms IS NOT NULL AND address = ? AND model = ? ORDER BY row DESC LIMIT ?",
        "runs_unconfirmed ← SELECT * FROM runs INDEXED BY runs_unconfirmed WHERE phase = 'unconfirmed' ORDER BY row",
        "sqlite_autoindex_files_1 ← DELETE FROM runs WHERE row = ? AND address = ? AND phase = ? AND id IS ? AND key IS ? AND error_code IS ?",
        "sqlite_autoindex_files_1 ← DELETE FROM runs WHERE row = ? AND key = ? AND phase IN ('sending', 'unconfirmed')",
        "sqlite_autoindex_files_1 ← INSERT INTO runs (key, address, profile, kind, model, input, identity, phase, status, pid, started_at, created",
        "sqlite_autoindex_files_1 ← INSERT INTO runs (row, key, id, address, profile, kind, model, input, identity, phase, status, pid, started_at",
        "sqlite_autoindex_files_1 ← SELECT * FROM files WHERE row = ?",
        "sqlite_autoindex_files_1 ← SELECT * FROM files WHERE row = ? ORDER BY file",
        "sqlite_autoindex_files_1 ← SELECT file, url FROM files WHERE row = ?",
      ]
    `)
  })

  it('leave no statement that scans a table', () => {
    const isScan = (plan: string) => /SCAN (runs|files)(?! USING (COVERING )?INDEX)/.test(plan)
    // The gallery reads all files: a search for each run takes longer.
    const readsAll = 'SELECT * FROM files ORDER BY file'
    expect(queryPlans().plans.filter(({ sql, plan }) => isScan(plan) && sql !== readsAll)).toEqual([])
  })

  it.each([
    {},
    { address: 'x' },
    { status: 'x' },
    { kind: 'x' },
    { model: 'x' },
    { sinceMs: 1 },
    { beforeMs: 1 },
    { address: 'x', kind: 'x', model: 'x', status: 'x', sinceMs: 1, beforeMs: 2 },
  ])('list runs by %j without a sort', (filter) => {
    const path = join(temporaryFolder(), 'journal.db')
    openJournal({ path, now: () => 1, onQuarantine: () => expect.unreachable() }).close()
    const database = new Database(path)
    const { sql, values } = listStatement({ ...filter, limit: 50 })
    const plan = JSON.stringify(database.prepare(`EXPLAIN QUERY PLAN ${sql}`).all(values.map(() => 'x')))
    database.close()
    expect(plan).toMatch(/USING INDEX runs_by_time/)
    expect(plan).not.toMatch(/TEMP B-TREE/)
  })
})
