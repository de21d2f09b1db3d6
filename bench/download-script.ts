/**
 * What `bench:download` compares `rushes download` with, besides curl: a minimal Node script on the same network code. `plain`
 * writes the files as they arrive; `safe` hashes them, syncs them to the disk and replaces no existing file. /
 */
import { createHash } from 'node:crypto'
import { link, open, unlink, writeFile } from 'node:fs/promises'
import { systemClock } from '../src/host/clock.js'
import { createNetwork, skipWasmOptimization } from '../src/host/undici.js'

const AT_ONCE = 4

export const isScript = (word: string | undefined): word is 'plain' | 'safe' =>
  word === 'plain' || word === 'safe'

/** Downloads to the current folder, as `0.bin`, `1.bin` and so on. */
export async function fetchAll(script: 'plain' | 'safe', urls: readonly string[]): Promise<void> {
  skipWasmOptimization()
  const network = createNetwork({ env: {}, clock: systemClock })
  let next = 0
  async function fetchSome(): Promise<void> {
    for (let at = next++; at < urls.length; at = next++) {
      const { body } = await network.fetch({ method: 'GET', url: new URL(urls[at] ?? ''), headers: {} })
      const chunks: Uint8Array[] = []
      for await (const chunk of body) chunks.push(chunk)
      await (script === 'plain'
        ? writeFile(`${at}.bin`, Buffer.concat(chunks))
        : writeSafely(`${at}.bin`, chunks))
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, fetchSome))
  await network.close()
}

async function writeSafely(path: string, chunks: readonly Uint8Array[]): Promise<void> {
  const part = `.${path}.part`
  const handle = await open(part, 'wx')
  const hash = createHash('sha256')
  for (const chunk of chunks) {
    hash.update(chunk)
    await handle.write(chunk)
  }
  hash.digest('hex')
  await handle.sync()
  await handle.close()
  await link(part, path)
  await unlink(part)
}
