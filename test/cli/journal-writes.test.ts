/** A journal that cannot be used for a while, with short timeouts: how a command goes on, and what it writes afterwards. */
import { join } from 'node:path'
import Database from 'libsql'
import { describe, expect, it, onTestFinished } from 'vitest'
import { type Lock, type LockEntry, NO_LOCK } from '../../src/batch/lock/lock.js'
import { takeUnsent } from '../../src/cli/batch/known-creates.js'
import { RushesError, usageError } from '../../src/errors.js'
import { type Journal, openJournal } from '../../src/journal/index.js'
import { createJournalWrites } from '../../src/runs/journal-writes.js'
import { createRecorder, type Recorder } from '../../src/runs/recorder.js'
import { finishedState } from '../support/journal.js'
import { temporaryFolder } from '../support/temporary-folder.js'

const ADDRESS = 'https://api.example.com'
const INTENT = { kind: 'image', model: 'acme/still-1', input: { prompt: 'a fox' } }

/** `lock` is what another process does to the file; every call waits 20 ms for it. */
function createLockable() {
  const path = join(temporaryFolder(), 'journal.db')
  const journal = openJournal({
    path,
    lockTimeoutMs: 20,
    now: () => 1,
    onQuarantine: () => expect.unreachable(),
  })
  const asked: number[] = []
  const impatient = {
    ...journal,
    setLockTimeout(ms: number) {
      asked.push(ms)
    },
    intend(intent: Parameters<typeof journal.intend>[0]) {
      try {
        return journal.intend(intent)
      } catch (error) {
        // As the journal of a command does.
        throw error instanceof RushesError ? error : usageError('Cannot use the journal.')
      }
    },
  }
  const other = new Database(path)
  onTestFinished(() => {
    other.close()
    journal.close()
  })
  const warnings: string[] = []
  const notes: string[] = []
  const recorder = createRecorder({
    journal: () => impatient,
    address: ADDRESS,
    profile: 'default',
    warn: (message) => warnings.push(message),
    note: (message) => notes.push(message),
  })
  const rows = () =>
    journal
      .list({})
      .map(({ id, phase, requestId }) => [id ?? requestId ?? 'unnamed', phase])
      .reverse()
  return {
    ...{ recorder, warnings, notes, asked, rows },
    lock: () => void other.exec('BEGIN IMMEDIATE'),
    unlock: () => void other.exec('ROLLBACK'),
  }
}

it('keeps the last 10,000 writes that failed, so that a session of days does not fill the memory', () => {
  let isLost = true
  const journal = { setLockTimeout() {} } as unknown as Journal
  const writes = createJournalWrites({
    journal() {
      if (isLost) throw usageError('Cannot use the journal.')
      return journal
    },
    warn() {},
    note() {},
  })
  const written: number[] = []
  for (let number = 0; number <= 10_000; number++) writes.repeated(() => written.push(number))
  isLost = false
  writes.end()
  expect([written.length, written[0], written.at(-1)]).toEqual([10_000, 1, 10_000])
})

/** Changes no row. */
const nextWrite = (recorder: Recorder) => recorder.recordQueued('unknown')

