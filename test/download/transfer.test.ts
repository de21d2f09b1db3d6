import { createHash } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import type { IncomingHttpHeaders } from 'node:http'
import { join } from 'node:path'
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import type { DownloadProgress, DownloadResult } from '../../src/download/index.js'
import { HttpFailure } from '../../src/host/http.js'
import {
  answer,
  contents,
  createWork,
  fetchOf,
  JPEG,
  MP4,
  newFolder,
  once,
  output,
  PNG,
  serve,
} from './download-setup.js'

const RETRIES = [1_000, 2_000, 4_000, 8_000, 16_000]
const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex')
const errorOf = (results: readonly DownloadResult[]) =>
  results.map((result) => (result.ok ? undefined : result.error))[0]

const into = (folder: string) => ({ target: { kind: 'folder', folder } }) as const

describe('a download', () => {
  it('brings the file home, named by its run and its bytes', async () => {
    const folder = newFolder()
    const host = await serve((_, response) => response.setHeader('content-type', 'image/png').end(PNG))
    const url = `${host}/out/1?X-Signature=secret`
    const results = await createWork().download([output(url)], into(folder))
    expect(results).toEqual([
      {
        ok: true,
        file: {
          path: `${folder}/run-1.png`,
          bytes: PNG.byteLength,
          sha256: sha256(PNG),
          url,
          content_type: 'image/png',
        },
        warnings: [],
      },
    ])
    expect(contents(folder)).toEqual(['run-1.png'])
    expect(readFileSync(join(folder, 'run-1.png'))).toEqual(PNG)
  })

  it('sends the host a plain request: no key, no name and password of the URL, nothing encoded', async () => {
    const seen: IncomingHttpHeaders[] = []
    const host = await serve(({ headers }, response) => {
      seen.push(headers)
      response.end(PNG)
    })
    await createWork().download([output(host.replace('//', '//user:pass@'))], into(newFolder()))
    expect(seen).toHaveLength(1)
    expect(Object.keys(seen[0] ?? {}).sort()).toEqual(['accept', 'accept-encoding', 'connection', 'host'])
    expect(seen[0]).toMatchObject({ 'accept-encoding': 'identity' })
  })

  it('gives no name and password on to whatever fetches', async () => {
    const { fetch, requests } = fetchOf(
      () => answer(() => once(), { location: 'https://a:b@other.example/' }, 302),
      () => answer(() => once(PNG)),
    )
    await createWork(fetch).download([output('https://user:pass@host.example/x')], into(newFolder()))
    expect(requests.map(({ url }) => url.href)).toEqual(['https://host.example/x', 'https://other.example/'])
  })

  it('trusts the bytes more than the host, and keeps the name that the user gave', async () => {
    const folder = newFolder()
    const host = await serve((_, response) => response.setHeader('content-type', 'image/png').end(JPEG))
    const work = createWork()
    const [named] = await work.download([output(host)], into(folder))
    expect(named).toMatchObject({ file: { path: `${folder}/run-1.jpg`, content_type: 'image/jpeg' } })
    const template = join(folder, 'fox.png')
    const [kept] = await work.download([output(host)], { target: { kind: 'template', template } })
    expect(kept).toMatchObject({
      file: { path: template, content_type: 'image/jpeg' },
      warnings: [expect.stringContaining('is a jpg file')],
    })
  })

  it('goes side by side, four at once, with results in order, and no failure stops another', async () => {
    let now = 0
    let most = 0
    let allIn = () => {}
    // The first four wait for each other, however busy the machine is.
    const four = new Promise<void>((resolve) => {
      allIn = resolve
    })
    const host = await serve(async ({ url }, response) => {
      most = Math.max(most, ++now)
      if (now === 4) allIn()
      await four
      setTimeout(() => {
        now--
        if (url === '/3') response.writeHead(404).end()
        else response.end(url === '/5' ? MP4 : PNG)
      }, 20)
    })
    const folder = newFolder()
    const outputs = [1, 2, 3, 4, 5, 6].map((at) => output(`${host}/${at}`))
    const settled: string[] = []
    const results = await createWork().download(outputs, {
      ...into(folder),
      onSettled: (result, { url }) => settled.push(`${url.slice(-1)} ${result.ok}`),
    })
    expect(results.map((each) => each.ok)).toEqual([true, true, false, true, true, true])
    expect(contents(folder)).toEqual([
      'run-1-1.png',
      'run-1-2.png',
      'run-1-4.png',
      'run-1-5.mp4',
      'run-1-6.png',
    ])
    expect([...settled].sort()).toEqual(['1 true', '2 true', '3 false', '4 true', '5 true', '6 true'])
    expect(most).toBe(4)
  })

  it('tells how far it is', async () => {
    const host = await serve((_, response) => response.setHeader('content-length', PNG.length).end(PNG))
    const told: DownloadProgress[] = []
    await createWork().download([output(host), output(host)], {
      ...into(newFolder()),
      onProgress: (progress) => told.push(progress),
    })
    const totalBytes = 2 * PNG.length
    expect(told.at(-1)).toEqual({ receivedBytes: totalBytes, totalBytes, filesDone: 2, files: 2 })
  })
})

