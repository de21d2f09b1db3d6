/** A disk that fails while bytes arrive: the error names the disk, and the download is not retried. */
import type { FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { transfer } from '../../src/download/fetch-output.js'
import type { FileKind } from '../../src/download/file-kind.js'
import { partOf } from '../../src/download/part-file.js'
import { systemClock } from '../../src/host/clock.js'
import { HttpFailure } from '../../src/host/http.js'
import { newFolder } from './download-setup.js'

const full = Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' })

const partOnFullDisk = () =>
  partOf(join(newFolder(), 'a.part'), {
    writev: () => Promise.reject(full),
    close: async () => {},
  } as unknown as FileHandle)

const METER = { restart() {}, expect() {}, receive() {}, end() {} }

async function* brokenOff(bytes: number): AsyncGenerator<Uint8Array> {
  yield new Uint8Array(bytes)
  throw new HttpFailure('the connection was reset', { sent: true })
}

async function* whole(bytes: number): AsyncGenerator<Uint8Array> {
  yield new Uint8Array(bytes)
}

it('counts no byte of a write that failed', async () => {
  const part = partOnFullDisk()
  await expect(part.write([new Uint8Array(10)])).rejects.toBe(full)
  expect(part.bytes).toBe(0)
})

it.each([
  ['the connection breaks right after', brokenOff],
  ['it was the last write', whole],
])('is the reason, whatever came after: %s', async (_, body) => {
  const part = partOnFullDisk()
  const request = {
    url: new URL('http://host.test/a.bin'),
    signal: undefined,
    nowMs: 0,
    alarm: systemClock.alarm,
    fetch: async () => ({
      status: 200,
      header: (name: string) => ({ 'content-length': '9000', etag: '"1"' })[name],
      body: body(9_000),
      discard() {},
    }),
  }
  const session = {
    opened: undefined,
    expectedKind: undefined,
    open: async (kind: FileKind) => ({ part, path: 'a.bin', kind }),
  }
  await expect(transfer(request, session, METER)).rejects.toThrow(
    'Could not write a.bin: no space left on the disk',
  )
})
