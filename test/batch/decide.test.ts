/** What is to be done for one run of a manifest, by what the lock file knows of it and what exists at its path. */
import { expect, it } from 'vitest'
import type { LockEntry } from '../../src/batch/lock/lock.js'
import { decide, type FileFact, type RowAction, type RowFlags } from '../../src/batch/plan/decide.js'

const FLAGS: RowFlags = { force: false, forcePending: false, overwrite: false, resubmitUnconfirmed: false }
const OWN = { sha256: 'b'.repeat(64), bytes: 1, content_type: 'image/png' }
/** A create of this very input, whose run was accepted; it was killed while it got its file into place. */
const locked: LockEntry = {
  made: undefined,
  pending: {
    state: 'accepted',
    run: 'run_1',
    hash: 'a',
    model: 'acme/still-1',
    kind: 'image',
    service: undefined,
    sent_at: '2026-01-01T00:00:00.000Z',
    placing: [{ run: 'run_1', output: 1, ...OWN }],
  },
  further: {},
}
const MISSING: FileFact = { is: 'missing' }
const FOREIGN: FileFact = { is: 'file', sha256: undefined }
const FOLDER: FileFact = { is: 'other', what: 'a folder' }
const CONTINUED: RowAction = { do: 'download', why: 'unfinished', run: 'run_1', at: 0 }
const CREATED: RowAction = { do: 'create', why: 'forced' }
const conflict = (why: string): RowAction => ({ do: 'conflict', why, at: 0, isForeign: why !== 'a folder' })

it.each<[string, FileFact, Partial<RowFlags>, RowAction]>([
  ['no file is continued', MISSING, {}, CONTINUED],
  ['its own file is continued', { is: 'file', sha256: OWN.sha256 }, {}, CONTINUED],
  ['a file of others is a conflict', FOREIGN, {}, conflict('not created by this batch')],
  ['a file of others is continued with --overwrite', FOREIGN, { overwrite: true }, CONTINUED],
  ['a folder is a conflict with --overwrite too', FOLDER, { overwrite: true }, conflict('a folder')],
  ['--force is continued', MISSING, { force: true }, CONTINUED],
  ['--only and --force is created again', MISSING, { force: true, forcePending: true }, CREATED],
  [
    'a file of others is a conflict with --only and --force too',
    FOREIGN,
    { force: true, forcePending: true },
    conflict('not created by this batch'),
  ],
])('an accepted run with %s', (_, fact, flags, action) => {
  expect(decide({ hash: 'a', locked, facts: [fact], flags: { ...FLAGS, ...flags } })).toEqual(action)
})
