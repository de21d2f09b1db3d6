import { readFileSync } from 'node:fs'
import type { IncomingHttpHeaders } from 'node:http'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import type { DownloadProgress } from '../../src/download/index.js'
import { type Fetch, HttpFailure } from '../../src/host/http.js'
import { createGate, responseOf, type Scripted, scriptedList, temporaryFolder } from '../support/index.js'
import {
  contents,
  createWork,
  download,
  into,
  JPEG,
  MP4,
  output,
  PNG,
  serve,
  sha256,
  toPath,
} from './download-setup.js'

const RETRIES = [1_000, 2_000, 4_000, 8_000, 16_000]
const URL = 'https://host.example/x'

describe('a download', () => {
  it('names the file after its run, with the extension of its bytes', async () => {
    const folder = temporaryFolder()
    const host = await serve((_, response) => response.setHeader('content-type', 'image/png').end(PNG))
    const url = `${host}/out/1?X-Signature=secret`
    const path = `${folder}/run-1.png`
    const file = { path, bytes: PNG.byteLength, sha256: sha256(PNG), url, content_type: 'image/png' }
    expect(await createWork().download([output(url)], into(folder))).toEqual([
      { ok: true, file, warnings: [] },
    ])
    expect(contents(folder)).toEqual(['run-1.png'])
    expect(readFileSync(path)).toEqual(PNG)
  })

  it('sends the host a plain request: no key, no name and password of the URL, nothing encoded', async () => {
    const seen: IncomingHttpHeaders[] = []
    const host = await serve(({ headers }, response) => {
      seen.push(headers)
      response.end(PNG)
    })
    await download({ url: host.replace('//', '//user:pass@') })
    expect(seen).toHaveLength(1)
    expect(Object.keys(seen[0] ?? {}).sort()).toEqual(['accept', 'accept-encoding', 'connection', 'host'])
    expect(seen[0]).toMatchObject({ 'accept-encoding': 'identity' })
  })

  it('trusts the bytes more than the host, and keeps the name that the user gave', async () => {
    const folder = temporaryFolder()
    const fetch = scriptedList({ status: 200, body: JPEG, headers: { 'content-type': 'image/png' } }).fetch
    const file = { path: `${folder}/run-1.jpg`, content_type: 'image/jpeg' }
    expect(await download({ fetch, folder })).toMatchObject({ file })
    const path = join(folder, 'fox.png')
    expect(await download({ fetch, ...toPath(path) })).toMatchObject({
      file: { path, content_type: 'image/jpeg' },
      warnings: [expect.stringContaining('is a jpg file')],
    })
  })

  it('runs beside three others; results keep their order, and a failure stops no other', async () => {
    let now = 0
    let most = 0
    // The first four wait for each other.
    const four = createGate()
    const fetch: Fetch = async ({ url }) => {
      most = Math.max(most, ++now)
      if (now === 4) four.open()
      await four.after
      await setImmediate()
      now--
      if (url.pathname === '/3') return responseOf({ status: 404 })
      return responseOf({ status: 200, body: url.pathname === '/5' ? MP4 : PNG })
    }
    const folder = temporaryFolder()
    const outputs = [1, 2, 3, 4, 5, 6].map((at) => output(`https://host.example/${at}`))
    const settled: string[] = []
    const results = await createWork(fetch).download(outputs, {
      ...into(folder),
      onSettled: (result, { url }) => settled.push(`${url.slice(-1)} ${result.ok}`),
    })
    expect(results.map((each) => each.ok)).toEqual([true, true, false, true, true, true])
    const names = ['run-1-1.png', 'run-1-2.png', 'run-1-4.png', 'run-1-5.mp4', 'run-1-6.png']
    expect(contents(folder)).toEqual(names)
    expect([...settled].sort()).toEqual(['1 true', '2 true', '3 false', '4 true', '5 true', '6 true'])
    expect(most).toBe(4)
  })

  it('reports its progress', async () => {
    const fetch = scriptedList({
      status: 200,
      body: PNG,
      headers: { 'content-length': String(PNG.length) },
    }).fetch
    const told: DownloadProgress[] = []
    const onProgress = (progress: DownloadProgress) => told.push(progress)
    await createWork(fetch).download([output(URL), output(URL)], { ...into(temporaryFolder()), onProgress })
    const totalBytes = 2 * PNG.length
    expect(told.at(-1)).toEqual({ receivedBytes: totalBytes, totalBytes })
  })

  it('reports a bug as a bug', async () => {
    const { fetch } = scriptedList(() => {
      throw new TypeError('x is not a function')
    })
    const expected = { code: 'internal', exitCode: 1, message: 'x is not a function' }
    expect((await download({ fetch })).error).toMatchObject(expected)
  })
})

