/** The built service with a bucket, and the built client with its redirects. */
import { readFileSync } from 'node:fs'
import type { IncomingHttpHeaders } from 'node:http'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { randomOutput } from '../support/engines.js'
import { createPlace, rushes, serve } from '../support/index.js'
import { hasS3rver, startS3Store } from '../support/s3-store.js'

const BYTES = 3_000_000
const CUT_AT = 1_000_000

describe.skipIf(!hasS3rver || process.platform === 'win32')('serve --storage', () => {
  test('resumes a download through the redirect, without sending the API key to the bucket', async () => {
    const store = await startS3Store()
    const seen: { readonly url: string; readonly headers: IncomingHttpHeaders }[] = []
    const key = () => store.keys().find((each) => each.endsWith('/big.png')) ?? ''
    store.intercept(({ method, url = '', headers }, response) => {
      if (method !== 'GET' || !url.includes('/big.png')) return false
      seen.push({ url, headers })
      if (seen.length > 1) return false
      response.writeHead(200, { 'content-length': String(BYTES), etag: store.etag(key()) })
      response.write(store.read(key()).subarray(0, CUT_AT), () => response.destroy())
      return true
    })
    const place = await serve(createPlace().with(store.env), [
      '--storage',
      `s3://${store.bucket}/team`,
      '--engine',
      `image=${randomOutput('big.png', BYTES)}`,
    ])
    const run = await rushes(place, ['run', 'image', 'a fox', '-o', 'fox.bin', '--debug'])
    expect(run).toMatchObject({ code: 0 })
    expect(readFileSync(join(place.folder, 'fox.bin'))).toEqual(store.read(key()))
    expect(seen).toHaveLength(2)
    expect(seen[1]?.headers).toMatchObject({
      range: `bytes=${CUT_AT}-`,
      'if-range': store.etag(key()),
    })
    for (const { url, headers } of seen) {
      expect(url).toContain('X-Amz-Signature=')
      expect(headers.authorization).toBeUndefined()
      expect(JSON.stringify(headers)).not.toContain(place.apiKey)
    }
    place.process.kill('SIGTERM')
    const { code, stdout, stderr } = await place.process.ended
    expect(code).toBe(0)
    const list = await rushes(place, ['list', '--json'])
    const journal = readFileSync(join(place.home, '.local/state/rushes/journal.db'), 'latin1')
    for (const text of [stdout, stderr, run.stderr, list.stdout, journal])
      expect(text).not.toContain('X-Amz-')
  })
})
