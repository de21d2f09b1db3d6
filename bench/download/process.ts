/** Downloads of any size in a process of their own, for the benchmark. */
import { execFile } from 'node:child_process'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join, resolve } from 'node:path'
import { Readable } from 'node:stream'
import { promisify } from 'node:util'
import { rolldown } from 'rolldown'

export interface Measured {
  readonly ok: boolean
  readonly elapsedMs: number
  readonly peakMiB: number
  /** How much of the peak is the download's. */
  readonly grownMiB: number
}

/** Downloads `bytes` from loopback into `folder`. */
export async function downloadInChild(bytes: number, folder: string): Promise<Measured> {
  const child = await bundleIn(folder)
  const block = Buffer.alloc(65_536, 'rushes')
  const server = createServer((_, response) => {
    response.writeHead(200, { 'content-type': 'video/mp4', 'content-length': bytes })
    Readable.from(blocks(block, bytes)).pipe(response)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  try {
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
    const { stdout } = await promisify(execFile)(process.execPath, [child, url, folder])
    return JSON.parse(stdout) as Measured
  } finally {
    server.closeAllConnections()
    server.close()
  }
}

async function bundleIn(folder: string): Promise<string> {
  const child = join(folder, 'child.mjs')
  // From the project's root, so that a bundled benchmark finds it too.
  const bundle = await rolldown({ input: resolve('bench/download/child.ts'), platform: 'node' })
  await bundle.write({ file: child, format: 'esm', codeSplitting: false })
  await bundle.close()
  return child
}

function* blocks(block: Buffer, bytes: number): Generator<Buffer> {
  for (let left = bytes; left > 0; left -= block.length) yield block.subarray(0, left)
}
