/** What is sent for an output of another row, where hosts, services and files are not as they should be. */
import { createHash } from 'node:crypto'
import { rmSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import type { Made } from '../../src/batch/lock/lock.js'
import { type OutputParts, OutputUrls } from '../../src/cli/runs/run-outputs.js'
import { RushesError } from '../../src/errors.js'
import { HttpFailure } from '../../src/host/http.js'
import type { RunState } from '../../src/protocol/run-state.js'
import { createManualClock, ONE_PIXEL_PNG, scripted, temporaryFolder } from '../support/index.js'

const ADDRESS = 'https://api.example'
const URLS = ['https://cdn.example/a.png?sig=1', 'https://cdn.example/b.png?sig=1']
const REFERENCE = {
  ...({ from: 'row', text: 'row:a', source: 'a', output: 1, type: 'image' } as const),
  place: { parameter: 'image_urls', entry: 0 },
} as const

function createSources(options: Partial<OutputParts> = {}, made: Partial<Made> = {}) {
  const folder = temporaryFolder()
  writeFileSync(join(folder, 'a.png'), ONE_PIXEL_PNG)
  const clock = createManualClock()
  const asked: string[] = []
  const found: Made = {
    hash: 'a'.repeat(64),
    model: 'acme/x',
    kind: 'image',
    run: 'run_1',
    service: ADDRESS,
    url: 'https://cdn.example/a.png',
    file: 'a.png',
    sha256: createHash('sha256').update(ONE_PIXEL_PNG).digest('hex'),
    bytes: ONE_PIXEL_PNG.byteLength,
    content_type: 'image/png',
    made_at: '2026-01-01T00:00:00.000Z',
    ...made,
  }
  const outputs = new OutputUrls({
    client: {
      async get(id) {
        asked.push(id)
        return { id, urls: URLS } as unknown as RunState
      },
    },
    fetch: scripted({ status: 206 }).fetch,
    clock,
    address: ADDRESS,
    signal: new AbortController().signal,
    ...options,
  })
  const urlOf = () => outputs.ofRow(REFERENCE, found, folder)
  return { outputs, urlOf, folder, clock, asked }
}

const data = `data:image/png;base64,${ONE_PIXEL_PNG.toString('base64')}`
const failing = scripted(new HttpFailure('the connection was refused', { sent: false })).fetch
const hanging = scripted('hang').fetch

it('a reference to an output is its URL of the service, which gets one request for a run', async () => {
  const { urlOf, asked } = createSources()
  expect(await urlOf()).toBe(URLS[0])
  expect(await urlOf()).toBe(URLS[0])
  expect(asked).toEqual(['run_1'])
})

it('a reference to an output of this batch needs no status request until its link has expired', async () => {
  const { fetch } = scripted({ status: 200 }, { status: 403 }, { status: 200 })
  const { outputs, urlOf, asked } = createSources({ fetch })
  const old = 'https://cdn.example/a.png?sig=0'
  outputs.learn('run_1', [old])
  expect(await urlOf()).toBe(old)
  expect(asked).toEqual([])
  expect(await urlOf()).toBe(URLS[0])
  expect(asked).toEqual(['run_1'])
})

it.each<[string, Partial<OutputParts>, Partial<Made>]>([
  ['the host does not have it', { fetch: scripted({ status: 404 }).fetch }, {}],
  ['the host cannot be reached', { fetch: failing }, {}],
  [
    'the service does not know the run',
    { client: { get: () => Promise.reject(new RushesError('service_error', 'no such run')) } },
    {},
  ],
  [
    'the URL is not one of the web',
    { client: { get: async () => ({ urls: ['file:///etc/passwd'] }) as never } },
    {},
  ],
  ['it was created by another service', {}, { service: 'https://other.example' }],
  ['the lock file does not say by which', {}, { service: undefined }],
])('a reference to an output is a data: URL where %s', async (_, options, made) => {
  const { urlOf, clock, asked } = createSources(options, made)
  expect(await clock.runUntil(urlOf())).toBe(data)
  // Another service gets no request for the run.
  if ('service' in made) expect(asked).toEqual([])
})

const AGAIN = 'Create it again with --only a --force.'
it.each<[string, (path: string) => void, RegExp, string]>([
  [
    'the file is too large to be sent',
    (path) => truncateSync(path, 64 * 1024 * 1024 + 1),
    /^row:a \(a\.png\) has 67108865 bytes and must be sent with the request; the limit for a request body is 64 MiB\.$/,
    'Use smaller reference images, or http(s) URLs.',
  ],
  [
    'the file was changed',
    (path) => writeFileSync(path, 'x'),
    /a\.png was changed after it was downloaded/,
    AGAIN,
  ],
  [
    'the file is missing',
    (path) => rmSync(path),
    /^row:a: the service does not have this output any more, and a\.png: no such file\.$/,
    AGAIN,
  ],
])(
  'a reference to an output that the service does not have is a usage error where %s',
  async (_, change, message, hint) => {
    const { urlOf, folder } = createSources({ fetch: scripted({ status: 404 }).fetch })
    change(join(folder, 'a.png'))
    await expect(urlOf()).rejects.toThrow(
      expect.objectContaining({ code: 'usage', message: expect.stringMatching(message), hint }),
    )
  },
)

it('a reference to an output without a file is the error of the service where that cannot be reached', async () => {
  const error = new RushesError('network', 'Could not reach api.example: refused.')
  const { urlOf, folder } = createSources({ client: { get: () => Promise.reject(error) } })
  rmSync(join(folder, 'a.png'))
  await expect(urlOf()).rejects.toMatchObject({ code: 'network', exitCode: 9 })
})

it('a reference to an output is a data: URL when the host does not answer within 10 s', async () => {
  const { urlOf, clock } = createSources({ fetch: hanging })
  const found = urlOf()
  await clock.advance(10_000)
  expect(await found).toBe(data)
})

it('a signal ends the request for an output', async () => {
  const stop = new AbortController()
  const { urlOf } = createSources({ fetch: hanging, signal: stop.signal })
  const ended = expect(urlOf()).rejects.toThrow('enough')
  await new Promise((resolve) => setImmediate(resolve))
  stop.abort(new Error('enough'))
  await ended
})
