/** Downloads that go on where they stopped, within one command. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Writable } from 'node:stream'
import { describe, expect, it, vi } from 'vitest'
import { HttpFailure } from '../../src/host/http.js'
import { host, into, LONG_AGO, OTHER, sha256, type Turn, WHOLE } from './breaking-host.js'
import { answer, contents, createWork, fetchOf, newFolder, once, output, PNG } from './download-setup.js'

const breaking = (bytes: Buffer) =>
  async function* () {
    yield bytes
    throw new HttpFailure('other side closed', { sent: true })
  }

describe('within one command', () => {
  it('a broken connection is gone on with from the bytes that came', async () => {
    const folder = newFolder()
    const { url, ranges } = await host({ breakAfter: 100_000 }, { breakAfter: 50_000 }, {})
    const [result] = await createWork().download([output(url)], into(folder))
    expect(result).toMatchObject({ ok: true, file: { bytes: WHOLE.length, sha256: sha256(WHOLE) } })
    expect(ranges()).toEqual([undefined, 'bytes=100000-', 'bytes=150000-'])
    expect(sha256(readFileSync(join(folder, 'run-1.png')))).toBe(sha256(WHOLE))
    expect(contents(folder)).toEqual(['run-1.png'])
  })

  it.each<[string, readonly Turn[], Buffer]>([
    ['a file that changed meanwhile comes whole', [{ breakAfter: 100_000 }, { file: OTHER }], OTHER],
    ['a host without ranges sends it again', [{ breakAfter: 100_000 }, { ranges: 'none' }], WHOLE],
    [
      'a host with weak names sends it again',
      [{ breakAfter: 100_000, etag: 'W/"x"' }, { etag: 'W/"x"' }],
      WHOLE,
    ],
    [
      'a date will do',
      [
        { breakAfter: 100_000, etag: '', date: LONG_AGO },
        { etag: '', date: LONG_AGO },
      ],
      WHOLE,
    ],
    [
      'a host that cannot answer for a while is asked for the rest later',
      [{ breakAfter: 100_000 }, { status: 503 }, {}],
      WHOLE,
    ],
    [
      'a weak name is none, whatever the date',
      [
        { breakAfter: 100_000, etag: 'W/"x"', date: LONG_AGO },
        { etag: 'W/"x"', date: LONG_AGO, ranges: 'blind', file: OTHER },
      ],
      OTHER,
    ],
    [
      'another file from a host that heeds no If-Range comes whole',
      [{ breakAfter: 100_000 }, { file: OTHER, ranges: 'blind' }],
      OTHER,
    ],
    [
      'another file of another date comes whole',
      [
        { breakAfter: 100_000, etag: '', date: LONG_AGO },
        { file: OTHER, ranges: 'blind', etag: '', date: 'Wed, 22 Jan 2020 08:00:00 GMT' },
      ],
      OTHER,
    ],
    ['the rest of another place is not taken', [{ breakAfter: 100_000 }, { ranges: 'wrong' }, {}], WHOLE],
    ['an encoded file is not gone on with', [{ encodes: true, breakAfter: 100_000 }, {}], WHOLE],
    ['nor is one by an encoded answer', [{ breakAfter: 100_000 }, { encodes: true }], WHOLE],
    [
      'a file of unknown length is gone on with',
      [
        { breakAfter: 100_000, isChunked: true },
        { breakAfter: 50_000, isChunked: true },
        { isChunked: true },
      ],
      WHOLE,
    ],
    [
      'a file of unknown length that broke off after its last byte is whole',
      [{ breakAfter: WHOLE.length, isChunked: true }, {}],
      WHOLE,
    ],
    ['a range that is refused is asked for without', [{ breakAfter: 100_000 }, { status: 416 }, {}], WHOLE],
  ])('%s', async (_, turns, file) => {
    const folder = newFolder()
    const { url } = await host(...turns)
    expect(await createWork().download([output(url)], into(folder))).toMatchObject([
      { ok: true, file: { bytes: file.length, sha256: sha256(file) } },
    ])
    expect(sha256(readFileSync(join(folder, 'run-1.png')))).toBe(sha256(file))
    expect(contents(folder)).toEqual(['run-1.png'])
  })

  it('a fresh link of the same file goes on, wherever it leads', async () => {
    const folder = newFolder()
    const [old, fresh] = [await host({ breakAfter: 100_000 }, { status: 403 }), await host({})]
    const results = await createWork().download(
      [output(old.url, { freshUrl: async () => `${fresh.url}/elsewhere?signature=2` })],
      into(folder),
    )
    expect(results).toMatchObject([{ ok: true, file: { sha256: sha256(WHOLE) } }])
    expect(fresh.ranges()).toEqual([expect.stringMatching(/^bytes=\d+-$/)])
  })

  it('goes on for as long as something comes, be the line ever so bad', async () => {
    const file = Buffer.concat([PNG, Buffer.alloc(11 * 1_100_000, 'rushes')])
    const work = createWork()
    const { url, asked } = await host({ file, breakAfter: 1_100_000, etag: '"same"' })
    const [result] = await work.download([output(url)], into(newFolder()))
    expect(result).toMatchObject({ ok: true, file: { sha256: sha256(file) } })
    expect(asked).toHaveLength(12)
    expect(work.waits).toEqual(Array(11).fill(1_000))
  })

  it.each<[string, Turn]>([
    ['it comes in crumbs', { breakAfter: 10_000 }],
    ['it comes from the start again and again', { breakAfter: 2_000_000, etag: '' }],
  ])('is given up after five more tries when %s', async (_, turn) => {
    const file = Buffer.concat([PNG, Buffer.alloc(5_000_000)])
    const work = createWork()
    const { url } = await host({ file, ...turn })
    expect(await work.download([output(url)], into(newFolder()))).toMatchObject([{ ok: false }])
    expect(work.waits).toEqual([1_000, 2_000, 4_000, 8_000, 16_000])
  })

  it('ends after a hundred tries, whatever comes', async () => {
    const mebibyte = Buffer.alloc(1_048_576, 'rushes')
    const { fetch, requests } = fetchOf(({ headers }) => {
      const from = Number(/\d+/.exec(headers.range ?? '0')?.[0])
      const range = { 'content-range': `bytes ${from}-${2 ** 40 - 1}/${2 ** 40}` }
      return answer(breaking(mebibyte), { etag: '"a"', ...(from > 0 && range) }, from > 0 ? 206 : 200)
    })
    const [result] = await createWork(fetch).download([output('https://host.example/x')], into(newFolder()))
    expect(result).toMatchObject({
      ok: false,
      error: { message: expect.stringMatching(/\(tried 100 times\)\.$/) },
    })
    expect(requests).toHaveLength(100)
  })

  it('takes the length from the rest where the beginning did not tell it', async () => {
    const [etag, halves] = ['"a"', [WHOLE.subarray(0, 100_000), WHOLE.subarray(100_000)] as const]
    const rest = (from: number, more: Record<string, string> = {}) => ({
      etag,
      'content-range': `bytes ${from}-${WHOLE.length - 1}/${WHOLE.length}`,
      ...more,
    })
    const { fetch, requests } = fetchOf(
      () => answer(breaking(halves[0]), { etag }),
      // Declares nothing and ends too early, as if that were all.
      () => answer(() => once(halves[1].subarray(0, 50_000)), rest(100_000), 206),
      () => answer(() => once(halves[1].subarray(50_000)), rest(150_000), 206),
    )
    const [result] = await createWork(fetch).download([output('https://host.example/x')], into(newFolder()))
    expect(result).toMatchObject({ ok: true, file: { sha256: sha256(WHOLE) } })
    expect(requests.map(({ headers }) => headers.range)).toEqual([
      undefined,
      'bytes=100000-',
      'bytes=150000-',
    ])
  })

  it('a fresh link that has brought something may expire too', async () => {
    const file = Buffer.concat([PNG, Buffer.alloc(4_000_000, 'rushes')])
    const { url } = await host({ status: 403 }, { file, breakAfter: 2_000_000 }, { status: 403 }, { file })
    let asked = 0
    const freshUrl = async () => `${url}/${++asked}`
    const [result] = await createWork().download([output(url, { freshUrl })], into(newFolder()))
    expect(result).toMatchObject({ ok: true, file: { sha256: sha256(file), url: `${url}/2` } })
  })

  it('keeps nothing where the bytes were to go to standard output, and says nothing of it', async () => {
    const temporary = newFolder()
    vi.stubEnv('TMPDIR', temporary)
    try {
      const { url, ranges } = await host({ breakAfter: 100_000 }, { breakAfter: 0 })
      const [result] = await createWork().download([output(url)], {
        target: { kind: 'stdout' },
        stdout: new Writable(),
      })
      expect(result).toMatchObject({ ok: false, error: { hint: 'The run succeeded and is paid for.' } })
      expect(ranges()[1]).toBe('bytes=100000-')
      expect(contents(temporary)).toEqual([])
    } finally {
      vi.unstubAllEnvs()
    }
  })
})