describe('what is not whole', () => {
  it('is fetched again five times, then given up, and leaves nothing', async () => {
    let asked = 0
    const host = await serve((_, response) => {
      asked++
      response.writeHead(200, { 'content-length': 1_000 })
      response.write(PNG)
      setTimeout(() => response.destroy(), 5)
    })
    const folder = newFolder()
    const work = createWork()
    const retries: string[] = []
    const results = await work.download([output(`${host}/a.png?sig=secret`)], {
      ...into(folder),
      onRetry: ({ url, reason, number }) => retries.push(`${number} ${url} ${reason}`),
    })
    const error = errorOf(results)
    expect(error).toMatchObject({ code: 'download_failed', exitCode: 12, runId: 'run-1' })
    expect(error?.message).toContain(`Could not download ${host}/a.png: `)
    expect(error?.message).toContain('(tried 6 times)')
    expect(error?.hint).toContain('The run succeeded and is paid for.')
    expect(`${error?.message} ${error?.hint} ${retries}`).not.toContain('secret')
    expect(asked).toBe(6)
    expect(work.waits).toEqual(RETRIES)
    expect(retries).toHaveLength(5)
    expect(retries[0]).toContain(`1 ${host}/a.png `)
    expect(contents(folder)).toEqual([])
  })

  it('is whole in the end when a later try brings everything', async () => {
    const folder = newFolder()
    const dying = async function* () {
      yield JPEG
      throw new HttpFailure('other side closed', { sent: true })
    }
    const { fetch } = fetchOf(
      () => answer(dying),
      () => {
        throw new HttpFailure('the connection was refused', { sent: false })
      },
      () => answer(() => once(PNG), { 'content-length': String(PNG.length) }),
    )
    const work = createWork(fetch)
    const told: DownloadProgress[] = []
    const [result] = await work.download([output('https://host.example/x')], {
      ...into(folder),
      onProgress: (progress) => told.push(progress),
    })
    expect(result).toMatchObject({ ok: true, file: { bytes: PNG.length, sha256: sha256(PNG) } })
    expect(work.waits).toEqual([1_000, 2_000])
    expect(told.at(-1)?.receivedBytes).toBe(PNG.length)
    expect(contents(folder)).toEqual(['run-1.png'])
  })

  it.each([
    ['shorter than declared', { 'content-length': '100' }, 'the response ended after 70 of 100 bytes'],
    ['longer than declared', { 'content-length': '60' }, 'the host sent more than the 60 bytes it declared'],
  ])('is an answer %s', async (_, headers, message) => {
    const { fetch } = fetchOf(() => answer(() => once(PNG), headers))
    const folder = newFolder()
    const results = await createWork(fetch).download([output('https://host.example/x')], into(folder))
    expect(errorOf(results)?.message).toContain(message)
    expect(contents(folder)).toEqual([])
  })

  it.each([{}, { 'content-length': '0' }])('is an empty answer %j', async (headers) => {
    const { fetch } = fetchOf(() => answer(() => once(), headers))
    const work = createWork(fetch)
    const results = await work.download([output('https://host.example/x')], into(newFolder()))
    expect(errorOf(results)?.message).toContain('the response is empty')
    expect(work.waits).toEqual(RETRIES)
  })

  it('is not an answer without a length that ends as it should', async () => {
    const host = await serve((_, response) => {
      response.write(PNG.subarray(0, 30))
      setTimeout(() => response.end(PNG.subarray(30)), 5)
    })
    const [result] = await createWork().download([output(host)], into(newFolder()))
    expect(result).toMatchObject({ ok: true, file: { sha256: sha256(PNG) } })
  })
})

