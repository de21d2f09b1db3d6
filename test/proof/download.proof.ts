/** Two gigabytes from loopback, in a process of its own: memory does not grow with the size. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { downloadInChild } from '../download/big.js'

const MOST_MIB = 200

it('downloads 2 GiB in flat memory', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'rushes-proof-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const { ok, elapsedMs, peakMiB } = await downloadInChild(2_048 * 1_048_576, folder)
  process.stdout.write(`2 GiB in ${(elapsedMs / 1_000).toFixed(1)} s, peak ${Math.round(peakMiB)} MiB\n`)
  expect(ok).toBe(true)
  expect(peakMiB).toBeLessThan(MOST_MIB)
})
