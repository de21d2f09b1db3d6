/** Downloads that go on where they stopped: within one command, and from one to the next. */
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once as onceOf } from 'node:events'
import {
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import type { IncomingHttpHeaders, ServerResponse } from 'node:http'
import { join } from 'node:path'
import fc from 'fast-check'
import { beforeAll, describe, expect, it } from 'vitest'
import { type About, continuationOf, planOf } from '../../src/download/resume.js'
import { built } from '../support/built.js'
import { contents, createWork, newFolder, output, PNG, serve } from './place-of-work.js'

const WHOLE = Buffer.concat([PNG, Buffer.from(Array.from({ length: 300_000 }, (_, at) => at % 251))])
const OTHER = Buffer.concat([PNG, Buffer.from(Array.from({ length: 310_000 }, (_, at) => at % 241))])
const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex')
const etagOf = (bytes: Uint8Array) => `"${sha256(bytes)}"`

const ABOUT: About = { etag: '"a"', totalBytes: 100, contentType: 'image/png' }

describe('the plan', () => {
  it.each<[string, About | undefined, number, object]>([
    ['nothing is there', undefined, 0, { kind: 'anew' }],
    ['nothing has arrived', ABOUT, 0, { kind: 'anew' }],
    ['nothing is known of it', undefined, 50, { kind: 'anew' }],
    ['half of it', ABOUT, 50, { kind: 'from', bytes: 50, ifRange: '"a"' }],
    ['half, of unknown length', { etag: '"a"' }, 50, { kind: 'from', bytes: 50, ifRange: '"a"' }],
    ['all of it', ABOUT, 100, { kind: 'whole' }],
    ['more than all', ABOUT, 101, { kind: 'anew' }],
    ['a weak ETag', { etag: 'W/"a"', totalBytes: 100 }, 50, { kind: 'anew' }],
    ['an ETag without quotes', { etag: 'a', totalBytes: 100 }, 50, { kind: 'anew' }],
    [
      'a date',
      { lastModified: 'Sat, 21 Nov 2026 08:00:00 GMT' },
      50,
      { kind: 'from', ifRange: expect.stringMatching(/^Sat/) },
    ],
    [
      'a weak ETag and a date',
      { etag: 'W/"a"', lastModified: 'Sat, 21 Nov 2026 08:00:00 GMT' },
      50,
      { kind: 'from', ifRange: expect.stringMatching(/^Sat/) },
    ],
    ['no validator', { totalBytes: 100 }, 50, { kind: 'anew' }],
  ])('%s', (_, about, bytes, plan) => {
    expect(planOf(about, bytes)).toMatchObject(plan)
  })
})

describe('the answer to a request for the rest', () => {
  const plan = { kind: 'from', bytes: 50, ifRange: '"a"', about: ABOUT } as const
  const headers = (range: string, more: Record<string, string> = {}) => ({ 'content-range': range, ...more })
  it.each<[string, number, Record<string, string>, string]>([
    ['the rest', 206, headers('bytes 50-99/100'), 'append'],
    ['the rest of the same file by name', 206, headers('bytes 50-99/100', { etag: '"a"' }), 'append'],
    ['the rest of something of unknown length', 206, headers('bytes 50-99/*'), 'append'],
    ['the whole', 200, {}, 'anew'],
    ['another place', 206, headers('bytes 40-99/100'), 'mismatch'],
    ['another length', 206, headers('bytes 50-109/110'), 'mismatch'],
    ['less than the rest', 206, headers('bytes 50-80/100'), 'mismatch'],
    ['another name', 206, headers('bytes 50-99/100', { etag: '"b"' }), 'mismatch'],
    ['something encoded', 206, headers('bytes 50-99/100', { 'content-encoding': 'gzip' }), 'mismatch'],
    ['no range', 206, {}, 'mismatch'],
    ['nonsense', 206, headers('bytes -1-x/y'), 'mismatch'],
    ['several ranges', 206, { 'content-type': 'multipart/byteranges' }, 'mismatch'],
    ['nothing more', 416, headers('bytes */50'), 'whole'],
    ['nothing of the kind', 416, headers('bytes */40'), 'mismatch'],
    ['nothing', 416, {}, 'mismatch'],
  ])('%s', (_, status, given, continuation) => {
    expect(continuationOf(plan, { status, header: (name) => given[name] })).toBe(continuation)
  })
})

/** What a host does with one request. */
interface Turn {
  /** Ends the connection after so many bytes of the answer's body; undefined: answers whole. */
  readonly breakAfter?: number
  readonly file?: Buffer
  readonly ranges?: boolean
  readonly etag?: string | undefined
  readonly date?: string
  readonly status?: number
}

/** A host whose requests are answered by one turn each, the last one again and again. */
async function host(...turns: readonly Turn[]) {
  const asked: IncomingHttpHeaders[] = []
  const url = await serve(({ headers }, response) => {
    const turn = turns[Math.min(asked.length, turns.length - 1)] ?? {}
    asked.push(headers)
    answer(response, headers, turn)
  })
  return { url, asked, ranges: () => asked.map(({ range }) => range) }
}

function answer(
  response: ServerResponse,
  { range, 'if-range': ifRange }: IncomingHttpHeaders,
  { breakAfter, file = WHOLE, ranges = true, etag = etagOf(file), date, status }: Turn,
): void {
  if (status !== undefined) return void response.writeHead(status).end()
  const validator = { ...(etag !== '' && { etag }), ...(date !== undefined && { 'last-modified': date }) }
  const [, start] = /^bytes=(\d+)-$/.exec(range ?? '') ?? []
  const isSame = ifRange === (etag === '' || etag.startsWith('W/') ? date : etag)
  const from = ranges && start !== undefined && isSame ? Number(start) : 0
  const body = file.subarray(from)
  response.writeHead(from === 0 ? 200 : 206, {
    ...validator,
    'content-length': body.length,
    ...(from > 0 && { 'content-range': `bytes ${from}-${file.length - 1}/${file.length}` }),
  })
  if (breakAfter === undefined) return void response.end(body)
  response.write(body.subarray(0, breakAfter), () => setTimeout(() => response.destroy(), 20))
}

const into = (folder: string) => ({ target: { kind: 'folder', folder } }) as const

describe('within one command', () => {
  it('a broken connection is gone on with from the bytes that came', async () => {
    const folder = newFolder()
    const { url, ranges } = await host({ breakAfter: 100_000 }, { breakAfter: 50_000 }, {})
    const [result] = await createWork().download([output(url)], into(folder))
    expect(result).toMatchObject({ ok: true, file: { bytes: WHOLE.length, sha256: sha256(WHOLE) } })
    const [first, second, third] = ranges()
    expect([first, second]).toEqual([undefined, expect.stringMatching(/^bytes=\d{4,6}-$/)])
    expect(Number(/\d+/.exec(third ?? '')?.[0])).toBeGreaterThan(Number(/\d+/.exec(second ?? '')?.[0]))
    expect(readFileSync(join(folder, 'run-1.png'))).toEqual(WHOLE)
    expect(contents(folder)).toEqual(['run-1.png'])
  })

  it.each<[string, readonly Turn[], Buffer]>([
    ['a file that changed meanwhile comes whole', [{ breakAfter: 100_000 }, { file: OTHER }], OTHER],
    ['a host without ranges sends it again', [{ breakAfter: 100_000 }, { ranges: false }], WHOLE],
    [
      'a host with weak names sends it again',
      [{ breakAfter: 100_000, etag: 'W/"x"' }, { etag: 'W/"x"' }],
      WHOLE,
    ],
    [
      'a date will do',
      [
        { breakAfter: 100_000, etag: '', date: 'Sat, 21 Nov 2026 08:00:00 GMT' },
        { etag: '', date: 'Sat, 21 Nov 2026 08:00:00 GMT' },
      ],
      WHOLE,
    ],
    [
      'a host that cannot answer for a while is asked for the rest later',
      [{ breakAfter: 100_000 }, { status: 503 }, {}],
      WHOLE,
    ],
    ['a range that is refused is asked for without', [{ breakAfter: 100_000 }, { status: 416 }, {}], WHOLE],
  ])('%s', async (_, turns, file) => {
    const folder = newFolder()
    const { url } = await host(...turns)
    expect(await createWork().download([output(url)], into(folder))).toMatchObject([
      { ok: true, file: { bytes: file.length, sha256: sha256(file) } },
    ])
    expect(readFileSync(join(folder, 'run-1.png'))).toEqual(file)
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
})

describe('from one command to the next', () => {
  /** Breaks off in the middle; the folder then holds a part. */
  async function broken(folder: string, turn: Turn = {}) {
    const { url } = await host({ breakAfter: 100_000, ...turn }, { breakAfter: 0, ...turn })
    return await createWork().download([output(url)], into(folder))
  }
  const partIn = (folder: string) => readdirSync(folder).find((name) => name.endsWith('.part')) ?? ''

  it('the network ended it: the part stays, and the next one goes on', async () => {
    const folder = newFolder()
    const [failed] = await broken(folder)
    expect(failed).toMatchObject({ ok: false })
    if (failed?.ok === false) expect(failed.error.hint).toMatch(/goes on from there/)
    expect(readdirSync(folder)).toEqual([expect.stringMatching(/^\.run-1\.[0-9a-f]{8}\.part$/)])
    const next = await host({})
    expect(await createWork().download([output(next.url)], into(folder))).toMatchObject([
      { ok: true, file: { path: `${folder}/run-1.png`, sha256: sha256(WHOLE), content_type: 'image/png' } },
    ])
    expect(next.ranges()).toEqual([expect.stringMatching(/^bytes=\d{4,6}-$/)])
    expect(contents(folder)).toEqual(['run-1.png'])
  })

  it('a signal ended it: the part stays', async () => {
    const folder = newFolder()
    const stop = new AbortController()
    const { url } = await host({ breakAfter: 150_000 })
    await expect(
      createWork().download([output(url)], {
        ...into(folder),
        signal: stop.signal,
        onProgress: ({ receivedBytes }) => {
          if (receivedBytes > 50_000) stop.abort('SIGINT')
        },
      }),
    ).rejects.toBe('SIGINT')
    const next = await host({})
    expect(await createWork().download([output(next.url)], into(folder))).toMatchObject([{ ok: true }])
    expect(next.ranges()).toEqual([expect.stringMatching(/^bytes=/)])
  })

  it('holds no address: that is as good as a key', async () => {
    const folder = newFolder()
    const { url } = await host({ breakAfter: 100_000 }, { breakAfter: 0 })
    await createWork().download([output(`${url}/a?signature=secret`)], into(folder))
    expect(readFileSync(join(folder, partIn(folder), 'about.json'), 'utf8')).not.toMatch(/secret|http/)
  })

  it('is of no use without a name or a date: nothing stays', async () => {
    const folder = newFolder()
    await broken(folder, { etag: '' })
    expect(contents(folder)).toEqual([])
  })

  it('is of no use when the host has it no more', async () => {
    const folder = newFolder()
    await broken(folder)
    const { url } = await host({ status: 404 })
    expect(await createWork().download([output(url)], into(folder))).toMatchObject([{ ok: false }])
    expect(contents(folder)).toEqual([])
  })

  it('belongs to its run, its output and its place', async () => {
    const folder = newFolder()
    await broken(folder)
    const next = await host({})
    await createWork().download([output(next.url, { runId: 'run-2' })], into(folder))
    await createWork().download([output(next.url)], {
      target: { kind: 'template', template: join(folder, 'fox.png') },
    })
    expect(next.ranges()).toEqual([undefined, undefined])
    expect(readdirSync(folder)).toContain(partIn(folder))
  })

  it.each<[string, (part: string) => void]>([
    ['about which nothing is known', (part) => writeFileSync(join(part, 'about.json'), '{"etag": ')],
    ['that is empty', (part) => truncateSync(join(part, 'bytes'), 0)],
    [
      'whose end may not have reached the disk before the machine stopped',
      (part) => {
        writeFileSync(join(part, 'about.json'), JSON.stringify({ etag: etagOf(WHOLE), flushedBytes: 10 }))
        utimesSync(join(part, 'bytes'), 0, 0)
      },
    ],
  ])('a part %s is begun anew', async (_, spoil) => {
    const folder = newFolder()
    await broken(folder)
    spoil(join(folder, partIn(folder)))
    const next = await host({})
    expect(await createWork().download([output(next.url)], into(folder))).toMatchObject([
      { ok: true, file: { sha256: sha256(WHOLE) } },
    ])
    expect(next.ranges()).toEqual([undefined])
    expect(contents(folder)).toEqual(['run-1.png'])
  })

  it('a part that is whole only gets its name: nothing is asked for', async () => {
    const folder = newFolder()
    await broken(folder)
    const part = join(folder, partIn(folder))
    writeFileSync(join(part, 'bytes'), WHOLE)
    writeFileSync(
      join(part, 'about.json'),
      JSON.stringify({ etag: etagOf(WHOLE), totalBytes: WHOLE.length, flushedBytes: WHOLE.length }),
    )
    const next = await host({})
    expect(await createWork().download([output(next.url)], into(folder))).toMatchObject([
      { ok: true, file: { sha256: sha256(WHOLE) } },
    ])
    expect(next.asked).toEqual([])
  })

  it.each<[string, (bytes: string, path: string) => void]>([
    ['got their name in the moment of a kill are not written to', linkSync],
    ['moved to their name in the moment of a kill leave nothing', renameSync],
  ])('bytes that %s', async (_, move) => {
    const folder = newFolder()
    await broken(folder)
    const path = join(folder, 'run-1.png')
    const bytes = readFileSync(join(folder, partIn(folder), 'bytes'))
    move(join(folder, partIn(folder), 'bytes'), path)
    const seen: number[] = []
    const next = await host({ file: OTHER })
    await createWork().download([output(next.url)], {
      ...into(folder),
      overwrite: true,
      onProgress: () => seen.push(statSync(path).size),
    })
    expect(seen.every((size) => size === bytes.length || size === OTHER.length)).toBe(true)
    expect(readFileSync(path)).toEqual(OTHER)
    expect(contents(folder)).toEqual(['run-1.png'])
  })

  it('a file in the way removes the part that it makes useless', async () => {
    const folder = newFolder()
    const target = { kind: 'template', template: join(folder, 'fox.png') } as const
    const { url } = await host({ breakAfter: 100_000 }, { breakAfter: 0 })
    await createWork().download([output(url)], { target })
    writeFileSync(join(folder, 'fox.png'), 'mine')
    expect(await createWork().download([output(url)], { target })).toMatchObject([{ ok: false }])
    expect(contents(folder)).toEqual(['fox.png'])
  })

  it('what is not a part of ours is left alone', async () => {
    const folder = newFolder()
    await broken(folder)
    const name = partIn(folder)
    mkdirSync(join(folder, 'mine.part'))
    writeFileSync(join(folder, `${name}.txt`), '')
    const next = await host({})
    await createWork().download([output(next.url)], into(folder))
    expect(readdirSync(folder).sort()).toEqual([`${name}.txt`, 'mine.part', 'run-1.png'].sort())
  })
})

describe('several at once', () => {
  it('on one target do not disturb each other: the first is in place, the other says so', async () => {
    const folder = newFolder()
    const { url } = await host({})
    const target = { kind: 'template', template: join(folder, 'fox.png') } as const
    const both = await Promise.all([1, 2].map(() => createWork().download([output(url)], { target })))
    expect(
      both
        .flat()
        .map(({ ok }) => ok)
        .sort(),
    ).toEqual([false, true])
    expect(readFileSync(join(folder, 'fox.png'))).toEqual(WHOLE)
    expect(contents(folder)).toEqual(['fox.png'])
  })

  it('that were broken off leave one part', async () => {
    const folder = newFolder()
    const { url } = await host({ breakAfter: 100_000 })
    const work = () => createWork().download([output(url)], into(folder))
    await Promise.all([work(), work(), work()])
    expect(readdirSync(folder)).toHaveLength(1)
  })
})

describe('a process that is killed', () => {
  let program: string
  beforeAll(async () => {
    program = await built(new URL('./child.ts', import.meta.url))
  })

  it('leaves a part from which another goes on, while a neighbour that lives keeps its own', async () => {
    const folder = newFolder()
    const slow = await host({})
    const stuck = await serve((_, response) => {
      response.writeHead(200, { etag: etagOf(WHOLE), 'content-length': WHOLE.length })
      response.write(WHOLE.subarray(0, 120_000))
    })
    const start = () => spawn(process.execPath, [program, stuck, folder], { stdio: 'ignore' })
    const isAtWork = async ({ pid }: { readonly pid?: number | undefined }) => {
      const own = () => readdirSync(folder).find((name) => name.includes(`.${pid}-`)) ?? ''
      while (!existsSync(join(folder, own(), 'about.json')))
        await new Promise((resolve) => setTimeout(resolve, 10))
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
    const killed = start()
    await isAtWork(killed)
    killed.kill('SIGKILL')
    await onceOf(killed, 'exit')
    const living = start()
    await isAtWork(living)
    try {
      const [result] = await createWork().download([output(slow.url, { runId: 'big' })], into(folder))
      expect(result).toMatchObject({ ok: true, file: { sha256: sha256(WHOLE) } })
      // The killed one's part went to the neighbour, who lives: so this one began anew.
      expect(slow.ranges()).toEqual([undefined])
    } finally {
      living.kill('SIGKILL')
      await onceOf(living, 'exit')
    }
    const again = await host({})
    const [result] = await createWork().download([output(again.url, { runId: 'big' })], {
      ...into(folder),
      overwrite: true,
    })
    expect(result).toMatchObject({ ok: true, file: { sha256: sha256(WHOLE) } })
    expect(again.ranges()).toEqual([expect.stringMatching(/^bytes=\d{4,6}-$/)])
    expect(contents(folder)).toEqual(['big.png'])
  })
})

describe('whatever a host does', () => {
  const turn = fc.record(
    {
      breakAfter: fc.option(fc.nat({ max: 310_000 }), { nil: undefined }),
      file: fc.constantFrom(WHOLE, OTHER),
      ranges: fc.boolean(),
      etag: fc.constantFrom('"same"', undefined, '', 'W/"weak"'),
      status: fc.option(fc.constantFrom(416, 503, 404), { nil: undefined, freq: 6 }),
    },
    { requiredKeys: [] },
  )

  it('there is one whole file under the name, or none', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(turn, { minLength: 1, maxLength: 8 }), async (turns) => {
        // A host that calls two files by one strong name is believed, so here it has one file.
        const honest = turns.map((each) => (each.etag === '"same"' ? { ...each, file: WHOLE } : each))
        const folder = newFolder()
        const { url } = await host(...(honest as Turn[]))
        for (let command = 0; command < 2; command++) {
          const [result] = await createWork().download([output(url)], { ...into(folder), overwrite: true })
          const path = join(folder, 'run-1.png')
          expect(existsSync(path)).toBe(command === 0 ? result?.ok : result?.ok || existsSync(path))
          if (existsSync(path)) expect([sha256(WHOLE), sha256(OTHER)]).toContain(sha256(readFileSync(path)))
          if (result?.ok) expect(result.file.sha256).toBe(sha256(readFileSync(path)))
        }
      }),
      { numRuns: 25 },
    )
  }, 60_000)
})

it('a web page in place of a picture is no output', async () => {
  const folder = newFolder()
  const portal = await serve((_, response) =>
    response
      .setHeader('content-type', 'text/html; charset=utf-8')
      .end('<!doctype html><title>Sign in</title>'),
  )
  const [result] = await createWork().download([output(portal)], into(folder))
  expect(result).toMatchObject({
    ok: false,
    error: { message: expect.stringMatching(/a web page in place of the image/) },
  })
  expect(contents(folder)).toEqual([])
  expect(await createWork().download([output(portal, { kind: 'model' })], into(folder))).toMatchObject([
    { ok: true },
  ])
})
