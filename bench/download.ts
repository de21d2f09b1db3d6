// Seconds and peak memory of one download from loopback, in a process of its own:
//   npx rolldown bench/download.ts --platform node --format esm --external rolldown -o node_modules/.cache/bench-download.mjs
//   node node_modules/.cache/bench-download.mjs
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { downloadInChild } from '../test/download/big.js'

const SIZES_MIB = [1, 300, 2_048]

for (const sizeMiB of SIZES_MIB) {
  const folder = mkdtempSync(join(tmpdir(), 'rushes-bench-'))
  try {
    const { ok, elapsedMs, peakMiB } = await downloadInChild(sizeMiB * 1_048_576, folder)
    if (!ok) throw new Error('the download failed')
    console.log(`${sizeMiB} MiB: ${(elapsedMs / 1_000).toFixed(2)} s, peak ${Math.round(peakMiB)} MiB`)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
