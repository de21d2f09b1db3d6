/** A disk that fails while the next bytes come in: it is told what failed, and no host is asked again. */
import type { FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { claimPart, createListing, createPart, type Listing } from '../../src/download/part-claim.js'
import { partOf } from '../../src/download/part-file.js'
import { transfer } from '../../src/download/transfer.js'
import { HttpFailure } from '../../src/host/http.js'
import { newFolder } from './download-setup.js'

const full = Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' })

/** A part on a full disk: what is written seems well until it is asked after. */
const partOnFullDisk = () =>
  partOf({
    own: join(newFolder(), 'own'),
    free: join(newFolder(), 'free'),
    handle: { write: () => Promise.reject(full), close: async () => {} } as unknown as FileHandle,
    bytes: 0,
    about: undefined,
  })

const METER = { restart() {}, expect() {}, receive() {}, end() {} }

async function* brokenOff(bytes: number): AsyncGenerator<Uint8Array> {
  yield new Uint8Array(bytes)
  throw new HttpFailure('the connection was reset', { sent: true })
}

async function* whole(bytes: number): AsyncGenerator<Uint8Array> {
  yield new Uint8Array(bytes)
}

it('tells the next call of a write that failed, and holds no byte of it', async () => {
  const part = partOnFullDisk()
  await part.write(new Uint8Array(10))
  await expect(part.settled()).rejects.toBe(full)
  expect(part.bytes).toBe(0)
  await expect(part.write(new Uint8Array(10))).rejects.toBe(full)
  await expect(part.seal()).rejects.toBe(full)
})

it.each([
  ['the connection breaks right after', brokenOff],
  ['it was the last write', whole],
])('is the reason, whatever came after: %s', async (_, body) => {
  const part = partOnFullDisk()
  const question = {
    url: new URL('http://host.test/a.bin'),
    userAgent: undefined,
    signal: undefined,
    nowMs: 0,
    fetch: async () => ({
      status: 200,
      header: (name: string) => ({ 'content-length': '9000', etag: '"1"' })[name],
      body: body(9_000),
      discard() {},
    }),
  }
  const landing = {
    part: undefined,
    expects: undefined,
    open: async () => ({ part, path: 'a.bin' }),
    giveUp: async () => false,
  }
  await expect(transfer(question, landing, METER)).rejects.toThrow('could not write a.bin: the disk is full')
})

it('finds a part in a folder that tells nobody what is in it', async () => {
  const key = { place: join(newFolder(), 'a.bin'), runId: 'run-1', position: 0 }
  const part = await createPart(key)
  await part.begin({ etag: '"1"', lastModified: undefined, contentType: undefined, totalBytes: 1_000_000 })
  await part.write(new Uint8Array(500_000))
  expect(await part.release()).toBe(true)
  const hidden: Listing = async () => undefined
  const found = await claimPart(key, hidden)
  expect(found?.bytes).toBe(500_000)
  await found?.release()
  expect((await claimPart(key, createListing()))?.bytes).toBe(500_000)
})
