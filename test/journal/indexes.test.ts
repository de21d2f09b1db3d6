/** The statements that grow with the journal use an index. */
import { join } from 'node:path'
import Database from 'libsql'
import { expect, it } from 'vitest'
import { listStatement } from '../../src/journal/rows.js'
import { temporaryFolder } from '../support/index.js'
import { readyDatabase } from '../support/ready-database.js'

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
  const database = new Database(readyDatabase('journal', join(temporaryFolder(), 'journal.db')))
  const { sql, values } = listStatement({ ...filter, limit: 50 })
  const plan = JSON.stringify(database.prepare(`EXPLAIN QUERY PLAN ${sql}`).all(values.map(() => 'x')))
  database.close()
  expect(plan).toMatch(/USING INDEX runs_by_time/)
  expect(plan).not.toMatch(/TEMP B-TREE/)
})
