/** One batch at a time on a manifest: real processes, and claims of other machines as files. */
import { spawn } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { type BatchClaim, claimBatch } from '../../src/batch/lock/claim.js'
import { claimPathOf } from '../../src/batch/lock/lock.js'
import { built } from '../support/built.js'
import { createManualClock } from '../support/clock.js'
import { until } from '../support/until.js'
import { folderWith } from './folder.js'

let program: string
beforeAll(async () => {
  program = await built(new URL('./claimer.ts', import.meta.url))
})

/** A folder with a lock file, and claims on it with a clock that is moved by hand. */
function createSite() {
  const folder = folderWith()
  const lockPath = join(folder, 'shots.lock.json')
  const path = claimPathOf(lockPath)
  const stateFolder = folderWith()
  const clock = createManualClock()
  const notes: string[] = []
  const claim = (at = lockPath): Promise<BatchClaim> =>
    claimBatch({
      lockPath: at,
      stateFolder,
      clock,
      signal: new AbortController().signal,
      onObserve: (note) => notes.push(note),
    })
  return { folder, lockPath, stateFolder, path, clock, notes, claim }
}

/** A process that claims and stays. */
async function startClaimer({
  lockPath,
  stateFolder,
}: Pick<ReturnType<typeof createSite>, 'lockPath' | 'stateFolder'>) {
  const child = spawn(process.execPath, [program, lockPath, stateFolder])
  const ended = new Promise<void>((resolve) => void child.once('exit', () => resolve()))
  onTestFinished(() => void child.kill('SIGKILL'))
  let said = ''
  child.stdout.on('data', (bytes) => {
    said += String(bytes)
  })
  const prints = (word: string) => until(`${word} of the claimer`, () => said.split('\n').includes(word))
  return {
    pid: child.pid ?? 0,
    prints,
    answer: () =>
      until('an answer of the claimer', () => said.split('\n').find((word) => /^(claimed|held)$/.test(word))),
    signal: (signal: NodeJS.Signals) => child.kill(signal),
    kill() {
      child.kill('SIGKILL')
      return ended
    },
  }
}

const heldBy = (who: RegExp) =>
  expect.objectContaining({
    code: 'usage',
    message: expect.stringMatching(who),
    hint: expect.stringMatching(
      /^Wait until it ends, or stop it\. Its claim file is .*\.shots\.lock\.json\.claim\.$/,
    ),
  })

describe('the claim of this machine', () => {
  it('admits one batch at a time, and leaves nothing behind', async () => {
    const { folder, claim, path } = createSite()
    const first = await claim()
    await expect(claim()).rejects.toThrow(
      heldBy(new RegExp(`process ${process.pid} on ${hostname()}, since 2026-01-01T00:00:00.000Z`)),
    )
    const other = await claim(join(folder, 'other.lock.json'))
    await first.check()
    await first.release()
    expect(existsSync(path)).toBe(false)
    await (await claim()).release()
    await other.release()
    expect(readdirSync(folder)).toEqual([])
  })

  it('holds through a link to its folder', async () => {
    const { folder, claim } = createSite()
    const link = `${folderWith()}/link`
    symlinkSync(folder, link)
    const first = await claim()
    await expect(claim(join(link, 'shots.lock.json'))).rejects.toThrow(
      heldBy(/Another batch is running on this manifest/),
    )
    await first.release()
  })

  it('passes at once to one of several batches when its process was killed', async () => {
    const site = createSite()
    const { folder, path } = site
    const first = await startClaimer(site)
    expect(await first.answer()).toBe('claimed')
    const second = await startClaimer(site)
    expect(await second.answer()).toBe('held')
    await first.kill()
    expect(existsSync(path)).toBe(true)
    const rush = await Promise.all(Array.from({ length: 5 }, () => startClaimer(site)))
    const answers = await Promise.all(rush.map(({ answer }) => answer()))
    expect(answers.filter((word) => word === 'claimed')).toHaveLength(1)
    expect(readdirSync(folder)).toEqual(['.shots.lock.json.claim'])
  })

  it('of another state folder proves nothing, and is observed', async () => {
    const { lockPath, claim, clock, notes } = createSite()
    const first = await startClaimer({ lockPath, stateFolder: folderWith() })
    expect(await first.answer()).toBe('claimed')
    await first.kill()
    const beganAtMs = clock.monotonic()
    const mine = await clock.runUntil(claim())
    expect(clock.monotonic() - beganAtMs).toBeGreaterThanOrEqual(10_000)
    expect(notes).toHaveLength(1)
    await mine.release()
  })

  it('passes on when its process is suspended, which then leaves the new claim alone', async () => {
    const site = createSite()
    const { path, claim, clock } = site
    const suspended = await startClaimer(site)
    expect(await suspended.answer()).toBe('claimed')
    suspended.signal('SIGSTOP')
    const mine = await clock.runUntil(claim())
    const text = readFileSync(path, 'utf8')
    suspended.signal('SIGCONT')
    await suspended.prints('lost')
    expect(readFileSync(path, 'utf8')).toBe(text)
    await mine.check()
    await mine.release()
  })
})