describe('a journal that is locked for a while', () => {
  it('gets the whole row of a run that was created and ended meanwhile, with the next call', () => {
    const { recorder, lock, unlock, rows, warnings, notes } = createLockable()
    lock()
    const note = recorder.note(INTENT)
    note.sending()
    note.accepted('r1', {})
    recorder.recordStatus({ state: finishedState('r1', ['https://x.example/1']), elapsedMs: 5 })
    recorder.recordFiles('r1', [
      { path: '/a.png', bytes: 1, sha256: 'a', url: '', content_type: 'image/png' },
    ])
    expect(recorder.find('r1')).toBeUndefined()
    unlock()
    expect({ rows: rows(), warnings: warnings.length, notes }).toEqual({ rows: [], warnings: 1, notes: [] })
    expect(recorder.find('r1')).toMatchObject({ id: 'r1' })
    expect(recorder.filesOf('r1')).toMatchObject([{ path: '/a.png' }])
    expect(rows()).toEqual([['r1', 'succeeded']])
    expect(warnings).toHaveLength(1)
    expect(notes).toHaveLength(1)
  })

  it('gets the id and the doubt of creates whose intent it has, once', () => {
    const { recorder, lock, unlock, rows } = createLockable()
    const [accepted, doubted, refused] = ['accepted', 'doubted', 'refused'].map((requestId) => {
      const note = recorder.note({ ...INTENT, requestId }, 'required')
      note.sending()
      return note
    })
    lock()
    accepted?.accepted('r1', {})
    expect(doubted?.unknown(new RushesError('submission_unknown', 'lost'))).toBeUndefined()
    refused?.unsent()
    unlock()
    nextWrite(recorder)
    nextWrite(recorder)
    expect(rows()).toEqual([
      ['r1', 'running'],
      ['doubted', 'unconfirmed'],
    ])
  })

  it.each<[name: string, next: (recorder: Recorder) => void]>([
    ['with a read', (recorder) => expect(recorder.createOf('token')).toMatchObject({ run: { id: 'r1' } })],
    [
      'before a create is looked up by its name',
      (recorder) => expect(recorder.findByRequest('token')).toMatchObject({ run: { id: 'r1' } }),
    ],
    ['when the command ends', (recorder) => recorder.end()],
  ])('gets the id of a paid run and its end %s, where nothing more is written', (_, next) => {
    const { recorder, lock, unlock, rows } = createLockable()
    const note = recorder.note({ ...INTENT, requestId: 'token' }, 'required')
    note.sending()
    lock()
    note.accepted('r1', {})
    recorder.recordStatus({ state: finishedState('r1', []) })
    expect(() => recorder.findByRequest('token')).toThrow()
    recorder.end()
    unlock()
    next(recorder)
    expect(rows()).toEqual([['r1', 'succeeded']])
  })

  it('drops a change that it can never accept, with a warning, and writes the others', () => {
    const { recorder, rows, warnings } = createLockable()
    const create = (id: string) => {
      const note = recorder.note({ ...INTENT, requestId: id }, 'required')
      note.sending()
      note.accepted(id, {})
    }
    create('r1')
    recorder.recordFiles('r1', [
      { path: '/a.png', bytes: 1.5, sha256: 'a', url: '', content_type: 'image/png' },
    ])
    create('r2')
    expect(rows()).toEqual([
      ['r1', 'running'],
      ['r2', 'running'],
    ])
    expect(warnings).toEqual([expect.stringMatching(/The journal does not contain this change\.$/)])
  })

  it('gets such a change out of the way when it is repeated, and what comes behind it', () => {
    const { recorder, lock, unlock, rows, warnings } = createLockable()
    const note = recorder.note(INTENT)
    note.sending()
    note.accepted('r1', {})
    lock()
    recorder.recordFiles('r1', [
      { path: '/a.png', bytes: 1.5, sha256: 'a', url: '', content_type: 'image/png' },
    ])
    recorder.recordStatus({ state: finishedState('r1', []) })
    unlock()
    nextWrite(recorder)
    expect(rows()).toEqual([['r1', 'succeeded']])
    expect(warnings).toHaveLength(2)
  })

  it('refuses a required intent each time, and takes it once it is free', () => {
    const { recorder, lock, unlock, rows, warnings } = createLockable()
    recorder.prepare(['token'])
    const note = recorder.note({ ...INTENT, requestId: 'token' }, 'required')
    lock()
    for (const _ of [1, 2])
      expect(() => note.sending()).toThrow(/^Cannot use the journal\. Nothing was sent\.$/)
    note.unsent()
    unlock()
    expect(recorder.createOf('token')).toEqual({ state: 'unsent' })
    note.sending()
    note.unsent()
    expect(recorder.createOf('token')).toEqual({ state: 'unsent' })
    note.sending()
    note.accepted('r1', {})
    expect(rows()).toEqual([['r1', 'running']])
    // The error that was thrown says it.
    expect(warnings).toEqual([])
  })

  it('can be read meanwhile', () => {
    const { recorder, lock, unlock, warnings } = createLockable()
    const note = recorder.note(INTENT)
    note.sending()
    note.accepted('r1', {})
    lock()
    recorder.recordNotFound(new RushesError('network', 'lost'), 'r1')
    expect(recorder.find('r1')).toMatchObject({ id: 'r1' })
    expect(warnings).toHaveLength(1)
    unlock()
  })

  it('warns at each loss once, and blocks the command shortly while it is lost', () => {
    const { recorder, lock, unlock, warnings, notes, asked } = createLockable()
    const create = (id: string) => {
      const note = recorder.note(INTENT)
      note.sending()
      note.accepted(id, {})
    }
    for (const id of ['r1', 'r2']) {
      lock()
      create(id)
      expect(asked.pop()).toBe(100)
      unlock()
      create(`${id}-later`)
      expect(asked.pop()).toBe(10_000)
    }
    expect(warnings).toHaveLength(2)
    expect(notes).toHaveLength(2)
  })
})

describe('a create that was prepared', () => {
  const token = 'fox-1'
  const create = { state: 'unconfirmed', token, hash: 'h', model: 'acme/still-1', kind: 'image' } as const
  const entries = new Map([['fox', { name: 'fox', pending: create } as unknown as LockEntry]])
  const lock = { ...NO_LOCK, entries }

  it('cannot be sent by the first batch once a second one has taken it', async () => {
    const { recorder } = createLockable()
    recorder.prepare([token])
    const first = recorder.note({ ...INTENT, requestId: token, isPrepared: true }, 'required')
    await takeUnsent(async () => recorder, lock, NO_LOCK)
    expect(recorder.createOf(token)).toBeUndefined()
    expect(() => first.sending()).toThrow()
  })

  it('stops a second batch if the first one has sent it since the second has planned', async () => {
    const { recorder } = createLockable()
    recorder.prepare([token])
    const first = recorder.note({ ...INTENT, requestId: token, isPrepared: true }, 'required')
    first.sending()
    const take = (adopted: Pick<Lock, 'entries'>) =>
      takeUnsent(async () => recorder, lock, { ...NO_LOCK, ...adopted })
    await expect(take(NO_LOCK)).rejects.toThrow(
      'Another batch of this manifest has sent a create meanwhile. This one has sent nothing.',
    )
    first.accepted('r1', {})
    await expect(take(NO_LOCK)).rejects.toThrow('Another batch')
    // A plan that follows this run creates nothing.
    const { token: _, ...known } = create
    const accepted = { name: 'fox', pending: { ...known, state: 'accepted', run: 'r1' } }
    await take({ entries: new Map([['fox', accepted as unknown as LockEntry]]) })
  })
})