const cut = new HttpFailure('the connection was reset', { sent: true })
it.each<[string, string, Partial<Scripted>, string]>([
  ['breaks off', '1000', { body: PNG, cut }, 'the connection was reset'],
  ['is shorter than declared', '100', { body: PNG }, 'the response ended after 70 of 100 bytes'],
  ['is longer than declared', '60', { body: PNG }, 'the host sent more than the 60 bytes it declared'],
  ['is empty, without a length', '', {}, 'the response is empty'],
])(
  'an incomplete response that %s is requested again five times, then fails and leaves no file',
  async (_, length, response, reason) => {
    const folder = temporaryFolder()
    const { fetch, requests } = scriptedList({
      status: 200,
      headers: { 'content-length': length },
      ...response,
    })
    const { error, waits } = await download({ fetch, folder, url: `${URL}?sig=secret` })
    expect(error).toMatchObject({
      code: 'download_failed',
      exitCode: 12,
      runId: 'run-1',
      hint: 'The run succeeded and is paid for.',
      message: `Could not download ${URL}: ${reason} (tried 6 times).`,
    })
    expect([requests.length, waits]).toEqual([6, RETRIES])
    expect(contents(folder)).toEqual([])
  },
)

// What each status means is the table of output-request.test.ts.
it.each([206, 404, 416])('a response that is not the file ends the download at once: %i', async (code) => {
  const { fetch, requests } = scriptedList({ status: code, body: '{}' })
  const { error } = await download({ fetch, url: `${URL}?sig=1` })
  expect(error).toMatchObject({
    code: 'download_failed',
    httpStatus: code,
    message: `Could not download ${URL}: the host answered ${code}.`,
    hint: 'The run succeeded and is paid for.',
  })
  expect(requests).toHaveLength(1)
})

it('a response that is not the file is requested again after growing pauses', async () => {
  const { fetch } = scriptedList({ status: 429 })
  const { error, waits } = await download({ fetch })
  expect(error).toMatchObject({ httpStatus: 429 })
  expect(waits).toEqual([1_000, 2_000, 4_000, 8_000, 16_000])
})

it('a web page in place of a picture is refused, and no file is written', async () => {
  const folder = temporaryFolder()
  const page = '<!doctype html><title>Sign in</title>'
  const { fetch } = scriptedList({
    status: 200,
    body: page,
    headers: { 'content-type': 'text/html; charset=utf-8' },
  })
  expect((await download({ fetch, folder })).error?.message).toMatch(/a web page instead of the image/)
  expect(contents(folder)).toEqual([])
  expect(await download({ fetch, kind: 'model' })).toMatchObject({ ok: true })
})

it('an expired link is replaced by a fresh link', async () => {
  const { fetch, requests } = scriptedList({ status: 403 }, { status: 200, body: PNG })
  const result = await download({ fetch, freshUrl: async () => `${URL}?fresh` })
  expect(result).toMatchObject({ ok: true, file: { url: `${URL}?fresh` }, waits: [] })
  expect(requests.map(({ url }) => url.href)).toEqual([URL, `${URL}?fresh`])
})

it('each link that has expired is replaced once', async () => {
  let freshened = 0
  const { fetch, requests } = scriptedList({ status: 403 }, { status: 503 }, { status: 410 })
  const { error } = await download({ fetch, freshUrl: async () => `${URL}/${++freshened}` })
  expect(error).toMatchObject({ httpStatus: 410 })
  expect([requests.length, freshened]).toEqual([4, 2])
})

it.each<[string, () => Promise<string | undefined>, number, string]>([
  ['no other', async () => undefined, 1, 'the host answered 403'],
  ['the same', async () => URL, 1, 'the host answered 403'],
  ['one that has expired too', async () => `${URL}/y`, 2, 'host.example/x/y: the host answered 403'],
  ['a file', async () => 'file:///etc/passwd', 1, 'the URL is not an http or https URL'],
  [
    'an error',
    () => Promise.reject(new Error('the service is away')),
    1,
    'the host answered 403, and the service gave no new link: the service is away',
  ],
])('an expired link is an error when the service gives %s', async (_, fresh, asked, message) => {
  let freshened = 0
  const { fetch, requests } = scriptedList({ status: 403 })
  const freshUrl = () => {
    freshened++
    return fresh()
  }
  expect((await download({ fetch, freshUrl })).error?.message).toContain(message)
  expect([requests.length, freshened]).toEqual([asked, 1])
})

