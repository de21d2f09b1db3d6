/** The built service with a bucket, and the built client with its redirects. */
import { readFileSync } from 'node:fs'
import type { IncomingHttpHeaders } from 'node:http'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { randomOutput } from '../support/engines.js'
import { createPlace, rushes, start } from '../support/index.js'
import { hasS3rver, startS3Store } from '../support/s3-store.js'

const BYTES = 3_000_000
const CUT_AT = 1_000_000

interface Seen {
  readonly url: string
  readonly headers: IncomingHttpHeaders
}

/** A service whose engine writes a file, and the GET requests that its bucket has had. */
async function serving(...flags: readonly string[]) {
  const store = await startS3Store()
  const seen: Seen[] = []
  let cuts = 0
  const stored: { bytes: Buffer } = { bytes: Buffer.of() }
  store.intercept(({ method, url = '', headers }, response) => {
    if (method !== 'GET' || !url.includes('/big.png')) return false
    seen.push({ url, headers })
    if (cuts++ > 0) return false
    const key = store.keys().find((each) => each.endsWith('/big.png')) ?? ''
    response.writeHead(200, { 'content-length': String(BYTES), etag: store.etag(key) })
    stored.bytes = store.read(key)
    response.write(stored.bytes.subarray(0, CUT_AT), () => response.destroy())
    return true
  })
  const service = start(createPlace().with(store.env), [
    ...['serve', '--port', '0', '--log-level', 'debug', '--storage', `s3://${store.bucket}/team`],
    ...['--engine', `image=${randomOutput('big.png', BYTES)}`],
    ...flags,
  ])
  await service.prints('stdout', /RUSHES_VIDEO_MODEL=.*\n/)
  const variables = Object.fromEntries(
    [...service.printed.stdout.matchAll(/^export (\w+)=(.*)$/gm)].map(([, name = '', value = '']) => [
      name,
      value,
    ]),
  )
  return {
    store,
    seen,
    stored,
    service,
    place: createPlace().with(variables),
    apiKey: variables.RUSHES_API_KEY ?? '',
  }
}

describe.skipIf(!hasS3rver || process.platform === 'win32')('serve --storage', () => {
  test('resumes a download through the redirect, without sending the API key to the bucket', async () => {
    const { seen, stored, service, place, apiKey, store } = await serving()
    const run = await rushes(place, ['run', 'image', 'a fox', '-o', 'fox.bin', '--debug'])
    expect(run).toMatchObject({ code: 0 })
    expect(readFileSync(join(place.folder, 'fox.bin')).equals(stored.bytes)).toBe(true)
    expect(seen).toHaveLength(2)
    expect(seen[1]?.headers).toMatchObject({
      range: `bytes=${CUT_AT}-`,
      'if-range': store.etag(store.keys().find((each) => each.endsWith('/big.png')) ?? ''),
    })
    for (const { url, headers } of seen) {
      expect(url).toContain('X-Amz-Signature=')
      expect(headers.authorization).toBeUndefined()
      expect(JSON.stringify(headers)).not.toContain(apiKey)
    }
    service.kill('SIGTERM')
    const { code, stdout, stderr } = await service.ended
    expect(code).toBe(0)
    const list = await rushes(place, ['list', '--json'])
    const journal = readFileSync(join(place.home, '.local/state/rushes/journal.db'), 'latin1')
    for (const text of [stdout, stderr, run.stderr, list.stdout, journal])
      expect(text).not.toContain('X-Amz-')
  })
})