describe('the claim of another machine', () => {
  const foreign = (beats: number, more: object = {}) =>
    JSON.stringify({
      token: 'other',
      pid: process.pid,
      host: 'render-7',
      machine: 'another boot',
      since: '2020-01-01T00:00:00.000Z',
      heartbeat: '2020-01-01T00:00:00.000Z',
      beats,
      ...more,
    })

  it('holds while it changes, whatever its clock says', async () => {
    const { path, claim, clock, notes } = createSite()
    writeFileSync(path, foreign(1))
    const second = claim()
    second.catch(() => {})
    await clock.advance(5_000)
    writeFileSync(path, foreign(2))
    await expect(clock.runUntil(second)).rejects.toThrow(heldBy(/process \d+ on render-7, since 2020/))
    expect(notes).toEqual([
      `Found the claim file of another batch (process ${process.pid} on render-7, since 2020-01-01T00:00:00.000Z). Checking for up to 10 s whether it is still running.`,
    ])
  })

  it.each([
    ['of a machine that has gone', foreign(1)],
    ['of the same name, in a container of its own', foreign(1, { host: hostname(), pid: 999_999_999 })],
    [
      'of the same name, where the system tells nothing',
      foreign(1, { host: hostname(), pid: 999_999_999, machine: '' }),
    ],
    ['that is empty', ''],
    ['that is no claim', '{"pid":"x"}'],
  ])('%s is replaced after ten seconds', async (_, text) => {
    const { path, claim, clock } = createSite()
    writeFileSync(path, text)
    const beganAtMs = clock.monotonic()
    const mine = await clock.runUntil(claim())
    expect(clock.monotonic() - beganAtMs).toBeGreaterThanOrEqual(10_000)
    expect(clock.monotonic() - beganAtMs).toBeLessThan(12_000)
    expect(readFileSync(path, 'utf8')).toContain(`"pid":${process.pid}`)
    await mine.check()
    await mine.release()
    expect(existsSync(path)).toBe(false)
  })

  it('wins when it replaces the same stale claim a moment later', async () => {
    const { path, claim, clock, notes } = createSite()
    writeFileSync(path, foreign(1))
    const second = claim()
    second.catch(() => {})
    await clock.advance(10_000)
    expect(readFileSync(path, 'utf8')).toContain(`"host":"${hostname()}"`)
    writeFileSync(path, foreign(2))
    await clock.advance(1_000)
    writeFileSync(path, foreign(3))
    await expect(clock.runUntil(second)).rejects.toThrow(heldBy(/process \d+ on render-7/))
    expect(notes).toHaveLength(2)
    expect(readFileSync(path, 'utf8')).toBe(foreign(3))
  })

  it('admits the batch when it ends while it is observed', async () => {
    const { path, claim, clock } = createSite()
    writeFileSync(path, foreign(1))
    const second = claim()
    await clock.advance(1_000)
    rmSync(path)
    await (await clock.runUntil(second)).release()
  })
})

describe('a claim that is held', () => {
  it('has a heartbeat every two seconds, also when the wall clock is set back', async () => {
    const { path, claim, clock } = createSite()
    const mine = await claim()
    const texts = [readFileSync(path, 'utf8')]
    for (let beat = 0; beat < 3; beat++) {
      clock.jump(-2_000)
      await clock.advance(2_000)
      texts.push(readFileSync(path, 'utf8'))
    }
    expect(new Set(texts).size).toBe(4)
    expect(new Set(texts.map(({ length }) => length)).size).toBe(1)
    await mine.release()
  })

  it.each([
    [
      'removed',
      undefined,
      /\.claim was removed while this batch was running: another batch may have taken over\. This batch stopped creating runs\./,
    ],
    ['replaced', '{"token":"x"}', /^Another batch took over this manifest while this one was suspended\./],
  ])('and is %s is lost: the next check says so, and what is there stays', async (_, text, says) => {
    const { path, claim, clock } = createSite()
    const mine = await claim()
    if (text === undefined) rmSync(path)
    else writeFileSync(path, text)
    await expect(mine.check()).rejects.toThrow(
      expect.objectContaining({ code: 'download_failed', message: expect.stringMatching(says) }),
    )
    expect(mine.lost.aborted).toBe(true)
    await clock.advance(10_000)
    await mine.release()
    expect(existsSync(path)).toBe(text !== undefined)
  })

  it('and is lost is noticed by the heartbeat', async () => {
    const { path, claim, clock } = createSite()
    const mine = await claim()
    rmSync(path)
    await clock.advance(2_000)
    expect(mine.lost.aborted).toBe(true)
    await mine.release()
  })

  it('cannot be had where the folder cannot be written', async () => {
    const { claim } = createSite()
    const lockPath = join(folderWith({ file: '' }), 'file', 'shots.lock.json')
    await expect(claim(lockPath)).rejects.toThrow(expect.objectContaining({ code: 'ENOTDIR' }))
  })
})