describe('an answer that is no file', () => {
  const answering = async (status: number, headers: Readonly<Record<string, string>> = {}) => {
    const { fetch, requests } = fetchOf(() => answer(() => once('{}'), headers, status))
    const work = createWork(fetch)
    const error = errorOf(await work.download([output('https://host.example/x?sig=1')], into(newFolder())))
    return { error, waits: work.waits, asked: requests.length }
  }

  it.each([204, 206, 300, 304, 400, 401, 402, 403, 404, 410, 416, 451])(
    'ends it at once: %i',
    async (status) => {
      const { error, asked } = await answering(status)
      expect(error).toMatchObject({ code: 'download_failed', httpStatus: status })
      expect(error?.message).toBe(`Could not download https://host.example/x: the host answered ${status}.`)
      expect(asked).toBe(1)
    },
  )

  it.each([408, 429, 500, 502, 503, 504])('is asked for again: %i', async (status) => {
    expect(await answering(status)).toMatchObject({ error: { httpStatus: status }, waits: RETRIES })
  })

  it('waits for as long as the host wishes, up to a minute', async () => {
    expect((await answering(429, { 'retry-after': '20' })).waits).toEqual(Array(5).fill(20_000))
    expect((await answering(503, { 'retry-after': '9999' })).waits).toEqual(Array(5).fill(60_000))
    expect((await answering(500, { 'retry-after': '20' })).waits).toEqual(RETRIES)
  })
})

describe('an expired link', () => {
  it.each([403, 404, 410])('is replaced by a fresh one, once: %i', async (status) => {
    const { fetch, requests } = fetchOf(({ url }) =>
      url.search === '?fresh' ? answer(() => once(PNG)) : answer(() => once(), {}, status),
    )
    const work = createWork(fetch)
    const freshUrl = async () => 'https://host.example/x?fresh'
    const [result] = await work.download([output('https://host.example/x', { freshUrl })], into(newFolder()))
    expect(result).toMatchObject({ ok: true, file: { url: 'https://host.example/x?fresh' } })
    expect(requests).toHaveLength(2)
    expect(work.waits).toEqual([])
  })

  it('is not asked for again when the fresh one expires too, later', async () => {
    let freshened = 0
    const statuses = [403, 503, 410]
    const { fetch, requests } = fetchOf(() => answer(() => once(), {}, statuses[requests.length - 1] ?? 500))
    const freshUrl = async () => `https://host.example/${++freshened}`
    const results = await createWork(fetch).download(
      [output('https://host.example/x', { freshUrl })],
      into(newFolder()),
    )
    expect(errorOf(results)).toMatchObject({ httpStatus: 410 })
    expect([requests.length, freshened]).toEqual([3, 1])
  })

  it.each<[string, () => Promise<string | undefined>, number, string]>([
    ['no other', async () => undefined, 1, 'the host answered 403'],
    ['the same', async () => 'https://host.example/x', 1, 'the host answered 403'],
    [
      'one that has expired too',
      async () => 'https://host.example/y',
      2,
      'host.example/y: the host answered 403',
    ],
    ['a file', async () => 'file:///etc/passwd', 1, 'the URL is not an http or https URL'],
    [
      'an error',
      async () => {
        throw new Error('the service is away')
      },
      1,
      'the host answered 403, and the service gave no new link: the service is away',
    ],
  ])('is an error when the run gives %s', async (_, fresh, asked, message) => {
    let freshened = 0
    const { fetch, requests } = fetchOf(() => answer(() => once(), {}, 403))
    const freshUrl = () => {
      freshened++
      return fresh()
    }
    const results = await createWork(fetch).download(
      [output('https://host.example/x', { freshUrl })],
      into(newFolder()),
    )
    expect(errorOf(results)?.message).toContain(message)
    expect(requests).toHaveLength(asked)
    expect(freshened).toBe(1)
  })
})

