/** The statements that grow with the journal use an index. */
import { dirname, join } from 'node:path'
import Database from 'libsql'
import { expect, it } from 'vitest'
import { Journal } from '../../src/journal/index.js'
import { listStatement } from '../../src/journal/rows.js'
import { temporaryFolder } from '../support/index.js'

it.each([
  {},
  { address: 'x' },
  { status: 'x' },
  { kind: 'x' },
  { model: 'x' },
  { sinceMs: 1 },
  { beforeMs: 1 },
  { address: 'x', kind: 'x', model: 'x', status: 'x', sinceMs: 1, beforeMs: 2 },
])('runs are listed by %j through an index, without a sort', (filter) => {
  const path = join(temporaryFolder(), 'journal.db')
  new Journal({ folder: dirname(path), now: () => 1, warn: () => expect.unreachable() }).close()
  const database = new Database(path)
  const { sql, values } = listStatement({ ...filter, limit: 50 })
  const plan = JSON.stringify(database.prepare(`EXPLAIN QUERY PLAN ${sql}`).all(values.map(() => 'x')))
  database.close()
  expect(plan).toMatch(/USING INDEX runs_by_time/)
  expect(plan).not.toMatch(/TEMP B-TREE/)
})
