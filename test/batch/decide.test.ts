/** What is to be done for one run of a manifest, by what the lock file knows of it and what exists at its path. */
import { expect, it } from 'vitest'
import type { Made } from '../../src/batch/lock/lock.js'
import { decide, type RowAction, type RowFlags } from '../../src/batch/plan/decide.js'
import type { FileFact } from '../../src/batch/plan/disk.js'
import type { Flight } from '../../src/batch/plan/pair.js'

const FLAGS: RowFlags = { force: false, forcePending: false, overwrite: false, resubmitUnconfirmed: false }
const OWN = { sha256: 'b'.repeat(64), bytes: 1, content_type: 'image/png' }
/** A create of this very input, whose run was accepted; it was killed while it got its file into place. */
const FLIGHT: Flight = {
  ...{ name: 'fox', hash: 'a', kind: 'image', model: 'acme/still-1', address: undefined, run: 'run_1' },
  ...{ key: undefined, row: 1, urls: [] },
  files: [{ path: '/fox.png', url: '', ...OWN }],
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
  expect(
    decide({
      ...{
        hash: 'a',
        locked: undefined,
        flight: FLIGHT,
        isElsewhere: false,
        outputs: [{ file: 'fox.png', fact }],
      },
      flags: { ...FLAGS, ...flags },
    }),
  ).toEqual(action)
})

const MADE: Made = {
  ...OWN,
  ...{ hash: 'a', model: 'acme/still-1', kind: 'image', run: 'run_0', service: undefined, made_at: '' },
  ...{ url: 'https://cdn.example/fox.png', file: 'fox.png' },
}
const IN_PLACE: FileFact = { is: 'file', sha256: OWN.sha256 }
const UNCONFIRMED: Flight = { ...FLIGHT, run: undefined, key: '~3f2a' }
const UP_TO_DATE: RowAction = { do: 'up_to_date' }
const again = (why: 'missing' | 'changed' | 'moved'): RowAction => ({
  do: 'download',
  why,
  run: 'run_0',
  at: 0,
})

it.each<[string, FileFact, { hash?: string; flight?: Flight; from?: string }, Partial<RowFlags>, RowAction]>([
  ['at its path is up to date', IN_PLACE, {}, {}, UP_TO_DATE],
  ['at its path is created again with --force', IN_PLACE, {}, { force: true }, CREATED],
  [
    'whose input has changed is created again',
    IN_PLACE,
    { hash: 'b' },
    {},
    { do: 'create', why: 'out_of_date' },
  ],
  ['that is missing is downloaded again', MISSING, {}, {}, again('missing')],
  [
    'that was changed is downloaded again with --overwrite',
    FOREIGN,
    {},
    { overwrite: true },
    again('changed'),
  ],
  [
    'that was edited is a conflict when its input changes too',
    FOREIGN,
    { hash: 'b' },
    {},
    conflict('changed since it was downloaded'),
  ],
  ['at its old path is moved', MISSING, { from: '/old/fox.png' }, {}, again('moved')],
  [
    'at its old path is moved to the place of a file with the same bytes',
    { ...IN_PLACE, isFree: true },
    { from: '/old/fox.png' },
    {},
    again('moved'),
  ],
  [
    'whose second create is unconfirmed is not created again',
    IN_PLACE,
    { flight: UNCONFIRMED },
    {},
    { do: 'unconfirmed', key: '~3f2a' },
  ],
  [
    'whose second create is unconfirmed is created again with --resubmit-unconfirmed',
    IN_PLACE,
    { flight: UNCONFIRMED },
    { resubmitUnconfirmed: true },
    { do: 'create', why: 'unconfirmed' },
  ],
  ['whose second run is accepted is downloaded', IN_PLACE, { flight: FLIGHT }, {}, CONTINUED],
])('a file %s', (_, fact, { hash = 'a', flight, from }, flags, action) => {
  const outputs = [{ file: 'fox.png', fact, from }]
  expect(
    decide({ hash, locked: MADE, flight, isElsewhere: false, outputs, flags: { ...FLAGS, ...flags } }),
  ).toEqual(action)
})
