/** What is to be done for one run of a manifest, by what the lock file knows of it and what exists at its path. */
import { expect, it } from 'vitest'
import { decide, type RowAction, type RowFlags } from '../../src/batch/plan/decide.js'
import type { FileFact } from '../../src/batch/plan/disk.js'
import type { Flight } from '../../src/batch/plan/pair.js'
import { madeOf } from './folder.js'

type Known = Parameters<typeof decide>[0]

const FLAGS: RowFlags = { force: false, forcePending: false, overwrite: false, resubmitUnconfirmed: false }
const MADE = madeOf('a', { run: 'run_0' })
/** A create of this very input, whose run was accepted; it was killed while it got its file into place. */
const FLIGHT: Flight = {
  name: 'fox',
  hash: 'a',
  kind: 'image',
  model: 'acme/still-1',
  address: undefined,
  run: 'run_1',
  key: undefined,
  row: 1,
  urls: [],
  files: [{ ...MADE, path: '/fox.png' }],
}
const ACCEPTED = { flight: FLIGHT }
const UNCONFIRMED = { locked: MADE, flight: { ...FLIGHT, run: undefined, key: '~3f2a' } }
const RECORDED = { locked: MADE }
const ELSEWHERE = { locked: madeOf('a', { run: 'run_0', file: 'old.png' }) }

const MISSING: FileFact = { is: 'missing' }
const OWN: FileFact = { is: 'file', sha256: MADE.sha256 }
const FOREIGN: FileFact = { is: 'file', sha256: undefined }
const FOLDER: FileFact = { is: 'other', what: 'a folder' }
const MOVED = { fact: MISSING, from: '/old/fox.png' }

const CREATED: RowAction = { do: 'create', why: 'forced' }
const IN_THE_WAY = { do: 'conflict', why: 'not created by this batch', at: 0, isForeign: true } as const
const downloaded = (why: 'unfinished' | 'missing' | 'changed' | 'moved', run = 'run_0'): RowAction => ({
  do: 'download',
  why,
  run,
  at: 0,
})
const CONTINUED = downloaded('unfinished', 'run_1')
const AGAIN = { force: true, forcePending: true }

it.each<[string, FileFact | { fact: FileFact; from: string }, Partial<Known>, Partial<RowFlags>, RowAction]>([
  ['an accepted run without a file is continued', MISSING, ACCEPTED, {}, CONTINUED],
  ['an accepted run with its own file is continued', OWN, ACCEPTED, {}, CONTINUED],
  ['a file of others is in the way of an accepted run', FOREIGN, ACCEPTED, {}, IN_THE_WAY],
  ['--overwrite replaces a file of others', FOREIGN, ACCEPTED, { overwrite: true }, CONTINUED],
  [
    '--overwrite replaces no folder',
    FOLDER,
    ACCEPTED,
    { overwrite: true },
    { do: 'conflict', why: 'a folder', at: 0, isForeign: false },
  ],
  ['--force continues an accepted run', MISSING, ACCEPTED, { force: true }, CONTINUED],
  ['--only and --force create an accepted run again', MISSING, ACCEPTED, AGAIN, CREATED],
  ['a file of others is in the way of --only and --force', FOREIGN, ACCEPTED, AGAIN, IN_THE_WAY],
  ['a file at its path is up to date', OWN, RECORDED, {}, { do: 'up_to_date' }],
  ['--force creates a file again', OWN, RECORDED, { force: true }, CREATED],
  [
    'a file whose input has changed is created again',
    OWN,
    { ...RECORDED, hash: 'b' },
    {},
    { do: 'create', why: 'out_of_date' },
  ],
  ['a missing file is downloaded again', MISSING, RECORDED, {}, downloaded('missing')],
  [
    '--overwrite downloads a changed file again',
    FOREIGN,
    RECORDED,
    { overwrite: true },
    downloaded('changed'),
  ],
  [
    'an edited file is in the way when its input changes too',
    FOREIGN,
    { ...RECORDED, hash: 'b' },
    {},
    { ...IN_THE_WAY, why: 'changed since it was downloaded' },
  ],
  [
    'a file of others is in the way of a file that moves',
    { fact: FOREIGN, from: '/old.png' },
    ELSEWHERE,
    {},
    IN_THE_WAY,
  ],
  ['a file at its old path is moved', MOVED, RECORDED, {}, downloaded('moved')],
  [
    'a file at its old path is moved to the place of a file with the same bytes',
    { ...MOVED, fact: { ...OWN, isFree: true } },
    RECORDED,
    {},
    downloaded('moved'),
  ],
  [
    'an unconfirmed second create is not sent again',
    OWN,
    UNCONFIRMED,
    {},
    { do: 'unconfirmed', key: '~3f2a' },
  ],
  [
    '--resubmit-unconfirmed sends an unconfirmed second create again',
    OWN,
    UNCONFIRMED,
    { resubmitUnconfirmed: true },
    { do: 'create', why: 'unconfirmed' },
  ],
  ['an accepted second run is downloaded', OWN, { ...RECORDED, ...ACCEPTED }, {}, CONTINUED],
])('%s', (_, found, known, flags, action) => {
  const output = { file: 'fox.png', ...('fact' in found ? found : { fact: found }) }
  expect(
    decide({
      hash: 'a',
      locked: undefined,
      flight: undefined,
      isElsewhere: false,
      outputs: [output],
      ...known,
      flags: { ...FLAGS, ...flags },
    }),
  ).toEqual(action)
})