describe('redirects', () => {
  it('lead to another host', async () => {
    const { fetch, requests } = scriptedList(
      { status: 302, headers: { location: '/b?c' } },
      { status: 307, headers: { location: 'https://other.example/notes.md' } },
      { status: 200, body: 'plain', headers: { 'content-type': 'text/plain' } },
    )
    const folder = temporaryFolder()
    const path = `${folder}/run-1.txt`
    expect(await download({ fetch, folder })).toMatchObject({ file: { url: URL, path } })
    const asked = [URL, 'https://host.example/b?c', 'https://other.example/notes.md']
    expect(requests.map(({ url }) => url.href)).toEqual(asked)
    expect(readFileSync(path, 'utf8')).toBe('plain')
  })

  it.each([
    ['file:///etc/passwd', 1, 'redirects to something that is not an http or https URL'],
    ['/again', 11, 'more than 10 times'],
  ])('to %s are refused', async (location, asked, message) => {
    const { fetch, requests } = scriptedList({ status: 302, headers: { location } })
    expect((await download({ fetch })).error?.message).toContain(message)
    expect(requests).toHaveLength(asked)
  })

  it.each(['file:///etc/passwd', 'ftp://x/y', 'data:,x', 'not a url', ''])(
    'or not, %j is not the URL of an output',
    async (url) => {
      const { fetch, requests } = scriptedList({ status: 200, body: PNG })
      expect((await download({ fetch, url })).error).toMatchObject({ code: 'download_failed' })
      expect(requests).toHaveLength(0)
    },
  )
})

// Which encodings are decoded, and how, is in response-body.test.ts.
it('an encoded response is saved decoded, and requested again when it cannot be decoded', async () => {
  const folder = temporaryFolder()
  const received = (body: Uint8Array, encoding = 'gzip') => {
    const { fetch } = scriptedList({ status: 200, body, headers: { 'content-encoding': encoding } })
    return download({ fetch, folder, overwrite: true })
  }
  const { error, waits } = await received(gzipSync(PNG).subarray(0, 40))
  expect(error?.message).toContain('the encoded response cannot be decoded: Z_BUF_ERROR')
  expect(waits).toEqual(RETRIES)
  // No other try changes the encoding.
  expect(await received(PNG, 'compress')).toMatchObject({ ok: false, waits: [] })
  expect(contents(folder)).toEqual([])
  const file = { bytes: PNG.length, sha256: sha256(PNG) }
  expect(await received(gzipSync(PNG))).toMatchObject({ ok: true, file })
})

it('an abort leaves only files that were complete', async () => {
  const folder = temporaryFolder()
  const stop = new AbortController()
  const host = await serve(({ url }, response) => {
    if (url === '/whole') return response.end(PNG)
    response.writeHead(200, { 'content-length': 100_000 })
    response.write(Buffer.alloc(20_000))
  })
  let whole = false
  let received = 0
  // Either may come last.
  const stopWhenBoth = () => {
    if (whole && received > 60_000) stop.abort('SIGINT')
  }
  const paths = ['/1', '/2', '/whole', '/4', '/5']
  const downloading = createWork().download(
    paths.map((path, at) => output(host + path, { runId: `run-${at}` })),
    {
      ...into(folder),
      signal: stop.signal,
      onSettled: () => {
        whole = true
        stopWhenBoth()
      },
      onProgress: ({ receivedBytes }) => {
        received = receivedBytes
        stopWhenBoth()
      },
    },
  )
  await expect(downloading).rejects.toBe('SIGINT')
  expect(contents(folder)).toEqual(['run-2.png'])
})

it('an abort between two tries ends the wait', async () => {
  const stop = new AbortController()
  const { fetch, requests } = scriptedList(() => {
    stop.abort('SIGTERM')
    return { status: 503 }
  })
  await expect(download({ fetch, signal: stop.signal })).rejects.toBe('SIGTERM')
  expect(requests).toHaveLength(1)
})
