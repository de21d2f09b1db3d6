import { PassThrough, Writable } from 'node:stream'
import { setImmediate } from 'node:timers/promises'
import { beforeEach, describe, expect, it, vi } from 'vitest'
import type { DownloadOptions } from '../../src/download/index.js'
import { scriptedList, temporaryFolder, until } from '../support/index.js'
import { host } from './breaking-host.js'
import { contents, createWork, download, output, PNG } from './download-setup.js'

const target = { kind: 'stdout' } as const
const BIG = 1_000_000

const pour = (stdout: Writable, body: Uint8Array, more: Partial<DownloadOptions> = {}, outputs = 1) =>
  createWork(scriptedList({ status: 200, body }).fetch).download(
    Array.from({ length: outputs }, () => output('https://host.example/x')),
    { target, stdout, ...more },
  )

/** A reader that takes what it gets. */
function collector() {
  const chunks: Buffer[] = []
  const stream = new Writable({
    write(chunk, _, done) {
      chunks.push(chunk)
      done()
    },
  })
  return { stream, text: () => Buffer.concat(chunks) }
}

describe('-o -', () => {
  let temporary = ''
  beforeEach(() => {
    temporary = temporaryFolder()
    vi.stubEnv('TMPDIR', temporary)
  })

  it('writes the bytes, leaves the stream open, and keeps nothing', async () => {
    const { stream, text } = collector()
    const [result] = await pour(stream, PNG)
    expect(result).toMatchObject({
      ok: true,
      file: { path: '-', bytes: PNG.length, content_type: 'image/png' },
    })
    expect(text()).toEqual(PNG)
    expect(stream.writable).toBe(true)
    expect(stream.listenerCount('error')).toBe(0)
    expect(contents(temporary)).toEqual([])
  })

  it('writes nothing of a download that broke, and keeps nothing of it', async () => {
    const { stream, text } = collector()
    const { fetch, ranges } = host({ breakAfter: 100_000 }, { breakAfter: 0 })
    const { error } = await download({ fetch, target, stdout: stream })
    expect(error).toMatchObject({ code: 'download_failed', hint: 'The run succeeded and is paid for.' })
    expect(ranges()[1]).toBe('bytes=100000-')
    expect(text()).toHaveLength(0)
    expect(contents(temporary)).toEqual([])
  })

  it('waits for a slow reader', async () => {
    const pipe = new PassThrough({ highWaterMark: 1_000 })
    let done = false
    const pouring = pour(pipe, Buffer.alloc(BIG)).then(() => {
      done = true
    })
    await until('a full pipe', () => pipe.writableNeedDrain)
    for (let turns = 0; turns < 100; turns++) await setImmediate()
    expect(done).toBe(false)
    expect(pipe.readableLength + pipe.writableLength).toBeLessThan(200_000)
    let bytes = 0
    pipe.on('data', (chunk: Buffer) => {
      bytes += chunk.length
    })
    await pouring
    expect(bytes).toBe(BIG)
  })

  it('passes on the error of a stream whose reader is gone', async () => {
    const gone = Object.assign(new Error('write EPIPE'), { code: 'EPIPE' })
    const stream = new Writable({ write: (_, __, done) => done(gone) })
    await expect(pour(stream, Buffer.alloc(BIG))).rejects.toBe(gone)
    // The stream emits its error after the write has failed; unheard, it would end the process.
    await setImmediate()
    expect(contents(temporary)).toEqual([])
  })

  it('ends with the signal while the reader stands still', async () => {
    const stop = new AbortController()
    const stuck = new Writable({ write: () => setTimeout(() => stop.abort('SIGINT'), 5) })
    await expect(pour(stuck, PNG, { signal: stop.signal })).rejects.toBe('SIGINT')
    expect(contents(temporary)).toEqual([])
  })

  it('takes one output', async () => {
    const { stream, text } = collector()
    const results = await pour(stream, PNG, {}, 2)
    expect(results).toMatchObject([{ ok: false }, { ok: false }])
    expect(results[0]).toMatchObject({
      error: { message: 'Standard output takes one output, but the run has 2.' },
    })
    expect(text()).toHaveLength(0)
  })

  it('says where there is no room for temporary files', async () => {
    vi.stubEnv('TMPDIR', '/nowhere')
    const [result] = await pour(collector().stream, PNG)
    expect(result).toMatchObject({ ok: false, error: { code: 'download_failed', runId: 'run-1' } })
  })
})
