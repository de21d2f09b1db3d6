/** Within one command, a download whose connection breaks resumes from the bytes that arrived. */
import { readFileSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { Part } from '../../src/download/fetch-output.js'
import type { Fetch } from '../../src/host/http.js'
import { temporaryFolder } from '../support/index.js'
import { host, OTHER, type Turn, WHOLE } from './breaking-host.js'
import { contents, download, PNG, sha256 } from './download-setup.js'

/** Another file, which only its ETag tells apart. */
const SAME_LENGTH = Buffer.concat([PNG, Buffer.alloc(WHOLE.length - PNG.length, 'another')])

const BREAKS: Turn = { breakAfter: 100_000 }
const REST = 'bytes=100000-'

it.each<[string, readonly Turn[], readonly (string | undefined)[], Buffer]>([
  [
    'the rest is requested, as often as it breaks',
    [BREAKS, { breakAfter: 50_000 }, {}],
    [undefined, REST, 'bytes=150000-'],
    WHOLE,
  ],
  [
    'the rest is requested later when the host is busy',
    [BREAKS, { status: 503 }, {}],
    [undefined, REST, REST],
    WHOLE,
  ],
  [
    'a file without an ETag is downloaded again',
    [{ ...BREAKS, etag: '' }, {}],
    [undefined, undefined],
    WHOLE,
  ],
  ['a changed file is downloaded whole', [BREAKS, { file: OTHER }], [undefined, REST], OTHER],
  [
    'another file is downloaded whole where the host ignores If-Range',
    [BREAKS, { file: SAME_LENGTH, ranges: 'blind' }],
    [undefined, REST, undefined],
    SAME_LENGTH,
  ],
])('after a broken connection %s', async (_, turns, ranges, file) => {
  const folder = temporaryFolder()
  const requested = host(...turns)
  expect(await download({ fetch: requested.fetch, folder })).toMatchObject({
    ok: true,
    file: { bytes: file.length, sha256: sha256(file) },
  })
  expect(requested.ranges()).toEqual(ranges)
  expect(sha256(readFileSync(join(folder, 'run-1.png')))).toBe(sha256(file))
  expect(contents(folder)).toEqual(['run-1.png'])
})

it('a download that begins anew needs no file that is open for appending: Windows cannot empty one', async () => {
  const path = join(temporaryFolder(), 'part')
  const part = new Part(path, await open(path, 'wx'))
  await part.write(WHOLE)
  await part.restart(undefined)
  await part.write(PNG)
  expect([await part.seal(), readFileSync(path)]).toEqual([sha256(PNG), PNG])
  await part.discard()
})

it('a fresh link of the same file resumes, also on another host', async () => {
  const [old, fresh] = [host(BREAKS, { status: 403 }), host({})]
  const fetch: Fetch = (request) => (request.url.host === 'fresh.example' ? fresh : old).fetch(request)
  const freshUrl = async () => 'https://fresh.example/elsewhere?signature=2'
  expect(await download({ fetch, freshUrl })).toMatchObject({ file: { sha256: sha256(WHOLE) } })
  expect(fresh.ranges()).toEqual([REST])
})

it('a fresh link is replaced again when it has expired too', async () => {
  const file = Buffer.concat([PNG, Buffer.alloc(1_500_000, 'rushes')])
  const { fetch } = host({ status: 403 }, { file, breakAfter: 1_200_000 }, { status: 403 }, { file })
  let asked = 0
  const freshUrl = async () => `https://host.example/${++asked}`
  expect(await download({ fetch, freshUrl })).toMatchObject({
    ok: true,
    file: { sha256: sha256(file), url: 'https://host.example/2' },
  })
})