describe('redirects', () => {
  it('are followed, also to another host, and the last address names the file', async () => {
    const end = await serve(({ headers }, response) =>
      response.end(headers.authorization === undefined ? 'plain' : 'key'),
    )
    const host = await serve(({ url }, response) => {
      const location = url === '/a' ? '/b?c' : `${end}/notes.md`
      response.writeHead(url === '/a' ? 302 : 307, { location }).end('moved')
    })
    const folder = newFolder()
    const [result] = await createWork().download([output(`${host}/a`)], into(folder))
    expect(result).toMatchObject({ file: { url: `${host}/a`, path: `${folder}/run-1.md` } })
    expect(readFileSync(join(folder, 'run-1.md'), 'utf8')).toBe('plain')
  })

  it.each(['file:///etc/passwd', 'ftp://host.example/x', 'data:text/plain,x', 'http://'])(
    'to %s are refused',
    async (location) => {
      const { fetch, requests } = fetchOf(() => answer(() => once(), { location }, 302))
      const results = await createWork(fetch).download([output('https://host.example/x')], into(newFolder()))
      expect(errorOf(results)?.message).toContain('which is not an http or https URL')
      expect(requests).toHaveLength(1)
    },
  )

  it('end after ten', async () => {
    const { fetch, requests } = fetchOf(() => answer(() => once(), { location: '/again' }, 301))
    const results = await createWork(fetch).download([output('https://host.example/x')], into(newFolder()))
    expect(errorOf(results)?.message).toContain('more than 10 times')
    expect(requests).toHaveLength(11)
  })

  it.each(['file:///etc/passwd', 'ftp://x/y', 'data:,x', 'not a url', ''])(
    'or not, %j is no address of an output',
    async (url) => {
      const { fetch, requests } = fetchOf(() => answer(() => once(PNG)))
      const results = await createWork(fetch).download([output(url)], into(newFolder()))
      expect(errorOf(results)).toMatchObject({ code: 'download_failed' })
      expect(requests).toHaveLength(0)
    },
  )
})

describe('an encoded answer', () => {
  it.each<[string, Uint8Array]>([
    ['gzip', gzipSync(PNG)],
    ['x-gzip', gzipSync(PNG)],
    ['deflate', deflateSync(PNG)],
    ['br', brotliCompressSync(PNG)],
    ['identity', PNG],
    ['aws-chunked', PNG],
    ['aws-chunked, GZIP', gzipSync(PNG)],
  ])('is decoded: %s', async (encoding, body) => {
    const host = await serve((_, response) => response.setHeader('content-encoding', encoding).end(body))
    const [result] = await createWork().download([output(host)], into(newFolder()))
    expect(result).toMatchObject({ ok: true, file: { bytes: PNG.length, sha256: sha256(PNG) } })
  })

  it.each<[string, Uint8Array, string, number]>([
    ['gzip', gzipSync(PNG).subarray(0, 40), 'the encoded response cannot be decoded: Z_BUF_ERROR', 5],
    ['gzip', PNG, 'the encoded response cannot be decoded: Z_DATA_ERROR', 5],
    ['br', PNG, 'the encoded response cannot be decoded: ERR_', 5],
    ['zstd', PNG, 'the response as zstd, which was not requested', 0],
    ['gzip, br', PNG, 'the response as gzip, br, which', 0],
  ])('that cannot be decoded is an error: %s', async (encoding, body, message, retries) => {
    const folder = newFolder()
    const host = await serve((_, response) => response.setHeader('content-encoding', encoding).end(body))
    const work = createWork()
    expect(errorOf(await work.download([output(host)], into(folder)))?.message).toContain(message)
    expect(work.waits).toHaveLength(retries)
    expect(contents(folder)).toEqual([])
  })
})

it('calls what is a bug a bug', async () => {
  const { fetch } = fetchOf(() => {
    throw new TypeError('x is not a function')
  })
  const results = await createWork(fetch).download([output('https://host.example/x')], into(newFolder()))
  expect(errorOf(results)).toMatchObject({ code: 'internal', exitCode: 1, message: 'x is not a function' })
})

it('says that the run is paid for when its output is gone', async () => {
  const { fetch } = fetchOf(() => answer(() => once(), {}, 404))
  const results = await createWork(fetch).download([output('https://host.example/x')], into(newFolder()))
  expect(errorOf(results)?.hint).toBe('The run succeeded and is paid for.')
})

it('does not touch a file in the way, and does not fetch for nothing', async () => {
  const template = join(newFolder(), 'fox.png')
  writeFileSync(template, 'mine')
  const { fetch, requests } = fetchOf(() => answer(() => once(PNG)))
  const results = await createWork(fetch).download([output('https://host.example/x')], {
    target: { kind: 'template', template },
  })
  expect(errorOf(results)).toMatchObject({
    code: 'download_failed',
    message: `${template} already exists.`,
    hint: expect.stringContaining('Use --overwrite to replace it.'),
  })
  expect(requests).toHaveLength(0)
  expect(readFileSync(template, 'utf8')).toBe('mine')
})
